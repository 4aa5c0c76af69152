"""Recording a bank: any judge asked about all ordered pairs of real groups, once.

    groups -> Arena (round robin, both orders, bounded concurrency) -> bank file, a line a group

Groups that the file holds are not asked again, so an interrupted recording goes on where it
stopped. Failed calls are kept as failed. It reads no training records and chooses no judge.
"""

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from arena_lightning.analysis.bank import load_bank
from arena_lightning.analysis.bank_format import BankGroup, record_of
from arena_lightning.arena import Arena, JudgeCall, build_topology
from arena_lightning.arena.call_slots import gather_or_cancel
from arena_lightning.errors import DataError, RecordError
from arena_lightning.protocols import Judge
from arena_lightning.types import Group

Truth = Callable[[Group], np.ndarray]
LINE_START = b'{"group_id": '
"""How each line of a bank that was written here starts: other files are not cut."""


@dataclass(frozen=True, slots=True)
class GroupToJudge:
    """One group, and the name by which a resumed recording knows it."""

    group_id: str
    group: Group

    @property
    def players(self) -> tuple[str, ...]:
        return tuple(f"trajectory {index}" for index in range(len(self.group)))


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recording did."""

    num_new: int
    num_known: int
    """Groups that the file held before."""
    num_calls: int
    num_failed: int


async def record_groups(
    path: Path,
    groups: Sequence[GroupToJudge],
    judge: Judge,
    label: str,
    source: str = "",
    concurrency: int = 64,
    truth: Truth | None = None,
) -> Recorded:
    """Ask `judge` about all N (N-1) ordered pairs of each group and append them to a bank.

    A line is written as soon as its group and those before it are judged.

    Args:
        path: the bank; made, or gone on with.
        groups: who is judged.
        judge: who judges; a `JudgeError` from it is a failed call, anything else ends the run.
        label: the bank's `judge`. It must tell apart judges that differ in settings or seed.
        source: where the groups come from.
        concurrency: judge calls in flight, over all groups.
        truth: group -> float64 `[contestant]`, higher is better; None where nobody knows.

    Raises:
        DataError: the file is no bank, is of another judge, or holds another group by that name.
        RecordError: the file can't be written.
    """
    known = _known_sizes(path, label)
    wanted = [item for item in groups if item.group_id not in known]
    for item in groups:
        size = known.get(item.group_id, len(item.group))
        if size != len(item.group):
            raise DataError(
                f"a group must keep its size when a recording goes on, got {len(item.group)} "
                f"trajectories and {size} players on file ({path}: {item.group_id}). Choose "
                "another --out."
            )
    # Sharing is off: a bank holds what the judge says about every ordered pair.
    arena = Arena(
        build_topology("round_robin"),
        judge,
        concurrency=concurrency,
        on_judge_failure="drop_group",
        max_failed_fraction=1.0,
        share_identical=False,
    )
    writer = _InOrder(path, source, label)

    async def judged(place: int, item: GroupToJudge) -> tuple[int, int]:
        result = await arena.run_group(item.group, 0, place)
        scores = None if truth is None else truth(item.group)
        writer.add(place, group_of_calls(item, result.calls, scores))
        return len(result.calls), sum(call.failed for call in result.calls)

    counts = await gather_or_cancel([judged(*numbered) for numbered in enumerate(wanted)])
    return Recorded(
        num_new=len(wanted),
        num_known=len(groups) - len(wanted),
        num_calls=sum(calls for calls, _ in counts),
        num_failed=sum(failed for _, failed in counts),
    )


def group_of_calls(
    item: GroupToJudge, calls: Sequence[JudgeCall], truth: np.ndarray | None = None
) -> BankGroup:
    """Return a bank's group of judge calls, one of each ordered pair."""
    size = len(item.group)
    matrices = np.full((2, size, size), math.nan)
    dimensions: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for call in calls:
        verdict, shown = call.verdict, (call.first, call.second)
        if verdict is None:
            continue
        matrices[0][shown], matrices[1][shown] = verdict.score_first, verdict.score_second
        for name in verdict.dimensions_first.keys() & verdict.dimensions_second.keys():
            if name not in dimensions:
                empty = np.full((size, size), math.nan)
                dimensions[name] = empty, empty.copy()
            dimensions[name][0][shown] = verdict.dimensions_first[name]
            dimensions[name][1][shown] = verdict.dimensions_second[name]
    named = {name: dimensions[name] for name in sorted(dimensions)}
    return BankGroup(item.group_id, item.players, matrices[0], matrices[1], truth, named)


class _InOrder:
    """Appends groups in their order, however they end, so that equal runs write equal files."""

    def __init__(self, path: Path, source: str, label: str) -> None:
        self._path, self._source, self._label = path, source, label
        self._next = 0
        self._waiting: dict[int, BankGroup] = {}

    def add(self, place: int, group: BankGroup) -> None:
        self._waiting[place] = group
        lines = []
        while self._next in self._waiting:
            record = record_of(self._waiting.pop(self._next), self._source, self._label)
            lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
            self._next += 1
        if not lines:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(lines))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RecordError(
                f"a bank must be writable, got {error} ({self._path}). Free space or choose "
                "another --out; a recording goes on where it stopped."
            ) from error


def _known_sizes(path: Path, label: str) -> dict[str, int]:
    """Return group -> size of what the file holds; a line that a kill cut off is removed."""
    if not path.exists():
        return {}
    try:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        cut_off = content[whole:]
        if cut_off and cut_off[: len(LINE_START)] != LINE_START[: len(cut_off)]:
            raise DataError(
                f"a recording can go on with a bank only, got a last line {cut_off[:40]!r} "
                f"({path}). Choose another --out; the file was left as it is."
            )
        if cut_off:
            with path.open("r+b") as file:
                file.truncate(whole)
    except OSError as error:
        raise RecordError(
            f"a bank must be readable and writable, got {error} ({path}). Choose another --out."
        ) from error
    if not whole:
        return {}
    bank = load_bank(path)
    if bank.judge != label:
        raise DataError(
            f"a bank must be of one judge, got {label!r} for a file of {bank.judge!r} ({path}). "
            "Choose another --out."
        )
    return {group.group_id: group.size for group in bank.groups}
