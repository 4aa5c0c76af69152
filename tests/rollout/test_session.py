import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from arena_lightning.errors import ConfigError, RolloutError
from arena_lightning.protocols import ToolResult
from arena_lightning.rollout.agent import (
    ANSWER_NOW,
    MAX_REQUESTS,
    SamplingLimits,
    TrajectoryRequest,
    plan_groups,
    shortened,
)
from arena_lightning.rollout.chat import ChatMLFormat, encode_dialogue
from arena_lightning.rollout.engine import Request
from arena_lightning.rollout.scripted_engine import ScriptedEngine
from arena_lightning.rollout.session import RolloutSession
from arena_lightning.types import Message, Prompt, ToolCall, Trajectory
from tests.rollout.fake_task import SCHEMAS, FakeTask, FakeToolset

PROMPT = Prompt("p0", "Sun?")


def calling(*cities: str, reasoning: str = "") -> Message:
    calls = tuple(ToolCall("weather", {"city": city}) for city in cities)
    return Message("assistant", "", reasoning, calls)


def answer(text: str) -> Message:
    return Message("assistant", text)


def scripted(
    chat: ChatMLFormat,
    turns: Callable[[int, int], Message],
    steps_of: Callable[[Request], int] = lambda request: 1,
    max_model_len: int = 4096,
) -> ScriptedEngine:
    """Return an engine that says `turns(trajectory, turn)`."""
    return ScriptedEngine(
        lambda request: chat.turn_ids(turns(*divmod(request.request_id, MAX_REQUESTS))),
        max_model_len,
        steps_of,
    )


def plan(number: int, prompt: Prompt = PROMPT) -> list[TrajectoryRequest]:
    return plan_groups([prompt], number, 1.0, (0, "rollout", 0))


def rollout(
    chat: ChatMLFormat,
    turns: Callable[[int, int], Message],
    limits: SamplingLimits | None = None,
    toolset: FakeToolset | None = None,
    number: int = 1,
) -> list[Trajectory]:
    session = RolloutSession(scripted(chat, turns), chat, FakeTask(toolset), limits)
    trajectories = session.run(plan(number))
    session.close()
    return trajectories


def roles(trajectory: Trajectory) -> list[str]:
    return [message.role for message in trajectory.messages]


def test_a_rollout_has_the_very_ids_of_the_written_dialogue(chat: ChatMLFormat):
    turns = [calling("Lyon", "Nice", reasoning="Look."), calling("Arles"), answer("Nice.")]
    (trajectory,) = rollout(chat, lambda _, turn: turns[turn])
    assert roles(trajectory) == ["assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert [m.content for m in trajectory.messages if m.role == "tool"] == [
        "weather: Lyon",
        "weather: Nice",
        "weather: Arles",
    ]
    written = encode_dialogue(chat, FakeTask().opening(PROMPT), trajectory.messages, SCHEMAS)
    assert [(s.emitter, s.ids) for s in trajectory.segments] == [
        (s.emitter, s.ids) for s in written
    ]
    assert trajectory.answer == "Nice."


def test_the_policy_reads_the_notice_of_the_last_round_and_a_judge_does_not(chat: ChatMLFormat):
    limits = SamplingLimits(max_turns=2)
    turns = [calling("Lyon"), calling("Nice"), answer("Nice.")]
    (trajectory,) = rollout(chat, lambda _, turn: turns[turn], limits)
    observations = [m.content for m in trajectory.messages if m.role == "tool"]
    assert observations == ["weather: Lyon", "weather: Nice"]
    noticed = [
        replace(m, content=f"{m.content}\n{ANSWER_NOW['en']}") if "Nice" in m.content else m
        for m in trajectory.messages[:-1]
    ]
    told = [*noticed, trajectory.messages[-1]]
    written = encode_dialogue(chat, FakeTask().opening(PROMPT), told, SCHEMAS)
    assert [s.ids for s in trajectory.segments] == [s.ids for s in written]


def test_one_call_too_many_ends_a_trajectory_without_an_answer(chat: ChatMLFormat):
    toolset = FakeToolset()
    (trajectory,) = rollout(chat, lambda *_: calling("Lyon"), SamplingLimits(max_turns=2), toolset)
    assert (trajectory.finish, trajectory.answer) == ("max_turns", "")
    assert len(toolset.calls) == 2, "the third call is not run"
    assert trajectory.messages[-1].tool_calls


