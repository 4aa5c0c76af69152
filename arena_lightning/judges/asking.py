"""Asks a model for scores: one question, at most some repairs, all of it on the ledger and billed.

    question -> key -> ledger, or: client -> read -> (show the fault, ask again) -> entry

Serves every kind of question (`llm.py`, `listwise.py`); what the scores mean is theirs. Retries of
calls that got no reply are the client's; a reply that can't be read is mended here or fails.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from arena_lightning.arena.verdicts import sum_usage, usage_of
from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.client import Reply
from arena_lightning.judges.ledger import Ledger, LedgerEntry
from arena_lightning.judges.presenting import reply_shape
from arena_lightning.judges.quoting import clean, cut
from arena_lightning.judges.reading import ReadError, read_scores, schema_for
from arena_lightning.judges.rubric import Rubric
from arena_lightning.judges.wording import wording_for
from arena_lightning.types import Prompt, Usage

Scores = Mapping[str, Mapping[str, float]]
"""Side -> dimension -> points."""
_MAX_SHOWN_CHARS = 4_000
_CACHED = Usage(calls=0, cached=True)


class Client(Protocol):
    """What a judge needs of `JudgeClient`."""

    model: str

    async def complete(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None
    ) -> Reply: ...


@dataclass(frozen=True, slots=True)
class Question:
    """One call to be made."""

    kind: str
    """`compare`, `score` or `listwise`."""
    prompt: Prompt
    messages: Sequence[Mapping[str, str]]
    sides: Sequence[str]
    """Keys of the reply's scores, in the order shown."""
    rubric: Rubric
    with_analysis: bool
    contents: Sequence[str]
    """What identifies each side's trajectory in the ledger, in the order of `sides`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Scores that hold, and what they cost: nothing when they came from the ledger."""

    scores: Scores
    usage: Usage
    model: str
    text: str


@dataclass(slots=True)
class _Tries:
    usages: list[Usage] = field(default_factory=list)
    scores: Scores | None = None
    text: str = ""
    model: str = ""
    error: JudgeError | None = None


class Asker:
    """Gets scores for questions, or a `JudgeError` that tells what was billed."""

    def __init__(self, client: Client, ledger: Ledger | None, repair_attempts: int) -> None:
        if repair_attempts < 0:
            raise ConfigError(
                f"repair_attempts must be at least 0, got {repair_attempts} (judge). One mends "
                "most replies."
            )
        self.client = client
        self.ledger = ledger
        self.repair_attempts = repair_attempts

    def key(self, question: Question) -> str:
        """Return the question's hash: all that a model is shown, and what it is asked with.

        The messages hold query, rubric, language, options, trajectories and their order. The
        server's address, keys and limits are no part of it.
        """
        sampling = [
            getattr(self.client, name, None)
            for name in ("structured_output", "temperature", "extra_params")
        ]
        parts = [
            question.kind,
            self.client.model,
            sampling,
            question.rubric.version,
            list(question.sides),
            [dict(message) for message in question.messages],
        ]
        return digest(json.dumps(parts, sort_keys=True, default=str))

    async def ask(self, question: Question) -> Answer:
        """Return scores for all sides.

        Raises:
            JudgeError: no reply, or none that could be read; `.usage` is everything billed.
        """
        key = self.key(question)
        mine: list[_Tries] = []

        async def paid() -> LedgerEntry:
            tries = _Tries()
            try:
                await self._try(question, tries)
            except BaseException as error:
                self._keep_cut_off(key, question, tries, error)
                raise
            mine.append(tries)
            return _entry(key, question, tries, self.client.model)

        entry = await (self.ledger.answer(key, paid) if self.ledger else paid())
        usage = sum_usage(mine[0].usages) if mine else _CACHED
        if entry.status != "verdict":
            reason = mine[0].error if mine else "the same question failed at the same time"
            raise failed(str(reason), usage) from (mine[0].error if mine else None)
        return Answer(_scores_from_file(question, entry), usage, entry.model, entry.raw_text)

    def _keep_cut_off(
        self, key: str, question: Question, tries: _Tries, error: BaseException
    ) -> None:
        """Put on file what was sent before the end: a budget restored from it counts that too."""
        billed = getattr(error, "usage", None)
        if isinstance(billed, Usage):
            tries.usages.append(billed)
        entry = _entry(key, question, tries, self.client.model, status="cut_off")
        if self.ledger is not None and entry.calls:
            self.ledger.append(entry)

    async def _try(self, question: Question, tries: _Tries) -> None:
        schema = schema_for(question.rubric, question.sides, question.with_analysis)
        messages = list(question.messages)
        for _ in range(1 + self.repair_attempts):
            try:
                reply = await self.client.complete(messages, schema)
            except JudgeError as error:
                tries.usages.append(usage_of(error))
                tries.error = error
                break
            tries.usages.append(reply.usage)
            tries.text, tries.model = reply.text, reply.model
            try:
                tries.scores = read_scores(reply.text, question.rubric, question.sides)
                break
            except ReadError as error:
                cut_off = " (reply cut off at max_tokens)" * (reply.finish_reason == "length")
                tries.error = ReadError(
                    f"{error}{cut_off} [{question.kind}, prompt {question.prompt.prompt_id!r}, "
                    f"{reply.model}]"
                )
                messages = [*question.messages, *_repair(question, reply.text, str(error))]


