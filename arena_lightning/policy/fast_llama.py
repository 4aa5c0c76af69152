"""The Llama transformer body on CPUs in low precision: fast, with master weights left as they are.

Parameters keep their dtype (float32); a low-precision copy of them does the matrix products, the
residual stream and all parameter gradients stay in the parameters' dtype. Tokens run flat, without
padding, a group's shared prompt once. What isn't a plain Llama is not touched: `supports` says so,
and the caller runs the Hugging Face modules instead.
"""

import torch
from torch import nn
from torch.nn import functional
from transformers import LlamaForCausalLM

from arena_lightning.policy.attention import RotaryAttention, RowLayout
from arena_lightning.policy.kernels import HeadLogprobs, Linear, RMSNorm, SwiGLULinear
from arena_lightning.policy.packing import MicroBatch


def supports(model: nn.Module) -> bool:
    """True for a plain Llama whose whole, unadapted weights lie on the CPU."""
    if not isinstance(model, LlamaForCausalLM):
        return False
    config = model.config
    plain = (
        not config.attention_bias
        and not config.mlp_bias
        and config.hidden_act == "silu"
        and config.rope_parameters["rope_type"] == "default"
        and not config.attention_dropout
    )
    if not plain:
        return False
    linears = [model.lm_head]
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        linears += [attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj]
        linears += [mlp.gate_proj, mlp.up_proj, mlp.down_proj]
    # An adapter replaces a linear layer by another class.
    return all(type(linear) is nn.Linear and _is_whole(linear.weight) for linear in linears)


def _is_whole(weight: torch.Tensor) -> bool:
    """False on another device, and for a partitioned parameter (ZeRO-3 leaves an empty one)."""
    return weight.device.type == "cpu" and weight.numel() > 0


class FastLlama:
    """One weight copy's worth of computing: make it anew after the weights have changed."""

    def __init__(self, model: LlamaForCausalLM, dtype: torch.dtype) -> None:
        """Copy the weights in `dtype`; about 0.1 s for 135M parameters."""
        self._model = model
        self._dtype = dtype
        with torch.no_grad():
            self._layers = [self._cast_layer(layer) for layer in model.model.layers]
            self._head = model.lm_head.weight.to(dtype)

    def _cast_layer(self, layer: nn.Module) -> list[tuple[torch.Tensor, tuple[torch.Tensor, ...]]]:
        attention, mlp = layer.self_attn, layer.mlp
        stacks = (
            (attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight),
            (attention.o_proj.weight,),
            (mlp.gate_proj.weight, mlp.up_proj.weight),
            (mlp.down_proj.weight,),
        )
        return [
            (torch.cat([weight.to(self._dtype) for weight in stack]), stack) for stack in stacks
        ]

    def logprobs(
        self, batch: MicroBatch, temperature: float, with_entropy: bool, chunk_tokens: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log-probabilities and entropies (zeros if not wanted) of trained tokens."""
        states = self._predicting_states(batch, temperature)
        weight = self._model.lm_head.weight
        return HeadLogprobs.apply(
            states, self._head, weight, batch.targets, chunk_tokens, with_entropy
        )

    def _predicting_states(self, batch: MicroBatch, temperature: float) -> torch.Tensor:
        """Return the final hidden states before each trained token / temperature."""
        body = self._model.model
        layout, ids, position_ids = _flatten(batch)
        hidden = functional.embedding(ids, body.embed_tokens.weight)
        cos, sin = body.rotary_emb(hidden, position_ids[None])
        half = cos.shape[-1] // 2
        cos, sin = (angle[0, :, :half].to(self._dtype) for angle in (cos, sin))
        for layer, stacks in zip(body.layers, self._layers, strict=True):
            hidden = self._run_layer(layer, stacks, hidden, cos, sin, layout)
        picked = hidden.index_select(0, batch.positions + layout.num_prefix_tokens)
        norm = body.norm
        return RMSNorm.apply(picked, norm.weight, norm.variance_epsilon, self._dtype, temperature)

    def _run_layer(
        self,
        layer: nn.Module,
        stacks: list[tuple[torch.Tensor, tuple[torch.Tensor, ...]]],
        hidden: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        layout: RowLayout,
    ) -> torch.Tensor:
        qkv, out, gate_up, down = stacks
        config = self._model.config
        norm = layer.input_layernorm
        x = RMSNorm.apply(hidden, norm.weight, norm.variance_epsilon, self._dtype, 1.0)
        x = RotaryAttention.apply(
            Linear.apply(x, qkv[0], *qkv[1]),
            cos,
            sin,
            layout,
            config.num_attention_heads,
            config.num_key_value_heads,
        )
        hidden = hidden + Linear.apply(x, out[0], *out[1]).to(hidden.dtype)
        norm = layer.post_attention_layernorm
        x = RMSNorm.apply(hidden, norm.weight, norm.variance_epsilon, self._dtype, 1.0)
        x = SwiGLULinear.apply(Linear.apply(x, gate_up[0], *gate_up[1]), down[0], *down[1])
        return hidden + x.to(hidden.dtype)


def _flatten(batch: MicroBatch) -> tuple[RowLayout, torch.Tensor, torch.Tensor]:
    """Return the layout, flat ids and flat position ids, prefix first."""
    layout = RowLayout(
        tuple(batch.prefix_lengths.tolist()),
        tuple(batch.block_rows.tolist()),
        tuple(batch.lengths.tolist()),
    )
    ids = batch.ids if batch.prefix_ids is None else torch.cat([batch.prefix_ids, batch.ids])
    position_ids = torch.empty_like(ids)
    for own, prefix in layout.spans:
        first = prefix.stop - prefix.start
        position_ids[own] = torch.arange(first, first + own.stop - own.start)
    return layout, ids, position_ids
