"""How much is asked at once, how long it may take, and when to stop asking a broken service.

`AdaptiveConcurrency` finds the rate a provider bears: one more call in flight per round of good
replies, half as many on a 429 (AIMD, as TCP does). `CircuitBreaker` stops asking after failures in
a row and lets one probe through from time to time. Neither knows what a call is or asks again.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from arena_lightning.errors import ConfigError

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a judge client's calls."""

    max_concurrency: int = 128
    """Calls in flight per model at most."""
    start_concurrency: int | None = None
    """Calls in flight per model to begin with; None is `max_concurrency`."""
    attempt_timeout_s: float = 120.0
    """One HTTP attempt, from sending to the last byte."""
    call_deadline_s: float = 900.0
    """One question with all its retries, waits and fallbacks."""
    step_deadline_s: float | None = None
    """All questions since `start_step`; None is no deadline. What is open then fails."""
    breaker_failures: int = 16
    """Failures in a row that stop the asking of a model."""
    breaker_pause_s: float = 1.0
    """How long it is not asked then; doubles with each probe that fails."""
    breaker_max_pause_s: float = 30.0

    def __post_init__(self) -> None:
        for name in ("max_concurrency", "breaker_failures"):
            self._must(getattr(self, name) >= 1, name, "be at least 1")
        for name in ("attempt_timeout_s", "call_deadline_s", "breaker_pause_s"):
            self._must(getattr(self, name) > 0, name, "be above 0 s")
        start = self.start_concurrency
        if start is not None:
            self._must(1 <= start <= self.max_concurrency, "start_concurrency", "lie in 1-max")
        if self.step_deadline_s is not None:
            self._must(self.step_deadline_s > 0, "step_deadline_s", "be above 0 s or None")

    def _must(self, holds: bool, name: str, must: str) -> None:
        if not holds:
            raise ConfigError(
                f"{name} must {must}, got {getattr(self, name)} (judge limits). Mend the value."
            )


class AdaptiveConcurrency:
    """A bound on calls in flight that grows with good replies and is cut on a 429.

    First come, first served. One event loop at a time.
    """

    def __init__(self, maximum: int, start: int | None = None) -> None:
        self.maximum = maximum
        self.limit = float(start or maximum)
        """Calls in flight allowed now: its whole part, at least 1."""
        self.num_in_flight = 0
        self.num_cuts = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """Hold one call's slot; gives the number of cuts so far, for `rate_limited`."""
        if self.num_in_flight >= int(self.limit) or self._waiting:
            await self._wait_for_slot()
        else:
            self.num_in_flight += 1
        try:
            yield self.num_cuts
        finally:
            self._give_back()

    async def _wait_for_slot(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._give_back()
            else:
                self._waiting.remove(future)
            raise

    def _give_back(self) -> None:
        self.num_in_flight -= 1
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self.num_in_flight < int(self.limit):
            future = self._waiting.popleft()
            # A cancelled waiter removes itself, unless its loop has ended with it.
            if not future.done():
                self.num_in_flight += 1
                future.set_result(None)

    def succeeded(self) -> None:
        """A good reply came: `limit` of them together raise the limit by 1."""
        self.limit = min(float(self.maximum), self.limit + 1.0 / self.limit)
        self._grant()

    def rate_limited(self, cuts_at_start: int) -> None:
        """A 429 came: halve the limit, unless the call began before the last cut.

        Calls sent before a cut say nothing about the limit after it; without this, one burst of
        429s would cut to 1.
        """
        if cuts_at_start == self.num_cuts:
            self.limit = max(1.0, self.limit / 2.0)
            self.num_cuts += 1


class CircuitBreaker:
    """Closed: all may ask. Open: nobody. Half open: one probe, whose fate decides."""

    def __init__(self, failures: int, pause_s: float, max_pause_s: float) -> None:
        self.num_opened = 0
        self._failures = failures
        self._first_pause_s = pause_s
        self._max_pause_s = max_pause_s
        self._pause_s = pause_s
        self._in_a_row = 0
        self._open_until_s: float | None = None
        self._has_probe = False

    @property
    def is_open(self) -> bool:
        """Whether nobody may ask now, the due probe apart."""
        return self._open_until_s is not None and (
            self._has_probe or time.monotonic() < self._open_until_s
        )

    async def admit(self) -> bool:
        """Wait until asking is allowed; True when this call is the probe.

        Who is admitted calls `succeeded`, `failed` or `abandoned` with what it got.
        """
        while self.is_open:
            wait_s = (self._open_until_s or 0.0) - time.monotonic()
            await asyncio.sleep(max(_POLL_S, wait_s))
        is_probe = self._open_until_s is not None
        self._has_probe = is_probe
        return is_probe

    def succeeded(self, is_probe: bool) -> None:
        """The service answered: close."""
        self._in_a_row = 0
        if is_probe or self._open_until_s is None:
            self._open_until_s = None
            self._has_probe = False
            self._pause_s = self._first_pause_s

    def failed(self, is_probe: bool) -> None:
        """The service failed: open after enough failures in a row, or again after a probe."""
        self._in_a_row += 1
        if is_probe:
            self._has_probe = False
            self._pause_s = min(self._max_pause_s, self._pause_s * 2.0)
            self._open_until_s = time.monotonic() + self._pause_s
        elif self._open_until_s is None and self._in_a_row >= self._failures:
            self.num_opened += 1
            self._open_until_s = time.monotonic() + self._pause_s

    def abandoned(self, is_probe: bool) -> None:
        """The call was cancelled and shows nothing: another may probe."""
        if is_probe:
            self._has_probe = False
