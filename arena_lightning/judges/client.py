"""The judge's line to a model: one question in, one reply out, over `litellm.acompletion`.

    complete -> per model: slot -> breaker -> claim on the budget -> attempt -> reply, or again
             -> next fallback model -> JudgeError

It owns retries, deadlines, concurrency, budget and cost of what it sends; litellm's own retries are
off. API keys come from the environment only, where litellm looks for them itself. It never reads
what a reply says: that is the judge's work, and so is keeping replies (`ledger.py`).
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.judges.budget import Budget, BudgetSpentError
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.pricing import Price, price_of, takes_schema
from arena_lightning.judges.retry import Fault, RetryPolicy
from arena_lightning.judges.route import Question, Route, RouteClosedError, Tally
from arena_lightning.types import ToolCall, Usage

StructuredOutput = Literal["auto", "always", "never"]
_LIMITS = Limits()
_RETRY = RetryPolicy()
_SECRET_PARAMS = ("api_key", "extra_headers", "headers", "token", "azure_ad_token")
_NO_USAGE = Usage(calls=0)
_OWN_PARAMS = ("model", "messages", "timeout", "num_retries", "max_retries", "stream", "n")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered."""

    text: str
    model: str
    """The model that answered, which may be a fallback."""
    usage: Usage
    """The sum of everything billed for this reply, failed attempts included. An attempt whose
    reply got lost on the way is counted at its upper estimate, since it may be billed."""
    finish_reason: str = "stop"
    """`length` marks a text cut off at `max_tokens`."""
    tool_calls: tuple[ToolCall, ...] = ()
    """What it wants called; only when it was given tools."""


