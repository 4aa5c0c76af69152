"""Which judge a run uses, in a few words of YAML: the offline rubric, an LLM, or several.

Keys of LLM services come from the environment only; nothing here can hold one. `run_judge.py` makes
a judge of a choice.
"""

from dataclasses import dataclass, field
from typing import Literal

from arena_lightning.judges.pricing import Price
from arena_lightning.judges.simulated import NoiseConfig


# No slots on these: the YAML parser merges nested settings through __dict__.
@dataclass(frozen=True)
class LLMChoice:
    """An LLM judge. One line is enough: `model`."""

    model: str = ""
    """litellm's name, e.g. "openai/gpt-4o", "hosted_vllm/<name>". Its key comes from the
    environment, e.g. OPENAI_API_KEY."""
    api_base: str | None = None
    """URL of a server of your own, e.g. http://127.0.0.1:8000/v1."""
    fallback_models: list[str] = field(default_factory=list)
    """Asked in turn when the model gave up on a question."""
    rubric: str = "travel"
    """A shipped rubric (travel, deepresearch, writing) or a YAML file's path."""
    process_aware: bool = True
    """Judge the steps beside the answer."""
    observations: bool = True
    """Show what the tools returned; the paper: False."""
    temperature: float | None = 0.0
    max_tokens: int = 1024
    """Tokens of one reply."""
    structured_output: Literal["auto", "always", "never"] = "auto"
    max_concurrency: int = 64
    """Calls in flight at most; fewer while the service says 429."""
    call_deadline_s: float = 900.0
    step_deadline_s: float | None = None
    max_usd: float | None = None
    """Budget of the run; None is none. It is never exceeded, and a spent one stops the run."""
    max_calls: int | None = None
    max_tokens_total: int | None = None
    max_usd_per_step: float | None = None
    max_calls_per_step: int | None = None
    when_spent: Literal["stop", "cheaper_model"] = "stop"
    """What a spent budget does: stop the run, resumable, or go on with `cheaper_model`."""
    cheaper_model: str = ""
    """Asked once the budget is spent; it has no budget itself."""
    cheaper_api_base: str | None = None
    usd_per_million_prompt_tokens: float | None = None
    """Price of a model that litellm's table lacks, e.g. a local one: 0."""
    usd_per_million_completion_tokens: float | None = None

    @property
    def prices(self) -> dict[str, Price]:
        """Return the price given here, {} when litellm's table is to be asked."""
        given = (self.usd_per_million_prompt_tokens, self.usd_per_million_completion_tokens)
        if given == (None, None):
            return {}
        return {self.model: Price(given[0] or 0.0, given[1] or 0.0)}


@dataclass(frozen=True)
class PanelChoice:
    """Several LLM judges of one verdict, best of different families."""

    members: list[LLMChoice] = field(default_factory=list)
    """Each with limits and a budget of its own."""
    rule: Literal["mean", "majority"] = "mean"
    """Mean of scores, or majority of votes."""
    min_judges: int | None = None
    """Verdicts needed for a match to count; None needs all."""


@dataclass(frozen=True)
class JudgeChoice:
    """The offline travel rubric, with simulated noise or without; an LLM; or a panel of them."""

    kind: Literal["travel", "llm", "panel"] = "travel"
    """"travel": the offline travel rubric (a program, not an LLM). "llm": see `llm`. "panel": see
    `panel`."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    """How the rubric's verdicts err; `enabled: false` switches it off."""
    seed: int = 0
    """Of the rubric's noise: another seed is another judge of the same quality."""
    llm: LLMChoice = field(default_factory=LLMChoice)
    """The model behind an LLM judge."""
    panel: PanelChoice = field(default_factory=PanelChoice)
    """The models behind a panel."""


NOISE_FREE = JudgeChoice(noise=NoiseConfig(enabled=False))
"""The travel rubric as it is, for evaluations."""
