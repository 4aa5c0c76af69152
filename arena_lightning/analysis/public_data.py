"""Public judgement data that is no round robin: stars, repeated calls, labelled pairs, pointwise.

    JSON lines -> CallGroup (stars, repeats, labelled pairs) | ScoreGroup (pointwise matrices)

One line a group. Calls: `group_id, judge, players, matches` with the matches of `bank_format.py`;
a star's matches all have a = 0, the anchor; `rep` numbers repeats of one call from 1; `label` says
which of two players people preferred. Pointwise: `players` and one number each under a key such as
`mean_score`, null where it is not known. Round robins are banks: `bank.load_bank`. It fits nothing.
"""

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from arena_lightning.errors import DataError

Winner = Literal["a", "b", "tie", "failed"]
WINNERS = ("a", "b", "tie", "failed")
CORRECT_SIDES = ("bard", "gpt-4", "vicuna-13b")
"""Opponents whose sides are right in the GPT-4 anchor ratings (see `mend_anchor_sides`)."""


class Call(NamedTuple):
    """One judge call about players a and b."""

    a: int
    b: int
    a_is_first: bool
    winner: Winner
    """Of the players, not of the slots; "failed" for a reply that could not be read."""
    score_a: float | None
    score_b: float | None
    repeat: int
    """From 1."""

    @property
    def lead_of_first(self) -> int:
        """1 where the one shown first won, -1 where the other did, 0 for a tie or a failure."""
        lead = {"a": 1, "b": -1}.get(self.winner, 0)
        return lead if self.a_is_first else -lead


@dataclass(frozen=True, slots=True)
class CallGroup:
    """The calls of one judge about one prompt's players."""

    group_id: str
    judge: str
    players: tuple[str, ...]
    calls: tuple[Call, ...]
    label: Literal["a", "b"] | None = None
    """Which of two players people preferred; None where nobody was asked."""

    @property
    def num_failed(self) -> int:
        return sum(call.winner == "failed" for call in self.calls)


@dataclass(frozen=True, slots=True)
class ScoreGroup:
    """One prompt's players scored one by one."""

    group_id: str
    judge: str
    players: tuple[str, ...]
    scores: np.ndarray
    """float64 `[player]`, higher is better; NaN where it is not known."""


def load_calls(path: Path, judge: str | None = None) -> list[CallGroup]:
    """Read stars, repeats or labelled pairs.

    Args:
        path: JSON lines.
        judge: of this judge only, whole or up to the "/" before its prompting strategy.

    Raises:
        DataError: unreadable, or not this format, naming file and line; or no group of that judge.
    """
    groups, judges = [], set()
    for where, record in _records(path):
        name = str(record.get("judge", ""))
        judges.add(name)
        if judge is None or judge in (name, name.split("/")[0]):
            groups.append(_call_group(record, where))
    if not groups:
        raise DataError(
            f"the file must hold groups of judge {judge!r}, got {', '.join(sorted(judges)[:12])} "
            f"({path}). Name one of them."
        )
    return groups


def load_scores(path: Path, key: str) -> list[ScoreGroup]:
    """Read pointwise score matrices; groups that lack the key are left out.

    Args:
        path: JSON lines.
        key: where the numbers are, e.g. "mean_score", "helloeval" or "mqm_score".

    Raises:
        DataError: unreadable, or a row of the wrong length or with a value that is no number,
            naming file and line; or no group with that key.
    """
    groups = []
    for where, record in _records(path):
        row = record.get(key)
        if row is None:
            continue
        players = _players(record, where)
        if not isinstance(row, list) or len(row) != len(players):
            raise DataError(
                f"{key} must have one score for each of {len(players)} players, got "
                f"{str(row)[:60]} ({where}: {key}). Correct it."
            )
        wrong = [value for value in row if value is not None and not _is_finite_number(value)]
        if wrong:
            raise DataError(
                f"a score must be a finite number or null, got {wrong[0]!r} ({where}: {key}). "
                "Correct it."
            )
        scores = np.array([math.nan if value is None else value for value in row], dtype=float)
        judge = str(record.get("judge", ""))
        groups.append(ScoreGroup(str(record.get("group_id", where)), judge, players, scores))
    if not groups:
        raise DataError(
            f"the file must hold scores under {key!r}, got none ({path}). Name the key they have."
        )
    return groups


