"""Loss values worked out by hand: clipping on both sides, KL estimators, correction, masks."""

import math

import numpy as np
import pytest
import torch

from arena_lightning.errors import ConfigError
from arena_lightning.policy.logprobs import token_logprobs
from arena_lightning.policy.losses import LossConfig, correction_weights, kl_terms, policy_loss
from arena_lightning.policy.packing import Totals, pack
from arena_lightning.types import Group, Prompt, Segment, Trajectory
from tests.policy.conftest import tiny_llama


def batch_of(advantage, sampling=(-1.0, -1.0)):
    """One row: prompt (1, 2), two policy tokens, a tool token."""
    segments = (
        Segment("prompt", (1, 2)),
        Segment("policy", (3, 4), tuple(sampling), 0),
        Segment("tool", (5,)),
    )
    group = Group(Prompt("p", "q"), (Trajectory("p", (), segments),))
    return pack([group], [np.array([advantage])], 100, "padded")[0]


def loss_of(batch, config, policy, old, reference=None):
    tensors = [
        None if x is None else torch.tensor(x, dtype=torch.float64) for x in (old, reference)
    ]
    policy = torch.tensor(policy, dtype=torch.float64, requires_grad=True)
    loss, _ = policy_loss(batch, config, Totals(2, 1), policy, *tensors)
    (gradient,) = torch.autograd.grad(loss, policy)
    return loss.item(), gradient.tolist()


PLAIN = {"correction": "off", "clip_low": 0.2, "clip_high": 0.3}


@pytest.mark.parametrize(
    ("advantage", "ratio", "value", "moves"),
    [
        (2.0, 1.5, -2.6, False),  # good, already much likelier: clipped at 1.3
        (2.0, 1.2, -2.4, True),
        (2.0, 0.5, -1.0, True),  # good but become unlikely: never clipped from below
        (-2.0, 0.5, 1.6, False),  # bad, already much less likely: clipped at 0.8
        (-2.0, 0.9, 1.8, True),
        (-2.0, 1.5, 3.0, True),  # bad but become likelier: never clipped from above
    ],
)
def test_the_clip_stops_only_moves_that_went_far_enough(advantage, ratio, value, moves):
    config = LossConfig(**PLAIN)
    policy = [-1.0 + math.log(ratio), -1.0]
    loss, gradient = loss_of(batch_of(advantage), config, policy, [-1.0, -1.0])
    assert loss == pytest.approx((value - advantage) / 2)
    assert (gradient[0] != 0) == moves
    assert gradient[1] == pytest.approx(-advantage / 2)


def test_kl_estimators_by_hand():
    d = torch.tensor([0.5, -0.25], dtype=torch.float64)
    zero = torch.zeros(2, dtype=torch.float64)
    assert kl_terms(d, zero, "k1").tolist() == [0.5, -0.25]
    assert kl_terms(d, zero, "k2").tolist() == pytest.approx([0.125, 0.03125])
    assert kl_terms(d, zero, "k3").tolist() == pytest.approx(
        [math.exp(-0.5) - 0.5, math.exp(0.25) - 1.25]
    )


def test_correction_truncates_or_masks_at_the_cap():
    old = torch.tensor([-1.0, -1.0], dtype=torch.float64)
    batch = batch_of(1.0, sampling=(-3.0, -1.5))
    expected = {
        "off": [1.0, 1.0],
        "token_truncate": [3.0, math.exp(0.5)],
        "token_mask": [0.0, math.exp(0.5)],
        "sequence_truncate": [3.0, 3.0],
        "sequence_mask": [0.0, 0.0],
    }
    for mode, weights in expected.items():
        config = LossConfig(correction=mode, correction_cap=3.0)
        assert correction_weights(batch, config, old).tolist() == pytest.approx(weights)


def test_a_kl_weight_without_a_reference_is_refused():
    with pytest.raises(ConfigError, match="kl_coef > 0 needs a reference"):
        loss_of(batch_of(1.0), LossConfig(kl_coef=0.1), [-1.0, -1.0], None)


def test_environment_tokens_have_exactly_zero_weight():
    """What a tool token is likely to be under the model changes nothing."""
    model = tiny_llama()
    batch = batch_of(1.0)
    logprobs = token_logprobs(model, batch).logprobs
    assert logprobs.shape == (2,)
    loss, _ = policy_loss(batch, LossConfig(), Totals(2, 1), logprobs)
    loss.backward()
    reference = [p.grad.clone() for p in model.parameters()]
    segments = (
        Segment("prompt", (1, 2)),
        Segment("policy", (3, 4), (-1.0, -1.0), 0),
        Segment("tool", (9,)),
    )
    group = Group(Prompt("p", "q"), (Trajectory("p", (), segments),))
    other = pack([group], [np.array([1.0])], 100, "padded")[0]
    model.zero_grad()
    loss, _ = policy_loss(other, LossConfig(), Totals(2, 1), token_logprobs(model, other).logprobs)
    loss.backward()
    for mine, theirs in zip(model.parameters(), reference, strict=True):
        torch.testing.assert_close(mine.grad, theirs, rtol=0, atol=0)


@pytest.mark.parametrize("correction", ["token_truncate", "token_mask", "sequence_mask"])
def test_greedy_turns_are_not_corrected_and_not_counted_as_mismatch(correction):
    greedy, sampled = batch_of(2.0, sampling=()), batch_of(2.0)
    old = torch.tensor([-5.0, -1.1])
    config = LossConfig(correction=correction, correction_cap=2.0)
    assert correction_weights(greedy, config, old).tolist() == [1.0, 1.0]
    assert correction_weights(sampled, config, old).tolist() != [1.0, 1.0]
    _, stats = policy_loss(greedy, config, Totals(2, 1), old)
    _, other = policy_loss(sampled, config, Totals(2, 1), old)
    assert stats.means()["mismatch_abs_mean"] == stats.means()["mismatch_abs_max"] == 0.0
    both = (stats + other).means()
    assert both["mismatch_abs_mean"] == pytest.approx((4.0 + 0.1) / 2)
