"""An LLM on a task's tools: what it is shown, what it may do, and what its failures become."""

import asyncio

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.retry import RetryPolicy
from arena_lightning.rollout.agent import SamplingLimits
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.training.llm_agent import LLMAgent, outputs_of
from tests.training.tool_server import ToolServer, answer, call

TASK = TravelTask()
PROMPTS = TASK.prompts("test", count=3)


def agent_of(server, **limits):
    client = JudgeClient(
        "hosted_vllm/m",
        api_base=server.url,
        structured_output="never",
        retry=RetryPolicy(max_attempts=2, base_delay_s=0.001),
    )
    return LLMAgent(client, TASK, SamplingLimits(**limits))


def tool_messages(body):
    return [message for message in body["messages"] if message["role"] == "tool"]


def test_it_calls_tools_reads_their_results_and_answers():
    def reply(body):
        if not tool_messages(body):
            return call("weather", {"city": "Lyon", "date": "2026-06-01"}, "call_7")
        return answer("Take an umbrella.")

    with ToolServer(reply) as server:
        trajectory = asyncio.run(agent_of(server).sample(PROMPTS[0]))
    first, second = server.bodies
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == PROMPTS[0].query
    names = {tool["function"]["name"] for tool in first["tools"]}
    assert names == {schema["name"] for schema in TASK.toolset.schemas}
    asked, observed = second["messages"][2:]
    assert asked["tool_calls"][0]["id"] == observed["tool_call_id"] == "call_7"
    assert [m.role for m in trajectory.messages] == ["assistant", "tool", "assistant"]
    assert trajectory.messages[1].name == "weather" and not trajectory.messages[1].is_error
    assert trajectory.messages[1].content == observed["content"]
    assert trajectory.answer == "Take an umbrella."


def test_unreadable_arguments_and_unknown_tools_are_observations():
    said = [call("weather", "{not json"), call("teleport", {}), answer("Sorry.")]
    with ToolServer(lambda body: said[len(tool_messages(body))]) as server:
        trajectory = asyncio.run(agent_of(server).sample(PROMPTS[0]))
    errors = [m for m in trajectory.messages if m.role == "tool"]
    assert [m.is_error for m in errors] == [True, True]
    assert "JSON object" in errors[0].content and "teleport" in errors[1].content
    assert trajectory.finish == "answered"


def test_the_last_round_says_so_to_the_model_alone_and_one_more_call_ends_it():
    def always_calls(body):
        return call("weather", {"city": "Lyon", "date": "2026-06-01"})

    with ToolServer(always_calls) as server:
        trajectory = asyncio.run(agent_of(server, max_turns=2).sample(PROMPTS[0]))
    assert len(server.bodies) == 3
    assert "Answer now" not in tool_messages(server.bodies[1])[-1]["content"]
    assert "Answer now" in tool_messages(server.bodies[2])[-1]["content"]
    assert trajectory.finish == "max_turns" and trajectory.answer == ""
    assert not any("Answer now" in message.content for message in trajectory.messages)


def test_outputs_are_kept_as_they_come_and_a_prompt_that_failed_is_left_out_and_told(
    tmp_path, capsys
):
    path = tmp_path / "outputs.jsonl"

    def reply(body):
        return 500 if body["messages"][1]["content"] == PROMPTS[1].query else answer("Yes.")

    with ToolServer(reply) as server:
        first = asyncio.run(outputs_of(agent_of(server), PROMPTS, path))
        assert [t.prompt_id for t in first] == [PROMPTS[0].prompt_id, PROMPTS[2].prompt_id]
        assert "no output for 1 of 3" in capsys.readouterr().out
        asked = len(server.bodies)
        again = asyncio.run(outputs_of(agent_of(server), PROMPTS, path))
        assert again == first
        # Only the failed one was asked again: two attempts.
        assert len(server.bodies) == asked + 2


def test_a_model_without_any_output_is_an_error(tmp_path):
    with (
        ToolServer(lambda body: 500) as server,
        pytest.raises(ConfigError, match="must have outputs"),
    ):
        asyncio.run(outputs_of(agent_of(server), PROMPTS, tmp_path / "outputs.jsonl"))
