"""Clients that answer without a network, for tests of judges.

`ScriptedClient` plays replies in turn; `CountingModel` is a symmetric model: it scores whatever is
shown by how often a word stands in it, so that what it should say can be worked out by hand.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from arena_lightning.errors import JudgeError
from arena_lightning.judges.client import Reply
from arena_lightning.types import Usage

CALL = Usage(calls=1, prompt_tokens=100, completion_tokens=10, cost_usd=0.5, latency_s=1.0)


class ScriptedClient:
    """Answers with texts in turn; an exception among them is raised, with a billed call."""

    def __init__(self, *replies, model="fake/model", finish_reason="stop"):
        self.model = model
        self.replies = list(replies)
        self.finish_reason = finish_reason
        self.asked = []

    async def complete(self, messages, schema=None):
        self.asked.append((list(messages), schema))
        reply = self.replies.pop(0)
        await asyncio.sleep(0)
        if isinstance(reply, JudgeError):
            reply.usage = CALL
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply, self.model, CALL, self.finish_reason)


class CountingModel:
    """Gives every dimension the number of times that `good` stands in what is shown, 10 at most."""

    def __init__(self, model: str = "fake/counting") -> None:
        self.model = model
        self.num_calls = 0

    async def complete(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None
    ) -> Reply:
        self.num_calls += 1
        await asyncio.sleep(0)
        sides = schema["properties"]["scores"]["properties"]
        user = messages[1]["content"]
        scores = {}
        for side, shape in sides.items():
            label = re.escape(side.upper())
            (shown,) = re.findall(rf"BEGIN {label}>>>\n(.*?)\n<<<", user, re.DOTALL)
            scores[side] = dict.fromkeys(shape["properties"], min(10, shown.count("good")))
        return Reply(json.dumps({"scores": scores}), self.model, CALL)


def reply_of(**scores):
    """Return a reply's text: side -> {dimension: points}."""
    return json.dumps({"analysis": dict.fromkeys(scores, "seen"), "scores": scores})
