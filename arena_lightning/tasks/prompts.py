"""Reads a user's prompts: JSON Lines with a `query` and, optionally, a `reference` conversation.

This is the published format of Open-Travel: references are chat messages in OpenAI form, with
`reasoning_content` and `tool_calls` on assistant turns. Every fault is reported with file and line.
Nothing is skipped silently, and no field is guessed.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arena_lightning.errors import DataError
from arena_lightning.types import Message, Prompt, ToolCall

_ROLES = ("system", "user", "assistant", "tool")


class _Fault(Exception):
    """What is wrong with a record; the loader adds file and line."""


def load_prompts(path: Path | str) -> list[Prompt]:
    """Return the prompts of a JSONL file, in file order. Blank lines don't count.

    A record holds `query` (text) and may hold `reference` (chat messages, the last one the
    baseline's answer), `subtask`, `language`, `prompt_id` (default: file name and line number) and
    `needs`. Other fields of a record are kept in `Prompt.needs["extra"]`.

    Raises:
        DataError: the file is missing, empty or not UTF-8, or a line is not such a record.
    """
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise DataError(
            f"the prompts file must be readable, got {error.strerror} ({file}). Correct the path."
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"the prompts file must be UTF-8 text, got byte {error.object[error.start]:#04x} at "
            f"offset {error.start} ({file}). Save it as UTF-8."
        ) from error
    prompts: list[Prompt] = []
    lines_by_id: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            prompt = _prompt(line, f"{file.stem}-{number}")
            if prompt.prompt_id in lines_by_id:
                first = lines_by_id[prompt.prompt_id]
                raise _Fault(
                    f"prompt_id must be unique, got {prompt.prompt_id!r} as on line {first}. "
                    "Rename one of them, or leave prompt_id out"
                )
        except _Fault as fault:
            raise DataError(f"{file} line {number}: {fault}.") from fault
        lines_by_id[prompt.prompt_id] = number
        prompts.append(prompt)
    if not prompts:
        raise DataError(
            f"the prompts file must hold at least one record, got an empty file ({file}). "
            'Write one JSON object a line, e.g. {"query": "Find a cafe near ..."}.'
        )
    return prompts


def messages_from_chat(records: Any) -> tuple[Message, ...]:
    """Return chat messages in OpenAI form as `Message`s; system and user turns are left out.

    Raises:
        DataError: not a list of messages, or a message or tool call is malformed.
    """
    try:
        return _messages(records)
    except _Fault as fault:
        raise DataError(f"{fault}.") from fault


def _prompt(line: str, default_id: str) -> Prompt:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _Fault(
            f"each line must be one JSON object, got {line.strip()[:40]!r} ({error}). "
            "Correct the JSON"
        ) from error
    if not isinstance(record, Mapping):
        raise _Fault(
            f"each line must be one JSON object, got {_kind(record)}. "
            'Write it as {"query": "..."}'
        )
    query = record.get("query")
    if "query" not in record:
        keys = ", ".join(map(repr, list(record)[:6])) or "no keys"
        raise _Fault(f"a record must have the key 'query', got {keys}. Add it")
    if not isinstance(query, str) or not query.strip():
        got = repr(query) if isinstance(query, str) else _kind(query)
        raise _Fault(f"query must be non-empty text, got {got}. Write the question there")
    texts = {
        key: _optional_text(record, key, default)
        for key, default in (("subtask", ""), ("language", "en"), ("prompt_id", default_id))
    }
    reference = record.get("reference")
    known = ("query", "reference", "needs", *texts)
    extra = {key: value for key, value in record.items() if key not in known}
    return Prompt(
        query=query,
        reference=() if reference is None else _reference(reference),
        needs=_needs(record.get("needs"), extra),
        **texts,
    )


def _optional_text(record: Mapping[str, Any], key: str, default: str) -> str:
    value = record.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or (key == "prompt_id" and not value.strip()):
        raise _Fault(f"{key} must be text, got {value!r:.40}. Quote it or leave it out")
    return value


def _needs(needs: Any, extra: Mapping[str, Any]) -> Mapping[str, Any]:
    if needs is not None and not isinstance(needs, Mapping):
        raise _Fault(f"needs must be a JSON object, got {_kind(needs)}. Leave it out")
    return {**(needs or {}), **({"extra": extra} if extra else {})}


def _reference(records: Any) -> tuple[Message, ...]:
    messages = _messages(records)
    if not messages:
        raise _Fault(
            "reference must hold the baseline's turns, got no assistant message. "
            "Leave `reference` out for a query without one"
        )
    last = messages[-1]
    if last.role != "assistant" or last.tool_calls or not last.content.strip():
        raise _Fault(
            f"reference must end with the baseline's answer, got a {last.role} message "
            f"{'with tool calls' if last.tool_calls else 'without an answer'}. Complete it, or "
            "leave `reference` out"
        )
    return messages


def _messages(records: Any) -> tuple[Message, ...]:
    if not isinstance(records, Sequence) or isinstance(records, str):
        raise _Fault(
            f"reference must be a list of chat messages, got {_kind(records)}. "
            'Write it as [{"role": "assistant", "content": "..."}]'
        )
    made = [_message(record, f"reference[{i}]") for i, record in enumerate(records)]
    return tuple(message for message in made if message.role in ("assistant", "tool"))


def _message(record: Any, where: str) -> Message:
    if not isinstance(record, Mapping):
        raise _Fault(f"{where} must be a message object, got {_kind(record)}. Correct it")
    role = record.get("role")
    if role not in _ROLES:
        raise _Fault(f"{where}.role must be one of {', '.join(_ROLES)}, got {role!r}. Correct it")
    calls = record.get("tool_calls") or []
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise _Fault(f"{where}.tool_calls must be a list, got {_kind(calls)}. Correct it")
    return Message(
        role,
        _content(record.get("content"), f"{where}.content"),
        reasoning=_content(record.get("reasoning_content"), f"{where}.reasoning_content"),
        tool_calls=tuple(_call(c, f"{where}.tool_calls[{i}]") for i, c in enumerate(calls)),
        name=_content(record.get("name"), f"{where}.name"),
    )


def _content(value: Any, where: str) -> str:
    """Text, null, or OpenAI's list of text parts."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        parts = [part.get("text") if isinstance(part, Mapping) else None for part in value]
        texts = [part for part in parts if isinstance(part, str)]
        if len(texts) == len(parts):
            return "".join(texts)
    raise _Fault(f"{where} must be text or a list of text parts, got {_kind(value)}. Correct it")


def _call(record: Any, where: str) -> ToolCall:
    """A call as {"function": {"name", "arguments"}} or flat; arguments as JSON text or object."""
    if not isinstance(record, Mapping):
        raise _Fault(f"{where} must be a tool call object, got {_kind(record)}. Correct it")
    call = record.get("function", record)
    name = call.get("name") if isinstance(call, Mapping) else None
    if not isinstance(name, str) or not name:
        raise _Fault(f"{where} must name a function, got {name!r}. Add function.name")
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise _Fault(
                f"{where} arguments must be a JSON object, got {arguments[:40]!r}. Correct them"
            ) from error
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise _Fault(f"{where} arguments must be a JSON object, got {_kind(arguments)}")
    return ToolCall(name, arguments, _content(record.get("id"), f"{where}.id"))


def _kind(value: Any) -> str:
    """A JSON value's kind in words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)
