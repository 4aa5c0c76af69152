"""How a judge judges: flips, ties, position, cycles, compression, and what more calls would buy.

    VerdictBatch (all pairs, both orders) -> JudgingReport

Failed calls are counted and enter nothing else. It ranks nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arena_lightning.analysis.bank import JudgeBank
from arena_lightning.analysis.fidelity import Estimate, kendall_tau, ranks_of_truth, summarise
from arena_lightning.analysis.verdict_batch import VerdictBatch
from arena_lightning.rng import generator_for

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class JudgingReport:
    """Rates are shares, 0-1, over what they name; NaN where there is nothing to count."""

    num_groups: int
    num_calls: int
    num_failed: int
    tie_rate: float
    """Single calls that are ties."""
    first_share: float
    """Decided calls won by the one shown first; 0.5 is no position bias."""
    inconsistent_rate: float
    """Pairs whose two orders say different things, a tie against a win included."""
    flip_rate: float
    """Pairs whose winner is reversed by the order."""
    summed_tie_rate: float
    """Pairs that are tied once both orders are summed."""
    cycle_rate: float
    """Triads that are strict cycles on the sums of both orders."""
    one_order_cycle_rate: float
    """The same on one random order a pair."""
    spread: float
    """Standard deviation of contestants' mean scores within a group, judge's points."""
    noise: float
    """Standard deviation of one score around its contestant's mean, judge's points."""

    @property
    def discrimination(self) -> float:
        """Spread within groups / noise of one score: the signal-to-noise ratio of the paper's
        Fig. 1a, where pointwise judging shows about 1.5 and less as policies get alike."""
        return self.spread / self.noise if self.noise else float("inf")


def report_judging(batch: VerdictBatch, seed: int = 0) -> JudgingReport:
    """Return the diagnostics of a judge on all pairs of all groups of a batch."""
    size = batch.size
    first, second = batch.score_first, batch.score_second
    off = ~np.eye(size, dtype=bool)
    known = ~np.isnan(first) & ~np.isnan(second) & off
    lead = np.where(known, first - second, 0.0)
    won = np.where(np.abs(lead) <= TOLERANCE, 0, np.sign(lead)).astype(int)
    decided = known & (won != 0)
    rows, columns = np.triu_indices(size, 1)
    both = known[:, rows, columns] & known[:, columns, rows]
    one, other = won[:, rows, columns], -won[:, columns, rows]  # both about the lower index
    total = (lead - lead.swapaxes(1, 2))[:, rows, columns]
    tied = np.abs(total) <= TOLERANCE
    rng = generator_for(seed, "judging/one_order", size)
    coin = rng.random(one.shape) < 0.5
    summed = np.where(both, np.where(tied, 0, np.sign(total)), 0).astype(int)
    single = np.where(both, np.where(coin, one, other), 0).astype(int)
    spread, noise = _spread_and_noise(batch)
    return JudgingReport(
        num_groups=batch.num_groups,
        num_calls=batch.num_groups * size * (size - 1),
        num_failed=int((~known & off).sum()),
        tie_rate=_share((known & (won == 0)).sum(), known.sum()),
        first_share=_share((decided & (won > 0)).sum(), decided.sum()),
        inconsistent_rate=_share((both & (one != other)).sum(), both.sum()),
        flip_rate=_share((both & (one * other < 0)).sum(), both.sum()),
        summed_tie_rate=_share((both & tied).sum(), both.sum()),
        cycle_rate=_cycles(_square(summed, size)),
        one_order_cycle_rate=_cycles(_square(single, size)),
        spread=spread,
        noise=noise,
    )


def _share(count: float, total: float) -> float:
    return float(count) / float(total) if total else float("nan")


def _square(upper: np.ndarray, size: int) -> np.ndarray:
    """Return antisymmetric `[group, N, N]` from the upper triangle."""
    square = np.zeros((len(upper), size, size), dtype=int)
    rows, columns = np.triu_indices(size, 1)
    square[:, rows, columns] = upper
    return square - square.swapaxes(1, 2)


def _cycles(won: np.ndarray) -> float:
    """Return the share of triads i > j > k > i, by the trace of the win matrix cubed."""
    size = won.shape[1]
    if size < 3:
        return float("nan")
    wins = (won > 0).astype(np.int64)
    cycles = np.einsum("gij,gjk,gki->g", wins, wins, wins, optimize=True).sum() / 3
    return _share(cycles, len(won) * size * (size - 1) * (size - 2) / 6)


def _spread_and_noise(batch: VerdictBatch) -> tuple[float, float]:
    """Return the spread of contestants and the noise of one score, position effects removed."""
    if np.isnan(batch.score_first).all():
        return float("nan"), float("nan")
    scores = np.concatenate(  # [group, contestant, 2N]: every score a contestant got
        [
            batch.score_first - np.nanmean(batch.score_first),
            batch.score_second.swapaxes(1, 2) - np.nanmean(batch.score_second),
        ],
        axis=2,
    )
    counts = (~np.isnan(scores)).sum(axis=2)
    enough = counts > 1
    means = np.divide(
        np.nansum(scores, axis=2), counts, out=np.zeros(counts.shape), where=counts > 0
    )
    squares = np.nansum((scores - means[..., None]) ** 2, axis=2)
    within = _share(squares[enough].sum(), (counts - 1)[enough].sum())
    around = means - means.mean(axis=1, keepdims=True)
    between = (around**2).sum() / (means.size - len(means))
    signal = max(between - within * float(np.mean(1 / np.maximum(counts, 1))), 0.0)
    return float(np.sqrt(signal)), float(np.sqrt(within))


def reliability(batch: VerdictBatch, seed: int = 0) -> dict[float, Estimate]:
    """Return how well a ranking by part of all calls agrees with one by the other calls.

    All ordered pairs are split at random in two halves that share no pair's order; from each half
    a share is taken and contestants are ranked by mean lead. Tau between the two is the
    reliability that so many calls buy.

    Returns:
        calls a contestant -> tau over groups, for 1/8, 1/4, 1/2 and all of each half.
    """
    size = batch.size
    lead = batch.score_first - batch.score_second
    rng = generator_for(seed, "judging/halves", size)
    order = rng.random(lead.shape)
    order[:, np.eye(size, dtype=bool)] = np.inf
    places = order.reshape(len(lead), -1).argsort(axis=1).argsort(axis=1).reshape(lead.shape)
    num_calls = size * (size - 1)
    half = num_calls // 2
    found = {}
    for share in (0.125, 0.25, 0.5, 1.0):
        count = max(1, round(half * share))
        one = _mean_leads(lead, places < count)
        other = _mean_leads(lead, (places >= half) & (places < half + count))
        taus = kendall_tau(ranks_of_truth(one), ranks_of_truth(other))
        found[2 * count / size] = summarise(taus, seed)
    return found


def _mean_leads(lead: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return each contestant's mean lead over the calls used, as first and as second."""
    used = used & ~np.isnan(lead)
    values = np.where(used, lead, 0.0)
    total = values.sum(axis=2) - values.sum(axis=1)
    count = used.sum(axis=2) + used.sum(axis=1)
    return np.round(np.divide(total, count, out=np.zeros(total.shape), where=count > 0), 9)


def dimension_agreement(bank: JudgeBank) -> Mapping[str, float]:
    """Return how often each dimension alone names the winner that the whole verdict names.

    Over decided calls in which the dimension is decided too; {} for a bank without dimensions.
    """
    agreed: dict[str, list[bool]] = {}
    for group in bank.groups:
        lead = group.score_first - group.score_second
        for name, (first, second) in group.dimensions.items():
            part = first - second
            both = ~np.isnan(lead) & ~np.isnan(part) & (lead != 0) & (part != 0)
            agreed.setdefault(name, []).extend((np.sign(lead) == np.sign(part))[both].tolist())
    return {name: float(np.mean(values)) for name, values in agreed.items() if values}
