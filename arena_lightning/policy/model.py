"""The policy as a Hugging Face causal LM: loading, LoRA, reference, weights for the engine, export.

The reference is a frozen copy, or with LoRA the same model with its adapter switched off, so that
no second model is held. Weights leave this room under Hugging Face names, with LoRA merged into a
temporary (the base is never written to, so it can't drift). Nothing here optimises anything.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from arena_lightning.errors import ConfigError

DType = Literal["float32", "bfloat16", "float64"]
_LOGIT_CHANGERS = ("final_logit_softcapping", "logit_scale", "logits_scaling", "logits_divider")


@dataclass(frozen=True, slots=True)
class LoRAConfig:
    """Low-rank adapters on the body's linear layers."""

    rank: int = 32
    """Rank of each adapter."""
    alpha: float = 64.0
    """The adapter's output is scaled by alpha / rank."""
    dropout: float = 0.0
    """Dropout inside adapters. Keep 0 in RL: dropout makes the policy differ from the sampler."""
    target_modules: str | list[str] = "all-linear"
    """Module names to adapt; `all-linear` is every linear layer but the head."""

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ConfigError(
                f"rank must be at least 1, got {self.rank} (lora.rank). Use 8 to 64, or no lora."
            )


def load_policy(
    path: Path | str, dtype: DType = "float32", lora: LoRAConfig | None = None
) -> PreTrainedModel | PeftModel:
    """Load a local Hugging Face folder as a trainable causal LM in train mode.

    With `lora`, only adapters require a gradient; a fresh adapter changes nothing (B is zero).

    Raises:
        ConfigError: the model changes its logits after the head (soft-capping, scaling), which the
            chunked log-probabilities would miss.
    """
    model = AutoModelForCausalLM.from_pretrained(
        str(path), dtype=getattr(torch, dtype), attn_implementation="sdpa", local_files_only=True
    )
    for name in _LOGIT_CHANGERS:
        value = getattr(model.config, name, None)
        if value not in (None, 1, 1.0):
            raise ConfigError(
                f"the model must use its head's logits as they are, got {name} = {value} "
                f"({path}/config.json). Choose a model without logit scaling or soft-capping."
            )
    if lora is not None:
        model = get_peft_model(
            model,
            LoraConfig(
                r=lora.rank,
                lora_alpha=lora.alpha,
                lora_dropout=lora.dropout,
                target_modules=lora.target_modules,
                task_type="CAUSAL_LM",
            ),
            autocast_adapter_dtype=False,
        )
    return model.train()


def load_reference(path: Path | str, dtype: DType = "float32") -> PreTrainedModel:
    """Load a frozen reference in eval mode (not needed with LoRA, see `reference_of`)."""
    model = load_policy(path, dtype)
    return model.requires_grad_(False).eval()


@contextlib.contextmanager
def reference_of(policy: nn.Module, reference: nn.Module | None) -> Iterator[nn.Module]:
    """Yield the model to read reference log-probabilities from, without gradient.

    A given `reference` is yielded as it is; None means LoRA, whose adapter is switched off inside.

    Raises:
        ConfigError: no reference and no adapter to switch off.
    """
    with torch.no_grad():
        if reference is not None:
            yield reference
        elif isinstance(policy, PeftModel):
            with policy.disable_adapter():
                yield policy
        else:
            raise ConfigError(
                "a reference must be a frozen copy when the whole model is trained, got none "
                "(model.reference). Load one, use lora, or set kl_coef to 0."
            )


def body_and_head(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    """Return the transformer body (ids -> hidden states) and the language-model head."""
    base = model.get_base_model() if isinstance(model, PeftModel) else model
    return base.base_model, base.get_output_embeddings()


def named_weights_for_engine(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (Hugging Face name, detached tensor) of every weight, one at a time.

    A tied `lm_head.weight` is skipped. LoRA is merged as W + scale * B A into a new tensor.
    """
    base = model.get_base_model() if isinstance(model, PeftModel) else model
    adapted = {name: module for name, module in base.named_modules() if _is_adapted(module)}
    tied = getattr(base.config, "tie_word_embeddings", False)
    with torch.no_grad():
        for name, parameter in base.named_parameters():
            owner, _, leaf = name.rpartition(".")
            if ".lora_" in name or (tied and name == "lm_head.weight"):
                continue
            if not owner.endswith(".base_layer"):
                yield name, parameter.detach()
                continue
            owner = owner.removesuffix(".base_layer")
            tensor = parameter.detach()
            if leaf == "weight":
                tensor = tensor + _adapter_delta(adapted[owner])
            yield f"{owner}.{leaf}", tensor


def export_policy(model: nn.Module, tokenizer_dir: Path | str, out_dir: Path | str) -> Path:
    """Write `model` as a normal Hugging Face folder (LoRA merged) and return its path.

    The folder appears complete or not at all; an older one is replaced. Tokenizer and generation
    settings are copied from `tokenizer_dir`.
    """
    base = model.get_base_model() if isinstance(model, PeftModel) else model
    out_dir = Path(out_dir)
    out_dir.parent.mkdir(parents=True, exist_ok=True)
    weights = dict(named_weights_for_engine(model))
    with tempfile.TemporaryDirectory(dir=out_dir.parent, prefix=f".{out_dir.name}.") as temporary:
        target = Path(temporary) / "model"
        base.save_pretrained(target, state_dict={k: v.contiguous() for k, v in weights.items()})
        for source in sorted(Path(tokenizer_dir).iterdir()):
            if _is_tokenizer_file(source.name):
                shutil.copyfile(source, target / source.name)
        if out_dir.exists():
            os.replace(out_dir, Path(temporary) / "old")
        os.replace(target, out_dir)
    return out_dir


def _is_tokenizer_file(name: str) -> bool:
    known = ("tokenizer", "special_tokens_map", "vocab", "merges", "chat_template", "added_tokens")
    return name.startswith(known) or name == "generation_config.json" or name.endswith(".model")


def _is_adapted(module: nn.Module) -> bool:
    return isinstance(module, LoraLayer)


def _adapter_delta(layer: LoraLayer) -> torch.Tensor:
    """Sum of the active adapters' weight changes, in the shape of the base weight."""
    return sum(layer.get_delta_weight(name) for name in layer.active_adapters)
