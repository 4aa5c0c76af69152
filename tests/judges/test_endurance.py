"""A whole step of the arena against a server that misbehaves, is cut off, and must not be overpaid.

The server's valid replies are a function of the question, so an oracle knows what a run without
faults would have said.
"""

import asyncio
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from arena_lightning.judges.budget import Budget, BudgetSpentError
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.llm import LLMJudge
from arena_lightning.judges.recorded import RecordedJudge
from tests.judges.misbehaving_server import ALL_FAULTS, MisbehavingServer
from tests.judges.plain_judge import (
    OracleJudge,
    PlainJudge,
    groups_of,
    key_of,
    quick_client,
    rank,
)


@pytest.fixture(scope="module", autouse=True)
def _warm_litellm(tmp_path_factory):
    """Let it load what it loads with its first call, which takes seconds."""
    ledger = Ledger(tmp_path_factory.mktemp("warm") / "ledger.sqlite")
    with MisbehavingServer() as server:
        rank(PlainJudge(quick_client(server.url), ledger), 1, 2)
    ledger.close()


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def oracle_scores(group, match):
    """Return what the two orders of a match sum to without faults."""
    oracle = OracleJudge()
    first, second = group.trajectories[match.first], group.trajectories[match.second]
    there = _now(oracle.compare(group.prompt, first, second))
    back = _now(oracle.compare(group.prompt, second, first))
    return (
        there.score_first + back.score_second,
        there.score_second + back.score_first,
    )


def _now(coroutine):
    """Return the result of a coroutine that never waits."""
    with pytest.raises(StopIteration) as caught:
        coroutine.send(None)
    return caught.value.value


def test_a_full_step_with_30_percent_faults_ends_and_makes_nothing_up(ledger):
    """K = 16, N = 16, both orders."""
    clean = rank(OracleJudge(), 16, 16)
    with MisbehavingServer(fault_fraction=0.3, hang_s=3.0, seed=0) as server:
        client = quick_client(server.url, attempt_timeout_s=1.5)
        results = rank(PlainJudge(client, ledger), 16, 16)
        assert set(ALL_FAULTS) <= set(server.met)
        faulty = 1 - server.met[""] / server.num_requests
        assert 0.25 < faulty < 0.35
        entries = {e.key for e in ledger.entries() if e.status == "verdict"}
        assert entries == set(server.answered)
    failed_calls = [call for result in results for call in result.calls if call.failed]
    failed_entries = [e for e in ledger.entries() if e.status == "failed"]
    assert len(failed_calls) == len(failed_entries) > 0
    undisturbed = 0
    for group, result, without_faults in zip(groups_of(16, 16), results, clean, strict=True):
        failed = {(call.first, call.second) for call in result.calls if call.failed}
        for match in result.standings.matches:
            pair = (match.first, match.second)
            if pair in failed or pair[::-1] in failed:
                assert match.status == "failed"
                assert match.score_first is None and match.score_second is None
                continue
            sums = oracle_scores(group, match)
            assert (match.score_first, match.score_second) == sums
            assert match.status == ("tie" if sums[0] == sums[1] else "decided")
        statuses = [match.status for match in result.standings.matches]
        assert result.num_failed == statuses.count("failed")
        assert result.num_matches == without_faults.num_matches
        if not result.num_failed:
            undisturbed += 1
            np.testing.assert_array_equal(result.standings.ranks, without_faults.standings.ranks)
            assert result.standings.matches == without_faults.standings.matches
    assert 0 < undisturbed < 16


def start_run(server, path):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.judges.plain_judge", server.url, str(path), "8", "8"],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_sigkill_during_judging_and_a_restart_ask_nothing_twice_that_was_received(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with MisbehavingServer(delay_s=0.02, fault_fraction=0.2, faults=["500", "429"]) as server:
        process = start_run(server, path)
        while server.answered.total() < 60:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        ledger = Ledger(path)
        received = {e.key for e in ledger.entries()}
        asked_before = {key: server.asked[key] for key in received}
        again = start_run(server, path)
        out, _ = again.communicate()
        assert again.returncode == 0
        assert {key: server.asked[key] for key in received} == asked_before
    # It was killed in the middle, and the ledger had all that a run may have been told.
    verdicts = [e.key for e in ledger.entries() if e.status == "verdict"]
    assert 0 < len(received) < len(verdicts)
    clean = rank(OracleJudge(), 8, 8)
    needed = {
        key_of("compare", group.prompt, group.trajectories[c.first], group.trajectories[c.second])
        for group, result in zip(groups_of(8, 8), clean, strict=True)
        for c in result.calls
    }
    assert len(verdicts) == len(set(verdicts))
    assert set(verdicts) == needed
    assert json.loads(out) == [list(result.standings.ranks) for result in clean]
    ledger.close()


