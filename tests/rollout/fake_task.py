"""A task whose tools are functions of the test."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from arena_lightning.protocols import ToolResult
from arena_lightning.types import Message, Prompt, ToolCall

SCHEMAS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "weather",
        "description": "forecast",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "date": {"type": "string"}},
            "required": ["city"],
        },
    },
)


def echo(call: ToolCall) -> ToolResult:
    return ToolResult(f"{call.name}: {', '.join(map(str, call.arguments.values()))}")


class FakeToolset:
    """Answers with `answer(call)` after `delay_s(call)` seconds."""

    def __init__(
        self,
        answer: Callable[[ToolCall], ToolResult] = echo,
        delay_s: Callable[[ToolCall], float] = lambda call: 0.0,
    ) -> None:
        self.schemas: Sequence[Mapping[str, Any]] = SCHEMAS
        self.calls: list[ToolCall] = []
        self._answer = answer
        self._delay_s = delay_s

    async def call(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        delay_s = self._delay_s(call)
        if delay_s:
            await asyncio.sleep(delay_s)
        return self._answer(call)


class FakeTask:
    def __init__(self, toolset: FakeToolset | None = None) -> None:
        self.toolset = toolset or FakeToolset()

    def opening(self, prompt: Prompt) -> tuple[Message, ...]:
        return Message("system", "Help."), Message("user", prompt.query)
