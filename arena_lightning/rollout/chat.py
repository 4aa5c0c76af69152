"""Messages to token ids, without ever tokenising twice what a model emitted.

A trajectory's ids grow by pieces: the opening, the policy's own ids as the engine reported them,
and observations, each tokenised alone. Control tokens are put in by id, all else is plain text (see
`encoder`). `encode_dialogue` writes a given dialogue as the same pieces, for the cold start.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from arena_lightning.errors import ConfigError
from arena_lightning.rollout.encoder import TextEncoder
from arena_lightning.rollout.turns import (
    CALL_END,
    CALL_START,
    THINK_END,
    THINK_START,
    parse_turn,
)
from arena_lightning.types import Message, Segment


class ChatFormat(Protocol):
    """How a model's conversations are written."""

    stop_ids: tuple[int, ...]
    """Tokens that end a turn; the first is the one that the format itself writes."""

    def opening_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]
    ) -> tuple[int, ...]:
        """Return the ids of system and user messages up to where the policy starts to write."""
        ...

    def observation_ids(self, messages: Sequence[Message], was_cut: bool) -> tuple[int, ...]:
        """Return the ids from the end of the policy's turn to the start of its next.

        Args:
            messages: the tool messages.
            was_cut: the policy's turn did not end with the format's own stop token, which is then
                put in here, as a token that the policy did not emit.
        """
        ...

    def turn_ids(self, message: Message) -> tuple[int, ...]:
        """Return the ids an assistant message would have been emitted as, stop token included."""
        ...

    def parse_turn(self, ids: Sequence[int]) -> Message:
        """Read emitted ids. Raises `TurnError` when a tool call can't be read."""
        ...


class ChatMLFormat:
    """Compact ChatML with a role for tools, for models that ship no tool template.

    Tools are listed as signatures, e.g. `weather(city, date?): forecast`.

    Args:
        model_dir: folder with `tokenizer.json` that knows `<|im_start|>` and `<|im_end|>`.
    """

    def __init__(self, model_dir: Path) -> None:
        self._encoder = TextEncoder(model_dir)
        start, end = (self._encoder.control(token) for token in ("<|im_start|>", "<|im_end|>"))
        if start is None or end is None:
            raise ConfigError(
                f"ChatML needs the tokens <|im_start|> and <|im_end|>, which {self._encoder.path} "
                "doesn't have. Use TemplateFormat, which follows the model's own chat template."
            )
        self._start, self._end = start, end
        end_of_text = self._encoder.control("<|endoftext|>")
        self.stop_ids = (end,) if end_of_text is None else (end, end_of_text)
        self._newline = self._encoder.text("\n")

    def opening_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]
    ) -> tuple[int, ...]:
        ids: list[int] = []
        for index, message in enumerate(messages):
            content = message.content
            if index == 0 and message.role == "system" and tools:
                content = f"{content}\n{tool_listing(tools)}"
            ids += self._block(message.role, content)
        return (*ids, *self._generation_prompt())

    def observation_ids(self, messages: Sequence[Message], was_cut: bool) -> tuple[int, ...]:
        ids = [self._end] if was_cut else []
        ids += self._newline
        for message in messages:
            ids += self._block(message.role, message.content)
        return (*ids, *self._generation_prompt())

    def turn_ids(self, message: Message) -> tuple[int, ...]:
        text = "\n".join("".join(part) for part in turn_parts(message))
        return (*self._encoder.text(text), self._end)

    def parse_turn(self, ids: Sequence[int]) -> Message:
        return parse_turn(self._encoder.decode([i for i in ids if i not in self.stop_ids]))

    def _block(self, role: str, content: str) -> list[int]:
        return [
            self._start,
            *self._encoder.text(f"{role}\n{content}"),
            self._end,
            *self._newline,
        ]

    def _generation_prompt(self) -> list[int]:
        return [self._start, *self._encoder.text("assistant\n")]


def tool_listing(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return one signature a line; optional arguments end in "?", unneeded ones are left out."""
    lines = ["Tools:"]
    for tool in tools:
        properties = tool["parameters"].get("properties", {})
        required = tool["parameters"].get("required", [])
        names = [
            name if name in required else f"{name}?"
            for name, schema in properties.items()
            if schema.get("description") != "accepted, not needed"
        ]
        lines.append(f"{tool['name']}({', '.join(names)}): {tool['description']}")
    return "\n".join(lines)


def turn_parts(message: Message) -> list[tuple[str, str, str]]:
    """Return an assistant message as (tag, text, end tag) parts; tags are "" where there is none.

    `parse_turn` reads the parts back when they are joined by newlines.
    """
    parts: list[tuple[str, str, str]] = []
    if message.reasoning:
        # Without a call behind it, bare reasoning could not be told from the answer.
        tags = ("", "") if message.tool_calls else (THINK_START, THINK_END)
        parts.append((tags[0], message.reasoning, tags[1]))
    for call in message.tool_calls:
        body = {"name": call.name, "arguments": dict(call.arguments)}
        # Separators without blanks save a token in seven.
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        parts.append((CALL_START, text, CALL_END))
    if message.content:
        parts.append(("", message.content, ""))
    return parts


def encode_dialogue(
    chat: ChatFormat,
    opening: Sequence[Message],
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
) -> tuple[Segment, ...]:
    """Return a written dialogue as the segments a rollout of it would have given.

    Policy segments carry log-probabilities of 0, since nothing was sampled, and version 0. Tool
    messages after the last assistant turn were never read, so they have no tokens.
    """
    segments = [Segment("prompt", chat.opening_ids(opening, tools))]
    waiting: list[Message] = []
    for message in messages:
        if message.role != "assistant":
            waiting.append(message)
            continue
        if waiting:
            segments.append(Segment("tool", chat.observation_ids(waiting, was_cut=False)))
            waiting = []
        ids = chat.turn_ids(message)
        segments.append(Segment("policy", ids, (0.0,) * len(ids), 0))
    return tuple(segments)
