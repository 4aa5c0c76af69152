"""A judge that waits, fails and errs on command, and groups for it to judge."""

import asyncio

from arena_lightning.errors import JudgeError
from arena_lightning.rng import generator_for
from arena_lightning.types import Group, Message, Prompt, Trajectory, Usage, Verdict

LATENCY_S = 0.002


class FakeJudge:
    """Scores `quality` of (prompt_id, index), plus `bias` for the first; fails and waits on order.

    Waits a little so that calls overlap, and counts how many do.
    """

    name = "fake"

    def __init__(self, bias=0.0, fails=(), raises=None, latency_s=LATENCY_S):
        self.calls = []
        self.bias = bias
        self.fails = set(fails)
        self.raises = raises
        self.latency_s = latency_s
        self.in_flight = self.most_in_flight = self.cancelled = 0

    async def compare(self, prompt, first, second):
        self.calls.append((prompt.prompt_id, first.index, second.index))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
        if self.raises and len(self.calls) >= self.raises:
            raise ZeroDivisionError("a bug in the judge")
        if (prompt.prompt_id, first.index, second.index) in self.fails:
            raise JudgeError("no usable verdict")
        return Verdict(
            quality(prompt, first) + self.bias,
            quality(prompt, second),
            {"clarity": quality(prompt, first)},
            {"clarity": quality(prompt, second)},
            Usage(calls=1, prompt_tokens=10, completion_tokens=2, cost_usd=0.5),
            judge=self.name,
        )


def quality(prompt, trajectory) -> float:
    return float(generator_for(0, f"test/{prompt.prompt_id}", trajectory.index).random() * 10)


def group_of(size, name="g0", texts=None) -> Group:
    texts = texts or [f"answer {index}" for index in range(size)]
    return Group(
        Prompt(name, "query"),
        tuple(
            Trajectory(name, (Message("assistant", texts[index]),), index=index)
            for index in range(size)
        ),
    )


def run(arena, *groups, step=0):
    return asyncio.run(arena.run(list(groups), step))
