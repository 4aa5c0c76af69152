"""See it learn: win rates on held-out queries, judged without noise, every few steps.

The candidate is the current policy; the baselines are the trajectories of the policy that the run
started from (drawn once, kept in the run folder) and the expert's references. Win rates are over
non-tied cases (paper, section 5.3), with a bootstrap interval over prompts.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from arena_lightning.analysis.winrate import paired_case, report_metrics, win_rate_report
from arena_lightning.errors import ConfigError
from arena_lightning.protocols import Judge, Score
from arena_lightning.tasks.travel.judge import TravelJudge
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.training.arena_callback import ArenaCallback
from arena_lightning.training.records import (
    prompt_to_record,
    read_jsonl,
    trajectory_from_record,
    trajectory_to_record,
    write_jsonl,
)
from arena_lightning.types import Prompt, Trajectory

TIE_MARGIN = 1e-9
BASELINE_STREAM = "evaluation/baseline"
CANDIDATE_STREAM = "evaluation/candidate"


class EvaluationCallback(Callback):
    """Validates the policy on held-out travel queries.

    Args:
        every_n_steps: iterations between evaluations; the start and the end are always evaluated.
        prompts_per_subtask: held-out queries of each subtask, at most 50.
        subtasks: which subtasks; None means all five, the held-out multi_day_travel included.
        temperature: sampling temperature of candidate and baseline; None takes the arena's.
        language: "en" or "zh".
        judge: a judge with `score`; None takes the travel rubric without noise.
        seed: root seed of the sampling.
    """

    def __init__(
        self,
        every_n_steps: int = 10,
        prompts_per_subtask: int = 10,
        subtasks: list[str] | None = None,
        temperature: float | None = None,
        language: str = "en",
        judge: Judge | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if every_n_steps < 1 or not 1 <= prompts_per_subtask <= 50:
            raise ConfigError(
                "every_n_steps must be at least 1 and prompts_per_subtask between 1 and 50, got "
                f"{every_n_steps} and {prompts_per_subtask} (evaluation). Correct them."
            )
        self.every_n_steps = every_n_steps
        self.temperature = temperature
        self.seed = seed
        task = TravelTask(language=language)
        self.prompts = _take(task.prompts("test", subtasks=subtasks), prompts_per_subtask)
        self.judge = judge if judge is not None else TravelJudge(task.world)
        self._baseline: list[Trajectory] = []
        self._scores: dict[str, list[Score]] = {}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        arena = _arena_of(trainer)
        path = Path(trainer.default_root_dir) / "evaluation" / "baseline.jsonl"
        if path.exists():
            self._baseline = [trajectory_from_record(record) for record in read_jsonl(path)]
        else:
            if trainer.global_step:
                raise ConfigError(
                    "a resumed run must have the trajectories of its start, got none "
                    f"({path}). Resume in the run's own folder, or start a new run."
                )
            self._baseline = self._sample(arena, pl_module, BASELINE_STREAM, 0)
            write_jsonl(path, [trajectory_to_record(t) for t in self._baseline])
        self._scores = {
            "cold_start": self._score(self._baseline),
            "reference": self._score([_reference_of(prompt) for prompt in self.prompts]),
        }
        if trainer.global_step == 0:
            self._evaluate(trainer, pl_module, 0)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        done = batch.step + 1
        if done % self.every_n_steps == 0 or done == trainer.num_training_batches:
            self._evaluate(trainer, pl_module, done)

    def _evaluate(self, trainer: Trainer, pl_module: LightningModule, step: int) -> None:
        arena = _arena_of(trainer)
        candidates = self._sample(arena, pl_module, CANDIDATE_STREAM, step)
        scores = self._score(candidates)
        metrics = _behaviour(candidates, scores)
        for name, baseline in self._scores.items():
            cases = [
                paired_case(prompt, mine, theirs)
                for prompt, mine, theirs in zip(self.prompts, scores, baseline, strict=True)
            ]
            report = win_rate_report(cases, tie_margin=TIE_MARGIN, seed=self.seed)
            metrics |= report_metrics(report, f"evaluation/vs_{name}")
        self._write(Path(trainer.default_root_dir), step, candidates, scores)
        pl_module.log_now(metrics, step)
        if trainer.is_global_zero:
            print(_line(step, metrics), flush=True)

    def _sample(
        self, arena: ArenaCallback, module: LightningModule, stream: str, step: int
    ) -> list[Trajectory]:
        groups = arena.sample(
            module, self.prompts, 1, stream, step, self.seed, temperature=self.temperature
        )
        return [group.trajectories[0] for group in groups]

    def _score(self, trajectories: Sequence[Trajectory]) -> list[Score]:
        async def all_scores() -> list[Score]:
            return [
                await self.judge.score(prompt, trajectory)
                for prompt, trajectory in zip(self.prompts, trajectories, strict=True)
            ]

        return asyncio.run(all_scores())

    def _write(
        self, run_dir: Path, step: int, trajectories: list[Trajectory], scores: list[Score]
    ) -> None:
        records = [
            {
                "step": step,
                "prompt": prompt_to_record(prompt),
                "score": score.score,
                "dimensions": dict(score.dimensions),
                "trajectory": trajectory_to_record(trajectory),
            }
            for prompt, trajectory, score in zip(self.prompts, trajectories, scores, strict=True)
        ]
        write_jsonl(run_dir / "evaluation" / f"step-{step:06d}.jsonl", records)


def _arena_of(trainer: Trainer) -> ArenaCallback:
    for callback in trainer.callbacks:
        if isinstance(callback, ArenaCallback):
            return callback
    raise ConfigError(
        "evaluation needs the arena's engine, got a run without an `arena` section. "
        "Add one, or remove `evaluation`."
    )


def _take(prompts: Sequence[Prompt], per_subtask: int) -> list[Prompt]:
    taken: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        chosen = taken.setdefault(prompt.subtask, [])
        if len(chosen) < per_subtask:
            chosen.append(prompt)
    return [prompt for chosen in taken.values() for prompt in chosen]


def _reference_of(prompt: Prompt) -> Trajectory:
    return Trajectory(prompt.prompt_id, prompt.reference)


def _behaviour(trajectories: Sequence[Trajectory], scores: Sequence[Score]) -> dict[str, float]:
    calls = [m for t in trajectories for m in t.messages if m.role == "tool"]
    count = len(trajectories)
    return {
        "evaluation/valid_fraction": sum(bool(t.answer) for t in trajectories) / count,
        "evaluation/tool_error_fraction": sum(m.is_error for m in calls) / max(1, len(calls)),
        "evaluation/tool_calls_mean": len(calls) / count,
        "evaluation/policy_tokens_mean": sum(t.num_policy_tokens for t in trajectories) / count,
        "evaluation/score_mean": sum(s.score for s in scores) / count,
    }


def _line(step: int, metrics: dict[str, float]) -> str:
    parts = []
    for name in ("cold_start", "reference"):
        key = f"evaluation/vs_{name}/win_rate"
        shown = "all tied"
        if key in metrics:
            low, high = metrics[f"{key}_low"], metrics[f"{key}_high"]
            shown = f"{metrics[key]:.1%} [{low:.1%}, {high:.1%}]"
        parts.append(f"win rate vs {name.replace('_', ' ')} {shown}")
    return (
        f"evaluation at step {step} (offline travel rubric, not an LLM): {', '.join(parts)}, "
        f"mean score {metrics['evaluation/score_mean']:.2f}/10, "
        f"answered {metrics['evaluation/valid_fraction']:.0%}, "
        f"tool errors {metrics['evaluation/tool_error_fraction']:.1%}"
    )
