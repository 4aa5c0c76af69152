"""Bounded concurrency with priorities, and waiting for many calls that may fail.

A free slot goes to the call with the longest critical path behind it: tournaments narrow toward
their end, so groups that lag behind would leave slots idle there. Nothing here knows judges.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")

TURNS_TO_QUEUE = 6
"""Turns of the event loop from a call's end until the round after it has queued its calls: the
call's task ends, the round's gather ends, the group wakes, starts tasks, and these queue."""


class CallSlots:
    """`size` slots, handed out by priority, then first come, first served. For one event loop."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._handing_out = False
        self._arrivals = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def slot(self, rounds_left: int) -> AsyncIterator[None]:
        """Hold a slot; the more `rounds_left`, the earlier it comes."""
        if self._free and not self._waiting:
            self._free -= 1
        else:
            await self._wait(rounds_left)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, rounds_left: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (-rounds_left, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # Cancelled after the slot was handed over: pass it on.
                self._release()
            raise

    def _release(self) -> None:
        """Free a slot, and hand it out once the round that this call may have ended is queued."""
        self._free += 1
        if self._waiting and not self._handing_out:
            self._handing_out = True
            self._hand_out_after(TURNS_TO_QUEUE, asyncio.get_running_loop())

    def _hand_out_after(self, turns: int, loop: asyncio.AbstractEventLoop) -> None:
        if turns:
            loop.call_soon(self._hand_out_after, turns - 1, loop)
            return
        self._handing_out = False
        while self._free and self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                self._free -= 1
                turn.set_result(None)


class SlotsOfLoop:
    """The same bound in whatever event loop it is asked for; one loop at a time."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._here: tuple[asyncio.AbstractEventLoop, CallSlots] | None = None

    def slot(self, rounds_left: int) -> AbstractAsyncContextManager[None]:
        """Hold a slot of the running loop; see `CallSlots.slot`."""
        loop = asyncio.get_running_loop()
        if self._here is None or self._here[0] is not loop:
            self._here = (loop, CallSlots(self._size))
        return self._here[1].slot(rounds_left)


async def gather_or_cancel(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all. When one raises, cancel the others, wait until they ended, and re-raise it."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
