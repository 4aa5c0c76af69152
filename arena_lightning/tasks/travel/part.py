"""One need's result, and what the files that score needs share."""

from collections.abc import Mapping
from dataclasses import dataclass

from arena_lightning.tasks.travel.reading import Reading
from arena_lightning.tasks.travel.statements import Checked, Value

Stated = Mapping[str, Mapping[str, set[Value]]]
"""Thing -> kind of fact -> values stated."""


@dataclass(frozen=True, slots=True)
class Part:
    """A need's result, shares of what was asked; details go below 0 when more is wrong."""

    weight: float
    relevance: float
    feasibility: float | None = None
    details: float | None = None


def listed_things(reading: Reading) -> tuple[str, ...]:
    """Return the distinct names the answer lists, in order."""
    return tuple(dict.fromkeys(name for line in reading.lines for name in line.names))


def feasible_share(feasible: float, listed: float, asked: int) -> float:
    """Share of what is listed that can be done; half of it hangs on listing what was asked."""
    return feasible / listed * (0.5 + 0.5 * min(1.0, listed / asked)) if listed else 0.0


def shown_feasible(kind: str, checked: Checked) -> float:
    """Return a feasible thing's credit: 1 when the deciding fact is told, 0 with a wrong fact."""
    if checked.wrong:
        return 0.0
    return 1.0 if kind in checked.right else 0.7
