"""What of vLLM can be said without starting it; the rest is in `tests/contracts`."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch

from arena_lightning.errors import ConfigError, RolloutError
from arena_lightning.rollout.engine import Request
from arena_lightning.rollout.vllm_engine import VLLMEngine
from arena_lightning.rollout.vllm_host import host_process_kept


def test_a_missing_vllm_is_said_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install \"arena_lightning\[cpu\]\""):
        VLLMEngine().check()


@pytest.mark.parametrize(
    "options", [{"max_num_seqs": 0}, {"kv_cache_gib": 0.0}, {"gpu_memory_fraction": 1.5}]
)
def test_settings_out_of_range_are_refused(options: dict[str, float]):
    with pytest.raises(ConfigError, match=r"arena\.engine"):
        VLLMEngine(**options)


def test_an_engine_that_was_not_started_says_so():
    with pytest.raises(RolloutError, match="must be started first"):
        VLLMEngine().add(Request(0, (1,), 1, 1.0, 0))


def test_what_vllm_does_to_the_process_is_put_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    set_num_threads, threads = torch.set_num_threads, torch.get_num_threads()
    state = torch.get_rng_state()
    with pytest.raises(ValueError, match="inside"), host_process_kept():
        os.environ |= {"LD_PRELOAD": "libx.so", "LOCAL_WORLD_SIZE": "1"}
        torch.set_num_threads(1)
        torch.set_num_threads = lambda number: None
        torch.manual_seed(5)
        raise ValueError("inside")
    assert "LD_PRELOAD" not in os.environ
    assert os.environ["LOCAL_WORLD_SIZE"] == "2"
    assert torch.set_num_threads is set_num_threads
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_importing_the_engine_imports_neither_vllm_nor_transformers():
    code = (
        "import sys, arena_lightning.rollout.vllm_engine, arena_lightning.rollout.session, "
        "arena_lightning.rollout.transformers_engine, arena_lightning.rollout.formats; "
        "print([m for m in ('vllm', 'transformers') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
