"""The prompt stream: every prompt once an epoch, resumable anywhere, never ahead of the trainer."""

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.training.data import PromptStream
from arena_lightning.types import Prompt

PROMPTS = [Prompt(f"p{i}", f"query {i}") for i in range(10)]


def ids(batches):
    return [[prompt.prompt_id for prompt in batch.prompts] for batch in batches]


def test_each_epoch_visits_every_prompt_once_in_another_order():
    batches = ids(PromptStream(PROMPTS, 5, 4, seed=0))
    first, second = sum(batches[:2], []), sum(batches[2:], [])
    assert sorted(first) == sorted(second) == [p.prompt_id for p in PROMPTS]
    assert first != second


def test_an_epoch_boundary_inside_a_step_neither_skips_nor_repeats():
    flat = sum(ids(PromptStream(PROMPTS, 4, 5, seed=0)), [])
    assert sorted(flat[:10]) == sorted(flat[10:]) == [p.prompt_id for p in PROMPTS]


def test_resuming_at_any_step_goes_on_where_it_was():
    whole = ids(PromptStream(PROMPTS, 3, 7, seed=1))
    for stop in range(7):
        stream = PromptStream(PROMPTS, 3, 7, seed=1)
        iterator = iter(stream)
        for _ in range(stop):
            next(iterator)
        resumed = PromptStream(PROMPTS, 3, 7, seed=1)
        resumed.load_state_dict(stream.state_dict())
        assert ids(resumed) == whole[stop:]


def test_processes_share_out_a_step_without_overlap():
    whole = ids(PromptStream(PROMPTS, 4, 3, seed=2))
    halves = [ids(PromptStream(PROMPTS, 4, 3, seed=2, process=(r, 2))) for r in range(2)]
    for step in range(3):
        assert sorted(halves[0][step] + halves[1][step]) == sorted(whole[step])


@pytest.mark.parametrize(
    "other",
    [
        PromptStream(PROMPTS[:9], 3, 7, seed=1),
        PromptStream(PROMPTS, 2, 7, seed=1),
        PromptStream(PROMPTS, 3, 7, seed=5),
    ],
)
def test_a_checkpoint_of_other_prompts_is_refused(other):
    with pytest.raises(ConfigError, match="same prompts in the same order"):
        other.load_state_dict(PromptStream(PROMPTS, 3, 7, seed=1).state_dict())
