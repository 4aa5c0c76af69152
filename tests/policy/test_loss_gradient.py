"""The packed, chunked, micro-batched gradient against a naive full-batch autograd reference."""

import itertools
import math

import numpy as np
import pytest
import torch

from arena_lightning.policy.logprobs import token_logprobs
from arena_lightning.policy.losses import LossConfig, policy_loss
from arena_lightning.policy.packing import count_totals, pack
from tests.policy.conftest import random_advantages, random_groups, tiny_llama

TEMPERATURE = 0.8


def naive_logprobs(model, trajectory):
    """Full logits, one trajectory, one token at a time."""
    ids = [i for segment in trajectory.segments for i in segment.ids]
    emitters = [s.emitter for s in trajectory.segments for _ in s.ids]
    logits = model(torch.tensor([ids])).logits[0] / TEMPERATURE
    logprobs = torch.log_softmax(logits, dim=-1)
    return [logprobs[t - 1, ids[t]] for t in range(1, len(ids)) if emitters[t] == "policy"]


def naive_loss(config, policies, olds, references, samplings, advantages):
    """The loss written as the formulas read, with Python loops and scalars."""
    num_tokens = sum(len(p) for p in policies)
    loss = 0.0
    for policy, old, reference, sampling, advantage in zip(
        policies, olds, references, samplings, advantages, strict=True
    ):
        n = len(policy)
        log_ratios = [p - o for p, o in zip(policy, old, strict=True)]
        log_weights = [o - s for o, s in zip(old, sampling, strict=True)]
        for t in range(n):
            log_ratio = {
                "token": log_ratios[t],
                "sequence": sum(log_ratios) / n,
                "sequence_product": sum(log_ratios),
            }[config.ratio]
            ratio = torch.exp(log_ratio)
            clipped = torch.clamp(ratio, 1 - config.clip_low, 1 + config.clip_high)
            term = -torch.min(ratio * advantage, clipped * advantage)
            if config.correction != "off":
                level, kind = config.correction.split("_")
                weight = math.exp(log_weights[t] if level == "token" else sum(log_weights))
                cap = config.correction_cap
                if kind == "truncate":
                    weight = min(weight, cap)
                elif not 1 / cap <= weight <= cap:
                    weight = 0.0
                term = term * weight
            d = policy[t] - reference[t]
            kl = {"k1": d, "k2": d**2 / 2, "k3": torch.exp(-d) - 1 + d}[config.kl]
            term = term + config.kl_coef * kl
            loss = (
                loss
                + term
                * {
                    "token": 1 / num_tokens,
                    "sequence": 1 / n / len(policies),
                    "constant": 1 / (len(policies) * config.constant_tokens),
                }[config.normalisation]
            )
    return loss


def perturbed(model, scale, seed):
    """A copy whose weights differ a little, to stand for an old policy or a reference."""
    copy = tiny_llama()
    copy.load_state_dict(model.state_dict())
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in copy.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.add_(scale * noise)
    return copy


def gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def packed_gradient(model, config, groups, advantages, layout, budget, old, reference):
    model.zero_grad()
    totals = count_totals(groups)
    for batch in pack(groups, advantages, budget, layout):
        policy = token_logprobs(model, batch, TEMPERATURE, chunk_tokens=3).logprobs
        with torch.no_grad():
            old_logprobs = token_logprobs(old, batch, TEMPERATURE).logprobs
            reference_logprobs = token_logprobs(reference, batch, TEMPERATURE).logprobs
        loss, _ = policy_loss(batch, config, totals, policy, old_logprobs, reference_logprobs)
        loss.backward()
    return gradient(model)


def naive_gradient(model, config, groups, advantages, old, reference):
    model.zero_grad()
    trajectories = [t for group in groups for t in group.trajectories]
    detached = [
        [[x.item() for x in naive_logprobs(m, t)] for t in trajectories] for m in (old, reference)
    ]
    samplings = [
        [x for s in t.segments if s.emitter == "policy" for x in s.logprobs] for t in trajectories
    ]
    policies = [naive_logprobs(model, t) for t in trajectories]
    flat = np.concatenate(advantages)
    naive_loss(config, policies, *detached, samplings, flat).backward()
    return gradient(model)


@pytest.fixture(scope="module")
def setting():
    model = tiny_llama()
    groups = random_groups(num_groups=2, group_size=3)
    # Sampling log-probabilities near the old policy's, so that no correction is trivial.
    return (
        model,
        groups,
        random_advantages(groups),
        perturbed(model, 0.02, 1),
        perturbed(model, 0.05, 2),
    )


CASES = list(
    itertools.product(
        ("token", "sequence", "sequence_product"), ("k1", "k2", "k3"), ("token", "sequence")
    )
)


@pytest.mark.parametrize(("ratio", "kl", "normalisation"), CASES)
def test_packed_gradient_equals_naive_full_batch(setting, ratio, kl, normalisation):
    model, groups, advantages, old, reference = setting
    config = LossConfig(
        ratio=ratio,
        clip_low=0.1,
        clip_high=0.15,
        kl=kl,
        kl_coef=0.3,
        normalisation=normalisation,
        correction="token_truncate",
    )
    expected = naive_gradient(model, config, groups, advantages, old, reference)
    for layout, budget in itertools.product(("padded", "shared_prefix"), (10_000, 30)):
        actual = packed_gradient(model, config, groups, advantages, layout, budget, old, reference)
        error = (actual - expected).norm() / expected.norm()
        assert error < 1e-6, (layout, budget, float(error))


CORRECTIONS = ("off", "token_mask", "sequence_truncate", "sequence_mask")


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("normalisation", ["token", "constant"])
def test_every_correction_equals_the_naive_one(setting, correction, normalisation):
    model, groups, advantages, old, reference = setting
    # A wide cap: sequence weights are products, and some must stay inside for the test to bite.
    config = LossConfig(
        correction=correction,
        correction_cap=40.0,
        kl_coef=0.1,
        normalisation=normalisation,
        constant_tokens=9,
    )
    expected = naive_gradient(model, config, groups, advantages, old, reference)
    actual = packed_gradient(model, config, groups, advantages, "shared_prefix", 30, old, reference)
    assert (actual - expected).norm() / expected.norm() < 1e-6


def test_a_muted_micro_batch_has_a_graph_but_no_gradient_and_no_metrics(setting):
    model, groups, advantages, _, _ = setting
    model.zero_grad()
    batch = pack(groups, advantages, 10_000)[0].mute()
    logprobs = token_logprobs(model, batch).logprobs
    loss, stats = policy_loss(batch, LossConfig(), count_totals(groups), logprobs)
    loss.backward()
    assert loss.item() == 0.0
    assert float(gradient(model).abs().max()) == 0.0
    assert float(stats.sums.abs().max()) == 0.0


def test_the_first_update_needs_no_old_logprobs(setting):
    model, groups, advantages, _, _ = setting
    batch = pack(groups, advantages, 10_000)[0]
    totals = count_totals(groups)
    gradients = []
    for given in (False, True):
        model.zero_grad()
        logprobs = token_logprobs(model, batch).logprobs
        old = logprobs.detach() if given else None
        policy_loss(batch, LossConfig(), totals, logprobs, old)[0].backward()
        gradients.append(gradient(model))
    assert torch.equal(*gradients)
