"""Retries: which faults, how long to wait, and that no key gets into a text."""

from datetime import UTC, datetime

import numpy as np
import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.judges.retry import RetryPolicy, fault_of, retry_after_s, scrubbed

NOW = datetime(2026, 1, 2, 3, 4, 0, tzinfo=UTC)


class FixedDraw:
    """A generator that always draws the same share of the range."""

    def __init__(self, share):
        self.share = share

    def uniform(self, low, high):
        return low + self.share * (high - low)


class HttpError(Exception):
    def __init__(self, status, headers=None, text="told to fail"):
        super().__init__(text)
        self.status_code = status
        self.litellm_response_headers = headers


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:03:30 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, wait_s):
    assert retry_after_s(headers, NOW) == wait_s


def test_the_ceiling_of_a_wait_doubles_up_to_the_cap():
    policy = RetryPolicy(base_delay_s=0.5, max_delay_s=3.0)
    waits = [policy.delay_s(attempt, None, FixedDraw(1.0)) for attempt in (0, 1, 2, 3, 500)]
    assert waits == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_jitter_fills_the_whole_range_below_the_ceiling():
    policy = RetryPolicy(base_delay_s=1.0)
    rng = np.random.default_rng(0)
    waits = [policy.delay_s(0, None, rng) for _ in range(2000)]
    # Uniform on [0, 1]: mean 1/2, standard error 0.0065.
    assert np.mean(waits) == pytest.approx(0.5, abs=0.03)
    assert min(waits) < 0.01
    assert max(waits) > 0.99


def test_the_servers_wish_comes_on_top_and_is_cut_to_its_cap():
    policy = RetryPolicy(base_delay_s=1.0, max_retry_after_s=10.0)
    assert policy.delay_s(0, 5.0, FixedDraw(0.25)) == 5.25
    assert policy.delay_s(0, 3600.0, FixedDraw(0.0)) == 10.0


@pytest.mark.parametrize(
    ("status", "kind", "is_retried"),
    [
        (429, "rate_limited", True),
        (500, "server", True),
        (503, "server", True),
        (529, "server", True),
        (408, "timeout", True),
        (400, "refused", False),
        (403, "refused", False),
        (422, "refused", False),
        (401, "wrong_setup", False),
        (404, "wrong_setup", False),
    ],
)
def test_a_status_decides_whether_another_attempt_helps(status, kind, is_retried):
    fault = fault_of(HttpError(status))
    assert (fault.kind, fault.is_retried, fault.status) == (kind, is_retried, status)


def test_a_quota_that_is_used_up_is_no_rate_limit():
    assert fault_of(HttpError(429, text="code: insufficient_quota")).kind == "wrong_setup"


def test_the_wish_of_a_429_is_found_in_litellms_error():
    assert fault_of(HttpError(429, {"Retry-After": "4"})).retry_after_s == 4.0


def test_a_bug_is_no_fault_of_the_service():
    assert fault_of(TypeError("unexpected keyword")) is None
    assert fault_of(TimeoutError()).kind == "timeout"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Incorrect API key provided: sk-abcdefgh12345", "abcdefgh12345"),
        ("headers {'Authorization': 'Bearer abc.def-ghi'}", "abc.def-ghi"),
        ("authorization: verysecret", "verysecret"),
        ("https://user:pa55word@host/v1", "pa55word"),
        ("api_key=qwertyuiop", "qwertyuiop"),
        ("got my-own-key-value in the url", "my-own-key-value"),
    ],
)
def test_no_key_stays_in_a_text(monkeypatch, text, secret):
    monkeypatch.setenv("JUDGE_API_KEY", "my-own-key-value")
    assert secret not in scrubbed(text)
    assert "***" in scrubbed(text)


def test_a_text_without_keys_stays_as_it_is_but_short_and_on_one_line():
    assert scrubbed("model gpt-4o\n was not found") == "model gpt-4o was not found"
    assert len(scrubbed("word " * 1000)) < 320


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_attempts": 0}, "max_attempts must be at least 1, got 0"),
        ({"base_delay_s": -1.0}, "base_delay_s must be at least 0 s, got -1.0"),
    ],
)
def test_bad_policies_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        RetryPolicy(**arguments)
