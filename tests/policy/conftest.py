"""A tiny Llama and random trajectories, shared by the policy tests."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from arena_lightning.rng import generator_for, seed_for
from arena_lightning.types import Group, Prompt, Segment, Trajectory

VOCAB = 41


def tiny_llama(tie_word_embeddings: bool = False, dtype: torch.dtype = torch.float64):
    """Two layers, grouped key-value heads, weights big enough for attention to matter."""
    with torch.random.fork_rng():
        torch.manual_seed(seed_for(0, "tests/tiny_llama") % 2**31)
        config = LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=128,
            tie_word_embeddings=tie_word_embeddings,
            initializer_range=0.4,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
        model = LlamaForCausalLM._from_config(config, attn_implementation="sdpa")
    return model.to(dtype).train()


def random_groups(num_groups: int = 2, group_size: int = 3, seed: int = 0) -> list[Group]:
    """Groups with a shared prompt, then policy and tool segments of random lengths."""
    draw = generator_for(seed, "tests/groups")
    groups = []
    for g in range(num_groups):
        prompt_ids = tuple(int(i) for i in draw.integers(3, VOCAB, draw.integers(3, 9)))
        trajectories = []
        for n in range(group_size):
            segments = [Segment("prompt", prompt_ids)]
            for emitter in ("policy", "tool", "policy")[: 1 + 2 * int(draw.integers(0, 2))]:
                ids = tuple(int(i) for i in draw.integers(3, VOCAB, draw.integers(1, 7)))
                policy = emitter == "policy"
                logprobs = tuple(float(-x) for x in draw.uniform(0.5, 5, len(ids)))
                segments.append(Segment(emitter, ids, logprobs if policy else ()))
            trajectories.append(Trajectory(f"p{g}", (), tuple(segments), index=n))
        groups.append(Group(Prompt(f"p{g}", "query"), tuple(trajectories)))
    return groups


def random_advantages(groups: list[Group], seed: int = 0) -> list[np.ndarray]:
    draw = generator_for(seed, "tests/advantages")
    return [draw.normal(size=len(group)) for group in groups]


@pytest.fixture
def llama():
    return tiny_llama()


@pytest.fixture
def groups():
    return random_groups()
