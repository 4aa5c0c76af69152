"""Chunked log-probabilities against torch's log-softmax, and the low-precision recipe's error."""

import pytest
import torch
from torch import nn

from arena_lightning.policy.kernels import HeadLogprobs
from arena_lightning.policy.logprobs import chunked_logprobs, token_logprobs
from arena_lightning.policy.packing import pack
from tests.policy.conftest import random_advantages, tiny_llama

NUM_TOKENS, HIDDEN, VOCAB = 7, 5, 11


def problem():
    generator = torch.Generator().manual_seed(3)
    head = nn.Linear(HIDDEN, VOCAB, bias=False, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.randn(VOCAB, HIDDEN, generator=generator, dtype=torch.float64))
    hidden = torch.randn(NUM_TOKENS, HIDDEN, generator=generator, dtype=torch.float64)
    targets = torch.randint(0, VOCAB, (NUM_TOKENS,), generator=generator)
    weights = torch.randn(NUM_TOKENS, generator=generator, dtype=torch.float64)
    return head, hidden.requires_grad_(), targets, weights


def plain(head, hidden, targets, temperature):
    table = torch.log_softmax(head(hidden) / temperature, dim=-1)
    entropy = -(table.exp() * table).sum(-1)
    return table[torch.arange(NUM_TOKENS), targets], entropy.detach()


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("chunk_tokens", [1, 3, 100])
def test_chunks_equal_log_softmax_and_its_gradient(temperature, chunk_tokens):
    head, hidden, targets, weights = problem()
    inputs = (hidden, head.weight)
    logprobs, entropy = plain(head, hidden, targets, temperature)
    gradients = torch.autograd.grad((logprobs * weights).sum(), inputs)
    chunked = chunked_logprobs(head, hidden, targets, temperature, True, chunk_tokens)
    torch.testing.assert_close(chunked.logprobs, logprobs)
    torch.testing.assert_close(chunked.entropy, entropy)
    actual = torch.autograd.grad((chunked.logprobs * weights).sum(), inputs)
    for mine, theirs in zip(actual, gradients, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("chunk_tokens", [3, 100])
def test_head_kernel_equals_log_softmax_and_its_gradient(chunk_tokens):
    head, hidden, targets, weights = problem()
    inputs = (hidden, head.weight)
    logprobs, entropy = plain(head, hidden, targets, 1.0)
    gradients = torch.autograd.grad((logprobs * weights).sum(), inputs)
    mine, mine_entropy = HeadLogprobs.apply(
        hidden, head.weight.detach(), head.weight, targets, chunk_tokens, True
    )
    torch.testing.assert_close(mine, logprobs)
    torch.testing.assert_close(mine_entropy, entropy)
    actual = torch.autograd.grad((mine * weights).sum(), inputs)
    for ours, theirs in zip(actual, gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_log_softmax_is_float32_under_bfloat16_logits():
    head, hidden, targets, _ = problem()
    head, hidden = head.to(torch.bfloat16), hidden.detach().to(torch.bfloat16)
    chunked = chunked_logprobs(head, hidden, targets)
    assert chunked.logprobs.dtype == torch.float32
    logits = head(hidden).float()
    expected = torch.log_softmax(logits, dim=-1)[torch.arange(NUM_TOKENS), targets]
    torch.testing.assert_close(chunked.logprobs, expected)


@pytest.mark.parametrize("layout", ["padded", "shared_prefix"])
def test_bfloat16_stays_near_float32_and_leaves_float32_gradients(groups, layout):
    model = tiny_llama(dtype=torch.float32)
    (batch,) = pack(groups[:1], random_advantages(groups)[:1], 1000, layout)
    exact = token_logprobs(model, batch).logprobs
    low = token_logprobs(model, batch, precision="bfloat16").logprobs
    low.sum().backward()
    assert low.dtype == torch.float32
    assert 0 < float((low - exact).abs().mean().detach()) < 0.05
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}


def test_entropy_is_returned_when_asked_for(groups):
    model = tiny_llama()
    (batch,) = pack(groups[:1], random_advantages(groups)[:1], 1000, "padded")
    assert token_logprobs(model, batch).entropy is None
    plain_entropy = token_logprobs(model, batch, with_entropy=True).entropy
    fast_entropy = token_logprobs(model, batch, with_entropy=True, precision="float64").entropy
    torch.testing.assert_close(plain_entropy, fast_entropy, rtol=1e-5, atol=1e-5)