def test_a_prompt_in_chinese_is_told_in_chinese(chat: ChatMLFormat):
    engine = scripted(chat, lambda _, turn: calling("Lyon") if turn == 0 else answer("好"))
    session = RolloutSession(engine, chat, FakeTask(), SamplingLimits(max_turns=1))
    (trajectory,) = session.run(plan(1, replace(PROMPT, language="zh")))
    session.close()
    (observed,) = (s.ids for s in trajectory.segments if s.emitter == "tool")
    seen = trajectory.messages[1]
    told = replace(seen, content=f"{seen.content}\n{ANSWER_NOW['zh']}")
    assert observed == chat.observation_ids([told], False)


def test_an_unreadable_call_is_answered_with_the_problem_and_counted(chat: ChatMLFormat):
    turns = [answer("<tool_call>weather(Lyon)</tool_call>"), answer("Nice.")]
    session = RolloutSession(scripted(chat, lambda _, turn: turns[turn]), chat, FakeTask())
    (trajectory,) = session.run(plan(1))
    assert trajectory.messages[1].is_error
    assert "must be JSON" in trajectory.messages[1].content
    assert trajectory.answer == "Nice."
    metrics = session.stats.metrics()
    assert metrics["rollout/parse_error_fraction"] == 1 / 2
    assert metrics["rollout/tool_error_fraction"] == 1.0
    assert metrics["rollout/tool_calls_mean"] == 0.0


def test_a_turn_cut_by_its_limit_ends_with_length(chat: ChatMLFormat):
    limits = SamplingLimits(max_tokens_per_turn=5)
    (trajectory,) = rollout(chat, lambda *_: answer("a long answer"), limits)
    assert (trajectory.finish, trajectory.answer) == ("length", "")
    assert trajectory.num_policy_tokens == 5
    assert trajectory.messages[-1].content == "a lon"


def test_a_complete_call_in_a_cut_turn_is_not_run(chat: ChatMLFormat):
    toolset = FakeToolset()
    whole = len(chat.turn_ids(calling("Lyon")))
    limits = SamplingLimits(max_tokens_per_turn=whole - 1)
    (trajectory,) = rollout(chat, lambda *_: calling("Lyon"), limits, toolset)
    assert trajectory.finish == "length"
    assert toolset.calls == []


def test_a_full_context_ends_with_context_and_never_exceeds_it(chat: ChatMLFormat):
    opening = len(chat.opening_ids(FakeTask().opening(PROMPT), SCHEMAS))
    turn = len(chat.turn_ids(calling("Lyon")))
    observed = opening + turn + len(chat.observation_ids([Message("tool", "weather: Lyon")], False))
    for limit, emitted, num_segments in (
        (opening, 0, 1),  # no room for a single token
        (opening + 3, 3, 2),  # cut within the first turn
        (observed, turn, 2),  # the observation would fill it
        (observed + 2, turn + 2, 4),  # two tokens of the second turn
    ):
        limits = SamplingLimits(max_context_tokens=limit)
        (trajectory,) = rollout(
            chat, lambda _, turn: calling("Lyon") if turn == 0 else answer("Nice."), limits
        )
        assert trajectory.finish == "context"
        assert trajectory.num_policy_tokens == emitted
        assert len(trajectory.segments) == num_segments
        assert trajectory.num_tokens <= limit


def test_the_engines_own_length_is_a_context_limit_too(chat: ChatMLFormat):
    opening = len(chat.opening_ids(FakeTask().opening(PROMPT), SCHEMAS))
    engine = scripted(chat, lambda *_: answer("Nice."), max_model_len=opening + 2)
    (trajectory,) = RolloutSession(engine, chat, FakeTask()).run(plan(1))
    assert (trajectory.finish, trajectory.num_policy_tokens) == ("context", 2)


def test_long_observations_lose_their_middle(chat: ChatMLFormat):
    text = "\n".join(f"line {number}" for number in range(500))
    toolset = FakeToolset(lambda call: ToolResult(text))
    limits = SamplingLimits(max_tool_chars=200)
    (trajectory,) = rollout(
        chat, lambda _, turn: calling("Lyon") if turn == 0 else answer("ok"), limits, toolset
    )
    content = trajectory.messages[1].content
    assert len(content) <= 200
    assert content.startswith("line 0\n")
    assert content.endswith("line 499")
    assert "characters left out" in content
    assert shortened("short", 80) == "short"