class JudgeClient:
    """Asks one model, and says so when it can't. One event loop at a time."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int = 1024,
        structured_output: StructuredOutput = "auto",
        limits: Limits = _LIMITS,
        retry: RetryPolicy = _RETRY,
        prices: Mapping[str, Price] | None = None,
        budget: Budget | None = None,
        fallback_models: Sequence[str] = (),
        cheaper: "JudgeClient | None" = None,
        extra_params: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up a client; nothing is imported or sent yet.

        Args:
            model: litellm's name, e.g. `gpt-4o`, or `hosted_vllm/<name>` with `api_base` for a
                local server.
            api_base: the server of `model` and of fallbacks with the same provider prefix.
            temperature: of sampling; None leaves it to models that refuse the setting.
            max_tokens: of one reply.
            structured_output: bind replies to the schema where the model takes one (`auto`),
                `always`, or `never`. Schemas are sent as strict: every object closed, every
                property required.
            limits: concurrency, deadlines, circuit breaker; of each model by itself.
            retry: of each model by itself.
            prices: model -> price; before litellm's table.
            budget: what may be spent; None is no bound. One object may serve several clients.
            fallback_models: asked in turn when the one before gave up on a question.
            cheaper: who goes on when the budget is spent and says `cheaper_model`. It has a budget
                of its own, or none.
            extra_params: passed to litellm as they are, e.g. `{"seed": 1}`.

        Raises:
            ConfigError: a setting out of range, a secret among the parameters.
        """
        self.model = model
        self.api_base = api_base
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.structured_output = structured_output
        self.limits = limits
        self.retry = retry
        self.prices = dict(prices or {})
        self.budget = budget
        self.fallback_models = tuple(fallback_models)
        self.cheaper = cheaper
        self.extra_params = dict(extra_params or {})
        self._check()
        self._routes: list[Route] | None = None
        self._step_started_s = time.monotonic()
        self.latencies_s: list[float] = []
        """Of the replies since `start_step`, each with its retries and waits."""

    def _check(self) -> None:
        if self.structured_output not in ("auto", "always", "never"):
            raise ConfigError(
                f"structured_output must be auto, always or never, got "
                f"{self.structured_output!r} (judge client). Choose one."
            )
        if self.max_tokens < 1:
            raise ConfigError(
                f"max_tokens must be at least 1, got {self.max_tokens} (judge client). A verdict "
                "takes some hundred."
            )
        for name in self.extra_params:
            if name in _SECRET_PARAMS or name in _OWN_PARAMS:
                raise ConfigError(
                    f"extra_params must hold no secret and nothing the client sets itself, got "
                    f"{name!r} (judge client). Put keys into the environment, e.g. "
                    "OPENAI_API_KEY."
                )
        if "@" in (self.api_base or ""):
            raise ConfigError(
                "api_base must hold no user or password, got one with an @ (judge client). Put "
                "keys into the environment."
            )
        if self.budget and self.budget.when_spent == "cheaper_model" and self.cheaper is None:
            raise ConfigError(
                "a budget with when_spent cheaper_model must come with a cheaper judge, got none "
                "(judge client). Set `cheaper`, or when_spent to stop."
            )

    def start_step(self) -> None:
        """Begin a training step: its deadline and budget start afresh."""
        self._step_started_s = time.monotonic()
        self.latencies_s = []
        if self.budget is not None:
            self.budget.start_step()
        if self.cheaper is not None:
            self.cheaper.start_step()

    @property
    def routes(self) -> Sequence[Route]:
        """The line to each model, first choice first, with its counts.

        Raises:
            ConfigError: the budget is in USD and a model has no price.
        """
        if self._routes is None:
            self._routes = [self._route(name) for name in (self.model, *self.fallback_models)]
        return self._routes

    def _route(self, model: str) -> Route:
        price = price_of(model, self.prices)
        if price is None and self.budget is not None and self.budget.needs_price:
            raise ConfigError(
                f"a budget in USD must come with the price of every model, got none for {model!r} "
                "(judge client). Set `prices`, or bound calls or tokens instead."
            )
        params: dict[str, Any] = {"max_tokens": self.max_tokens, **self.extra_params}
        if self.temperature is not None:
            params["temperature"] = self.temperature
        if self.api_base and _provider(model) == _provider(self.model):
            params["api_base"] = self.api_base
        with_schema = self.structured_output == "always" or (
            self.structured_output == "auto" and takes_schema(model)
        )
        return Route(
            model=model,
            params=params,
            with_schema=with_schema,
            price=price,
            limits=self.limits,
            retry=self.retry,
            budget=self.budget,
        )

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Reply:
        """Return the model's reply.

        Args:
            messages: chat messages in OpenAI's form: `role`, `content`, and what tools need.
            schema: JSON schema of the reply, for models that can be bound to it.
            tools: what it may ask to call, in OpenAI's form.

        Raises:
            JudgeError: no model gave a reply in time.
            ConfigError: the key or the model is wrong: no question would ever be answered.
            BudgetSpentError: the budget is spent and says `stop`.
            All of them, and a cancellation, say in `.usage` what was billed all the same.
        """
        question = Question.of(messages, schema, tools)
        tally = Tally()
        _ = self.routes  # litellm's import takes seconds, which are no fault of the service
        try:
            reply = await self._ask_in_time(question, tally)
        except BaseException as error:
            # Cut off or refused, too: what was sent may be billed, and the books must know.
            billed = getattr(error, "usage", _NO_USAGE)  # by a cheaper judge
            error.usage = tally.usage(billed)  # type: ignore[attr-defined]
            raise
        self.latencies_s.append(reply.usage.latency_s)
        return reply

    async def _ask_in_time(self, question: Question, tally: Tally) -> Reply:
        try:
            async with asyncio.timeout(self._time_left_s()):
                return await self._ask_in_turn(question, tally)
        except TimeoutError:
            raise self._failure("it took longer than its deadline", tally) from None
        except BudgetSpentError:
            if self.cheaper is None or self.budget is None or self.budget.when_spent == "stop":
                raise
            cheap = await self.cheaper.complete(question.messages, question.schema, question.tools)
            return replace(cheap, usage=tally.usage(cheap.usage))

    def _time_left_s(self) -> float:
        left_s = self.limits.call_deadline_s
        if self.limits.step_deadline_s is not None:
            spent_s = time.monotonic() - self._step_started_s
            left_s = min(left_s, self.limits.step_deadline_s - spent_s)
        return max(0.0, left_s)

    async def _ask_in_turn(self, question: Question, tally: Tally) -> Reply:
        routes = self.routes
        faults: list[str] = []
        for index, route in enumerate(routes):
            try:
                answer = await route.ask(question, tally, can_skip=index + 1 < len(routes))
            except RouteClosedError as closed:
                faults.append(f"{route.model}: {closed}")
                continue
            if not isinstance(answer, Fault):
                return Reply(
                    answer.text,
                    route.model,
                    tally.usage(),
                    answer.finish_reason,
                    answer.tool_calls,
                )
            faults.append(f"{route.model}: {answer.kind}, {answer.text}")
            if answer.kind == "wrong_setup":
                # Nothing is chained here: litellm's errors quote headers and keys.
                raise ConfigError(
                    f"the judge's model, key and quota must be right, got {answer.text} "
                    f"(HTTP {answer.status}, {route.model}). Check the model's name, api_base and "
                    "the key in the environment."
                )
        raise self._failure("; ".join(faults), tally)

    def _failure(self, text: str, tally: Tally) -> JudgeError:
        return JudgeError(
            f"the judge must reply, got {text} ({self.model}, after {tally.calls} calls). See the "
            "limits and retries of the judge client, and its service."
        )


def _provider(model: str) -> str:
    return model.split("/", 1)[0] if "/" in model else ""
