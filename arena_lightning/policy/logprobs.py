"""Per-token log-probabilities of trained tokens only, without ever holding full logits.

The transformer body runs over a micro-batch's rows (and its shared prefix, once); the hidden
states that predict a trained token are picked out; the language-model head and the log-softmax run
on those in chunks that are recomputed in the backward pass. Nothing here knows what the loss does
with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache

from arena_lightning.policy.fast_llama import FastLlama, supports
from arena_lightning.policy.model import body_and_head
from arena_lightning.policy.packing import MicroBatch

Precision = Literal["float32", "bfloat16", "float64"]
CHUNK_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Shapes: `logprobs` float32 `[token]`; `entropy` float32 `[token]`, no gradient, or None."""

    logprobs: torch.Tensor
    entropy: torch.Tensor | None


def token_logprobs(
    model: nn.Module,
    batch: MicroBatch,
    temperature: float = 1.0,
    with_entropy: bool = False,
    precision: Precision = "float32",
    chunk_tokens: int = CHUNK_TOKENS,
    use_kernels: bool = True,
) -> TokenLogprobs:
    """Return log-probabilities of the micro-batch's trained tokens under `model`.

    Args:
        model: a causal LM from `load_policy` (LoRA included), or a reference.
        batch: rows of either layout; both give the same numbers and the same gradient.
        temperature: the sampling temperature; logits are divided by it, as the engine does.
        with_entropy: also return the entropy of each token's distribution (for metrics).
        precision: dtype of the matrix products; parameters, their gradients and the log-softmax
            stay as they are (float32).
        chunk_tokens: tokens whose logits exist at one time.
        use_kernels: below float32, let a plain Llama on a CPU run through `fast_llama`.
    """
    dtype = getattr(torch, precision)
    if use_kernels and precision != "float32" and supports(model):
        fast = FastLlama(model, dtype)
        logprobs, entropy = fast.logprobs(batch, temperature, with_entropy, chunk_tokens)
        return TokenLogprobs(logprobs, entropy if with_entropy else None)
    body, head = body_and_head(model)
    with torch.autocast(batch.ids.device.type, dtype, enabled=precision == "bfloat16"):
        states = hidden_states(body, batch).index_select(0, batch.positions)
        return chunked_logprobs(
            head, states, batch.targets, temperature, with_entropy, chunk_tokens
        )


def hidden_states(body: nn.Module, batch: MicroBatch) -> torch.Tensor:
    """Run the transformer body; return the last hidden states of `batch.ids`, `[token hidden]`.

    Rows are padded at the right and attention is causal, so padding can't reach a real token and
    needs no mask.
    """
    lengths = batch.lengths.tolist()
    waiting = iter(batch.ids.split(lengths))
    prefix_lengths = batch.prefix_lengths.tolist()
    prefixes = [None] if batch.prefix_ids is None else batch.prefix_ids.split(prefix_lengths)
    states = []
    for prefix, num_rows in zip(prefixes, batch.block_rows.tolist(), strict=True):
        rows = [next(waiting) for _ in range(num_rows)]
        hidden = _block_states(body, prefix, pad_sequence(rows, batch_first=True))
        states += [state[: len(row)] for state, row in zip(hidden, rows, strict=True)]
    return torch.cat(states)


def _block_states(body: nn.Module, prefix: torch.Tensor | None, ids: torch.Tensor) -> torch.Tensor:
    """Run rows `[row seq]` that continue `prefix`; return their states, `[row seq hidden]`."""
    if prefix is None:
        return body(input_ids=ids, use_cache=False).last_hidden_state
    cache = DynamicCache(config=body.config)
    body(input_ids=prefix[None], past_key_values=cache, use_cache=True)
    # expand() keeps one copy; its backward sums the rows' gradients into the prefix.
    for layer in cache.layers:
        layer.keys = layer.keys.expand(len(ids), -1, -1, -1)
        layer.values = layer.values.expand(len(ids), -1, -1, -1)
    return body(input_ids=ids, past_key_values=cache, use_cache=True).last_hidden_state


def chunked_logprobs(
    head: Callable[[torch.Tensor], torch.Tensor],
    hidden: torch.Tensor,
    targets: torch.Tensor,
    temperature: float = 1.0,
    with_entropy: bool = False,
    chunk_tokens: int = CHUNK_TOKENS,
) -> TokenLogprobs:
    """Return log softmax(head(hidden) / temperature) at `targets`.

    Shapes: `hidden` `[token hidden]`, `targets` int64 `[token]`. Each chunk's logits are dropped
    after use and computed again in the backward pass.
    """
    logprobs, entropies = [], []
    for chunk, chosen in zip(hidden.split(chunk_tokens), targets.split(chunk_tokens), strict=True):
        if torch.is_grad_enabled():
            picked, entropy = checkpoint(
                _head_logprobs,
                head,
                chunk,
                chosen,
                temperature,
                with_entropy,
                use_reentrant=False,
                preserve_rng_state=False,
            )
        else:
            picked, entropy = _head_logprobs(head, chunk, chosen, temperature, with_entropy)
        logprobs.append(picked)
        entropies.append(entropy)
    return TokenLogprobs(torch.cat(logprobs), torch.cat(entropies) if with_entropy else None)


def _head_logprobs(
    head: Callable[[torch.Tensor], torch.Tensor],
    hidden: torch.Tensor,
    targets: torch.Tensor,
    temperature: float,
    with_entropy: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return _PickedLogSoftmax.apply(head(hidden), targets, temperature, with_entropy)


class _PickedLogSoftmax(torch.autograd.Function):
    """log softmax(logits / temperature)[target] in at least float32, saving only the logits."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        logits: torch.Tensor,
        targets: torch.Tensor,
        temperature: float,
        with_entropy: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs = torch.log_softmax(_scaled(logits, temperature), dim=-1)
        picked = logprobs.gather(-1, targets[:, None])[:, 0]
        entropy = torch.zeros_like(picked)
        if with_entropy:
            entropy = -(logprobs.exp() * logprobs).sum(-1)
        ctx.save_for_backward(logits, targets)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(entropy)
        return picked, entropy

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx,
        gradient: torch.Tensor,
        _entropy_gradient: torch.Tensor,
    ) -> tuple[torch.Tensor, None, None, None]:
        logits, targets = ctx.saved_tensors
        probabilities = torch.softmax(_scaled(logits, ctx.temperature), dim=-1)
        scale = (gradient / ctx.temperature)[:, None]
        # d log p[target] / d logits = (one_hot(target) - p) / temperature
        probabilities.mul_(-scale).scatter_add_(-1, targets[:, None], scale)
        return probabilities.to(logits.dtype), None, None, None


def _scaled(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return logits / temperature in float32 (float64 stays float64)."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return logits if temperature == 1.0 else logits / temperature
