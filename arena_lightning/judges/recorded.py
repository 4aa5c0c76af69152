"""A judge that replays a ledger: the verdicts of a paid run, again and for free.

    question -> key (the function of the judge that recorded it) -> entry -> verdict

Studies compare topologies on recorded verdicts with it, and a finished run can be ranked again
without a network. It never asks a model: a question that was not recorded is an error, or goes to
the judge given for it.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from arena_lightning.errors import JudgeError, RecordError
from arena_lightning.judges.ledger import Ledger, LedgerEntry
from arena_lightning.protocols import Judge, Score
from arena_lightning.types import Prompt, Trajectory, Usage, Verdict

KeyOf = Callable[[str, Prompt, Trajectory, Trajectory | None], str]
"""(kind, prompt, first, second) -> the question's key; second is None for `score`."""
_FREE = Usage(calls=0, cached=True)


class RecordedJudge:
    """Answers from a ledger or its Parquet export. Verdicts are told as cached: 0 calls, USD 0."""

    def __init__(
        self,
        source: Ledger | Path | str,
        key_of: KeyOf,
        otherwise: Judge | None = None,
        name: str = "recorded",
    ) -> None:
        """Open a recording.

        Args:
            source: an open ledger, a ledger's file, or its Parquet export. A ledger may grow
                meanwhile; an export is read once.
            key_of: the key function of the judge that made the recording.
            otherwise: who answers what was not recorded; None: nobody.
            name: told with each verdict, together with the model that gave it.

        Raises:
            RecordError: there is no such file, or it is no recording.
        """
        self.name = name
        self._key_of = key_of
        self._otherwise = otherwise
        self._source = str(source.path if isinstance(source, Ledger) else source)
        self._find: Callable[[str], LedgerEntry | None]
        if isinstance(source, Ledger):
            self._find = source.get
        else:
            self._find = _finder_of(Path(source))

    async def compare(self, prompt: Prompt, first: Trajectory, second: Trajectory) -> Verdict:
        """Return the recorded verdict with `first` shown first.

        Raises:
            JudgeError: it was not recorded and nobody else is asked.
        """
        entry = self._entry("compare", prompt, first, second)
        if entry is None:
            assert self._otherwise is not None, "a missing entry without another judge was raised"
            return await self._otherwise.compare(prompt, first, second)
        return Verdict(
            self._number(entry, "first"),
            self._number(entry, "second"),
            self._numbers(entry, "dimensions_first"),
            self._numbers(entry, "dimensions_second"),
            usage=_FREE,
            judge=f"{self.name}:{entry.model}",
        )

    async def score(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        """Return the recorded pointwise score.

        Raises:
            JudgeError: it was not recorded and nobody else is asked.
        """
        entry = self._entry("score", prompt, trajectory, None)
        if entry is None:
            assert self._otherwise is not None, "a missing entry without another judge was raised"
            return await self._otherwise.score(prompt, trajectory)
        score, dimensions = self._number(entry, "score"), self._numbers(entry, "dimensions")
        return Score(score, dimensions, usage=_FREE)

    def _entry(
        self, kind: str, prompt: Prompt, first: Trajectory, second: Trajectory | None
    ) -> LedgerEntry | None:
        """Return the recorded entry; None when another judge is to be asked."""
        entry = self._find(self._key_of(kind, prompt, first, second))
        if entry is None and self._otherwise is None:
            raise self._error(
                f"the question must be recorded, got an unknown one ({kind}, prompt "
                f"{prompt.prompt_id!r}, {self._source}). Use the recording's rubric, model and "
                "trajectories, or give `otherwise` to have it judged."
            )
        if entry is not None and entry.kind != kind:
            raise self._error(
                f"the entry must be a {kind}, got a {entry.kind} (key {entry.key}, "
                f"{self._source}). Use the key function of the recording's judge."
            )
        return entry

    def _number(self, entry: LedgerEntry, name: str) -> float:
        return self._checked(entry, name, entry.scores.get(name))

    def _numbers(self, entry: LedgerEntry, name: str) -> Mapping[str, float]:
        values = entry.scores.get(name, {})
        return {key: self._checked(entry, f"{name}.{key}", value) for key, value in values.items()}

    def _checked(self, entry: LedgerEntry, name: str, value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise self._error(
                f"a recorded score must be a finite number, got {value!r} ({name}, key "
                f"{entry.key}, {self._source}). The recording can't be used for this question."
            )
        return float(value)

    @staticmethod
    def _error(text: str) -> JudgeError:
        error = JudgeError(text)
        error.usage = _FREE  # type: ignore[attr-defined]
        return error


def _finder_of(path: Path) -> Callable[[str], LedgerEntry | None]:
    """Return the look-up of a file, which says by its first bytes what it is."""
    try:
        with path.open("rb") as file:
            mark = file.read(16)
    except OSError as error:
        raise RecordError(
            f"the recording must be a file that can be read, got {error} ({path}). Give a ledger "
            "or its Parquet export."
        ) from error
    if mark.startswith(b"PAR1"):
        return _entries_from_parquet(path).get
    return Ledger(path).get


def _entries_from_parquet(path: Path) -> dict[str, LedgerEntry]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
        entries = [LedgerEntry(**(row | {"scores": json.loads(row["scores"])})) for row in rows]
    except (pyarrow.ArrowException, KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"the recording must be a ledger's Parquet export, got {error} ({path}). Export it "
            "again from the ledger."
        ) from error
    return {entry.key: entry for entry in entries if entry.status == "verdict"}
