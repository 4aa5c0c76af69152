"""Living with vLLM in one process: what it needs before it starts, and what it must not change.

vLLM believes that the process is its own. It rewrites LD_PRELOAD and LOCAL_WORLD_SIZE, reseeds the
global generators, and on CPU replaces `torch.set_num_threads`; all of that would reach the
trainer, so it is put back.
"""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator

import torch
from torch import nn

_FOREIGN = ("LD_PRELOAD", "LOCAL_WORLD_SIZE", "NUMEXPR_MAX_THREADS")


@contextlib.contextmanager
def host_process_kept() -> Iterator[None]:
    """Put environment, thread count and generators back; keep third-party warnings quiet."""
    environment = {name: os.environ.get(name) for name in _FOREIGN}
    set_num_threads, num_threads = torch.set_num_threads, torch.get_num_threads()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            torch.set_num_threads = set_num_threads
            torch.set_num_threads(num_threads)
            for name, value in environment.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def prepare_vllm(on_cpu: bool) -> None:
    """Set what vLLM reads at its import. A user's own environment wins."""
    # In process: weights are handed over by reference, and no second copy is held.
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    # Its warnings at start are about speed on CPU; errors are raised anyhow.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    if not on_cpu:
        return
    # Pinned threads would pin the trainer too, which shares this process.
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    for name in ("torch._dynamo", "vllm.triton_utils.importing"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from vllm.platforms import current_platform

    # Inductor needs a C++ compiler, takes long, and its probe of the CPU can hang below vLLM's
    # preloaded libraries; all that it would compile here is two small functions of the sampler.
    current_platform.simple_compile_backend = "eager"


def repack_tied_head(model: nn.Module) -> None:
    """Rebuild the packed copy of an embedding that is also the head, after its weights changed.

    On CPU vLLM multiplies by a packed copy of each weight. `reload_weights` renews the copies of
    the layers it loads, but a tied head isn't loaded: its copy would keep the old weights while the
    embedding has the new ones. Elsewhere there is no copy and nothing happens.
    """
    for module in model.modules():
        if hasattr(module, "cpu_linear") and hasattr(module, "num_embeddings"):
            module.quant_method.process_weights_after_loading(module)
