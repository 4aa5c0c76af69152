"""Writes the travel task's prompts and cold-start dialogues as JSON Lines, in Open-Travel's format.

`tasks.prompts.load_prompts` reads the files back, needs included, so an edited copy can be trained
on. The same seed and language give the same bytes.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from arena_lightning.errors import ConfigError
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.types import Message, Prompt


def export(task: TravelTask, out: Path, count: int | None = None) -> list[Path]:
    """Write `cold_start.jsonl`, `train.jsonl` and `test.jsonl` under `out`; return their paths.

    In the cold start, `reference` is the dialogue to learn from; in the test split, the baseline.

    Args:
        count: prompts a split; None = the paper's sizes.

    Raises:
        ConfigError: `out` can't be written.
    """
    dialogues = task.cold_start_dialogues(count) if count else task.cold_start_dialogues()
    splits = {
        "cold_start": [replace(prompt, reference=messages) for prompt, messages in dialogues],
        "train": task.prompts("train", count=count),
        "test": task.prompts("test", count=count),
    }
    paths = []
    for name, prompts in splits.items():
        path = out / f"{name}.jsonl"
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in _records(prompts))
        try:
            out.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(lines), encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"the export folder must be writable, got {error.strerror} (out: {out}). "
                "Name another one."
            ) from error
        paths.append(path)
    return paths


def chat_record(message: Message) -> dict[str, Any]:
    """Return a message in OpenAI form, `reasoning_content` and `tool_calls` where it has them."""
    record: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name:
        record["name"] = message.name
    if message.reasoning:
        record["reasoning_content"] = message.reasoning
    if message.tool_calls:
        record["tool_calls"] = [
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
    return record


def _records(prompts: Iterable[Prompt]) -> Iterable[Mapping[str, Any]]:
    for prompt in prompts:
        record: dict[str, Any] = {
            "prompt_id": prompt.prompt_id,
            "subtask": prompt.subtask,
            "language": prompt.language,
            "query": prompt.query,
            "needs": prompt.needs,
        }
        if prompt.reference:
            record["reference"] = [chat_record(message) for message in prompt.reference]
        yield record
