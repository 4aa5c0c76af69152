"""How far judges agree with people: raw agreement and Cohen's kappa.

    JSONL of pairs judged in both orders + human labels -> merged labels -> `Agreement` a judge

Formulas first, then the reader of LLMBar's format. Verdicts that could not be read are counted and
left out; ties stay in, as a label that no human gave. It asks no judge.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from arena_lightning.errors import DataError

Label = Literal["a", "b", "tie", "failed"]
"""Of one pair: which player won, over both orders."""
_WINNERS = ("a", "b", "tie", "failed")


@dataclass(frozen=True, slots=True)
class Agreement:
    """One judge against human labels. Fractions are 0-1; NaN where there is nothing to count."""

    judge: str
    num_pairs: int
    num_failed: int
    """Pairs with an unreadable verdict in either order: in no fraction below."""
    num_ties: int
    """Pairs that the judge left undecided over both orders; they disagree with any human."""
    num_flips: int
    """Ties whose two orders named different winners: the position decided."""
    raw_agreement: float
    """Share of the readable pairs with the human's winner."""
    decided_agreement: float
    """The same among the pairs that the judge decided."""
    half_credit_agreement: float
    """The same over all readable pairs, a tie counting half: the mean over single orders."""
    kappa: float
    """Cohen's kappa over the readable pairs; labels a, b, tie."""


def raw_agreement(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return the share of items with equal labels, 0-1; NaN without items."""
    _check_paired(one, other)
    if not one:
        return math.nan
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def cohen_kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return Cohen's kappa: agreement beyond chance, 1 is perfect, 0 is chance.

    NaN without items, and when both give one and the same label throughout: chance agreement is 1
    then and kappa is 0/0.

    Source: J. Cohen, A coefficient of agreement for nominal scales, 1960; unweighted.
    """
    observed = raw_agreement(one, other)
    if math.isnan(observed):
        return math.nan
    counts, other_counts = Counter(one), Counter(other)
    matching = sum(counts[label] * other_counts[label] for label in counts)
    if matching == len(one) ** 2:
        return math.nan
    by_chance = matching / len(one) ** 2
    return (observed - by_chance) / (1 - by_chance)


def _check_paired(one: Sequence[Hashable], other: Sequence[Hashable]) -> None:
    if len(one) != len(other):
        raise ValueError(f"label lists must be of one length, got {len(one)} and {len(other)}")


def merge_orders(winners: Iterable[str]) -> Label:
    """Return a pair's label from the winners of its orders: the side with more wins.

    A failure in any order makes the pair `failed`; so does having no verdict.
    """
    winners = list(winners)
    if not winners or "failed" in winners:
        return "failed"
    lead = winners.count("a") - winners.count("b")
    return "tie" if lead == 0 else "a" if lead > 0 else "b"


def agreement_of(judge: str, verdicts: Sequence[Sequence[str]], labels: Sequence[str]) -> Agreement:
    """Return how one judge agrees with human labels.

    Args:
        judge: its name.
        verdicts: per pair, the winners of its orders (`a`, `b`, `tie`, `failed`), by player, not
            by position.
        labels: per pair, the human's winner.
    """
    _check_paired(verdicts, labels)
    merged = [merge_orders(winners) for winners in verdicts]
    readable = [i for i, label in enumerate(merged) if label != "failed"]
    ours = [merged[i] for i in readable]
    human = [labels[i] for i in readable]
    decided = [i for i, label in enumerate(ours) if label != "tie"]
    ties = [verdicts[i] for i in readable if merged[i] == "tie"]
    raw = raw_agreement(ours, human)
    return Agreement(
        judge=judge,
        num_pairs=len(merged),
        num_failed=len(merged) - len(readable),
        num_ties=len(ties),
        num_flips=sum({"a", "b"} <= set(winners) for winners in ties),
        raw_agreement=raw,
        decided_agreement=raw_agreement([ours[i] for i in decided], [human[i] for i in decided]),
        half_credit_agreement=raw + len(ties) / len(readable) / 2 if readable else math.nan,
        kappa=cohen_kappa(ours, human),
    )


def agreement_with_humans(path: Path | str, subset: str = "") -> list[Agreement]:
    """Return every judge's agreement with the human labels of an LLMBar-format file.

    Args:
        path: JSON lines, a pair and judge each: `group_id`, `judge`, `label` (`a` or `b`) and
            `matches` with `winner` (`a`, `b`, `tie`, `failed`), one match a presentation order.
        subset: keep the pairs whose `group_id` holds this, e.g. `Adversarial`; "" keeps all.

    Returns:
        Judges by raw agreement, best first; those without a readable pair last.

    Raises:
        DataError: a line that is not of that format.
    """
    verdicts: dict[str, list[list[str]]] = defaultdict(list)
    labels: dict[str, list[str]] = defaultdict(list)
    for judge, group_id, label, winners in _pairs(Path(path)):
        if subset in group_id:
            verdicts[judge].append(winners)
            labels[judge].append(label)
    found = [agreement_of(judge, verdicts[judge], labels[judge]) for judge in verdicts]
    return sorted(found, key=lambda one: (math.isnan(one.raw_agreement), -one.raw_agreement))


def _pairs(path: Path) -> Iterable[tuple[str, str, str, list[str]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(
            f"judgements must be a readable file, got {error} ({path}). Give its path."
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _pair(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"a line must be a judged pair with a human label, got {error!r} "
                f"({path}, line {number}). See the format in `agreement_with_humans`."
            ) from error


def _pair(row: Mapping[str, Any]) -> tuple[str, str, str, list[str]]:
    winners = [match["winner"] for match in row["matches"]]
    if row["label"] not in ("a", "b") or not set(winners) <= set(_WINNERS):
        raise ValueError(f"label {row['label']!r}, winners {winners}")
    orders = [match["order"] for match in row["matches"]]
    if len(set(orders)) < len(orders):
        raise ValueError(f"orders {orders}")
    return row["judge"], row["group_id"], row["label"], winners
