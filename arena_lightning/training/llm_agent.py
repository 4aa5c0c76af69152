"""Any litellm model as an agent on a task's tools: baselines that the policy is compared with.

    prompt -> opening -> (model -> tool calls -> tools)* -> answer -> Trajectory, without tokens

Limits and the closing notice are those of the rollout (`rollout/agent.py`), so that policy and
baseline work under the same rules. Calls, retries and budget are the client's.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from arena_lightning.arena.call_slots import gather_or_cancel
from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.route import UNREADABLE_ARGUMENTS
from arena_lightning.protocols import Task, ToolResult
from arena_lightning.rollout.agent import ANSWER_NOW, SamplingLimits, shortened
from arena_lightning.training.records import (
    read_jsonl,
    trajectory_from_record,
    trajectory_to_record,
    write_jsonl,
)
from arena_lightning.types import FinishReason, Message, Prompt, ToolCall, Trajectory


class LLMAgent:
    """Samples one trajectory a prompt from a model behind a client."""

    def __init__(self, client: JudgeClient, task: Task, limits: SamplingLimits) -> None:
        self.client = client
        self.task = task
        self.limits = limits
        self._tools = [
            {"type": "function", "function": dict(schema)} for schema in task.toolset.schemas
        ]

    async def run(
        self,
        prompts: Sequence[Prompt],
        on_finished: Callable[[Prompt, Trajectory], None],
    ) -> dict[str, str]:
        """Sample all prompts at once; each trajectory is handed on as it finishes.

        Returns:
            Prompt id -> why the model gave none. Its neighbours go on.

        Raises:
            ConfigError: the key or the model is wrong.
            BudgetSpentError: the budget is spent.
        """
        failures: dict[str, str] = {}

        async def one(prompt: Prompt) -> None:
            try:
                on_finished(prompt, await self.sample(prompt))
            except JudgeError as error:
                failures[prompt.prompt_id] = str(error)

        await gather_or_cancel([one(prompt) for prompt in prompts])
        return failures

    async def sample(self, prompt: Prompt) -> Trajectory:
        """Return one trajectory.

        Raises:
            JudgeError: the model gave no reply.
        """
        chat = [_opening_record(message) for message in self.task.opening(prompt)]
        said: list[Message] = []
        for turn in range(self.limits.max_turns + 1):
            reply = await self.client.complete(chat, tools=self._tools)
            said.append(Message("assistant", reply.text, tool_calls=reply.tool_calls))
            if reply.finish_reason == "length":
                return _trajectory(prompt, said, "length")
            if not reply.tool_calls:
                return _trajectory(prompt, said, "answered")
            if turn == self.limits.max_turns:
                break
            chat.append(_assistant_record(said[-1]))
            results = await asyncio.gather(*(self._call(call) for call in reply.tool_calls))
            for call, result in zip(reply.tool_calls, results, strict=True):
                text = shortened(result.content, self.limits.max_tool_chars)
                said.append(Message("tool", text, name=call.name, is_error=result.is_error))
                chat.append({"role": "tool", "tool_call_id": call.call_id, "content": text})
            if turn + 1 == self.limits.max_turns:
                # Shown to the model, not to judges.
                notice = ANSWER_NOW.get(prompt.language, ANSWER_NOW["en"])
                chat[-1]["content"] += f"\n{notice}"
        return _trajectory(prompt, said, "max_turns")

    async def _call(self, call: ToolCall) -> ToolResult:
        if UNREADABLE_ARGUMENTS in call.arguments:
            shown = shortened(str(call.arguments[UNREADABLE_ARGUMENTS]), 200)
            return ToolResult(f"Error: arguments must be a JSON object, got {shown}", True)
        timeout_s = self.limits.tool_timeout_s
        try:
            return await asyncio.wait_for(self.task.toolset.call(call), timeout_s)
        except TimeoutError:
            return ToolResult(f"Error: no answer from {call.name} in {timeout_s:g} s", True)


async def outputs_of(agent: LLMAgent, prompts: Sequence[Prompt], path: Path) -> list[Trajectory]:
    """Return the agent's output for each prompt, keeping each in `path` as it comes.

    What the file holds is not asked again. A prompt that the model failed on has no output: it is
    told, and left out.

    Raises:
        ConfigError: there is no output at all.
    """
    kept: dict[str, Trajectory] = {}
    if path.exists():
        kept = {t.prompt_id: t for t in map(trajectory_from_record, read_jsonl(path))}

    def keep(prompt: Prompt, trajectory: Trajectory) -> None:
        kept[prompt.prompt_id] = trajectory
        write_jsonl(path, [trajectory_to_record(t) for t in kept.values()])

    failures = await agent.run([p for p in prompts if p.prompt_id not in kept], keep)
    name = agent.client.model
    if failures:
        prompt_id, reason = next(iter(failures.items()))
        print(
            f"baseline {name}: no output for {len(failures)} of {len(prompts)} prompts, which are "
            f"no cases (first {prompt_id!r}: {reason})",
            flush=True,
        )
    found = [kept[prompt.prompt_id] for prompt in prompts if prompt.prompt_id in kept]
    if not found:
        raise ConfigError(
            f"a baseline must have outputs, got none from {name} (evaluation.baseline.llm). See "
            "the failure above."
        )
    return found


def _trajectory(prompt: Prompt, said: Sequence[Message], finish: FinishReason) -> Trajectory:
    return Trajectory(prompt.prompt_id, tuple(said), finish=finish)


def _opening_record(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}


def _assistant_record(message: Message) -> Mapping[str, Any]:
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
            },
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.content, "tool_calls": calls}