def test_policy_segments_carry_the_engines_logprobs_and_version(chat: ChatMLFormat):
    engine = scripted(chat, lambda _, turn: calling("Lyon") if turn == 0 else answer("ok"))
    engine.sync([], version=7)
    session = RolloutSession(engine, chat, FakeTask())
    (trajectory,) = session.run(plan(1))
    session.close()
    for segment in trajectory.segments:
        is_policy = segment.emitter == "policy"
        assert segment.policy_version == (7 if is_policy else -1)
        assert len(segment.logprobs) == (len(segment.ids) if is_policy else 0)


def test_greedy_turns_carry_no_logprobs_to_correct_the_loss_by(chat: ChatMLFormat):
    session = RolloutSession(scripted(chat, lambda *_: answer("ok")), chat, FakeTask())
    greedy, sampled = session.run(plan_groups([PROMPT], 2, 0.7, (0, "t", 0), greedy_anchor=True))
    session.close()
    assert greedy.segments[-1].ids == sampled.segments[-1].ids
    assert greedy.segments[-1].logprobs == ()
    assert len(sampled.segments[-1].logprobs) == len(sampled.segments[-1].ids)


def test_requests_get_one_seed_a_turn_that_depends_on_their_address_only(chat: ChatMLFormat):
    def seeds(number: int, prompts: Sequence[Prompt]) -> dict[tuple[int, int, int], Request]:
        seen: dict[tuple[int, int, int], Request] = {}
        requests = plan_groups(prompts, number, 0.7, (3, "rollout", 5), greedy_anchor=True)

        def script(request: Request) -> Sequence[int]:
            place, turn = divmod(request.request_id, MAX_REQUESTS)
            seen[requests[place].group, requests[place].index, turn] = request
            return chat.turn_ids(calling("Lyon") if turn == 0 else answer("ok"))

        session = RolloutSession(ScriptedEngine(script), chat, FakeTask())
        session.run(requests)
        session.close()
        return seen

    small = seeds(2, [PROMPT])
    large = seeds(3, [PROMPT, Prompt("p1", "Rain?")])
    assert len({request.seed for request in large.values()}) == 2 * 3 * 2
    assert all(large[address].seed == request.seed for address, request in small.items())
    assert {r.temperature for (_, index, _), r in large.items() if index == 0} == {0.0}
    assert {r.temperature for (_, index, _), r in large.items() if index > 0} == {0.7}


def test_a_process_numbers_its_own_groups(chat: ChatMLFormat):
    mine = plan_groups([PROMPT, PROMPT], 2, 1.0, (0, "r", 0), first_group=1, group_stride=2)
    assert [(r.group, r.index) for r in mine] == [(1, 0), (1, 1), (3, 0), (3, 1)]


@pytest.mark.parametrize("temperature", [-1.0, 0.001, 2.5, float("nan")])
def test_temperatures_that_an_engine_would_change_are_refused(temperature: float):
    with pytest.raises(ConfigError, match=r"between 0\.01 and 2"):
        plan_groups([PROMPT], 2, temperature, (0, "r", 0))


