"""LoRA, reference, weights for the engine and export, on a tiny Llama saved to disk."""

import json

import pytest
import torch
from safetensors.torch import load_file

from arena_lightning.errors import ConfigError
from arena_lightning.policy.logprobs import token_logprobs
from arena_lightning.policy.model import (
    LoRAConfig,
    export_policy,
    load_policy,
    load_reference,
    named_weights_for_engine,
    reference_of,
)
from arena_lightning.policy.packing import pack
from tests.policy.conftest import random_advantages, tiny_llama


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tiny"
    tiny_llama(tie_word_embeddings=True, dtype=torch.float32).save_pretrained(path)
    (path / "tokenizer.json").write_text("{}")
    return path


@pytest.fixture
def batch(groups):
    return pack(groups[:1], random_advantages(groups)[:1], 1000, "shared_prefix")[0]


def adapted_policy(folder):
    """A policy whose adapters changed something."""
    policy = load_policy(folder, lora=LoRAConfig(rank=2, alpha=4.0))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if "lora_B" in name:
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    return policy


def test_lora_reference_is_the_base_model(folder, batch):
    policy = adapted_policy(folder)
    base = token_logprobs(load_reference(folder), batch).logprobs
    with reference_of(policy, None) as model:
        reference = token_logprobs(model, batch).logprobs
    torch.testing.assert_close(reference, base)
    assert not reference.requires_grad
    changed = token_logprobs(policy, batch).logprobs
    assert float((changed - base).abs().max().detach()) > 1e-3


def test_lora_trains_adapters_only_and_shared_prefix_reaches_them(folder, groups):
    policy = adapted_policy(folder)
    gradients = []
    for layout in ("padded", "shared_prefix"):
        policy.zero_grad()
        (batch,) = pack(groups[:1], random_advantages(groups)[:1], 1000, layout)
        token_logprobs(policy, batch).logprobs.sum().backward()
        gradients.append({n: p.grad for n, p in policy.named_parameters() if p.grad is not None})
    assert gradients[0] and all("lora_" in name for name in gradients[0])
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-3, atol=1e-4)


def test_merged_lora_weights_equal_the_forward_with_adapter(folder, batch):
    policy = adapted_policy(folder)
    with torch.no_grad():
        expected = token_logprobs(policy, batch).logprobs
        plain = load_policy(folder)
        names = {name for name, _ in plain.named_parameters()}
        weights = dict(named_weights_for_engine(policy))
        assert set(weights) == names
        plain.load_state_dict(weights, strict=False)
        torch.testing.assert_close(token_logprobs(plain, batch).logprobs, expected)


def test_merging_for_the_engine_leaves_the_base_untouched(folder):
    policy = adapted_policy(folder)
    before = {name: p.detach().clone() for name, p in policy.named_parameters()}
    for _ in range(3):
        list(named_weights_for_engine(policy))
    for name, parameter in policy.named_parameters():
        assert torch.equal(parameter, before[name])


def test_untied_head_is_synced_and_tied_head_is_not(folder):
    assert "lm_head.weight" not in dict(named_weights_for_engine(load_policy(folder)))
    assert "lm_head.weight" in dict(named_weights_for_engine(tiny_llama()))


@pytest.mark.parametrize("lora", [False, True])
def test_export_loads_as_a_normal_folder_and_replaces_an_older_one(folder, batch, tmp_path, lora):
    policy = adapted_policy(folder) if lora else load_policy(folder)
    out = tmp_path / "out"
    for _ in range(2):
        assert export_policy(policy, folder, out) == out
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in out.iterdir()}
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert not any("lora" in name for name in load_file(out / "model.safetensors"))
    with torch.no_grad():
        expected = token_logprobs(policy, batch).logprobs
        torch.testing.assert_close(token_logprobs(load_policy(out), batch).logprobs, expected)


def test_models_that_change_their_logits_are_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"final_logit_softcapping": 30.0}))
    with pytest.raises(ConfigError, match="final_logit_softcapping = 30"):
        load_policy(folder)


def test_full_training_without_a_reference_is_refused():
    model = tiny_llama()
    with (
        pytest.raises(ConfigError, match="reference must be a frozen copy"),
        reference_of(model, None),
    ):
        pass


def test_lora_rank_must_be_positive():
    with pytest.raises(ConfigError, match="rank must be at least 1, got 0"):
        LoRAConfig(rank=0)
