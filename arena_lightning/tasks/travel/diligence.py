"""How careful an expert is: independent habits, each a thing a small model can choose.

Cold-start dialogues come from experts whose habits are drawn independently, so that trajectories of
one prompt really differ; the references of the test split come from `Diligence.full()`.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Diligence:
    """An expert's habits; the defaults are the best ones."""

    coverage: float = 1.0
    """Share of the asked places, modes or slots it looks up and lists, rounded down, at least 1."""
    detail: int = 2
    """0: names only; 1: plus rating and price, or minutes; 2: plus hours, or distance and cost."""
    checks: bool = True
    """Verifies: the walk to the pick, the weather, the way between the stops."""
    total: bool = True
    """Gives the total for the party."""
    recommend: bool = True
    """Gives a pick with its reason."""
    redundant: bool = False
    """Repeats a call."""
    chatter: bool = False
    """Ends with padding."""
    invents: bool = False
    """Lists a place that it never saw."""

    @classmethod
    def full(cls) -> "Diligence":
        return cls()

    @classmethod
    def lazy(cls) -> "Diligence":
        """Return the worst habits that still answer."""
        return cls(0.5, 0, False, False, False, True, True, True)

    @classmethod
    def sample(cls, generator: np.random.Generator) -> "Diligence":
        """Draw each habit on its own."""
        return cls(
            coverage=float(generator.choice([0.5, 0.7, 1.0], p=[0.25, 0.25, 0.5])),
            detail=int(generator.integers(0, 3)),
            checks=bool(generator.random() < 0.5),
            total=bool(generator.random() < 0.5),
            recommend=bool(generator.random() < 0.5),
            redundant=bool(generator.random() < 0.3),
            chatter=bool(generator.random() < 0.35),
            invents=bool(generator.random() < 0.15),
        )