def mend_anchor_sides(
    groups: Sequence[CallGroup], correct: Collection[str] = CORRECT_SIDES
) -> list[CallGroup]:
    """Return the groups with the two players of a call exchanged, except for opponents named.

    In the public GPT-4 ratings against gpt-3.5 (QLoRA, 80 Vicuna questions) all other opponents'
    names sit on the wrong side: FLAN models win 100% against gpt-3.5 as recorded, and the four
    guanacos rank in reverse. Measured against the same judge's round robin on the same questions
    and pairs, decided calls name the same winner in 25-29% as recorded, 71-75% with the winner
    alone exchanged, and 80-90% with winner and order exchanged, as here; 88-97% for the three
    opponents that are right. Not applied on loading: the caller decides.
    """
    return [
        replace(
            group,
            calls=tuple(
                call if group.players[call.b] in correct else _exchanged(call)
                for call in group.calls
            ),
        )
        for group in groups
    ]


def _exchanged(call: Call) -> Call:
    winner: dict[str, Winner] = {"a": "b", "b": "a"}
    return call._replace(
        a_is_first=not call.a_is_first,
        winner=winner.get(call.winner, call.winner),
        score_a=call.score_b,
        score_b=call.score_a,
    )


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield "file:line" and the object of each line."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                where = f"{path}:{number}"
                try:
                    record = json.loads(line)
                except json.JSONDecodeError as error:
                    raise DataError(
                        f"each line must be JSON, got {error} ({where}). Mend or remove it."
                    ) from error
                if not isinstance(record, dict):
                    raise DataError(
                        f"each line must be an object, got {str(record)[:60]!r} ({where}). Is it "
                        "another file?"
                    )
                yield where, record
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"data must be readable, got {error} ({path}). Correct the path.") from (
            error
        )


def _players(record: dict[str, Any], where: str) -> tuple[str, ...]:
    players = record.get("players")
    if not isinstance(players, list) or len(players) < 2:
        raise DataError(
            f"a group must have at least 2 players, got {players!r} ({where}: players). Is it "
            "another file?"
        )
    return tuple(str(player) for player in players)


def _call_group(record: dict[str, Any], where: str) -> CallGroup:
    players = _players(record, where)
    label = record.get("label")
    if label not in (None, "a", "b"):
        raise DataError(f'label must be "a" or "b", got {label!r} ({where}: label). Correct it.')
    matches = record.get("matches")
    if not isinstance(matches, list):
        raise DataError(
            f"a group must have a list of matches, got {matches!r} ({where}: matches). Is it a "
            "pointwise file? load_scores reads those."
        )
    calls = tuple(
        _call(match, len(players), f"{where}: matches[{number}]")
        for number, match in enumerate(matches)
    )
    return CallGroup(
        str(record.get("group_id", where)), str(record.get("judge", "")), players, calls, label
    )


def _call(match: Any, size: int, where: str) -> Call:
    given = match if isinstance(match, dict) else {}
    a, b, order, winner = (given.get(name) for name in ("a", "b", "order", "winner"))
    sides = [x for x in (a, b) if type(x) is int and 0 <= x < size]
    if len(sides) < 2 or a == b or order not in ("ab", "ba") or winner not in WINNERS:
        raise DataError(
            f'a match must have two players a and b out of 0..{size - 1}, order "ab" or "ba", and '
            f"a winner of {', '.join(WINNERS)}, got {(a, b, order, winner)} ({where}). Correct it."
        )
    scores = given.get("score_a"), given.get("score_b")
    repeat = given.get("rep", 1)
    if not all(score is None or _is_finite_number(score) for score in scores) or (
        type(repeat) is not int or repeat < 1
    ):
        raise DataError(
            f"scores must be finite numbers or null, and rep a number from 1, got {scores} and "
            f"{repeat!r} ({where}). Correct it."
        )
    return Call(sides[0], sides[1], order == "ab", winner, scores[0], scores[1], repeat)


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
