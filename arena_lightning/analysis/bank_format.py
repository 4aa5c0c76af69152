"""The line format of judge banks and of public pairwise data: records into verdict matrices.

    {"group_id", "source", "judge", "players": [...], "matches": [...], "truth": [...] or absent}
    match: {"a": i, "b": j, "order": "ab" | "ba", "score_a", "score_b", "winner"}

`order` says who was shown first, `winner` is "a", "b", "tie" or "failed" and is about the player,
never the slot. Scores are numbers, or null where only a winner was told; optional `dimensions_a`,
`dimensions_b` map names to numbers. A call that gave nothing must say "failed". It opens no file.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from arena_lightning.errors import DataError

WINNERS = {"a": (1.0, 0.0), "b": (0.0, 1.0), "tie": (0.5, 0.5), "failed": (math.nan, math.nan)}


@dataclass(frozen=True, slots=True)
class BankGroup:
    """One group's verdicts. Shapes: the matrices are float64 `[first, second]`, diagonal NaN."""

    group_id: str
    players: tuple[str, ...]
    score_first: np.ndarray
    """`[i, j]`: score of i in the call that showed i first; NaN where the call failed."""
    score_second: np.ndarray
    truth: np.ndarray | None = None
    dimensions: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    """Name -> the same two matrices for one dimension of the judge's rubric."""

    @property
    def size(self) -> int:
        return len(self.players)

    @property
    def num_failed(self) -> int:
        return int(np.isnan(self.score_first).sum()) - self.size


def has_scores(record: Mapping[str, Any]) -> bool:
    """Whether every call of a group that did not fail told scores that agree with its winner.

    Real judges sometimes give equal scores and name a winner, or no scores at all: then only the
    winners of that file can be used, since scores and winners are on different scales.
    """
    for match in record.get("matches") or ():
        if not isinstance(match, dict) or match.get("winner") == "failed":
            continue
        a, b = match.get("score_a"), match.get("score_b")
        if a is None or b is None:
            return False
        if _is_finite_number(a) and _is_finite_number(b) and _told(a, b) != match.get("winner"):
            return False
    return True


def _told(a: float, b: float) -> str:
    return "a" if a > b else "b" if b > a else "tie"


def group_from_record(
    record: Mapping[str, Any], where: str, complete: bool = True, winners_only: bool = False
) -> BankGroup:
    """Return the group of a record.

    Args:
        record: one line of a bank.
        where: file and line, for messages.
        complete: refuse pairs without both orders; else they count as failed calls.
        winners_only: take a win as 1 and 0 and a tie as 0.5 each, whatever the scores.

    Raises:
        DataError: see `load_bank`.
    """
    players = record.get("players")
    if not isinstance(players, list) or len(players) < 2:
        raise DataError(
            f"a group must have at least 2 players, got {players!r} ({where}: players). A group "
            "of one has nothing to compare."
        )
    size = len(players)
    matrices = np.full((2, size, size), math.nan)
    dimensions: dict[str, np.ndarray] = {}
    seen: set[tuple[int, int]] = set()
    for number, match in enumerate(record.get("matches") or ()):
        place = f"{where}: matches[{number}]"
        i, j = _pair(match, size, place)
        shown = (i, j) if match.get("order") == "ab" else (j, i)
        if shown in seen:
            raise DataError(
                f"each ordered pair must be judged once, got {shown} again ({place}). Keep one of "
                "the repeats."
            )
        seen.add(shown)
        scores = _scores(match, place, winners_only)
        own, other = scores if shown == (i, j) else scores[::-1]
        matrices[0][shown], matrices[1][shown] = own, other
        _add_dimensions(dimensions, match, shown, (i, j), size)
    if complete and len(seen) < size * (size - 1):
        missing = next(
            (a, b) for a in range(size) for b in range(size) if a != b and (a, b) not in seen
        )
        raise DataError(
            f"every pair must be judged in both orders, got none that showed player {missing[0]} "
            f"first against {missing[1]}, {size * (size - 1) - len(seen)} in all ({where}). Judge "
            'them, or say that the call failed: `"winner": "failed"` '
            "(studies/convert_public_data.py does)."
        )
    truth = record.get("truth")
    if truth is not None and (
        len(truth) != size or not all(_is_finite_number(value) for value in truth)
    ):
        raise DataError(
            f"truth must have one finite number for each of {size} players, got {truth!r} "
            f"({where}: truth). Mend or remove it."
        )
    return BankGroup(
        str(record.get("group_id", where)),
        tuple(str(player) for player in players),
        matrices[0],
        matrices[1],
        None if truth is None else np.array(truth, dtype=np.float64),
        {name: (pair[0], pair[1]) for name, pair in dimensions.items()},
    )


