import asyncio

import pytest

from arena_lightning.arena.call_slots import CallSlots, gather_or_cancel


async def _hold(slots, rounds_left, name, started, release):
    async with slots.slot(rounds_left):
        started.append(name)
        await release.wait()


async def _settle():
    for _ in range(20):
        await asyncio.sleep(0)


def test_slot_goes_to_the_longest_critical_path_then_first_come():
    async def scenario():
        slots, started, release = CallSlots(1), [], asyncio.Event()
        first = asyncio.ensure_future(_hold(slots, 1, "holder", started, release))
        await _settle()
        others = [
            asyncio.ensure_future(_hold(slots, left, name, started, release))
            for left, name in ((1, "a"), (3, "b"), (2, "c"), (3, "d"))
        ]
        await _settle()
        assert started == ["holder"]
        release.set()
        await asyncio.gather(first, *others)
        return started

    assert asyncio.run(scenario()) == ["holder", "b", "d", "c", "a"]


def test_cancelled_waiter_loses_no_slot():
    async def scenario():
        slots, started = CallSlots(1), []
        release, done = asyncio.Event(), asyncio.Event()
        done.set()
        holder = asyncio.ensure_future(_hold(slots, 1, "holder", started, release))
        await _settle()
        waiter = asyncio.ensure_future(_hold(slots, 9, "cancelled", started, done))
        await _settle()
        waiter.cancel()
        release.set()
        await holder
        await asyncio.wait_for(_hold(slots, 1, "next", started, done), timeout=5)
        return started

    assert asyncio.run(scenario()) == ["holder", "next"]


def test_waiter_cancelled_after_its_slot_was_handed_over_passes_it_on():
    async def scenario():
        slots, started, done = CallSlots(1), [], asyncio.Event()
        done.set()
        async with slots.slot(1):
            waiter = asyncio.ensure_future(_hold(slots, 1, "cancelled", started, done))
            await _settle()
        while not any(turn.done() for _, _, turn in slots._waiting) and slots._waiting:
            await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait_for(_hold(slots, 1, "next", started, done), timeout=5)
        return started[-1]

    assert asyncio.run(scenario()) == "next"


def test_gather_raises_the_first_error_after_the_others_have_ended():
    ended = []

    async def wait():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    async def fail():
        await asyncio.sleep(0.001)
        raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        asyncio.run(gather_or_cancel([wait(), fail(), wait()]))
    assert ended == [True, True]
