"""The CPU kernels in float64 against the Hugging Face modules (whose norms stay in float32)."""

import pytest
import torch

from arena_lightning.policy import attention
from arena_lightning.policy.logprobs import token_logprobs
from arena_lightning.policy.packing import pack
from tests.policy.conftest import random_advantages, tiny_llama


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
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    for name, gradient in expected_gradient.items():
        torch.testing.assert_close(actual_gradient[name], gradient, rtol=1e-5, atol=1e-5)
