"""The judge's budget: dollars, calls and tokens, per run and per step, never exceeded.

    reserve (upper estimate) -> one HTTP attempt -> settle (what it really took)

Every attempt reserves before it is sent, so that calls running at the same time can't overspend
together. It keeps count only: prices come from `pricing.py`, and the client decides what is sent.
One process's calls are counted; a restart restores them from the ledger's totals.
"""

from dataclasses import dataclass
from typing import Literal

from arena_lightning.errors import ArenaLightningError

WhenSpent = Literal["stop", "cheaper_model"]


class BudgetSpentError(ArenaLightningError):
    """The judge's budget is spent. It stops the run, which can be resumed with a larger budget.

    Not a `JudgeError`: those become failed matches, and a run would go on learning from nothing.
    """


@dataclass(frozen=True, slots=True)
class Spending:
    """Calls, tokens (prompt and completion) and USD."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Budget:
    """What the judge may spend."""
