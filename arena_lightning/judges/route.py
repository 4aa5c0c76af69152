"""The line to one model: breaker, slot, claim, attempt, and again.

One `Route` per model name; `client.py` walks from route to route. An attempt ends as an `Answer`
or as a `Fault`, and what it took is booked in the budget and in the question's `Tally` before
anything else happens. Nothing here reads what an answer says.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena_lightning.judges.budget import Budget, Reservation
from arena_lightning.judges.limits import AdaptiveConcurrency, CircuitBreaker, Limits
from arena_lightning.judges.pricing import Price, load_litellm, most_prompt_tokens
from arena_lightning.judges.retry import Fault, RetryPolicy, fault_of
from arena_lightning.rng import generator_for
from arena_lightning.types import ToolCall, Usage

UNREADABLE_ARGUMENTS = "unreadable arguments"
"""Key of a tool call's arguments that were no JSON object; the value is their text."""
_NO_USAGE = Usage(calls=0)


class RouteClosedError(Exception):
    """This model is not asked now. For the client alone, which turns to the next one."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is sent, and an upper bound on its tokens."""

    messages: list[dict[str, Any]]
    schema: Mapping[str, Any] | None
    most_prompt_tokens: int
    tools: tuple[Mapping[str, Any], ...] = ()
    """In OpenAI's form."""

    @staticmethod
    def of(
        messages: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> "Question":
        copies = [dict(message) for message in messages]
        shown = {"schema": schema, "tools": list(tools)} if tools else schema
        return Question(copies, schema, most_prompt_tokens(copies, shown), tuple(tools))

    def address(self) -> int:
        """Return the address of the question's jitter: a function of its messages.

        Made when it is needed only: hashing a long text lets go of Python's lock, and getting it
        back costs milliseconds while litellm's threads are busy.
        """
        digest = hashlib.blake2b(json.dumps(self.messages).encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big")


@dataclass(frozen=True, slots=True)
class Answer:
    """A completion as it came."""

    text: str
    finish_reason: str
    """"" when there was no choice in it."""
    prompt_tokens: int
    completion_tokens: int
    tool_calls: tuple[ToolCall, ...] = ()


class Tally:
    """What one question took so far, over all attempts and models."""

    def __init__(self) -> None:
        self.calls = 0
        self._started_s = time.monotonic()
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._cost_usd: float | None = 0.0

    def add(self, prompt_tokens: int, completion_tokens: int, price: Price | None) -> None:
        """Book one attempt. Without a price the sum's cost is not known either."""
        self.calls += 1
        self._prompt_tokens += prompt_tokens
        self._completion_tokens += completion_tokens
        if price is None and prompt_tokens + completion_tokens:
            self._cost_usd = None
        elif price is not None and self._cost_usd is not None:
            self._cost_usd += price.cost_usd(prompt_tokens, completion_tokens)

    def usage(self, more: Usage = _NO_USAGE) -> Usage:
        """Return the sum, with `more` added; latency is the whole time since the question."""
        costs = (self._cost_usd, more.cost_usd)
        return Usage(
            calls=self.calls + more.calls,
            prompt_tokens=self._prompt_tokens + more.prompt_tokens,
            completion_tokens=self._completion_tokens + more.completion_tokens,
            cost_usd=None if None in costs else sum(costs),  # type: ignore[arg-type]
            latency_s=time.monotonic() - self._started_s,
        )


class Route:
    """The line to one model."""

    def __init__(
        self,
        model: str,
        params: Mapping[str, Any],
        with_schema: bool,
        price: Price | None,
        limits: Limits,
        retry: RetryPolicy,
        budget: Budget | None,
    ) -> None:
        self.model = model
        self.price = price
        self.concurrency = AdaptiveConcurrency(limits.max_concurrency, limits.start_concurrency)
        self.breaker = CircuitBreaker(
            limits.breaker_failures, limits.breaker_pause_s, limits.breaker_max_pause_s
        )
        self.faults: Counter[str] = Counter()
        """Fault kind -> attempts, since the start."""
        self.num_replies = 0
        self.busy_s = 0.0
        """Time of all attempts together; divided by the time passed: effective concurrency."""
        self._params = dict(params)
        self._with_schema = with_schema
        self._limits = limits
        self._retry = retry
        self._budget = budget

    async def ask(self, question: Question, tally: Tally, can_skip: bool) -> Answer | Fault:
        """Ask until there is an answer, a fault that no retry mends, or no attempt left.

        Args:
            question: what to send.
            tally: where to book it.
            can_skip: whether another model can be asked while this one's breaker is open.

        Raises:
            RouteClosedError: the breaker is open and `can_skip`.
            BudgetSpentError: the budget can't bear another attempt.
        """
        attempt = 0
        while True:
            outcome = await self._attempt_in_turn(question, tally, can_skip)
            attempt += 1
            if isinstance(outcome, Answer):
                return outcome
            if not outcome.is_retried or attempt >= self._retry.max_attempts:
                return outcome
            rng = generator_for(self._retry.seed, "judges/retry", question.address(), attempt)
            await asyncio.sleep(self._retry.delay_s(attempt - 1, outcome.retry_after_s, rng))

    async def _attempt_in_turn(
        self, question: Question, tally: Tally, can_skip: bool
    ) -> Answer | Fault:
        """Wait for a slot and for the breaker, attempt, and tell both how it went."""
        if can_skip and self.breaker.is_open:
            raise RouteClosedError("not asked, after failures in a row")
        async with self.concurrency.slot() as cuts_at_start:
            is_probe = await self.breaker.admit()
            outcome: Answer | Fault | None = None
            try:
                outcome = await self._attempt(question, tally)
            finally:
                if outcome is None:
                    self.breaker.abandoned(is_probe)
        if isinstance(outcome, Answer):
            self.num_replies += 1
            self.concurrency.succeeded()
            self.breaker.succeeded(is_probe)
            return outcome
        self.faults[outcome.kind] += 1
        if outcome.kind == "rate_limited":
            self.concurrency.rate_limited(cuts_at_start)
        if outcome.kind in ("unsent", "lost", "timeout", "server"):
            self.breaker.failed(is_probe)
        else:
            # It answered, if not as we wish: the service is there.
            self.breaker.succeeded(is_probe)
        return outcome

    async def _attempt(self, question: Question, tally: Tally) -> Answer | Fault:
        """Send once, and book what it took or may have taken."""
        most = (question.most_prompt_tokens, int(self._params["max_tokens"]))
        claim: Reservation | None = None
        if self._budget is not None:
            claim = await self._budget.reserve(sum(most), self._cost_usd(*most))
        started_s = time.monotonic()
        try:
            outcome = await self._send(question)
        except BaseException:
            # Cancelled in flight: the provider may go on and bill it.
            self._book(claim, tally, *most)
            raise
        finally:
            self.busy_s += time.monotonic() - started_s
        if isinstance(outcome, Fault):
            if outcome.kind == "unsent":
                if claim is not None and self._budget is not None:
                    self._budget.release(claim)
            else:
                self._book(claim, tally, *(most if outcome.may_be_billed else (0, 0)))
            return outcome
        self._book(claim, tally, outcome.prompt_tokens, outcome.completion_tokens)
        # An empty text is an answer: at temperature 0 it would come again and again, and be paid.
        return outcome if outcome.finish_reason else Fault("empty", "a completion without a choice")

    def _book(
        self, claim: Reservation | None, tally: Tally, prompt_tokens: int, completion_tokens: int
    ) -> None:
        tally.add(prompt_tokens, completion_tokens, self.price)
        if claim is not None and self._budget is not None:
            tokens = prompt_tokens + completion_tokens
            self._budget.settle(claim, tokens, self._cost_usd(prompt_tokens, completion_tokens))

    def _cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        return 0.0 if self.price is None else self.price.cost_usd(prompt_tokens, completion_tokens)

    async def _send(self, question: Question) -> Answer | Fault:
        params = dict(self._params)
        if self._with_schema and question.schema is not None:
            params["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "schema": question.schema, "strict": True},
            }
        if question.tools:
            params["tools"] = list(question.tools)
        try:
            # litellm's own time-out is one of silence: a reply that drips in never meets it.
            async with asyncio.timeout(self._limits.attempt_timeout_s):
                response = await load_litellm().acompletion(
                    model=self.model,
                    messages=question.messages,
                    timeout=self._limits.attempt_timeout_s,
                    num_retries=0,
                    max_retries=0,
                    **params,
                )
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise
            return fault
        return _answer_from(response, question, params["max_tokens"])


def _answer_from(response: Any, question: Question, max_tokens: int) -> Answer:
    """Read a completion; one that does not say what it took counts at the upper estimate."""
    usage = getattr(response, "usage", None)
    prompt_tokens = getattr(usage, "prompt_tokens", None) or question.most_prompt_tokens
    completion_tokens = getattr(usage, "completion_tokens", None)
    text, finish_reason, calls = "", "", ()
    if response.choices:
        message = response.choices[0].message
        text = message.content or ""
        calls = tuple(_tool_call_from(call) for call in getattr(message, "tool_calls", None) or ())
        finish_reason = response.choices[0].finish_reason or "stop"
    if completion_tokens is None:
        completion_tokens = max_tokens
    return Answer(text, finish_reason, int(prompt_tokens), int(completion_tokens), calls)


def _tool_call_from(call: Any) -> ToolCall:
    """Read one call; arguments that are no JSON object are kept as text, for the caller to see."""
    raw = call.function.arguments or "{}"
    try:
        arguments = json.loads(raw)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        arguments = {UNREADABLE_ARGUMENTS: raw}
    return ToolCall(call.function.name or "", arguments, call.id or "")
