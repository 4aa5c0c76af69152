"""What a person looks at in W&B: the best and the worst trajectory of each group of a step."""

from collections.abc import Sequence

from lightning.pytorch.loggers import Logger

from arena_lightning.arena import ArenaResult
from arena_lightning.types import Group, Trajectory

COLUMNS = ["step", "subtask", "query", "place", "rank", "judge score", "finish", "trajectory"]


def log_sample_table(
    loggers: Sequence[Logger], step: int, groups: Sequence[Group], results: Sequence[ArenaResult]
) -> None:
    """Log a table to every logger that has tables; each step's table has a key of its own."""
    able = [logger for logger in loggers if hasattr(logger, "log_table")]
    if not able:
        return
    rows = []
    for group, result in zip(groups, results, strict=True):
        ranks, scores = result.standings.ranks, result.standings.scores
        for place, index in (("best", int(ranks.argmin())), ("worst", int(ranks.argmax()))):
            trajectory = group.trajectories[index]
            rows.append(
                [
                    step,
                    group.prompt.subtask,
                    group.prompt.query,
                    place,
                    float(ranks[index]),
                    float(scores[index]),
                    trajectory.finish,
                    as_text(trajectory),
                ]
            )
    for logger in able:
        logger.log_table(key=f"samples/step_{step:06d}", columns=COLUMNS, data=rows)


def as_text(trajectory: Trajectory) -> str:
    """Return a trajectory for reading: calls, observations, answer."""
    lines = []
    for message in trajectory.messages:
        if message.reasoning:
            lines.append(f"({message.reasoning})")
        for call in message.tool_calls:
            arguments = ", ".join(f"{k}={v}" for k, v in call.arguments.items())
            lines.append(f"-> {call.name}({arguments})")
        if message.content:
            lines.append(
                f"[{message.name}] {message.content}" if message.role == "tool" else message.content
            )
    return "\n".join(lines)
