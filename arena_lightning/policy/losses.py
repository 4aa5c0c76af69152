"""The loss as pure functions of log-probabilities: clipped policy ratio, KL, mismatch correction.

Everything is a function of one micro-batch plus the totals of the whole update, so a sum over
micro-batches is the full-batch loss whatever the packing. Tensors hold trained tokens only
(`[token]`, with `rows` naming each token's sequence): a token of the environment isn't masked out
here, it never enters. Advantages come in finished; nothing here normalises them.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from arena_lightning.errors import ConfigError
from arena_lightning.policy.packing import MicroBatch, Totals

RatioLevel = Literal["token", "sequence", "sequence_product"]
KLEstimator = Literal["k1", "k2", "k3"]
Correction = Literal["off", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
Normalisation = Literal["token", "sequence", "constant"]

_MAX_EXPONENT = 20.0
"""Log-ratios are cut here before exp(): beyond e^20 only overflow is left to tell apart."""


@dataclass(frozen=True, slots=True)
class LossConfig:
    """How the update is computed; the defaults are the released code's, plus the correction."""

    ratio: RatioLevel = "token"
    """`token`: one ratio a token. `sequence`: geometric mean over the sequence (GSPO).
    `sequence_product`: the product, the trajectory ratio of the paper's eq. 8."""
    clip_low: float = 0.2
    """The ratio is clipped at 1 - clip_low (paper's scripts: 0.2)."""
    clip_high: float = 0.28
    """The ratio is clipped at 1 + clip_high (paper's scripts: 0.28)."""
    kl: KLEstimator = "k3"
    """Estimator of KL(policy || reference); see `kl_terms` for what its gradient is."""
    kl_coef: float = 0.0
    """Weight of the KL term; 0 leaves it out and needs no reference (paper's scripts: 0)."""
    correction: Correction = "token_truncate"
    """Importance weight for the difference between the engine's numbers and the trainer's."""
    correction_cap: float = 3.0
    """`truncate` cuts weights at the cap; `mask` drops those outside [1/cap, cap]."""
    normalisation: Normalisation = "token"
    """`token`: mean over all trained tokens of the update. `sequence`: mean over a sequence's
    tokens, then over sequences (paper). `constant`: sum / (sequences x constant_tokens), as in
    Dr. GRPO."""
    constant_tokens: int = 1024
    """Divisor of `normalisation: constant`; unused otherwise."""

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ConfigError(
                    f"{name} must be one of {', '.join(allowed)}, got {value!r} (loss.{name}). "
                    "Name one of them."
                )
        for name, low, high in _BOUNDS:
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(
                    f"{name} must lie in [{low}, {high}], got {value} (loss.{name}). Change it."
                )


