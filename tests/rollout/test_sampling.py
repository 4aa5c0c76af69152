import math

import numpy as np
import pytest
import torch
from scipy import stats

from arena_lightning.rollout.sampling import sample_tokens

LOGITS = torch.tensor([[2.0, 0.0, -1.0, 1.0, -30.0]])


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_follow_the_softmax_at_the_temperature(temperature: float):
    rows, source = 4000, generator(0)
    ids, _ = sample_tokens(LOGITS.expand(rows, -1), [temperature] * rows, [source] * rows)
    weights = [math.exp(x / temperature) for x in LOGITS[0].tolist()]
    expected = np.array(weights) / sum(weights) * rows
    counts = np.bincount(ids, minlength=5)
    # The last token is too rare for a chi-square cell.
    assert (
        stats.chisquare(counts[:4], expected[:4] / expected[:4].sum() * counts[:4].sum()).pvalue
        > 1e-3
    )
    assert counts[4] <= 3


def test_logprobs_are_of_the_distribution_at_the_temperature():
    ids, logprobs = sample_tokens(LOGITS, [0.5], [generator(3)])
    scaled = [x / 0.5 for x in LOGITS[0].tolist()]
    expected = scaled[ids[0]] - math.log(sum(math.exp(x) for x in scaled))
    assert logprobs[0] == pytest.approx(expected, abs=1e-6)


def test_temperature_zero_takes_the_most_likely_token_with_its_logprob_at_one():
    ids, logprobs = sample_tokens(LOGITS, [0.0], [generator(0)])
    assert ids == [0]
    expected = 2.0 - math.log(sum(math.exp(x) for x in LOGITS[0].tolist()))
    assert logprobs[0] == pytest.approx(expected, abs=1e-6)


def test_a_rows_draw_depends_on_its_own_generator_only():
    alone = sample_tokens(LOGITS, [1.0], [generator(7)])[0][0]
    others = [generator(seed) for seed in (1, 2)]
    batch = sample_tokens(LOGITS.expand(3, -1), [1.0, 0.0, 1.0], [*others, generator(7)])[0]
    assert batch[2] == alone


def test_an_impossible_token_is_never_drawn():
    logits = torch.tensor([[-math.inf, 0.0, -math.inf]]).expand(500, -1)
    ids, _ = sample_tokens(logits, [1.0] * 500, [generator(0)] * 500)
    assert set(ids) == {1}
