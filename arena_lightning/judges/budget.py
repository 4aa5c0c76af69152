"""The judge's budget: dollars, calls and tokens, per run and per step, never exceeded.

    reserve (upper estimate) -> one HTTP attempt -> settle (what it really took)

Every attempt reserves before it is sent, so that calls running at the same time can't overspend
together. It keeps count only: prices come from `pricing.py`, and the client decides what is sent.
One process's calls are counted; a restart restores them from the ledger's totals.
"""

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from typing import Literal

from arena_lightning.errors import ArenaLightningError, ConfigError

WhenSpent = Literal["stop", "cheaper_model"]
_EPSILON_USD = 1e-9  # sums of prices are floats; a billionth of a dollar is not an overrun


class BudgetSpentError(ArenaLightningError):
    """The judge's budget is spent. It stops the run, which can be resumed with a larger budget.

    Not a `JudgeError`: those become failed matches, and a run would go on learning from nothing.
    """


@dataclass(frozen=True, slots=True)
class Spending:
    """Calls (HTTP attempts), tokens (prompt and completion) and USD."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            self.calls + other.calls, self.tokens + other.tokens, self.cost_usd + other.cost_usd
        )

    def __sub__(self, other: "Spending") -> "Spending":
        return Spending(
            self.calls - other.calls, self.tokens - other.tokens, self.cost_usd - other.cost_usd
        )


@dataclass(slots=True)
class Reservation:
    """A claim on the budget by one attempt, open until it is settled."""

    upper: Spending
    step_index: int
    is_open: bool = True


class Budget:
    """What the judge may spend. None of its bounds is ever exceeded, not even by one call.

    One object serves the whole process, also from several threads and event loops.
    """

    def __init__(
        self,
        max_usd: float | None = None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_usd_per_step: float | None = None,
        max_calls_per_step: int | None = None,
        max_tokens_per_step: int | None = None,
        when_spent: WhenSpent = "stop",
    ) -> None:
        """Set the bounds; None is no bound.

        Args:
            max_usd: USD of the run, by the client's prices.
            max_calls: HTTP attempts of the run; retries count.
            max_tokens: prompt and completion tokens of the run.
            max_usd_per_step: the same for one step; `start_step` begins a new one.
            max_calls_per_step: likewise.
            max_tokens_per_step: likewise.
            when_spent: `stop` the run with `BudgetSpentError`, or go on with the client's
                `cheaper` judge.

        Raises:
            ConfigError: a bound below 0, or an unknown `when_spent`.
        """
        self.per_run = {"calls": max_calls, "tokens": max_tokens, "cost_usd": max_usd}
        self.per_step = {
            "calls": max_calls_per_step,
            "tokens": max_tokens_per_step,
            "cost_usd": max_usd_per_step,
        }
        for name, bound in [*self.per_run.items(), *self.per_step.items()]:
            if bound is not None and not bound >= 0:
                raise ConfigError(
                    f"a bound of the judge's budget must be at least 0 or None, got {bound} "
                    f"({name}). Raise it, or leave it out for no bound."
                )
        if when_spent not in ("stop", "cheaper_model"):
            raise ConfigError(
                f'when_spent must be "stop" or "cheaper_model", got {when_spent!r} (the judge\'s '
                "budget). Choose one."
            )
        self.when_spent: WhenSpent = when_spent
        self._lock = threading.Lock()
        self._run = Spending()
        self._step = Spending()
        self._reserved = Spending()
        self._reserved_by_step = Spending()
        self._step_index = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def spent(self) -> Spending:
        """What the run has settled so far, without what is in flight."""
        return self._run

    @property
    def spent_in_step(self) -> Spending:
        """The same for the current step."""
        return self._step

    @property
    def needs_price(self) -> bool:
        """Whether there is a bound in USD: a model without a price can't be used then."""
        return self.per_run["cost_usd"] is not None or self.per_step["cost_usd"] is not None

    def start_step(self) -> None:
        """Begin a new step: its bounds start afresh. Attempts in flight stay with the old one."""
        with self._lock:
            self._step_index += 1
            self._step = Spending()
            self._reserved_by_step = Spending()
        self._wake()

    def restore(self, calls: int, tokens: int, cost_usd: float) -> None:
        """Set what the run has spent, e.g. from `Ledger.totals()` after a restart."""
        with self._lock:
            self._run = Spending(calls, tokens, cost_usd)

    async def reserve(self, tokens: int, cost_usd: float) -> Reservation:
        """Claim one call with at most so many tokens and USD, before it is sent.

        While it does not fit and others are in flight it waits: they may take less than they
        claimed, and a run that stops must not cut off replies that are paid and on their way.

        Raises:
            BudgetSpentError: the budget can't bear the call, and nothing is in flight any more.
        """
        upper = Spending(1, tokens, cost_usd)
        while True:
            event = asyncio.Event()
            with self._lock:
                excess = self._excess(upper)
                if excess is None:
                    self._reserved += upper
                    self._reserved_by_step += upper
                    return Reservation(upper, self._step_index)
                if not self._reserved.calls:
                    raise BudgetSpentError(excess)
                waiter = (asyncio.get_running_loop(), event)
                self._waiting.append(waiter)
            try:
                await event.wait()
            finally:
                with self._lock, contextlib.suppress(ValueError):
                    self._waiting.remove(waiter)

    def settle(self, reservation: Reservation, tokens: int, cost_usd: float) -> None:
        """Book what an attempt really took; more than it claimed is booked as it came."""
        self._close(reservation, Spending(1, tokens, cost_usd))

    def settle_in_full(self, reservation: Reservation) -> None:
        """Book all that was claimed: the attempt was sent, and what it took is not known."""
        self._close(reservation, reservation.upper)

    def release(self, reservation: Reservation) -> None:
        """Give a claim back: the attempt was never sent."""
        self._close(reservation, Spending())

    def _close(self, reservation: Reservation, taken: Spending) -> None:
        with self._lock:
            if not reservation.is_open:
                return
            reservation.is_open = False
            self._reserved -= reservation.upper
            if not self._reserved.calls:
                self._reserved = Spending()  # not a float's residue
            self._run += taken
            if reservation.step_index == self._step_index:
                self._reserved_by_step -= reservation.upper
                self._step += taken
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            # The loop of another thread may have ended meanwhile, and its waiters with it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)

    def _excess(self, upper: Spending) -> str | None:
        """Return what is wrong with claiming `upper` on top of all, None when it fits."""
        for bounds, spent, reserved, span in (
            (self.per_run, self._run, self._reserved, "run"),
            (self.per_step, self._step, self._reserved_by_step, "step"),
        ):
            for name, bound in bounds.items():
                if bound is None:
                    continue
                taken = getattr(spent, name) + getattr(reserved, name)
                if taken + getattr(upper, name) > bound + (_EPSILON_USD * (name == "cost_usd")):
                    return (
                        f"the judge's {name} per {span} must stay within {bound}, got {taken} "
                        f"and a call that may take {getattr(upper, name)} (judge budget). "
                        "Verdicts are kept: raise the budget and start again, or set "
                        "when_spent to cheaper_model."
                    )
        return None