def test_a_finished_trajectory_is_handed_over_while_others_go_on(chat: ChatMLFormat):
    engine = scripted(
        chat,
        lambda place, _: answer(f"a{place}"),
        steps_of=lambda request: 1 + 10 * (1 - request.request_id // MAX_REQUESTS),
    )
    session = RolloutSession(engine, chat, FakeTask())
    left = []
    for request, _ in session.stream(plan(2)):
        left.append((request.index, engine.num_unfinished))
    assert left == [(1, 1), (0, 0)]


def test_a_slow_tool_holds_up_nobody_else(chat: ChatMLFormat):
    class EagerEngine(ScriptedEngine):
        is_reproducible = False

    release = threading.Event()

    def wait(call: ToolCall) -> ToolResult:
        if call.arguments["city"] == "0":
            assert release.wait(20)
        return ToolResult("ok")

    class ThreadedToolset(FakeToolset):
        async def call(self, call: ToolCall) -> ToolResult:
            import asyncio

            return await asyncio.to_thread(wait, call)

    def script(request: Request) -> Sequence[int]:
        place, turn = divmod(request.request_id, MAX_REQUESTS)
        return chat.turn_ids(
            calling(str(place)) if (turn < 3 and place) or not turn else answer("a")
        )

    session = RolloutSession(EagerEngine(script), chat, FakeTask(ThreadedToolset()))
    finished = []
    for request, _ in session.stream(plan(4)):
        finished.append(request.index)
        if len(finished) == 3:
            release.set()
    session.close()
    assert sorted(finished[:3]) == [1, 2, 3]
    assert finished[3] == 0


def test_a_reproducible_engine_sees_the_same_requests_however_slow_tools_are(chat: ChatMLFormat):
    def steps(delay_s: Callable[[ToolCall], float]) -> list[list[int]]:
        batches: list[list[int]] = []

        class Recording(ScriptedEngine):
            def step(self):
                batches.append([pending.request.request_id for pending in self._waiting])
                return super().step()

        engine = Recording(
            lambda request: chat.turn_ids(
                calling(str(request.request_id))
                if request.request_id % MAX_REQUESTS < 2
                else answer("a")
            ),
            steps_of=lambda request: 1 + request.request_id // MAX_REQUESTS,
        )
        session = RolloutSession(engine, chat, FakeTask(FakeToolset(delay_s=delay_s)))
        session.run(plan(3))
        session.close()
        return batches

    slow = steps(lambda call: 0.02 * (int(call.arguments["city"]) % 3))
    assert steps(lambda call: 0.0) == slow


def test_a_tool_without_an_answer_becomes_an_error_observation(chat: ChatMLFormat):
    toolset = FakeToolset(delay_s=lambda call: 30.0)
    (trajectory,) = rollout(
        chat,
        lambda _, turn: calling("Lyon") if turn == 0 else answer("ok"),
        SamplingLimits(tool_timeout_s=0.02),
        toolset,
    )
    assert trajectory.messages[1].is_error
    assert "no answer from weather in 0.02 s" in trajectory.messages[1].content


def test_a_tool_that_raises_stops_the_rollout_and_leaves_the_engine_idle(chat: ChatMLFormat):
    def broken(call: ToolCall) -> ToolResult:
        raise KeyError("city")

    engine = scripted(chat, lambda *_: calling("Lyon"))
    session = RolloutSession(engine, chat, FakeTask(FakeToolset(broken)))
    with pytest.raises(RolloutError, match="one raised KeyError"):
        session.run(plan(3))
    session.close()
    assert engine.num_unfinished == 0


def test_leaving_a_stream_early_drops_what_is_running(chat: ChatMLFormat):
    engine = scripted(
        chat, lambda *_: answer("ok"), steps_of=lambda r: 1 + r.request_id // MAX_REQUESTS
    )
    session = RolloutSession(engine, chat, FakeTask())
    stream = session.stream(plan(5))
    next(stream)
    assert engine.num_unfinished == 4
    stream.close()
    assert engine.num_unfinished == 0


def test_metrics_count_what_happened(chat: ChatMLFormat):
    def turns(place: int, turn: int) -> Message:
        return calling("Lyon", "Nice") if place and not turn else answer("ok")

    session = RolloutSession(scripted(chat, turns), chat, FakeTask())
    trajectories = session.run(plan(4))
    session.close()
    metrics = session.stats.metrics()
    assert metrics["rollout/answered_fraction"] == 1.0
    assert metrics["rollout/tool_calls_mean"] == 6 / 4
    assert metrics["rollout/turns_mean"] == 7 / 4
    assert metrics["rollout/generated_tokens"] == sum(t.num_policy_tokens for t in trajectories)
    assert metrics["rollout/tool_error_fraction"] == 0.0


def test_time_that_the_caller_takes_is_not_the_rollouts(chat: ChatMLFormat):
    session = RolloutSession(scripted(chat, lambda *_: answer("ok")), chat, FakeTask())
    for _ in session.stream(plan(1)):
        time.sleep(0.2)
    assert session.stats.wall_s < 0.15


def test_requests_must_be_told_apart_and_fit_the_engine(chat: ChatMLFormat):
    engine = scripted(chat, lambda *_: answer("ok"))
    with pytest.raises(RolloutError, match="must be unique"):
        RolloutSession(engine, chat, FakeTask()).run(plan(1) * 2)
    with pytest.raises(ConfigError, match="at most the engine's max_model_len"):
        RolloutSession(engine, chat, FakeTask(), SamplingLimits(max_context_tokens=5000))
    engine.add(Request(0, (1,), 1, 1.0, 0))
    with pytest.raises(RolloutError, match="without work"):
        RolloutSession(engine, chat, FakeTask()).run(plan(1))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_turns", -1),
        ("max_tokens_per_turn", 0),
        ("max_context_tokens", 1),
        ("max_tool_chars", 9),
    ],
)
def test_limits_out_of_range_are_refused_by_name(field: str, value: int):
    with pytest.raises(ConfigError, match=rf"arena\.limits\.{field}"):
        SamplingLimits(**{field: value})