def _repair(question: Question, text: str, reason: str) -> list[dict[str, str]]:
    words = wording_for(question.rubric.language)
    shape = reply_shape(question.rubric, question.sides, question.with_analysis)
    return [
        # Some chat templates refuse an empty message.
        {"role": "assistant", "content": cut(clean(text), _MAX_SHOWN_CHARS) or "..."},
        {"role": "user", "content": f"{words.repair}{clean(reason)}\n{words.repair_end}\n{shape}"},
    ]


def _entry(
    key: str, question: Question, tries: _Tries, model: str, status: str | None = None
) -> LedgerEntry:
    usage = sum_usage(tries.usages)
    contents = [digest(content) for content in question.contents]
    scores = {} if tries.scores is None else _scores_on_file(question, tries.scores)
    return LedgerEntry(
        key=key,
        kind=question.kind,
        prompt_id=question.prompt.prompt_id,
        prompt_hash=digest(question.prompt.query),
        model=tries.model or model,
        rubric=question.rubric.name,
        rubric_version=question.rubric.version,
        first_hash=contents[0] if len(contents) <= 2 else digest("".join(sorted(contents))),
        second_hash=contents[1] if len(contents) == 2 else "",
        status=status or ("failed" if tries.scores is None else "verdict"),
        raw_text=tries.text,
        scores=scores,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost_usd=usage.cost_usd,
        latency_s=usage.latency_s,
        created_s=time.time(),
        calls=usage.calls,
    )


def _scores_on_file(question: Question, scores: Scores) -> dict[str, Any]:
    sides = {side: dict(dimensions) for side, dimensions in scores.items()}
    totals = {side: question.rubric.total(dimensions) for side, dimensions in sides.items()}
    if question.kind == "compare":
        return {**totals, **{f"dimensions_{side}": sides[side] for side in sides}}
    if question.kind == "score":
        (side,) = sides
        return {"score": totals[side], "dimensions": sides[side]}
    return {"totals": totals, "dimensions": sides}


def _scores_from_file(question: Question, entry: LedgerEntry) -> Scores:
    if question.kind == "compare":
        return {side: entry.scores[f"dimensions_{side}"] for side in question.sides}
    dimensions = entry.scores["dimensions"]
    return {question.sides[0]: dimensions} if question.kind == "score" else dimensions


def failed(reason: str, usage: Usage) -> JudgeError:
    """Return a `JudgeError` that carries what was billed."""
    error = JudgeError(reason)
    error.usage = usage  # type: ignore[attr-defined]
    return error


def digest(text: str) -> str:
    """Return the hex digest that the ledger's keys and hashes are made with."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
