"""Reading an assistant turn: its thought, its tool calls, its answer.

The notation is the one that Qwen and Hermes models use: `<tool_call>{"name": ..., "arguments":
{...}}</tool_call>`, several a turn, text before the first call being reasoning. Nothing is
guessed: a call that isn't exactly that is a `TurnError`, which the agent gets to read.
"""

import json

from arena_lightning.types import Message, ToolCall

CALL_START, CALL_END = "<tool_call>", "</tool_call>"
THINK_START, THINK_END = "<think>", "</think>"
MAX_CALLS_PER_TURN = 8


class TurnError(Exception):
    """An unreadable tool call. Its text says what is wrong, `message` is what the policy said."""

    def __init__(self, problem: str, message: Message) -> None:
        super().__init__(problem)
        self.message = message


def parse_turn(text: str) -> Message:
    """Read an assistant turn.

    A leading `<think>` block is reasoning, and so is text before the first call. Text outside of
    both is the content: the answer, when there are no calls.

    Raises:
        TurnError: a call without its end tag, not a JSON object, without a name, or too many.
    """
    thought, body = _split_thought(text)
    before, found, rest = body.partition(CALL_START)
    if not found:
        return Message("assistant", before.strip(), thought)
    said = Message("assistant", "", text.strip())
    calls: list[ToolCall] = []
    outside: list[str] = []
    while found:
        call, closed, rest = rest.partition(CALL_END)
        if not closed:
            raise TurnError(f"a tool call must end with {CALL_END}", said)
        calls.append(_parse_call(call, said))
        between, found, rest = rest.partition(CALL_START)
        outside.append(between)
    if len(calls) > MAX_CALLS_PER_TURN:
        raise TurnError(f"at most {MAX_CALLS_PER_TURN} tool calls a turn, got {len(calls)}", said)
    reasoning = "\n".join(part for part in (thought, before.strip()) if part)
    return Message("assistant", "".join(outside).strip(), reasoning, tuple(calls))


def _split_thought(text: str) -> tuple[str, str]:
    """Return the thought and what follows it. Some templates open the block in the prompt."""
    thought, closed, rest = text.partition(THINK_END)
    if not closed or CALL_START in thought:
        return "", text
    return thought.strip().removeprefix(THINK_START).strip(), rest


def _parse_call(body: str, said: Message) -> ToolCall:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise TurnError(f"a tool call must be JSON: {error}", said) from error
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise TurnError('a tool call must be {"name": ..., "arguments": {...}}', said)
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        raise TurnError("arguments must be a JSON object", said)
    return ToolCall(call["name"], arguments)
