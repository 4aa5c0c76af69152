"""The benchmark measures what it says, on a tiny model."""

import pytest
import torch

from arena_lightning.policy.benchmark import RECIPES, measure, text_group
from tests.policy.conftest import tiny_llama


def test_the_group_has_the_sizes_asked_for():
    group = text_group(range(3, 40), rows=3, tokens=20, prompt=6)
    assert [t.num_tokens for t in group.trajectories] == [20, 20, 20]
    assert [t.num_policy_tokens for t in group.trajectories] == [8, 8, 8]
    assert len({t.segments[0].ids for t in group.trajectories}) == 1
    assert len({t.segments[1].ids for t in group.trajectories}) == 3


@pytest.mark.parametrize("recipe", [r for r in RECIPES if not r.lora], ids=lambda r: r.name)
def test_every_recipe_computes_the_same_logprobs(recipe):
    model = tiny_llama(dtype=torch.float32)
    group = text_group(range(3, 40), rows=3, tokens=20, prompt=6)
    exact = measure(model, group, RECIPES[0], 1000).logprobs
    found = measure(model, group, recipe, 30)
    assert found.tokens_per_s > 0 and found.tokens_per_core_s > 0
    torch.testing.assert_close(found.logprobs, exact, rtol=0.1, atol=0.3)
