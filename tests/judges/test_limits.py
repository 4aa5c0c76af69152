"""Concurrency that adapts, and the breaker that stops asking a broken service."""

import asyncio
import time

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.judges.limits import AdaptiveConcurrency, CircuitBreaker, Limits


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, timeout=20))


def test_no_more_than_the_limit_are_in_flight_and_all_get_their_turn():
    limit = AdaptiveConcurrency(maximum=3)
    most = 0

    async def one():
        nonlocal most
        async with limit.slot():
            most = max(most, limit.num_in_flight)
            await asyncio.sleep(0.001)

    async def main():
        await asyncio.gather(*[one() for _ in range(20)])

    run(main())
    assert most == 3
    assert limit.num_in_flight == 0


def test_a_429_halves_the_limit_down_to_one_and_good_replies_raise_it_by_one_a_round():
    limit = AdaptiveConcurrency(maximum=16, start=8)
    for expected in (4.0, 2.0, 1.0, 1.0):
        limit.rate_limited(limit.num_cuts)
        assert limit.limit == expected
    limit.succeeded()  # a round of 1
    assert limit.limit == 2.0
    limit.succeeded()
    limit.succeeded()  # a round of 2: 2 + 1/2 + 1/2.5
    assert limit.limit == pytest.approx(2.9)
    for _ in range(1000):
        limit.succeeded()
    assert limit.limit == 16.0


def test_one_burst_of_429s_cuts_once():
    limit = AdaptiveConcurrency(maximum=8)

    async def main():
        async def one():
            async with limit.slot() as cuts:
                await asyncio.sleep(0.001)
            limit.rate_limited(cuts)

        await asyncio.gather(*[one() for _ in range(8)])

    run(main())
    assert limit.limit == 4.0


def test_a_cancelled_waiter_takes_no_slot_with_it():
    limit = AdaptiveConcurrency(maximum=1)

    async def hold(wait_s):
        async with limit.slot():
            await asyncio.sleep(wait_s)

    async def main():
        tasks = [asyncio.ensure_future(hold(0.01)) for _ in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0.011)  # the first is done: a waiter was just let in, or soon is
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not tasks[3].cancelled()
        assert limit.num_in_flight == 0

    run(main())


def test_the_breaker_opens_after_failures_in_a_row_only():
    breaker = CircuitBreaker(failures=3, pause_s=10.0, max_pause_s=10.0)
    for is_good in (False, False, True, False, False):
        (breaker.succeeded if is_good else breaker.failed)(is_probe=False)
    assert not breaker.is_open
    breaker.failed(is_probe=False)
    assert breaker.is_open
    assert breaker.num_opened == 1


def test_one_probe_goes_through_and_its_success_lets_all_others_in():
    breaker = CircuitBreaker(failures=1, pause_s=0.05, max_pause_s=1.0)
    breaker.failed(is_probe=False)
    log = []

    async def one():
        is_probe = await breaker.admit()
        log.append(is_probe)
        await asyncio.sleep(0.1)
        assert log == [True] or not is_probe, "nobody is let in beside the probe"
        breaker.succeeded(is_probe)

    async def main():
        started_s = time.monotonic()
        tasks = [asyncio.ensure_future(one()) for _ in range(5)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert log[0] is True
        assert time.monotonic() - started_s >= 0.05
        await asyncio.gather(*tasks)

    run(main())
    assert log == [True, False, False, False, False]


def test_a_failed_probe_doubles_the_pause_and_an_abandoned_one_leaves_the_door_to_the_next():
    breaker = CircuitBreaker(failures=1, pause_s=0.02, max_pause_s=0.05)
    breaker.failed(is_probe=False)

    async def main():
        waits = []
        for _ in range(3):
            started_s = time.monotonic()
            assert await breaker.admit()
            waits.append(time.monotonic() - started_s)
            breaker.failed(is_probe=True)
        await asyncio.sleep(0.06)
        assert await breaker.admit()
        assert breaker.is_open
        breaker.abandoned(is_probe=True)
        assert not breaker.is_open
        assert await breaker.admit()
        return waits

    waits = run(main())
    assert waits[0] >= 0.015
    assert waits[1] >= 0.035
    assert waits[2] >= 0.045


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_concurrency": 0}, "max_concurrency must be at least 1, got 0"),
        ({"attempt_timeout_s": 0.0}, "attempt_timeout_s must be above 0 s, got 0.0"),
        ({"start_concurrency": 500}, "start_concurrency must lie in 1-max, got 500"),
        ({"step_deadline_s": -1.0}, "step_deadline_s must be above 0 s or None, got -1.0"),
    ],
)
def test_bad_limits_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Limits(**arguments)
