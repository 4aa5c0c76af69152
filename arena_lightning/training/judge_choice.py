"""Which judge a run uses, chosen in a few words of YAML."""

from dataclasses import dataclass, field
from typing import Literal

from arena_lightning.errors import ConfigError
from arena_lightning.judges.simulated import NoiseConfig, NoisyJudge
from arena_lightning.protocols import Judge, Task
from arena_lightning.tasks.travel.judge import TravelJudge
from arena_lightning.tasks.travel.task import TravelTask


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The offline travel rubric, with simulated noise or without."""

    kind: Literal["travel"] = "travel"
    """"travel": the offline travel rubric (a program, not an LLM)."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    """How the rubric's verdicts err; `enabled: false` switches it off."""
    seed: int = 0
    """Another seed is another judge of the same quality."""


def build_judge(choice: JudgeChoice, task: Task) -> Judge:
    """Return the judge of a run.

    Raises:
        ConfigError: the travel rubric is asked to judge another task.
    """
    if not isinstance(task, TravelTask):
        raise ConfigError(
            f"the travel rubric judges the travel task only, got {type(task).__name__} "
            "(arena.judge.kind). Configure an LLM judge."
        )
    return NoisyJudge(TravelJudge(task.world), choice.seed, choice.noise)
