"""Packing: every trained token once, within the budget, the same on every call."""

import numpy as np
import pytest

from arena_lightning.errors import ConfigError, DataError
from arena_lightning.policy.packing import count_totals, pack, sequence_from_trajectory
from arena_lightning.types import Group, Prompt, Segment, Trajectory
from tests.policy.conftest import random_advantages, random_groups


def trained_tokens(groups):
    """(source, context, token, sampling log-probability) of every policy token, by hand."""
    expected = []
    trajectories = [t for group in groups for t in group.trajectories]
    for source, trajectory in enumerate(trajectories):
        context = ()
        for segment in trajectory.segments:
            for place, token in enumerate(segment.ids):
                if segment.emitter == "policy":
                    expected.append((source, context, token, segment.logprobs[place]))
                context += (token,)
    return sorted(expected)


def packed_tokens(batches):
    """The same, read back from micro-batches."""
    found = []
    for batch in batches:
        all_prefix_ids = [] if batch.prefix_ids is None else batch.prefix_ids.tolist()
        prefixes = []
        for length, num_rows in zip(
            batch.prefix_lengths.tolist(), batch.block_rows.tolist(), strict=True
        ):
            prefixes += [tuple(all_prefix_ids[:length])] * num_rows
            all_prefix_ids = all_prefix_ids[length:]
        starts = np.concatenate([[0], np.cumsum(batch.lengths.numpy())])
        ids = batch.ids.tolist()
        for position, target, row, logprob in zip(
            batch.positions.tolist(),
            batch.targets.tolist(),
            batch.rows.tolist(),
            batch.sampling_logprobs.tolist(),
            strict=True,
        ):
            assert starts[row] <= position < starts[row + 1]
            context = prefixes[row] + tuple(ids[starts[row] : position + 1])
            found.append((int(batch.sources[row]), context, target, logprob))
    return sorted(found)


@pytest.mark.parametrize("layout", ["padded", "shared_prefix"])
@pytest.mark.parametrize("budget", [1, 25, 60, 10_000])
def test_every_trained_token_is_packed_once_behind_its_context(layout, budget):
    groups = random_groups(num_groups=3, group_size=4)
    batches = pack(groups, random_advantages(groups), budget, layout)
    expected = trained_tokens(groups)
    found = packed_tokens(batches)
    assert [item[:3] for item in found] == [item[:3] for item in expected]
    np.testing.assert_allclose([i[3] for i in found], [i[3] for i in expected], rtol=1e-6)
    totals = count_totals(groups)
    assert (totals.num_tokens, totals.num_sequences) == (len(expected), 12)


@pytest.mark.parametrize("layout", ["padded", "shared_prefix"])
def test_a_micro_batch_keeps_to_its_budget_unless_one_sequence_is_longer(layout):
    groups = random_groups(num_groups=3, group_size=4)
    for batch in pack(groups, random_advantages(groups), 40, layout):
        assert batch.num_computed_tokens <= 40 or batch.num_rows == 1


def test_a_shared_prompt_is_computed_once():
    groups = random_groups(num_groups=1, group_size=5)
    prompt = len(groups[0].trajectories[0].segments[0].ids)
    advantages = random_advantages(groups)
    (padded,) = pack(groups, advantages, 10_000, "padded")
    (shared,) = pack(groups, advantages, 10_000, "shared_prefix")
    assert padded.num_computed_tokens - shared.num_computed_tokens == 4 * (prompt - 1)


def test_groups_share_a_micro_batch_while_the_budget_lasts():
    groups = random_groups(num_groups=3, group_size=2)
    advantages = random_advantages(groups)
    (batch,) = pack(groups, advantages, 10_000, "shared_prefix")
    assert batch.block_rows.tolist() == [2, 2, 2]
    assert len(pack(groups, advantages, 1, "shared_prefix")) == 6


def test_rows_whose_prompts_differ_share_only_what_is_equal():
    def trajectory(prompt, index):
        segments = (Segment("prompt", prompt), Segment("policy", (7, 8), (-1.0, -1.0), 0))
        return Trajectory("p", (), segments, index=index)

    group = Group(Prompt("p", "q"), (trajectory((1, 2, 3, 4), 0), trajectory((1, 2, 5, 6), 1)))
    (batch,) = pack([group], [np.array([1.0, -1.0])], 100, "shared_prefix")
    assert batch.prefix_ids.tolist() == [1]
    assert sorted(packed_tokens([batch])) == trained_tokens([group])


def test_zero_advantages_can_be_left_out_without_changing_the_totals():
    groups = random_groups(num_groups=1, group_size=3)
    advantages = [np.array([1.0, 0.0, -1.0])]
    batches = pack(groups, advantages, 1000, "shared_prefix", drop_zero_advantages=True)
    assert sorted(s for b in batches for s in b.sources.tolist()) == [0, 2]
    assert count_totals(groups).num_sequences == 3


def test_packing_is_deterministic():
    groups = random_groups(num_groups=2, group_size=4)
    first, second = (pack(groups, random_advantages(groups), 50) for _ in range(2))
    assert [b.sources.tolist() for b in first] == [b.sources.tolist() for b in second]
    assert [b.ids.tolist() for b in first] == [b.ids.tolist() for b in second]


def test_a_trajectory_without_policy_tokens_is_left_out():
    empty = Trajectory("p", (), (Segment("prompt", (1, 2, 3)),))
    group = Group(Prompt("p", "q"), (empty,))
    assert pack([group], [np.array([1.0])], 100) == []
    assert count_totals([group]).num_sequences == 0


def test_policy_tokens_need_their_sampling_logprobs():
    trajectory = Trajectory("p7", (), (Segment("policy", (1, 2), (-1.0,)),))
    with pytest.raises(DataError, match="one log-probability for each id, got 1 for 2"):
        sequence_from_trajectory(trajectory)


def test_unknown_layout_and_empty_budget_are_refused():
    with pytest.raises(ConfigError, match="layout must be one of padded, shared_prefix"):
        pack([], [], 100, "packed")
    with pytest.raises(ConfigError, match="micro_batch_tokens must be at least 1, got 0"):
        pack([], [], 0)
