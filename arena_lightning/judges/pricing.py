"""The one door to litellm, and what its models cost.

`load_litellm` imports it late (seconds) and quiet: no telemetry, no price list fetched, no advice
printed. Prices come from litellm's table and can be overridden per model; a model that neither
knows has no price (None), which is never taken for 0. Nothing is sent from here.
"""

import functools
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from arena_lightning.errors import ConfigError

_UNLISTED: set[str] = set()
"""Models that litellm's own table lacks; what it says on them afterwards comes from us."""
_MESSAGE_OVERHEAD_TOKENS = 16
"""Upper bound of what a chat template adds to a message: role, turn marks, line ends."""
_SCHEMA_PROVIDERS = ("hosted_vllm",)
"""Servers that take a JSON schema whatever the model; litellm's table lists models only."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    prompt_usd_per_million: float
    completion_usd_per_million: float

    def __post_init__(self) -> None:
        if not (self.prompt_usd_per_million >= 0 and self.completion_usd_per_million >= 0):
            raise ConfigError(
                f"a price must be at least 0 USD per million tokens, got {self} (judge prices). "
                "Mend it, or leave it out when it is not known."
            )

    def cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of one call in USD."""
        return (
            prompt_tokens * self.prompt_usd_per_million
            + completion_tokens * self.completion_usd_per_million
        ) / 1e6


@functools.cache
def load_litellm() -> ModuleType:
    """Import litellm once, without what it would send, fetch or print by itself."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with warnings.catch_warnings():
        # Its own deprecated calls are not ours to mend.
        warnings.simplefilter("ignore")
        import litellm
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    # A call cancelled while a thread of litellm still prepares it leaves a coroutine behind.
    warnings.filterwarnings("ignore", "coroutine '.*async_completion' was never awaited")
    return litellm


def price_of(model: str, prices: Mapping[str, Price] | None = None) -> Price | None:
    """Return a model's price: ours, else litellm's, else None."""
    listed = _listed_price(model)
    return prices[model] if prices and model in prices else listed


def _listed_price(model: str) -> Price | None:
    """Return the price in litellm's own table."""
    if model in _UNLISTED:
        return None
    try:
        info = load_litellm().get_model_info(model)
    except Exception:  # litellm raises bare Exception for a model that is not in its table
        if "/" in model:
            _list_for_speed(model)
        return None
    prompt, completion = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    if prompt is None or completion is None:
        return None
    return Price(prompt * 1e6, completion * 1e6)


def _list_for_speed(model: str) -> None:
    """Put a model that litellm does not know into its table, unpriced for us all the same.

    For each reply litellm looks for the model's price by itself. Where it finds none it goes
    through rules of hundreds of patterns, several times: more than half of its time per call.
    """
    _UNLISTED.add(model)
    logger = logging.getLogger("LiteLLM")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it warns that the model is not in its table: so we know
    try:
        entry = {"litellm_provider": model.split("/", 1)[0], "mode": "chat"}
        free = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        load_litellm().register_model({model: entry | free})
    finally:
        logger.setLevel(level)


def takes_schema(model: str) -> bool:
    """Return whether replies of a model can be bound to a JSON schema."""
    if model.split("/", 1)[0] in _SCHEMA_PROVIDERS:
        return True
    return bool(load_litellm().supports_response_schema(model))


def most_prompt_tokens(messages: Sequence[Mapping[str, str]], schema: Any = None) -> int:
    """Return an upper bound on a prompt's tokens.

    A byte-level tokenizer makes no more tokens than there are UTF-8 bytes; real counts are about a
    quarter of it in English. Used for claims on the budget only, which are settled by real counts.
    """
    texts = [text for message in messages for text in message.values()]
    size = sum(len(str(text).encode("utf-8", "surrogatepass")) for text in texts)
    schema_size = len(str(schema).encode()) if schema else 0
    return size + schema_size + _MESSAGE_OVERHEAD_TOKENS * (len(messages) + 1)
