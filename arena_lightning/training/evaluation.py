"""See it learn: win rates on held-out queries, every few steps of a run, or of a finished one.

`fit`: the current policy against the trajectories of the policy that the run started from (drawn
once, kept in the run folder) and against a baseline. `test`: the policy against the baseline. Both
by `comparing.py`: over non-tied cases (paper, section 5.3), intervals over prompts.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from arena_lightning.errors import ConfigError
from arena_lightning.judges.panel import name_apart
from arena_lightning.tasks.prompts import load_prompts
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.training.arena_callback import ArenaCallback
from arena_lightning.training.baselines import (
    BaselineChoice,
    client_of,
    read_outputs,
    references_of,
)
from arena_lightning.training.comparing import Comparison, compare_outputs
from arena_lightning.training.comparison_report import (
    behaviour_metrics,
    comparison_lines,
    comparison_metrics,
    comparison_record,
    evaluation_line,
)
from arena_lightning.training.event_loop import EventLoop
from arena_lightning.training.judge_choice import NOISE_FREE, JudgeChoice
from arena_lightning.training.llm_agent import LLMAgent, outputs_of
from arena_lightning.training.records import (
    prompt_to_record,
    read_jsonl,
    trajectory_from_record,
    trajectory_to_record,
    write_jsonl,
)
from arena_lightning.training.run_judge import RunJudge
from arena_lightning.types import Prompt, Trajectory

BASELINE_STREAM = "evaluation/baseline"
CANDIDATE_STREAM = "evaluation/candidate"
MAX_PER_SUBTASK = 50


class EvaluationCallback(Callback):
    """Evaluates the policy on held-out queries.

    Args:
        every_n_steps: iterations between evaluations of a run; its start and end always are.
        prompts_per_subtask: held-out queries of each subtask, at most 50.
        subtasks: which subtasks; None means all five, the held-out multi_day_travel included.
        prompts_file: JSONL of queries of your own instead, all of them evaluated.
        temperature: sampling temperature of candidate and baseline; None takes the arena's.
        language: "en" or "zh".
        judges: who compares; None takes the travel rubric without noise. Several are reported each
            and as their mean (the paper: two of different families).
        baseline: whose outputs the policy must beat, beside the start of a run.
        only_answered: leave out cases without an answer of the candidate (the paper's deep
            research table), which are losses otherwise.
        concurrency: judge calls in flight, for each judge.
        seed: root seed of the sampling.
    """

    def __init__(
        self,
        every_n_steps: int = 10,
        prompts_per_subtask: int = 10,
        subtasks: list[str] | None = None,
        prompts_file: str | None = None,
        temperature: float | None = None,
        language: str = "en",
        judges: list[JudgeChoice] | None = None,
        baseline: BaselineChoice | None = None,
        only_answered: bool = False,
        concurrency: int = 64,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if every_n_steps < 1 or not 1 <= prompts_per_subtask <= MAX_PER_SUBTASK:
            raise ConfigError(
                f"every_n_steps must be at least 1 and prompts_per_subtask between 1 and "
                f"{MAX_PER_SUBTASK}, got {every_n_steps} and {prompts_per_subtask} (evaluation). "
                "Correct them."
            )
        if concurrency < 1:
            raise ConfigError(
                f"concurrency must be at least 1, got {concurrency} (evaluation). Raise it."
            )
        self.every_n_steps = every_n_steps
        self.temperature = temperature
        self.baseline = baseline or BaselineChoice()
        self.only_answered = only_answered
        self.concurrency = concurrency
        self.seed = seed
        self.task = TravelTask(language=language)
        if prompts_file is None:
            held_out = self.task.prompts("test", subtasks=subtasks)
            self.prompts = _take(held_out, prompts_per_subtask)
        else:
            self.prompts = load_prompts(Path(prompts_file))
        choices = judges or [NOISE_FREE]
        self.judges = [RunJudge(choice, self.task, "evaluation.judges") for choice in choices]
        for judge in self.judges:
            judge.require_judgeable(self.prompts, "evaluation.prompts_file")
        name_apart([judge.judge for judge in self.judges])
        self._start: list[Trajectory] = []
        self._baseline: dict[str, Trajectory] = {}
        self._loop: EventLoop | None = None

    def setup(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Check the baseline before any model is loaded."""
        if stage in ("fit", "test"):
            self.baseline.check(self.prompts, pl_module.model_dir)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._open(trainer)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        path = _folder(trainer) / "baseline.jsonl"
        if path.exists():
            self._start = [trajectory_from_record(record) for record in read_jsonl(path)]
        else:
            if trainer.global_step:
                raise ConfigError(
                    "a resumed run must have the trajectories of its start, got none "
                    f"({path}). Resume in the run's own folder, or start a new run."
                )
            self._start = self._sample(trainer, pl_module, BASELINE_STREAM, 0)
            write_jsonl(path, [trajectory_to_record(t) for t in self._start])
        self._baseline = self._baseline_outputs(trainer, pl_module)
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

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The whole test: sample, compare, report."""
        self._open(trainer)
        self._baseline = self._baseline_outputs(trainer, pl_module)
        candidates = self._sample(trainer, pl_module, CANDIDATE_STREAM, 0)
        folder = _folder(trainer)
        write_jsonl(folder / "candidate.jsonl", [trajectory_to_record(t) for t in candidates])
        report = self._compare(candidates, self._baseline)
        write_jsonl(folder / "cases.jsonl", report.records())
        record = comparison_record(
            report, self.baseline.name, candidates, list(self._baseline.values())
        )
        write_jsonl(folder / "report.jsonl", [record])
        metrics = behaviour_metrics(candidates, report, "test")
        metrics |= comparison_metrics(report, "test")
        pl_module.log_now(metrics, 0)
        if trainer.is_global_zero:
            print("\n".join([*comparison_lines(record), f"files: {folder}"]), flush=True)

    def _open(self, trainer: Trainer) -> None:
        """Open the judges' ledgers: those of a run, or the ones that all tests share.

        A test asked again finds its verdicts; what earlier tests spent is not this one's spending.
        """
        for number, judge in enumerate(self.judges):
            judge.open(_kept_folder(trainer), f"verdicts-{number}.sqlite", not trainer.testing)
        self._loop = EventLoop()

    def _baseline_outputs(self, trainer: Trainer, module: LightningModule) -> dict[str, Trajectory]:
        """Return prompt id -> output; an LLM that failed on a prompt leaves it out, and says so."""
        choice = self.baseline
        if choice.kind == "reference":
            found = references_of(self.prompts)
        elif choice.kind == "file":
            found = read_outputs(Path(str(choice.path)), self.prompts)
        elif choice.kind == "checkpoint":
            groups = _arena_of(trainer).sample_checkpoint(
                Path(str(choice.path)),
                self.prompts,
                BASELINE_STREAM,
                self.seed,
                self.temperature,
            )
            found = [group.trajectories[0] for group in groups]
        else:
            limits = _arena_of(trainer).limits
            agent = LLMAgent(client_of(choice.llm), self.task, limits)
            path = _kept_folder(trainer) / f"llm_baseline-{choice.llm.address(limits)}.jsonl"
            found = self._running_loop.submit(outputs_of(agent, self.prompts, path)).result()
        return {trajectory.prompt_id: trajectory for trajectory in found}

    def _evaluate(self, trainer: Trainer, pl_module: Any, step: int) -> None:
        candidates = self._sample(trainer, pl_module, CANDIDATE_STREAM, step)
        start = {trajectory.prompt_id: trajectory for trajectory in self._start}
        reports = {
            "cold_start": self._compare(candidates, start),
            self.baseline.kind: self._compare(candidates, self._baseline),
        }
        metrics = behaviour_metrics(candidates, reports["cold_start"], "evaluation")
        for name, report in reports.items():
            metrics |= comparison_metrics(report, f"evaluation/vs_{name}")
        self._write(_folder(trainer), step, candidates, reports["cold_start"])
        pl_module.log_now(metrics, step)
        if trainer.is_global_zero:
            print(evaluation_line(step, metrics, reports), flush=True)

    def _sample(
        self, trainer: Trainer, module: LightningModule, stream: str, step: int
    ) -> list[Trajectory]:
        groups = _arena_of(trainer).sample(
            module, self.prompts, 1, stream, step, self.seed, temperature=self.temperature
        )
        return [group.trajectories[0] for group in groups]

    def _compare(
        self, candidates: Sequence[Trajectory], baseline: dict[str, Trajectory]
    ) -> Comparison:
        """Compare where the baseline has an output."""
        cases = [
            (prompt, candidate, baseline[prompt.prompt_id])
            for prompt, candidate in zip(self.prompts, candidates, strict=True)
            if prompt.prompt_id in baseline and (candidate.answer or not self.only_answered)
        ]
        prompts, mine, theirs = zip(*cases, strict=True) if cases else ((), (), ())
        for judge in self.judges:
            judge.start_step()
        judges = [judge.judge for judge in self.judges]
        return self._running_loop.submit(
            compare_outputs(judges, prompts, mine, theirs, self.concurrency, self.seed)
        ).result()

    def _write(
        self, folder: Path, step: int, trajectories: Sequence[Trajectory], report: Comparison
    ) -> None:
        cases = {case.prompt_id: case for case in report.judges[0].cases}
        records = []
        for prompt, trajectory in zip(self.prompts, trajectories, strict=True):
            case = cases.get(prompt.prompt_id)
            records.append(
                {
                    "step": step,
                    "prompt": prompt_to_record(prompt),
                    "score": None if case is None else case.candidate,
                    "dimensions": None if case is None else dict(case.candidate_dimensions),
                    "trajectory": trajectory_to_record(trajectory),
                }
            )
        write_jsonl(folder / f"step-{step:06d}.jsonl", records)

    @property
    def _running_loop(self) -> EventLoop:
        assert self._loop is not None, "the evaluation is set up when fit or test begins"
        return self._loop

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        for judge in self.judges:
            judge.close()


def _folder(trainer: Trainer) -> Path:
    return Path(trainer.default_root_dir) / "evaluation"


def _kept_folder(trainer: Trainer) -> Path:
    """Where paid replies are kept: by the run, or for all tests together."""
    return Path(trainer.default_root_dir).parent if trainer.testing else _folder(trainer)


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