def test_a_spent_budget_stops_a_step_to_the_call_and_a_larger_one_resumes_it(ledger):
    clean = rank(OracleJudge(), 4, 8)
    with MisbehavingServer(fault_fraction=0.3, faults=["500", "reset", "429"]) as server:
        with pytest.raises(BudgetSpentError, match="calls per run must stay within 50"):
            judge = PlainJudge(quick_client(server.url, budget=Budget(max_calls=50)), ledger)
            rank(judge, 4, 8)
        assert server.num_requests == 50
        # What was on its way came in, too.
        received = {e.key for e in ledger.entries()}
        assert received == set(server.answered)
        asked_before = {key: server.asked[key] for key in received}
        budget = Budget(max_calls=1000)
        totals = ledger.totals()
        budget.restore(
            totals.calls, totals.prompt_tokens + totals.completion_tokens, totals.cost_usd
        )
        judge = PlainJudge(quick_client(server.url, budget=budget), ledger)
        results = rank(judge, 4, 8)
        assert {key: server.asked[key] for key in received} == asked_before
        assert budget.spent.calls == totals.calls + server.num_requests - 50
    assert 0 < len(received) <= 50
    for result, without_faults in zip(results, clean, strict=True):
        np.testing.assert_array_equal(result.standings.ranks, without_faults.standings.ranks)


def test_the_llm_judge_endures_the_same_and_its_ledger_replays_the_run(ledger, tmp_path):
    def llm_judge(server, ledger):
        return LLMJudge(quick_client(server.url, attempt_timeout_s=3.0), ledger=ledger)

    with MisbehavingServer() as server:
        judge = llm_judge(server, ledger)
        clean = rank(judge, 6, 4)
    kinds = [kind for kind in ALL_FAULTS if kind != "swapped_ids"]  # it asks for no ids
    faulty_ledger = Ledger(tmp_path / "faulty.sqlite")
    with MisbehavingServer(fault_fraction=0.3, faults=kinds, hang_s=6.0, seed=0) as server:
        # The seed is of the replies as well as of the faults.
        results = rank(llm_judge(server, faulty_ledger), 6, 4)
        assert server.num_requests - server.met[""] >= 10
    entries = list(faulty_ledger.entries())
    for entry in entries:
        known = ledger.get(entry.key)
        if entry.status == "verdict" and known is not None:
            assert entry.scores == known.scores
    num_failed = sum(call.failed for result in results for call in result.calls)
    assert num_failed == sum(entry.status == "failed" for entry in entries)
    for result, without_faults in zip(results, clean, strict=True):
        if not result.num_failed:
            np.testing.assert_array_equal(result.standings.ranks, without_faults.standings.ranks)
    faulty_ledger.close()
    replay = rank(RecordedJudge(ledger, judge.key_of), 6, 4)
    assert [r.standings.matches for r in replay] == [r.standings.matches for r in clean]
    assert sum(result.usage.calls for result in replay) == 0


def test_a_budget_restored_from_the_ledger_knows_every_call_of_questions_that_were_cut_off(ledger):
    with MisbehavingServer(fault_fraction=0.5, faults=["500", "truncated_body"]) as server:
        client = quick_client(server.url, budget=Budget(max_calls=40))
        with pytest.raises(BudgetSpentError):
            rank(LLMJudge(client, ledger=ledger), 4, 8)
        assert server.num_requests == 40
        assert client.budget is not None and client.budget.spent.calls == 40
    statuses = [entry.status for entry in ledger.entries()]
    assert "cut_off" in statuses and "verdict" in statuses
    assert ledger.totals().calls == 40


def test_a_question_cancelled_in_flight_is_on_file_as_paid_and_asked_again(ledger):
    (group,) = groups_of(1, 2)
    one, other = group.trajectories

    async def impatient(judge):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(judge.compare(group.prompt, one, other), timeout=1.0)

    with MisbehavingServer(fault_fraction=1.0, faults=["timeout"], hang_s=4.0) as server:
        asyncio.run(impatient(LLMJudge(quick_client(server.url), ledger=ledger)))
    (entry,) = ledger.entries()
    assert (entry.status, entry.calls, entry.scores) == ("cut_off", 1, {})
    assert entry.prompt_tokens > 0 and entry.completion_tokens == 1024  # the upper estimate
    with MisbehavingServer() as server:
        judge = LLMJudge(quick_client(server.url), ledger=ledger)
        asyncio.run(judge.compare(group.prompt, one, other))
        assert server.num_requests == 1
    assert ledger.totals().calls == 2
