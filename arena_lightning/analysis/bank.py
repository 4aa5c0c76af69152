"""Judge banks: every pair of a group judged in both orders once, kept to replay any topology.

    bank file (one JSON line a group, `bank_format.py`) -> JudgeBank -> BankSource -> VerdictBatch

A bank costs its judge calls once; every topology, group size below its own and presentation order
is then free. It asks no judge.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arena_lightning.analysis.bank_format import (
    BankGroup,
    group_from_record,
    has_scores,
    record_of,
)
from arena_lightning.analysis.verdict_batch import VerdictBatch
from arena_lightning.errors import DataError, RecordError
from arena_lightning.rng import generator_for


@dataclass(frozen=True, slots=True)
class JudgeBank:
    """Groups judged by one judge."""

    name: str
    judge: str
    groups: tuple[BankGroup, ...]
    scale: str = "scores"
    """"scores" as the judge gave them, or "winners": 1, 0 and 0.5 for a tie."""

    def batch(self) -> VerdictBatch:
        """Return all groups as they are.

        Raises:
            DataError: the groups have different sizes.
        """
        sizes = sorted({group.size for group in self.groups})
        if len(sizes) != 1:
            raise DataError(
                f"groups must have one size to be taken as they are, got {sizes} (bank "
                f"{self.name}). Draw groups of one size with BankSource."
            )
        truths = [group.truth for group in self.groups if group.truth is not None]
        return VerdictBatch(
            np.stack([group.score_first for group in self.groups]),
            np.stack([group.score_second for group in self.groups]),
            np.stack(truths) if len(truths) == len(self.groups) else None,
        )


def load_bank(path: Path, complete: bool = True) -> JudgeBank:
    """Read a bank, or a file of public round robins in the same format.

    Scores are used when every call of the file told some that agree with its winner; else winners.

    Args:
        path: JSON lines.
        complete: refuse pairs without both orders; else they count as failed calls.

    Raises:
        DataError: unreadable; not this format; a group of one; a pair without both orders; a score
            that isn't finite; several judges. The message names file and line.
    """
    records = list(_records(path))
    if not records:
        raise DataError(f"a bank must hold at least one group, got none ({path}). Record one.")
    winners_only = not all(has_scores(record) for _, record in records)
    groups = tuple(
        group_from_record(record, f"{path}:{number}", complete, winners_only)
        for number, record in records
    )
    judge = str(records[0][1].get("judge", ""))
    for number, record in records:
        if record.get("judge", "") != judge:
            raise DataError(
                f"a bank must be of one judge, got {judge!r} and {record.get('judge')!r} "
                f"({path}:{number}). Split the file by its key `judge`."
            )
    return JudgeBank(path.stem, judge, groups, "winners" if winners_only else "scores")


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except json.JSONDecodeError as error:
                    raise DataError(
                        f"each line of a bank must be JSON, got {error} ({path}:{number}). Mend "
                        "or remove the line."
                    ) from error
                if not isinstance(record, dict) or "players" not in record:
                    raise DataError(
                        "each line of a bank must be an object with `players` and `matches`, got "
                        f"{str(record)[:60]!r} ({path}:{number}). Is it another file?"
                    )
                yield number, record
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"a bank must be readable, got {error} ({path}). Correct the path.") from (
            error
        )


def save_bank(path: Path, bank: JudgeBank, source: str = "") -> None:
    """Write a bank, whole or not at all.

    Raises:
        RecordError: the folder can't be written.
    """
    write_records(
        path,
        (record_of(group, source, bank.judge, bank.scale == "winners") for group in bank.groups),
    )


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON line a record, whole or not at all."""
    partial = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        partial.replace(path)
    except OSError as error:
        raise RecordError(
            f"a bank must be writable, got {error} ({path}). Choose another --out."
        ) from error


class BankSource:
    """Replays a bank: groups in a random order, contestants drawn from each, each group once before
    any twice."""

    def __init__(self, bank: JudgeBank) -> None:
        self.name = bank.name
        self.bank = bank

    def draw(self, size: int, num_groups: int, seed: int) -> VerdictBatch:
        """Return verdicts of `num_groups` groups of `size`; see `VerdictSource`.

        `clusters` of the batch say which recorded group each came from: a group drawn again, with
        other contestants or another anchor, is no independent evidence.

        Raises:
            DataError: no group of the bank has that many contestants.
        """
        groups = [group for group in self.bank.groups if group.size >= size]
        if not groups:
            largest = max(group.size for group in self.bank.groups)
            raise DataError(
                f"a bank must have groups of at least {size} contestants, got at most {largest} "
                f"(bank {self.name}). Lower --sizes, or record larger groups."
            )
        rng = generator_for(seed, "bank/draw", size)
        turns: list[int] = []
        while len(turns) < num_groups:
            turns += rng.permutation(len(groups)).tolist()
        chosen = turns[:num_groups]
        rng = generator_for(seed, "bank/contestants", size)
        picks = [rng.permutation(groups[index].size)[:size] for index in chosen]
        first, second, truths = [], [], []
        for index, pick in zip(chosen, picks, strict=True):
            group, grid = groups[index], np.ix_(pick, pick)
            first.append(group.score_first[grid])
            second.append(group.score_second[grid])
            if group.truth is not None:
                truths.append(group.truth[pick])
        return VerdictBatch(
            np.stack(first),
            np.stack(second),
            np.stack(truths) if len(truths) == num_groups else None,
            np.array(chosen),
        )


def sizes_of(bank: JudgeBank) -> Sequence[int]:
    """Return the sizes of a bank's groups, ascending, each once."""
    return sorted({group.size for group in bank.groups})
