"""The judge's line to a model: one question in, one reply out, over `litellm.acompletion`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from arena_lightning.judges.budget import Budget
from arena_lightning.types import Usage

StructuredOutput = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered."""

    text: str
    model: str
    """The model that answered, which may be a fallback."""
    usage: Usage
    """The sum of everything billed for this reply, failed attempts included."""
    finish_reason: str = "stop"


class JudgeClient:
    """Asks one model, and says so when it can't."""

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        temperature: float = 0.0,
        max_tokens: int = 1024,
        structured_output: StructuredOutput = "auto",
        budget: Budget | None = None,
        fallback_models: Sequence[str] = (),
    ) -> None:
        self.model = model
        self.api_base = api_base
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.structured_output = structured_output
        self.budget = budget
        self.fallback_models = tuple(fallback_models)

    async def complete(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Return the model's reply; raises `JudgeError` with `.usage` (what was billed)."""
        raise NotImplementedError
