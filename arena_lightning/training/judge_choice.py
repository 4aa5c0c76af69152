"""Which judge a run uses, chosen in a few words of YAML: the offline rubric, an LLM, or several.

    JudgeChoice -> RunJudge (judge, and what it needs at the run's and each step's start)

Keys of LLM services come from the environment only; nothing here can hold one.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from arena_lightning.errors import ConfigError
from arena_lightning.judges.budget import Budget
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.llm import LLMJudge
from arena_lightning.judges.panel import PanelJudge, name_apart
from arena_lightning.judges.pricing import Price
from arena_lightning.judges.simulated import NoiseConfig, NoisyJudge
from arena_lightning.protocols import Judge, Task
from arena_lightning.tasks.travel.judge import TravelJudge
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.types import Prompt

LEDGER = "verdicts.sqlite"


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


class RunJudge:
    """A run's judge, with its ledger and budget.

    Attributes:
        judge: who compares.
        clients: the lines to the models.
        needs_machine_readable_prompts: whether prompts must carry `needs`.
    """

    def __init__(self, choice: JudgeChoice, task: Task, where: str = "arena.judge") -> None:
        """Build the judge; nothing is sent and no file is opened yet.

        Args:
            choice: which judge.
            task: what it judges.
            where: the section that chose it, for messages.

        Raises:
            ConfigError: the travel rubric is asked to judge another task; an LLM without a model;
                a setting of the client or rubric out of range.
        """
        self.judge: Judge
        self.needs_machine_readable_prompts = choice.kind == "travel"
        self._members: list[tuple[JudgeClient, LLMJudge]] = []
        self._ledgers: list[Ledger] = []
        self._step_started_s = time.monotonic()
        self._busy_before_s = 0.0
        if choice.kind == "llm":
            self.judge = self._add_llm(choice.llm, f"{where}.llm")
        elif choice.kind == "panel":
            members = [
                self._add_llm(member, f"{where}.panel.members[{number}]")
                for number, member in enumerate(choice.panel.members)
            ]
            name_apart(members)
            self.judge = PanelJudge(members, choice.panel.rule, choice.panel.min_judges)
        elif isinstance(task, TravelTask):
            self.judge = NoisyJudge(TravelJudge(task.world), choice.seed, choice.noise)
        else:
            raise ConfigError(
                f"the travel rubric judges the travel task only, got {type(task).__name__} "
                f"({where}.kind). Configure an LLM judge: kind: llm."
            )

    def _add_llm(self, choice: LLMChoice, where: str) -> LLMJudge:
        client = _client(choice, where)
        judge = LLMJudge(
            client,
            choice.rubric,
            process_aware=choice.process_aware,
            observations=choice.observations,
        )
        self._members.append((client, judge))
        return judge

    @property
    def clients(self) -> list[JudgeClient]:
        """The lines to the models, [] for offline judges."""
        return [client for client, _ in self._members]

    def require_judgeable(self, prompts: Sequence[Prompt], where: str) -> None:
        """Refuse prompts that the offline rubric can't judge.

        Raises:
            ConfigError: a prompt without machine-readable needs.
        """
        if not self.needs_machine_readable_prompts:
            return
        blind = next((prompt for prompt in prompts if "items" not in prompt.needs), None)
        if blind is not None:
            section = where.split(".", 1)[0]
            keys = {"data": "arena.judge.kind: llm", "evaluation": "evaluation.judges, kind: llm"}
            raise ConfigError(
                f"the offline travel rubric needs each prompt's machine-readable `needs`, got none "
                f"for {blind.prompt_id!r} ({where}). Queries of your own want an LLM judge: "
                f"{keys[section]}."
            )

    def open(self, run_dir: Path, name: str = LEDGER, is_spent: bool = True) -> None:
        """Open the run's ledgers, one a model: what they hold is never asked again.

        Args:
            run_dir: where they are kept.
            name: of the first file.
            is_spent: whether what they hold counts as spent: a run goes on with its budget.

        Raises:
            RecordError: a ledger can't be opened.
        """
        for number, (client, judge) in enumerate(self._members):
            run_dir.mkdir(parents=True, exist_ok=True)
            path = run_dir / name
            ledger = Ledger(path.with_stem(f"{path.stem}-{number + 1}") if number else path)
            self._ledgers.append(ledger)
            judge.asker.ledger = ledger
            if client.budget is not None and is_spent:
                totals = ledger.totals()
                tokens = totals.prompt_tokens + totals.completion_tokens
                client.budget.restore(totals.calls, tokens, totals.cost_usd)

    def start_step(self) -> None:
        """Begin a step: its deadline and budget start afresh."""
        self._step_started_s, self._busy_before_s = time.monotonic(), self._busy_s
        for client in self.clients:
            client.start_step()

    @property
    def _busy_s(self) -> float:
        return sum(route.busy_s for client in self.clients for route in client.routes)

    def metrics(self) -> dict[str, float]:
        """Return the step's latencies, calls in flight on average, and the run's spending; {} for
        offline judges.
        """
        found: dict[str, float] = {}
        latencies = [latency for client in self.clients for latency in client.latencies_s]
        if latencies:
            p50, p95 = np.quantile(latencies, [0.5, 0.95])
            found |= {"arena/judge_p50_s": float(p50), "arena/judge_p95_s": float(p95)}
            passed_s = time.monotonic() - self._step_started_s
            found["arena/judge_concurrency"] = (self._busy_s - self._busy_before_s) / passed_s
        budgets = [client.budget for client in self.clients if client.budget is not None]
        if budgets:
            found |= {
                "arena/run_judge_calls": float(sum(b.spent.calls for b in budgets)),
                "arena/run_judge_usd": float(sum(b.spent.cost_usd for b in budgets)),
            }
        return found

    def close(self) -> None:
        """Close the ledgers."""
        for ledger in self._ledgers:
            ledger.close()
        self._ledgers = []


def _client(choice: LLMChoice, where: str) -> JudgeClient:
    if not choice.model:
        raise ConfigError(
            f"an LLM judge must have a model, got none ({where}.model). Name one as litellm "
            "does, e.g. openai/gpt-4o; its key comes from the environment."
        )
    if choice.when_spent == "cheaper_model" and not choice.cheaper_model:
        raise ConfigError(
            f"a budget that goes on with a cheaper model must name it, got none "
            f"({where}.cheaper_model). Name one, or set when_spent to stop."
        )
    limits = Limits(
        max_concurrency=choice.max_concurrency,
        call_deadline_s=choice.call_deadline_s,
        step_deadline_s=choice.step_deadline_s,
    )
    budget = Budget(
        max_usd=choice.max_usd,
        max_calls=choice.max_calls,
        max_tokens=choice.max_tokens_total,
        max_usd_per_step=choice.max_usd_per_step,
        max_calls_per_step=choice.max_calls_per_step,
        when_spent=choice.when_spent,
    )
    shared: dict[str, Any] = {
        "temperature": choice.temperature,
        "max_tokens": choice.max_tokens,
        "structured_output": choice.structured_output,
        "limits": limits,
    }
    cheaper = None
    if choice.cheaper_model:
        cheaper = JudgeClient(choice.cheaper_model, api_base=choice.cheaper_api_base, **shared)
    return JudgeClient(
        choice.model,
        api_base=choice.api_base,
        prices=choice.prices,
        budget=budget,
        fallback_models=choice.fallback_models,
        cheaper=cheaper,
        **shared,
    )
