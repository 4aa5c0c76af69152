"""The CPU kernels in float64 against the Hugging Face modules."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from arena_lightning.policy import attention
from arena_lightning.policy.fast_llama import supports
from arena_lightning.policy.logprobs import token_logprobs
from arena_lightning.policy.packing import pack
from tests.policy.conftest import random_advantages, tiny_llama


@pytest.fixture(autouse=True)
def norms_in_float64(monkeypatch):
    """Hugging Face computes norms in float32; float64 lets the comparison be tight."""

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * (x * scale)

    monkeypatch.setattr(LlamaRMSNorm, "forward", forward)


def logprobs_and_gradient(model, batches, precision):
    model.zero_grad()
    logprobs = [token_logprobs(model, b, 0.7, precision=precision).logprobs for b in batches]
    flat = torch.cat(logprobs)
    weights = torch.linspace(-1, 2, flat.numel(), dtype=flat.dtype)
    (flat * weights).sum().backward()
    return flat.detach(), {n: p.grad.clone() for n, p in model.named_parameters()}


@pytest.mark.parametrize("layout", ["padded", "shared_prefix"])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("query_block", [3, 128])
def test_kernels_equal_hugging_face_in_float64(groups, layout, tied, query_block, monkeypatch):
    monkeypatch.setattr(attention, "QUERY_BLOCK", query_block)
    model = tiny_llama(tied)
    batches = pack(groups, random_advantages(groups), 1000, layout)
    expected, expected_gradient = logprobs_and_gradient(model, batches, "float32")
    actual, actual_gradient = logprobs_and_gradient(model, batches, "float64")
    torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-9)
    for name, gradient in expected_gradient.items():
        torch.testing.assert_close(actual_gradient[name], gradient, rtol=1e-7, atol=1e-9)


def test_only_a_plain_llama_runs_through_the_kernels():
    model = tiny_llama()
    assert supports(model)
    model.config.attention_bias = True
    assert not supports(model)
    adapted = get_peft_model(tiny_llama(), LoraConfig(r=2, target_modules="all-linear"))
    assert not supports(adapted) and not supports(adapted.get_base_model())
