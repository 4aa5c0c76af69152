"""A run's judge: made of a `JudgeChoice`, with its ledgers, budgets and metrics.

JudgeChoice -> RunJudge -> judge, and what it needs at the run's and each step's start
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from arena_lightning.errors import ConfigError
from arena_lightning.judges.budget import Budget
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.limits import Limits
from arena_lightning.judges.listwise import ListwiseJudge
from arena_lightning.judges.llm import LLMJudge
from arena_lightning.judges.panel import PanelJudge, name_apart
from arena_lightning.judges.simulated import NoisyJudge
from arena_lightning.protocols import Task
from arena_lightning.tasks.travel.judge import TravelJudge
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.training.judge_choice import JudgeChoice, LLMChoice
from arena_lightning.types import Prompt

LEDGER = "verdicts.sqlite"


class RunJudge:
    """A run's judge, with its ledger and budget.

    Attributes:
        judge: who compares; a `ListwiseJudge` for listwise rankings.
        clients: the lines to the models.
        needs_machine_readable_prompts: whether prompts must carry `needs`.
    """

    def __init__(
        self,
        choice: JudgeChoice,
        task: Task,
        where: str = "arena.judge",
        is_listwise: bool = False,
    ) -> None:
        """Build the judge; nothing is sent and no file is opened yet.

        Args:
            choice: which judge.
            task: what it judges.
            where: the section that chose it, for messages.
            is_listwise: one that scores whole groups; a single LLM only.

        Raises:
            ConfigError: the travel rubric is asked to judge another task; an LLM without a model;
                a setting of the client or rubric out of range.
        """
        self.judge: Any
        self.needs_machine_readable_prompts = choice.kind == "travel"
        self._members: list[tuple[JudgeClient, Any]] = []
        self._ledgers: list[Ledger] = []
        self._step_started_s = time.monotonic()
        self._busy_before_s = 0.0
        if is_listwise and choice.kind != "llm":
            raise ConfigError(
                f"a listwise ranking must have an LLM judge, got kind {choice.kind!r} "
                f"({where}.kind). Set kind: llm, or arena.ranking to pointwise."
            )
        if choice.kind == "llm":
            cls = ListwiseJudge if is_listwise else LLMJudge
            self.judge = self._add_llm(choice.llm, f"{where}.llm", cls)
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

    def _add_llm(self, choice: LLMChoice, where: str, cls: type = LLMJudge) -> Any:
        client = _client(choice, where)
        judge = cls(
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
