"""Differentiable building blocks of a Llama layer for CPUs, with few passes over memory.

Each block is an autograd function with its backward written out: matrix products run in the dtype
of the weights given (bfloat16 uses the AMX or AVX-512 units), normalisation and parameter gradients
in the parameters' own dtype. Tokens come flat (`[token, ...]`), without padding. Attention is in
`attention.py`; `fast_llama.py` strings the blocks together, nothing here knows about models.
"""

from typing import Any

import torch
from torch.autograd import Function
from torch.nn.functional import silu


class RMSNorm(Function):
    """x / rms(x) * weight / divisor, computed in x's dtype and returned in `dtype`.

    x is `[token hidden]`; the divisor is applied before rounding to `dtype`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        eps: float,
        dtype: torch.dtype,
        divisor: float,
    ) -> torch.Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        inverse_rms = (norm.square() / x.shape[-1] + eps).rsqrt()
        weight = weight if divisor == 1.0 else weight / divisor
        ctx.save_for_backward(x, weight, inverse_rms)
        ctx.divisor = divisor
        return (x * inverse_rms).mul_(weight).to(dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, inverse_rms = ctx.saved_tensors
        gradient = gradient.to(x.dtype)
        normalised = x * inverse_rms
        product = gradient * normalised
        weight_gradient = product.sum(0) / ctx.divisor if ctx.needs_input_grad[1] else None
        # d x = (w g - normalised * mean(w g normalised)) / rms
        mean = product.matmul(weight)[:, None] / x.shape[-1]
        x_gradient = (gradient * weight).sub_(normalised.mul_(mean)).mul_(inverse_rms)
        return x_gradient, weight_gradient, None, None, None


class Linear(Function):
    """x @ cast^T, where `cast` is the stacked low-precision copy of `weights` (out, in).

    The gradients of `weights` are returned in their own dtype.
    """

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, cast: torch.Tensor, *weights: torch.Tensor
    ) -> torch.Tensor:
        ctx.save_for_backward(x, cast)
        ctx.sizes = [weight.shape[0] for weight in weights]
        ctx.dtype = weights[0].dtype
        return x @ cast.t()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, cast = ctx.saved_tensors
        x_gradient = gradient @ cast if ctx.needs_input_grad[0] else None
        if not any(ctx.needs_input_grad[2:]):
            return x_gradient, None, *[None] * len(ctx.sizes)
        stacked = (gradient.t() @ x).to(ctx.dtype)
        return x_gradient, None, *stacked.split(ctx.sizes)


class HeadLogprobs(Function):
    """log softmax(states @ cast^T)[target] and the entropy, in chunks of tokens.

    `cast` is the low-precision copy of `weight` (vocab, hidden). Logits exist for one chunk at a
    time: the backward pass computes them again instead of keeping them.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        cast: torch.Tensor,
        weight: torch.Tensor,
        targets: torch.Tensor,
        chunk_tokens: int,
        with_entropy: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        dtype = torch.promote_types(states.dtype, torch.float32)
        picked = torch.empty(len(targets), dtype=dtype, device=states.device)
        normaliser, entropy = torch.empty_like(picked), torch.zeros_like(picked)
        for low in range(0, len(targets), chunk_tokens):
            part = slice(low, low + chunk_tokens)
            logits = (states[part] @ cast.t()).to(dtype)
            chosen = logits.gather(-1, targets[part, None])[:, 0]
            logprobs = torch.log_softmax(logits, dim=-1)
            picked[part] = logprobs.gather(-1, targets[part, None])[:, 0]
            normaliser[part] = chosen - picked[part]
            if with_entropy:
                entropy[part] = -logprobs.exp().mul_(logprobs).sum(-1)
        ctx.save_for_backward(states, cast, targets, normaliser)
        ctx.chunk_tokens, ctx.weight_dtype = chunk_tokens, weight.dtype
        ctx.mark_non_differentiable(entropy)
        return picked, entropy

    @staticmethod
    def backward(
        ctx: Any, gradient: torch.Tensor, _: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        states, cast, targets, normaliser = ctx.saved_tensors
        states_gradient = torch.empty_like(states)
        weight_gradient = None
        for low in range(0, len(targets), ctx.chunk_tokens):
            part = slice(low, low + ctx.chunk_tokens)
            logits = (states[part] @ cast.t()).to(normaliser.dtype)
            probabilities = logits.sub_(normaliser[part, None]).exp_()
            scale = gradient[part, None]
            # d log p[target] / d logits = one_hot(target) - p
            probabilities.mul_(-scale).scatter_add_(-1, targets[part, None], scale)
            probabilities = probabilities.to(cast.dtype)
            torch.mm(probabilities, cast, out=states_gradient[part])
            if ctx.needs_input_grad[2]:
                share = (probabilities.t() @ states[part]).to(ctx.weight_dtype)
                weight_gradient = share if weight_gradient is None else weight_gradient.add_(share)
        return states_gradient, None, weight_gradient, None, None, None


class SwiGLULinear(Function):
    """(silu(gate) * up) @ cast^T, for `gate_up` `[token 2 * inner]` holding gate then up.

    `cast` is the low-precision copy of `weight`. The product's input is computed again in the
    backward pass: it would be a third of all kept activations.
    """

    @staticmethod
    def forward(
        ctx: Any, gate_up: torch.Tensor, cast: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        ctx.save_for_backward(gate_up, cast)
        ctx.dtype = weight.dtype
        gate, up = gate_up.chunk(2, dim=-1)
        return silu(gate).mul_(up) @ cast.t()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        gate_up, cast = ctx.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        activated = silu(gate)
        result = torch.empty_like(gate_up)
        gate_gradient, up_gradient = result.chunk(2, dim=-1)
        inner_gradient = gradient @ cast
        torch.mul(inner_gradient, activated, out=up_gradient)
        gate_gradient.copy_(torch.ops.aten.silu_backward(inner_gradient.mul_(up), gate))
        weight_gradient = None
        if ctx.needs_input_grad[2]:
            weight_gradient = (gradient.t() @ activated.mul_(up)).to(ctx.dtype)
        return result, None, weight_gradient
