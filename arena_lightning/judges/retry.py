"""What went wrong with an attempt, whether another one may help, and how long to wait for it.

    litellm's exception -> Fault -> (retried?) -> delay with full jitter, or what retry-after says

Attempts that reached the provider and whose reply was lost are told from those that were refused
or never sent: the first may have been billed. This file knows no litellm class by import and
sends nothing; texts of faults are scrubbed of keys, since providers quote them in errors.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import numpy as np

from arena_lightning.errors import ConfigError

FaultKind = Literal[
    "unsent",  # no connection: nothing reached the server
    "lost",  # the connection broke after the request was sent
    "timeout",
    "rate_limited",
    "server",  # 5xx
    "unreadable",  # the body is no JSON or no completion
    "empty",  # a completion without a choice
    "refused",  # 4xx: this question will never be answered
    "wrong_setup",  # wrong key, model or quota: no question will ever be answered
]
_RETRIED = ("unsent", "lost", "timeout", "rate_limited", "server", "unreadable", "empty")
_MAYBE_BILLED = ("lost", "timeout", "unreadable")
_UNSENT = ("ConnectError", "ConnectTimeout", "ClientConnectorError", "ConnectionRefusedError")
_UNSENT += ("ConnectionTimeoutError", "PoolTimeout")
_BROKEN = ("ReadError", "WriteError", "RemoteProtocolError", "ServerDisconnectedError")
_BROKEN += ("ClientOSError", "ClientPayloadError", "ConnectionResetError", "APIConnectionError")
_UNREADABLE = ("JSONDecodeError", "APIResponseValidationError")
_WRONG_SETUP_TEXT = ("insufficient_quota", "LLM Provider NOT provided", "Missing credentials")
_MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an attempt gave no reply."""

    kind: FaultKind
    text: str
    """For people: scrubbed and short."""
    status: int | None = None
    """The HTTP status, None when there was none."""
    retry_after_s: float | None = None
    """How long the server asks to wait."""

    @property
    def is_retried(self) -> bool:
        return self.kind in _RETRIED

    @property
    def may_be_billed(self) -> bool:
        """Whether the provider may have worked on it, so that its full estimate is booked."""
        return self.kind in _MAYBE_BILLED


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently one question is asked again of one model."""

    max_attempts: int = 8
    """Attempts per model, the first included."""
    base_delay_s: float = 0.5
    """Upper end of the first wait; it doubles with each attempt."""
    max_delay_s: float = 30.0
    """Upper end of any wait of ours."""
    max_retry_after_s: float = 120.0
    """The longest wait a server may ask for; longer wishes are cut to it."""
    seed: int = 0
    """Root seed of the jitter."""

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ConfigError(
                f"max_attempts must be at least 1, got {self.max_attempts} (judge retry policy). "
                "The first attempt counts."
            )
        for name in ("base_delay_s", "max_delay_s", "max_retry_after_s"):
            if not getattr(self, name) >= 0:
                raise ConfigError(
                    f"{name} must be at least 0 s, got {getattr(self, name)} (judge retry "
                    "policy). Give seconds."
                )

    def delay_s(self, attempt: int, retry_after_s: float | None, rng: np.random.Generator) -> float:
        """Return the wait before the next attempt, in seconds.

        Uniform on [0, min(max_delay_s, base_delay_s * 2 ** attempt)] ("full jitter"), so that calls
        that failed together don't come back together; on top of what the server asks for.

        Args:
            attempt: the one that failed, from 0.
            retry_after_s: the server's wish, None without one.
            rng: of the jitter.
        """
        ceiling = min(self.max_delay_s, self.base_delay_s * 2.0 ** min(attempt, 60))
        asked = min(retry_after_s or 0.0, self.max_retry_after_s)
        return asked + float(rng.uniform(0.0, ceiling))


def fault_of(error: BaseException) -> Fault | None:
    """Return what an exception of an attempt means; None for one that is no fault of a service."""
    names = {type(link).__name__ for link in _chain(error)}
    status = getattr(error, "status_code", None)
    text = scrubbed(str(error))
    if isinstance(error, TimeoutError):
        return Fault("timeout", "no complete reply in time")
    if not isinstance(status, int):
        return None
    if names & set(_UNSENT):
        return Fault("unsent", text)
    if any(mark in text for mark in _WRONG_SETUP_TEXT):
        return Fault("wrong_setup", text, status)
    if status == 408 or "Timeout" in names or "APITimeoutError" in names:
        return Fault("timeout", text, status)
    if "HTTPStatusError" not in names and names & set(_BROKEN):
        return Fault("lost", text)
    if names & set(_UNREADABLE) or status < 400:
        return Fault("unreadable", text, status)
    if status == 429:
        return Fault("rate_limited", text, status, retry_after_s(_headers_of(error)))
    if status >= 500:
        return Fault("server", text, status, retry_after_s(_headers_of(error)))
    return Fault("wrong_setup" if status in (401, 404) else "refused", text, status)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _headers_of(error: BaseException) -> Mapping[str, str]:
    """Return the reply's headers; litellm keeps them in one of two places."""
    for headers in (
        getattr(error, "litellm_response_headers", None),
        getattr(getattr(error, "response", None), "headers", None),
    ):
        if headers:
            return {str(key).lower(): str(value) for key, value in dict(headers).items()}
    return {}


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return how long a reply asks to wait, in seconds; None when it says nothing readable.

    Reads `retry-after-ms`, and `retry-after` as seconds or as an HTTP date (RFC 9110, 10.2.3).
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if 0.0 <= wait_s < float("inf"):
            return wait_s
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRET_TEXTS = re.compile(
    r"(?P<mark>bearer\s+|authorization['\"]?\s*[:=]\s*['\"]?(?:bearer\s+|basic\s+)?|"
    r"api[-_ ]?key(?: provided)?['\"]?\s*[:=]\s*['\"]?|://[^/\s@:]*:)(?P<secret>[^\s'\",}@]+)|\b(?:sk|pk|gsk|hf|key)[-_]"
    r"[\w*.-]{6,}",
    re.IGNORECASE,
)


def scrubbed(text: str) -> str:
    """Return a text without keys, on one line and cut short.

    Taken out: values of environment variables named like secrets, and what follows or looks like
    the usual marks of a key.
    """
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRET_NAMES.search(name):
            text = text.replace(value, "***")
    text = _SECRET_TEXTS.sub(lambda match: f"{match['mark'] or ''}***", text)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
