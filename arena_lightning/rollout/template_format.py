"""A model's own chat template, for models that know tools in the `<tool_call>` notation.

The template is rendered with stand-ins where messages belong, once; the pieces between them are
tokenised with control tokens, the messages themselves as plain text. So a rollout can grow piece by
piece, and no query or observation can forge the template's markers. A template that rewrites
earlier turns when a tool answers can't be followed like that and is refused.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arena_lightning.errors import RolloutError
from arena_lightning.rollout.chat import turn_parts
from arena_lightning.rollout.encoder import TextEncoder
from arena_lightning.rollout.turns import (
    CALL_END,
    CALL_START,
    parse_turn,
)
from arena_lightning.types import Message

_STAND_IN = "\u2983{}\u2984"
"""Brackets that no template writes; the number says which message stands here."""


class TemplateFormat:
    """Follows the chat template in a model folder.

    Args:
        model_dir: folder with `tokenizer.json` and a chat template that takes `tools`.

    Raises:
        RolloutError: the template rewrites earlier turns, or doesn't end a turn with a stop token.
    """

    def __init__(self, model_dir: Path | str) -> None:
        from transformers import AutoTokenizer

        self._encoder = TextEncoder(model_dir)
        self._path = Path(model_dir)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(model_dir), local_files_only=True)
        end, self._after_turn = self._turn_end()
        others = [self._tokenizer.eos_token_id, self._encoder.control("<|endoftext|>")]
        self.stop_ids = tuple(dict.fromkeys([end, *(i for i in others if i is not None)]))

    def opening_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]
    ) -> tuple[int, ...]:
        functions = [{"type": "function", "function": dict(tool)} for tool in tools]
        dicts = [
            {"role": m.role, "content": _STAND_IN.format(place)} for place, m in enumerate(messages)
        ]
        rendered = self._render(dicts, functions or None, add_generation_prompt=True)
        return tuple(self._filled(rendered, [m.content for m in messages]))

    def observation_ids(self, messages: Sequence[Message], was_cut: bool) -> tuple[int, ...]:
        asked = _dummy_dialogue([message.name for message in messages])
        answers = [
            {
                "role": "tool",
                "content": _STAND_IN.format(place),
                "name": message.name,
                "tool_call_id": _call_id(place),
            }
            for place, message in enumerate(messages)
        ]
        before = self._render(asked)
        after = self._render([*asked, *answers], add_generation_prompt=True)
        if not after.startswith(before):
            raise RolloutError(
                f"the chat template must leave earlier turns as they are when a tool answers, but "
                f"it rewrites them ({self._path}). Give the model folder a template that doesn't, "
                "or use ChatMLFormat."
            )
        ids = [self.stop_ids[0]] if was_cut else []
        ids += self._encoder.marked(self._after_turn) if self._after_turn else []
        ids += self._filled(after[len(before) :], [m.content for m in messages])
        return tuple(ids)

    def turn_ids(self, message: Message) -> tuple[int, ...]:
        ids: list[int] = []
        for place, (opened, text, closed) in enumerate(turn_parts(message)):
            ids += self._encoder.text("\n") if place else []
            ids += self._tag(opened) if opened else []
            ids += self._encoder.text(_spaced(text) if opened == CALL_START else text)
            ids += self._tag(closed) if closed else []
        return (*ids, self.stop_ids[0])

    def parse_turn(self, ids: Sequence[int]) -> Message:
        return parse_turn(self._encoder.decode([i for i in ids if i not in self.stop_ids]))

    def _turn_end(self) -> tuple[int, str]:
        """Return the token that closes an assistant turn, and the text that follows it."""
        rendered = self._render(_dummy_dialogue(["tool"]))
        tail = rendered.rpartition(CALL_END)[2]
        ids = self._encoder.marked(tail)
        known = [i for i in ids if self._encoder.decode([i]) in self._tokenizer.all_special_tokens]
        if not known:
            raise RolloutError(
                f"the chat template must close an assistant turn with a special token, got "
                f"{tail!r} ({self._path}). Correct the template, or use ChatMLFormat."
            )
        token = self._encoder.decode([known[0]])
        return known[0], tail[tail.index(token) + len(token) :]

    def _tag(self, tag: str) -> list[int]:
        control = self._encoder.control(tag)
        return self._encoder.text(tag) if control is None else [control]

    def _render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
    ) -> str:
        return self._tokenizer.apply_chat_template(
            list(messages),
            tools=tools,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
        )

    def _filled(self, rendered: str, texts: Sequence[str]) -> list[int]:
        """Tokenise a rendered template, putting plain texts where the stand-ins are."""
        ids: list[int] = []
        for place, text in enumerate(texts):
            stand_in = _STAND_IN.format(place)
            before, found, rendered = rendered.partition(stand_in)
            if not found or stand_in in rendered:
                raise RolloutError(
                    "the chat template must write each message's content exactly once and in "
                    f"order, but it doesn't for message {place} ({self._path}). Use ChatMLFormat."
                )
            ids += self._encoder.marked(before) if before else []
            ids += self._encoder.text(text) if text else []
        return ids + (self._encoder.marked(rendered) if rendered else [])


def _dummy_dialogue(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a dialogue whose last turn calls the named tools."""
    calls = [
        {
            "type": "function",
            "id": _call_id(place),
            "function": {"name": name or "tool", "arguments": {}},
        }
        for place, name in enumerate(names)
    ]
    return [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "", "tool_calls": calls},
    ]


def _spaced(call: str) -> str:
    """Return a call's JSON as these models were trained on it: a line of its own, with blanks."""
    return f"\n{json.dumps(json.loads(call), ensure_ascii=False)}\n"


def _call_id(place: int) -> str:
    return f"call{place:05d}"