_CHOICES: dict[str, tuple[str, ...]] = {
    "ratio": ("token", "sequence", "sequence_product"),
    "kl": ("k1", "k2", "k3"),
    "correction": ("off", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
    "normalisation": ("token", "sequence", "constant"),
}
_INF = float("inf")
_BOUNDS = (
    ("clip_low", 0.0, 1.0),
    ("clip_high", 0.0, _INF),
    ("kl_coef", 0.0, _INF),
    ("correction_cap", 1.0, _INF),
    ("constant_tokens", 1, _INF),
)


@dataclass(frozen=True, slots=True)
class LossStats:
    """Additive metrics of a micro-batch: add `sums`, take the maximum of `maxima`, then `means`.

    Shapes: `sums` float64 `[len(SUMS)]`, `maxima` float64 `[len(MAXIMA)]`; both can be reduced over
    processes as they are.
    """

    sums: torch.Tensor
    maxima: torch.Tensor

    def __add__(self, other: "LossStats") -> "LossStats":
        return LossStats(self.sums + other.sums, torch.maximum(self.maxima, other.maxima))

    def means(self) -> dict[str, float]:
        """Return per-token means, the maxima, and the effective sample size as a fraction."""
        sums = dict(zip(SUMS, self.sums.tolist(), strict=True))
        num_tokens = max(sums.pop("num_tokens"), 1.0)
        weight, weight_squared = sums.pop("weight"), sums.pop("weight_squared")
        num_sampled = sums.pop("num_sampled_tokens")
        metrics = {name: value / num_tokens for name, value in sums.items()}
        metrics["mismatch_abs_mean"] *= num_tokens / max(num_sampled, 1.0)
        metrics["correction_weight_mean"] = weight / num_tokens
        if weight_squared > 0:
            metrics["effective_sample_fraction"] = weight**2 / weight_squared / num_tokens
        return metrics | dict(zip(MAXIMA, self.maxima.tolist(), strict=True))


SUMS = (
    "num_tokens",
    "ratio_mean",
    "clip_low_fraction",
    "clip_high_fraction",
    "kl",
    "entropy",
    "num_sampled_tokens",
    "mismatch_abs_mean",
    "correction_dropped_fraction",
    "weight",
    "weight_squared",
)
MAXIMA = ("ratio_max", "mismatch_abs_max")


def kl_terms(
    policy_logprobs: torch.Tensor, reference_logprobs: torch.Tensor, estimator: KLEstimator
) -> torch.Tensor:
    """Return the per-token estimate of KL(policy || reference), `[token]`, differentiable.

    With d = log policy - log reference on tokens the policy sampled (Schulman, "Approximating KL
    divergence"): k1 = d, k2 = d^2 / 2, k3 = exp(-d) - 1 + d. As *values* k1 and k3 are unbiased.
    As *loss terms*, differentiated without the sampling distribution:

    - k1: the gradient is that of log policy, whose expectation on-policy is zero. It adds noise and
      no pull to the reference; offered because it is a common choice, not because it helps.
    - k2: the gradient d * grad log policy is the unbiased on-policy gradient of the reverse KL.
    - k3: the gradient (1 - exp(-d)) * grad log policy is, in expectation on-policy, that of the
      forward KL(reference || policy); it agrees with k2 to first order in d. The usual choice.
    """
    difference = policy_logprobs - reference_logprobs
    if estimator == "k1":
        return difference
    if estimator == "k2":
        return difference.square() / 2
    return (-difference).clamp(max=_MAX_EXPONENT).exp() - 1 + difference


def policy_loss(
    batch: MicroBatch,
    config: LossConfig,
    totals: Totals,
    policy_logprobs: torch.Tensor,
    old_logprobs: torch.Tensor | None = None,
    reference_logprobs: torch.Tensor | None = None,
    entropy: torch.Tensor | None = None,
) -> tuple[torch.Tensor, LossStats]:
    """Return this micro-batch's share of the update's loss (to be minimised), and its metrics.

    Args:
        batch: which sequences the tokens belong to, their advantages, the engine's log-probs.
        config: the loss.
        totals: tokens and sequences of the *whole* update over all processes; under DDP, which
            averages gradients, multiply the result by the number of processes.
        policy_logprobs: `[token]`, differentiable.
        old_logprobs: `[token]` of the trainer before the first update on this rollout; None when
            this is that first update, where they equal `policy_logprobs` and a forward is saved.
        reference_logprobs: `[token]`; needed when `kl_coef` > 0, else only for the metric.
        entropy: `[token]`, for the metric only.

    Source: ArenaRL (arXiv:2601.06487) eq. 8 with `sequence_product` and `sequence`; its code is
    `token` and `sequence`. GSPO (arXiv:2507.18071) eq. 5-7 with `sequence`. Differs: the correction
    weight (trainer / engine) multiplies the ratio term.
    """
    if config.kl_coef > 0 and reference_logprobs is None:
        raise ConfigError(
            f"kl_coef > 0 needs a reference, got kl_coef {config.kl_coef} without one "
            "(loss.kl_coef). Give the reference's log-probabilities, or set kl_coef to 0."
        )
    old = policy_logprobs.detach() if old_logprobs is None else old_logprobs.detach()
    advantages = batch.advantages.to(policy_logprobs.dtype)[batch.rows]
    log_ratio = _ratio_level(policy_logprobs - old, batch, config.ratio)
    ratio = log_ratio.clamp(max=_MAX_EXPONENT).exp()
    clipped = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    weight = correction_weights(batch, config, old)
    loss = -torch.minimum(ratio * advantages, clipped * advantages) * weight
    kl = None
    if reference_logprobs is not None:
        kl = kl_terms(policy_logprobs, reference_logprobs.detach(), config.kl)
        if config.kl_coef > 0:
            loss = loss + config.kl_coef * kl
    total = (loss * _token_weights(batch, config, totals).to(loss.dtype)).sum()
    stats = _stats(batch, config, ratio, advantages, old, weight, kl, entropy)
    return (total * 0.0 if batch.muted else total), stats


def correction_weights(
    batch: MicroBatch, config: LossConfig, old_logprobs: torch.Tensor
) -> torch.Tensor:
    """Return the importance weight of each token, `[token]`, without gradient.

    The weight is exp(old - sampling): how much likelier the trainer's numbers make the token (or,
    at sequence level, the product over the sequence) than the engine's numbers that sampled it.
    Greedy tokens (NaN) were not drawn from a distribution, so they are left as they are: weight 1.
    """
    if config.correction == "off":
        return torch.ones_like(old_logprobs)
    sampling = batch.sampling_logprobs.to(old_logprobs.dtype)
    log_weight = (old_logprobs.detach() - sampling).nan_to_num(nan=0.0)
    if config.correction.startswith("sequence"):
        log_weight = _per_row_sum(log_weight, batch)[batch.rows]
    weight = log_weight.clamp(max=_MAX_EXPONENT).exp()
    cap = config.correction_cap
    if config.correction.endswith("truncate"):
        return weight.clamp(max=cap)
    inside = (weight <= cap) & (weight >= 1 / cap)
    return torch.where(inside, weight, torch.zeros_like(weight))


def _per_row_sum(values: torch.Tensor, batch: MicroBatch) -> torch.Tensor:
    """Sum `[token]` values by sequence -> `[row]`."""
    return values.new_zeros(batch.num_rows).index_add(0, batch.rows, values)


def _ratio_level(log_ratio: torch.Tensor, batch: MicroBatch, level: RatioLevel) -> torch.Tensor:
    """Give each token its own log-ratio or that of its sequence, `[token]`."""
    if level == "token":
        return log_ratio
    per_row = _per_row_sum(log_ratio, batch)
    if level == "sequence":
        per_row = per_row / batch.token_counts.to(per_row.dtype)
    return per_row[batch.rows]


def _token_weights(batch: MicroBatch, config: LossConfig, totals: Totals) -> torch.Tensor:
    """What each token's loss is multiplied by, float64 `[token]`."""
    ones = torch.ones_like(batch.rows, dtype=torch.float64)
    if config.normalisation == "token":
        return ones / max(totals.num_tokens, 1)
    if config.normalisation == "constant":
        return ones / (max(totals.num_sequences, 1) * config.constant_tokens)
    return ones / batch.token_counts[batch.rows] / max(totals.num_sequences, 1)


@torch.no_grad()
def _stats(
    batch: MicroBatch,
    config: LossConfig,
    ratio: torch.Tensor,
    advantages: torch.Tensor,
    old: torch.Tensor,
    weight: torch.Tensor,
    kl: torch.Tensor | None,
    entropy: torch.Tensor | None,
) -> LossStats:
    if batch.muted or batch.num_trained_tokens == 0:
        return LossStats(
            torch.zeros(len(SUMS), dtype=torch.float64, device=ratio.device),
            torch.zeros(len(MAXIMA), dtype=torch.float64, device=ratio.device),
        )
    was_sampled = ~batch.sampling_logprobs.isnan()
    mismatch = (old - batch.sampling_logprobs.to(old.dtype)).abs().nan_to_num(nan=0.0)
    zero = torch.zeros((), device=ratio.device)
    sums = {
        "num_tokens": torch.ones_like(ratio).sum(),
        "ratio_mean": ratio.sum(),
        "clip_low_fraction": ((ratio < 1 - config.clip_low) & (advantages < 0)).sum(),
        "clip_high_fraction": ((ratio > 1 + config.clip_high) & (advantages > 0)).sum(),
        "kl": zero if kl is None else kl.sum(),
        "entropy": zero if entropy is None else entropy.sum(),
        "num_sampled_tokens": was_sampled.sum(),
        "mismatch_abs_mean": mismatch.sum(),
        "correction_dropped_fraction": (weight == 0).sum(),
        "weight": weight.sum(),
        "weight_squared": weight.square().sum(),
    }
    maxima = {"ratio_max": ratio.max(), "mismatch_abs_max": mismatch.max()}
    return LossStats(
        torch.stack([sums[name].double() for name in SUMS]),
        torch.stack([maxima[name].double() for name in MAXIMA]),
    )
