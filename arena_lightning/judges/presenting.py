"""How a question is put to a judge: the query and trajectories as quoted data between marks.

    Prompt + trajectories + rubric -> system message (ours) + user message (quoted, untrusted)

The marks around a quotation hold a code derived from all that is quoted, and derived anew while the
code occurs in it, so that no text can contain its own end mark. Messages are joined, never
formatted: no untrusted text is ever a template. Positions are told (`first`, `second`), contestant
numbers never. It asks nobody and reads no reply (`asking.py`, `reading.py`).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena_lightning.errors import ConfigError
from arena_lightning.judges.quoting import clean, cut, quoted
from arena_lightning.judges.rubric import Rubric
from arena_lightning.judges.wording import Wording, wording_for
from arena_lightning.types import Message, Prompt, Trajectory


@dataclass(frozen=True, slots=True)
class View:
    """What of a trajectory a judge gets to see."""

    process_aware: bool = True
    """Steps (reasoning, tool calls) beside the final answer; False shows the answer only."""
    observations: bool = True
    """What the tools returned. The paper: False, so that its judge can't check facts."""
    max_chars_per_observation: int = 2_000
    """Characters of one observation; more is cut, visibly."""
    max_chars_per_trajectory: int = 24_000
    """Characters of steps and answer together; the answer keeps at least half of it."""

    def __post_init__(self) -> None:
        for name in ("max_chars_per_observation", "max_chars_per_trajectory"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} must be at least 1 character, got {getattr(self, name)} (judge). "
                    "Some thousand let a judge see what it judges."
                )


def messages_for(
    prompt: Prompt,
    contestants: Mapping[str, Trajectory],
    rubric: Rubric,
    view: View,
    with_analysis: bool = True,
) -> list[dict[str, str]]:
    """Return the chat messages of one question.

    Args:
        prompt: whose query is shown.
        contestants: label -> trajectory, in the order they are shown. The labels are ours and are
            the keys of the reply: `first`, `second`, or opaque ids.
        rubric: already without its process levels when `view` shows answers only.
        view: what is shown.
        with_analysis: ask for some words on each before its scores, as the paper does.

    Returns:
        A system message, which holds nothing untrusted, and a user message.
    """
    words = wording_for(rubric.language)
    shown = {label: show(trajectory, view, words) for label, trajectory in contestants.items()}
    query = quoted(cut(clean(prompt.query), view.max_chars_per_trajectory))
    code = code_for([query, *shown.values()])
    parts = [words.code_line + code, _between(code, "QUERY", query)]
    parts += [_between(code, label.upper(), text) for label, text in shown.items()]
    parts.append(words.end_line)
    return [
        {"role": "system", "content": system_text(rubric, list(contestants), view, with_analysis)},
        {"role": "user", "content": "\n\n".join(parts)},
    ]


def code_for(texts: Sequence[str]) -> str:
    """Return a code of 16 hex digits that occurs in none of the texts.

    The same texts have the same code. To contain it, a text would have to contain part of its own
    hash, and even then the next code is taken.
    """
    whole = json.dumps(list(texts))
    attempt = 0
    while True:
        code = hashlib.sha256(f"{attempt}:{whole}".encode()).hexdigest()[:16]
        if not any(code in text.lower() for text in texts):
            return code
        attempt += 1


def _between(code: str, label: str, text: str) -> str:
    return f"<<<{code} BEGIN {label}>>>\n{text}\n<<<{code} END {label}>>>"


def show(trajectory: Trajectory, view: View, words: Wording) -> str:
    """Return a trajectory as text: labels of ours, everything else behind the quote bar."""
    answer = clean(trajectory.answer)
    steps = _steps(trajectory, view, words) if view.process_aware else ""
    limit = view.max_chars_per_trajectory
    answer = cut(answer, max(limit // 2, limit - len(steps)))
    steps = _cut_lines(steps, max(0, limit - len(answer)))
    parts = [steps] if view.process_aware else []
    parts.append(f"{words.answer}\n{quoted(answer)}" if answer.strip() else words.no_answer)
    return "\n".join(parts)


def _steps(trajectory: Trajectory, view: View, words: Wording) -> str:
    messages = trajectory.messages
    has_answer = bool(trajectory.answer)
    lines, number = [], 0
    for index, message in enumerate(messages):
        if message.role == "tool":
            if view.observations:
                lines += _observation(message, view, words)
            continue
        number += 1
        is_answer = has_answer and index == len(messages) - 1
        if is_answer and not message.reasoning.strip():
            continue
        lines.append(f"{words.step} {number}")
        if message.reasoning.strip():
            lines += [words.reasoning, quoted(clean(message.reasoning))]
        if message.content.strip() and not is_answer:
            lines += [words.said, quoted(clean(message.content))]
        for call in message.tool_calls:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
            lines += [words.call, quoted(clean(f"{call.name} {arguments}"))]
    return "\n".join(lines) if lines else words.no_steps


def _observation(message: Message, view: View, words: Wording) -> list[str]:
    head = words.error if message.is_error else words.observation
    text = cut(clean(message.content), view.max_chars_per_observation)
    return [head, quoted(clean(message.name) + ": " + text if message.name else text)]


def _cut_lines(text: str, max_chars: int) -> str:
    """Cut quoted text, with the mark on a line that is quoted like the rest."""
    if len(text) <= max_chars:
        return text
    kept = text[:max_chars].rpartition("\n")[0]
    return f"{kept}\n{quoted(cut(text[len(kept) :], 0))}".lstrip("\n")


def system_text(rubric: Rubric, labels: Sequence[str], view: View, with_analysis: bool) -> str:
    """Return the judge's instructions: role, rubric, reply, and what quoted text may not do."""
    words = wording_for(rubric.language)
    if len(labels) == 1:
        role = words.role_one
    else:
        role = words.role_two if set(labels) == {"first", "second"} else words.role_many
    lines = [role, words.data_rule]
    if view.process_aware:
        lines.append(words.with_observations if view.observations else words.no_observations)
    lines += ["", words.rubric_head, rubric.instruction]
    for level in rubric.levels:
        lines += ["", f"## {level.name}", level.instruction]
        lines += [f"- {level.name}.{d.name}: {d.instruction}" for d in level.dimensions]
    scale = f"0-{rubric.scale:g}"
    lines += ["", words.scale_rule + scale, "", words.reply_head]
    lines.append(reply_shape(rubric, labels, with_analysis))
    return "\n".join(lines)


def reply_shape(rubric: Rubric, labels: Sequence[str], with_analysis: bool) -> str:
    """Return the reply's shape as a line of JSON with placeholders."""
    shape: dict[str, object] = {}
    if with_analysis:
        shape["analysis"] = dict.fromkeys(labels, "...")
    scores = dict.fromkeys(rubric.dimension_names, "N")
    shape["scores"] = {label: scores for label in labels}
    return json.dumps(shape).replace('"N"', "N")
