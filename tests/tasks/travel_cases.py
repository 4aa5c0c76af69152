"""A small travel task with its judge, and ways to play and change trajectories of it."""

from dataclasses import replace
from functools import cache

from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.tasks.travel.judge import TravelJudge
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.types import Trajectory

FULL = Diligence.full()


@cache
def world(language="en"):
    task = TravelTask(language=language)
    return task, TravelJudge(task.world), tuple(task.prompts("train", count=40))


def played(prompt, diligence=FULL, language="en"):
    return Trajectory(prompt.prompt_id, world(language)[0].expert_messages(prompt, diligence))


def rated(prompt, trajectory, language="en"):
    return world(language)[1].rate(prompt, trajectory)


def answering(trajectory, answer):
    last = replace(trajectory.messages[-1], content=answer)
    return replace(trajectory, messages=(*trajectory.messages[:-1], last))


def of_subtask(subtask, language="en"):
    return next(prompt for prompt in world(language)[2] if prompt.subtask == subtask)


def lines_changed(trajectory, change):
    return answering(trajectory, "\n".join(map(change, trajectory.answer.splitlines())))