def _pair(match: Any, size: int, place: str) -> tuple[int, int]:
    pair = (match.get("a"), match.get("b")) if isinstance(match, dict) else (None, None)
    if not all(type(x) is int and 0 <= x < size for x in pair) or pair[0] == pair[1]:
        raise DataError(
            f"a match must name two players a and b out of 0..{size - 1}, got {pair} ({place}). "
            "Correct it."
        )
    if match.get("order") not in ("ab", "ba"):
        raise DataError(
            f'order must be "ab" or "ba", got {match.get("order")!r} ({place}). Say who was shown '
            "first."
        )
    return pair  # type: ignore[return-value]


def _scores(match: Mapping[str, Any], place: str, winners_only: bool) -> tuple[float, float]:
    """Return the scores of a and b; a winner alone is 1 and 0."""
    winner = match.get("winner")
    if winner not in WINNERS:
        raise DataError(
            f"winner must be one of {', '.join(WINNERS)}, got {winner!r} ({place}). Correct it."
        )
    given = (match.get("score_a"), match.get("score_b"))
    if winner != "failed" and not (
        given == (None, None) or all(_is_finite_number(value) for value in given)
    ):
        raise DataError(
            f"scores must both be finite numbers or both null, got {given} ({place}). A call "
            'without a verdict is `"winner": "failed"`.'
        )
    if winner == "failed" or winners_only or given == (None, None):
        return WINNERS[winner]
    return float(given[0]), float(given[1])  # type: ignore[arg-type]


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _add_dimensions(
    dimensions: dict[str, np.ndarray],
    match: Mapping[str, Any],
    shown: tuple[int, int],
    pair: tuple[int, int],
    size: int,
) -> None:
    of_a, of_b = match.get("dimensions_a") or {}, match.get("dimensions_b") or {}
    for name in of_a:
        if not all(_is_finite_number(side.get(name)) for side in (of_a, of_b)):
            continue
        matrix = dimensions.setdefault(name, np.full((2, size, size), math.nan))
        sides = (of_a[name], of_b[name]) if shown == pair else (of_b[name], of_a[name])
        matrix[0][shown], matrix[1][shown] = sides


def record_of(
    group: BankGroup, source: str, judge: str, winners_only: bool = False
) -> dict[str, Any]:
    """Return the record that `group_from_record` reads; scores are null with `winners_only`."""
    matches = []
    for i in range(group.size):
        for j in range(i + 1, group.size):
            for order, shown in (("ab", (i, j)), ("ba", (j, i))):
                sides = float(group.score_first[shown]), float(group.score_second[shown])
                a, b = sides if order == "ab" else sides[::-1]
                failed = math.isnan(a) or math.isnan(b)
                match: dict[str, Any] = {
                    "a": i,
                    "b": j,
                    "order": order,
                    "score_a": None if failed or winners_only else a,
                    "score_b": None if failed or winners_only else b,
                    "winner": "failed" if failed else _told(a, b),
                }
                for side, place in (("a", 0), ("b", 1)):
                    named = {
                        name: float(pair[place if order == "ab" else 1 - place][shown])
                        for name, pair in group.dimensions.items()
                        if not math.isnan(pair[0][shown])
                    }
                    if named and not failed:
                        match[f"dimensions_{side}"] = named
                matches.append(match)
    record: dict[str, Any] = {
        "group_id": group.group_id,
        "source": source,
        "judge": judge,
        "players": list(group.players),
        "matches": matches,
    }
    if group.truth is not None:
        record["truth"] = group.truth.tolist()
    return record
