"""Rollout and ranking each step: prompts become groups, groups become advantages.

    prompts -> rollout engine -> trajectories -> arena (topology x judge) -> ranks -> advantages

A group starts its arena the moment its last trajectory is finished, so judging overlaps with the
rollout of the others. The batch is filled in place before the training step sees it.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Literal

import numpy as np
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger

from arena_lightning.arena import TOPOLOGIES, ArenaResult, build_arena
from arena_lightning.errors import ConfigError
from arena_lightning.policy.model import load_policy
from arena_lightning.protocols import Task
from arena_lightning.rng import generator_for
from arena_lightning.rollout.agent import SamplingLimits, TrajectoryRequest, plan_groups
from arena_lightning.rollout.engine import RolloutEngine
from arena_lightning.rollout.formats import chat_format_for
from arena_lightning.rollout.session import RolloutSession
from arena_lightning.tasks.travel.task import TravelTask
from arena_lightning.training.arena_metrics import arena_metrics
from arena_lightning.training.data import PromptBatch, RolloutBatch
from arena_lightning.training.event_loop import EventLoop
from arena_lightning.training.freshness import check_freshness
from arena_lightning.training.judge_choice import JudgeChoice
from arena_lightning.training.module import ArenaModule
from arena_lightning.training.records import write_step
from arena_lightning.training.run_judge import RunJudge
from arena_lightning.training.sample_table import log_sample_table
from arena_lightning.training.weight_sync import WeightSync
from arena_lightning.types import Group, Prompt, Trajectory

CANARY = Prompt("canary", "Which museum in Lyon should I see first?")


class ArenaCallback(Callback):
    """Fills each `PromptBatch` with judged groups.

    Args:
        engine: where the policy's tokens come from.
        judge: who compares trajectories.
        group_size: N, trajectories a prompt. The paper: 8 and 16.
        ranking: "tournament", or a baseline by scores: "pointwise" (GRPO, GSPO),
            "pointwise_ranks" (their order only), "listwise" (one call a group; an LLM judge).
        topology: of the tournament, a name of `TOPOLOGIES`.
        presentation: "both" orders summed (the paper), one "random" order, or "second_if_close".
        concurrency: judge calls in flight.
        temperature: sampling temperature. The released code: 0.8.
        anchor: trajectory 0 is decoded "greedy" (the released code) or "sampled" like the others.
        train_on_anchor: whether trajectory 0 enters the loss.
        limits: turns and lengths of a trajectory.
        language: language of the built-in travel task's opening messages.
        on_judge_failure: "raise", or "drop_group" (zero advantages, counted).
        max_policy_lag: oldest policy version a trajectory may have, in optimizer steps.
        shuffle_advantages: control experiment: permute advantages within each group, so that the
            ranking carries no information.
        sample_table_every_n_steps: steps between tables of best and worst trajectories in W&B.
        seed: root seed of sampling, starting orders and shuffles.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        judge: JudgeChoice | None = None,
        group_size: int = 8,
        ranking: Literal["tournament", "pointwise", "pointwise_ranks", "listwise"] = "tournament",
        topology: str = "single_elimination",
        presentation: Literal["both", "random", "second_if_close"] = "both",
        concurrency: int = 64,
        temperature: float = 1.0,
        anchor: Literal["greedy", "sampled"] = "greedy",
        train_on_anchor: bool = True,
        limits: SamplingLimits | None = None,
        language: str = "en",
        on_judge_failure: Literal["raise", "drop_group"] = "drop_group",
        max_policy_lag: int = 0,
        shuffle_advantages: bool = False,
        sample_table_every_n_steps: int = 10,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if group_size < 2:
            raise ConfigError(
                f"group_size must be at least 2, got {group_size} (arena.group_size). A group of "
                "one has no ranking; raise it."
            )
        if topology not in TOPOLOGIES:
            raise ConfigError(
                f"topology must be one of {', '.join(TOPOLOGIES)}, got {topology!r} "
                "(arena.topology). Name one of them."
            )
        if temperature <= 0:
            raise ConfigError(
                f"temperature must be above 0, got {temperature} (arena.temperature). "
                "Greedy trajectories of one prompt are all alike; only the anchor may be greedy."
            )
        engine.check()
        self.engine = engine
        self.group_size = group_size
        self.temperature = temperature
        self.anchor = anchor
        self.train_on_anchor = train_on_anchor
        self.limits = limits or SamplingLimits()
        self.max_policy_lag = max_policy_lag
        self.shuffle_advantages = shuffle_advantages
        self.sample_table_every_n_steps = max(1, sample_table_every_n_steps)
        self.seed = seed
        self.task: Task = TravelTask(language=language)
        is_listwise = ranking == "listwise"
        self.run_judge = RunJudge(judge or JudgeChoice(), self.task, is_listwise=is_listwise)
        self.judge = self.run_judge.judge
        self.arena = build_arena(
            ranking, self.judge, topology, presentation, concurrency, seed, on_judge_failure
        )
        self._loop: EventLoop | None = None
        self._session: RolloutSession | None = None
        self._sync: WeightSync | None = None

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.run_judge.require_judgeable(trainer.datamodule.prompts, "data.prompts_file")
        self.run_judge.open(Path(trainer.default_root_dir))
        self._start(trainer, pl_module)
        if trainer.is_global_zero:
            cost = self.arena.describe(self.group_size)
            print(f"judge: {self.judge.name}\neach group of {self.group_size}: {cost}", flush=True)

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._start(trainer, pl_module)  # a test's judges are the evaluation's

    def _start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not isinstance(pl_module, ArenaModule):
            raise ConfigError(
                f"an `arena` section needs an ArenaModule, got {type(pl_module).__name__} "
                "(model.class_path). Correct one of them."
            )
        pl_module.temperature = self.temperature
        pl_module.train_on_anchor = self.train_on_anchor
        chat = chat_format_for(pl_module.model_dir)
        started = time.monotonic()
        self.engine.start(pl_module.model_dir, chat.stop_ids, self.seed)
        self._loop = EventLoop()
        self._session = RolloutSession(self.engine, chat, self.task, self.limits, self._loop.submit)
        canary = chat.opening_ids(self.task.opening(CANARY), self.task.toolset.schemas)
        self._sync = WeightSync(self.engine, pl_module, canary)
        name, seconds = type(self.engine).__name__, time.monotonic() - started
        if trainer.is_global_zero:
            print(f"engine {name} ready in {seconds:.0f} s", flush=True)

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: PromptBatch, batch_idx: int
    ) -> None:
        started = time.monotonic()
        self.run_judge.start_step()
        synced = self.sync(pl_module)
        sync_s = time.monotonic() - started
        loop, judging = self._loop, dict[int, Future[ArenaResult]]()
        assert loop is not None, "the arena is set up when fit or test begins"
        groups: dict[int, Group] = {}

        def judge(number: int, group: Group) -> None:
            groups[number] = group
            judging[number] = loop.submit(self.arena.run_group(group, batch.step, number))

        requests = plan_groups(
            batch.prompts,
            self.group_size,
            self.temperature,
            (self.seed, "rollout", batch.step),
            self.anchor == "greedy",
        )
        stats = self._roll_out(batch.prompts, requests, judge)
        waiting = time.monotonic()
        results = [judging[number].result() for number in range(len(batch.prompts))]
        wait_s = time.monotonic() - waiting
        ordered = [groups[number] for number in range(len(batch.prompts))]
        check_freshness(ordered, pl_module.global_step, self.max_policy_lag)
        advantages = [
            self._advantages(result, batch.step, number) for number, result in enumerate(results)
        ]
        batch.rollouts = RolloutBatch(tuple(ordered), tuple(advantages), self.engine.version)
        batch.metrics = (
            arena_metrics(results)
            | self.run_judge.metrics()
            | stats
            | synced
            | {
                "time/sync_s": sync_s,
                "time/arena_wait_s": wait_s,
                "time/prepare_s": time.monotonic() - started,
            }
        )
        self._write(Path(trainer.default_root_dir), batch, results, trainer.loggers)

    def sync(self, module: LightningModule) -> dict[str, float]:
        """Bring the engine to the module's weights, verified; does nothing when it has them."""
        assert self._sync is not None, "the arena is set up when fit or test begins"
        return self._sync.to_version(module.global_step)

    def sample(
        self,
        module: LightningModule,
        prompts: Sequence[Prompt],
        count: int,
        stream: str,
        step: int,
        seed: int,
        temperature: float | None = None,
    ) -> list[Group]:
        """Return `count` trajectories a prompt from the current policy, unjudged."""
        self.sync(module)
        return self._sample_now(prompts, count, (seed, stream, step), temperature)

    def sample_checkpoint(
        self,
        model_dir: Path,
        prompts: Sequence[Prompt],
        stream: str,
        seed: int,
        temperature: float | None = None,
    ) -> list[Group]:
        """Return one trajectory a prompt from another model of the same architecture.

        The engine is at the module's weights again with the next `sample` or step.
        """
        assert self._sync is not None
        self._sync.lend(load_policy(model_dir))
        return self._sample_now(prompts, 1, (seed, stream, 0), temperature)

    def _sample_now(
        self,
        prompts: Sequence[Prompt],
        count: int,
        address: tuple[int, str, int],
        temperature: float | None,
    ) -> list[Group]:
        groups: dict[int, Group] = {}
        chosen = self.temperature if temperature is None else temperature
        self._roll_out(prompts, plan_groups(prompts, count, chosen, address), groups.__setitem__)
        return [groups[number] for number in range(len(prompts))]

    def _roll_out(
        self,
        prompts: Sequence[Prompt],
        requests: Sequence[TrajectoryRequest],
        on_group: Callable[[int, Group], None],
    ) -> dict[str, float]:
        """Sample, hand on each group the moment it is complete, and return the metrics."""
        assert self._session is not None, "the arena is set up when fit or test begins"
        count = len(requests) // len(prompts)
        parts: dict[int, dict[int, Trajectory]] = {number: {} for number in range(len(prompts))}
        for request, trajectory in self._session.stream(requests):
            members = parts[request.group]
            members[request.index] = trajectory
            if len(members) == count:
                ordered = tuple(members[index] for index in range(count))
                on_group(request.group, Group(prompts[request.group], ordered))
        return self._session.stats.metrics()

    def _advantages(self, result: ArenaResult, step: int, number: int) -> np.ndarray:
        if not self.shuffle_advantages:
            return result.advantages
        generator = generator_for(self.seed, "arena/shuffle", step, number)
        return generator.permutation(result.advantages)

    def _write(
        self,
        run_dir: Path,
        batch: PromptBatch,
        results: Sequence[ArenaResult],
        loggers: Sequence[Logger],
    ) -> None:
        assert batch.rollouts is not None, "written after it was filled"
        groups = batch.rollouts.groups
        write_step(run_dir, batch.step, groups, results, batch.rollouts.advantages)
        if batch.step % self.sample_table_every_n_steps == 0:
            log_sample_table(loggers, batch.step + 1, groups, results)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        self.run_judge.close()
        self.engine.close()
