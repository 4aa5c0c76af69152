"""The budget: bounds that hold to the call, claims that settle, and what happens when spent."""

import asyncio

import numpy as np
import pytest

from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.budget import Budget, BudgetSpentError, Spending


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, timeout=20))


async def spend(budget, tokens=0, cost_usd=0.0, upper_tokens=None, upper_usd=None, wait_s=0.0):
    claim = await budget.reserve(
        tokens if upper_tokens is None else upper_tokens,
        cost_usd if upper_usd is None else upper_usd,
    )
    await asyncio.sleep(wait_s)
    budget.settle(claim, tokens, cost_usd)


@pytest.mark.parametrize("num_calls", [0, 1, 7])
def test_calls_run_up_to_the_bound_and_not_one_more_when_all_start_at_once(num_calls):
    budget = Budget(max_calls=num_calls)

    async def main():
        return await asyncio.gather(
            *[spend(budget, wait_s=0.001) for _ in range(20)], return_exceptions=True
        )

    results = run(main())
    assert sum(result is None for result in results) == num_calls
    assert sum(isinstance(result, BudgetSpentError) for result in results) == 20 - num_calls
    assert budget.spent.calls == num_calls


def test_a_spent_budget_is_not_a_failed_match():
    assert not issubclass(BudgetSpentError, JudgeError)


def test_tokens_never_exceed_the_bound_and_waiting_claims_use_what_others_gave_back():
    # Claims of 10 settle at 1-10. Whoever fits in the end must have been let through, so a run
    # ends only when less than one claim is left.
    budget = Budget(max_tokens=500)
    taken = np.random.default_rng(3).integers(1, 11, size=400)
    highest = 0

    async def one(tokens):
        nonlocal highest
        await spend(budget, tokens=int(tokens), upper_tokens=10, wait_s=0.0005)
        highest = max(highest, budget.spent.tokens)

    async def main():
        return await asyncio.gather(*[one(tokens) for tokens in taken], return_exceptions=True)

    results = run(main())
    assert any(isinstance(result, BudgetSpentError) for result in results)
    assert 490 < budget.spent.tokens <= 500
    assert highest == budget.spent.tokens


def test_usd_in_flight_count_until_they_settle():
    budget = Budget(max_usd=1.0)

    async def main():
        first = await budget.reserve(0, 0.9)
        second = asyncio.ensure_future(budget.reserve(0, 0.9))
        await asyncio.sleep(0.01)
        assert not second.done()
        budget.settle(first, 0, 0.1)
        claim = await second
        with pytest.raises(BudgetSpentError, match="cost_usd per run must stay within 1"):
            budget.settle_in_full(claim)
            await budget.reserve(0, 0.1)

    run(main())
    assert budget.spent.cost_usd == pytest.approx(1.0)


def test_a_claim_that_was_never_sent_costs_nothing_and_settles_once():
    budget = Budget(max_calls=1)

    async def main():
        claim = await budget.reserve(5, 0.5)
        budget.release(claim)
        budget.settle(claim, 5, 0.5)
        await spend(budget, tokens=3)

    run(main())
    assert budget.spent == Spending(1, 3, 0.0)


def test_a_step_has_its_own_bounds_and_late_calls_stay_with_the_step_they_began_in():
    budget = Budget(max_calls=3, max_calls_per_step=1)

    async def main():
        late = await budget.reserve(0, 0.0)
        budget.start_step()
        await spend(budget)
        budget.settle(late, 0, 0.0)
        assert budget.spent_in_step.calls == 1
        with pytest.raises(BudgetSpentError, match="calls per step must stay within 1"):
            await spend(budget)
        budget.start_step()
        await spend(budget)
        budget.start_step()
        with pytest.raises(BudgetSpentError, match="calls per run must stay within 3"):
            await spend(budget)

    run(main())


def test_a_run_is_not_stopped_before_what_is_in_flight_has_come_back():
    budget = Budget(max_calls=1)

    async def main():
        in_flight = await budget.reserve(0, 0.0)
        refused = asyncio.ensure_future(budget.reserve(0, 0.0))
        await asyncio.sleep(0.01)
        assert not refused.done()
        budget.settle(in_flight, 0, 0.0)
        with pytest.raises(BudgetSpentError):
            await refused

    run(main())


def test_a_restart_goes_on_counting_where_the_ledger_stopped():
    budget = Budget(max_calls=10)
    budget.restore(calls=9, tokens=100, cost_usd=1.5)
    run(spend(budget, tokens=1))
    with pytest.raises(BudgetSpentError, match="raise the budget"):
        run(spend(budget))
    assert budget.spent == Spending(10, 101, 1.5)


def test_a_waiting_claim_that_is_cancelled_leaves_no_trace():
    budget = Budget(max_tokens=10)

    async def main():
        first = await budget.reserve(10, 0.0)
        waiting = asyncio.ensure_future(budget.reserve(10, 0.0))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.sleep(0)
        budget.settle(first, 0, 0.0)
        await spend(budget, tokens=10)

    run(main())
    assert budget.spent.tokens == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_usd": -1.0}, "at least 0 or None, got -1.0"),
        ({"max_calls_per_step": -2}, "at least 0 or None, got -2"),
        ({"max_usd": float("nan")}, "at least 0 or None, got nan"),
        ({"when_spent": "panic"}, "when_spent must be"),
    ],
)
def test_bad_bounds_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Budget(**arguments)


def test_a_bound_in_usd_needs_prices():
    assert Budget(max_usd=1.0).needs_price
    assert Budget(max_usd_per_step=1.0).needs_price
    assert not Budget(max_calls=1).needs_price
