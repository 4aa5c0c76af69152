"""Many trajectories at once: keeps the engine stepping while tools run beside it.

The engine runs in the caller's thread, tools in an event loop on another. A finished tool call goes
back to the engine at its next step, a finished trajectory to the caller at once: nobody waits for
the slowest neighbour. Engines that promise reproducible bits are stepped only when no tool is
running, because there the batch must not depend on how long a tool took.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from arena_lightning.errors import ConfigError, RolloutError
from arena_lightning.protocols import Task, ToolResult
from arena_lightning.rollout.agent import (
    MAX_REQUESTS,
    Agent,
    SamplingLimits,
    TrajectoryRequest,
    opening_ids_of,
)
from arena_lightning.rollout.chat import ChatFormat
from arena_lightning.rollout.engine import Completion, RolloutEngine
from arena_lightning.rollout.stats import RolloutStats
from arena_lightning.types import ToolCall, Trajectory

Submit = Callable[[Coroutine[Any, Any, Any]], Future[Any]]
SYNC_TOOL_GRACE_S = 0.002
"""In-process tools answer within this, and so make the very next step."""


class RolloutSession:
    """Samples trajectories from an engine and a task.

    Args:
        engine: a started engine.
        chat: the format of the engine's model.
        task: opening messages and tools.
        limits: where trajectories end.
        submit: starts a coroutine on an event loop of another thread; None makes a loop of its
            own when first needed.

    Raises:
        ConfigError: `limits.max_context_tokens` exceeds the engine's max_model_len.
    """

    def __init__(
        self,
        engine: RolloutEngine,
        chat: ChatFormat,
        task: Task,
        limits: SamplingLimits | None = None,
        submit: Submit | None = None,
    ) -> None:
        self.engine = engine
        self.chat = chat
        self.task = task
        self.limits = limits or SamplingLimits()
        self.stats = RolloutStats()
        wanted = self.limits.max_context_tokens
        if wanted is not None and wanted > engine.max_model_len:
            raise ConfigError(
                f"max_context_tokens must be at most the engine's max_model_len "
                f"({engine.max_model_len}), got {wanted} (arena.limits.max_context_tokens). "
                "Lower it, or raise arena.engine.max_model_len."
            )
        self._max_context_tokens = engine.max_model_len if wanted is None else wanted
        self._submit = submit
        self._loop: _LoopThread | None = None

    def run(
        self,
        requests: Sequence[TrajectoryRequest],
        on_finished: Callable[[TrajectoryRequest, Trajectory], None] | None = None,
    ) -> list[Trajectory]:
        """Sample all and return them in request order; each is reported as it finishes."""
        places = {(r.group, r.index): place for place, r in enumerate(requests)}
        trajectories: list[Trajectory | None] = [None] * len(requests)
        for request, trajectory in self.stream(requests):
            trajectories[places[request.group, request.index]] = trajectory
            if on_finished is not None:
                on_finished(request, trajectory)
        return [t for t in trajectories if t is not None]

    def stream(
        self, requests: Sequence[TrajectoryRequest]
    ) -> Iterator[tuple[TrajectoryRequest, Trajectory]]:
        """Yield trajectories as they finish. Leaving early aborts what is still running.

        `stats` are of the latest call.

        Raises:
            RolloutError: two requests share group and index, the engine is busy, or a tool broke
                its contract by raising.
        """
        if len({(r.group, r.index) for r in requests}) != len(requests):
            raise RolloutError(
                f"(group, index) must be unique among requests, got duplicates among "
                f"{len(requests)}. Number groups and contestants."
            )
        if self.engine.num_unfinished:
            raise RolloutError(
                f"a rollout needs an engine without work, got {self.engine.num_unfinished} "
                "unfinished requests. Call abort_all()."
            )
        self.stats = RolloutStats()
        run = _Run(self, requests)
        before = (self.engine.stats.busy_s, self.engine.stats.generated_tokens)
        started = time.perf_counter()
        try:
            for agent in run.finished_agents():
                trajectory = agent.trajectory()
                self.stats.count(trajectory, agent.num_turns, agent.num_parse_errors)
                paused = time.perf_counter()
                yield agent.request, trajectory
                started += time.perf_counter() - paused
        finally:
            run.cancel()
            self.engine.abort_all()
            self.stats.wall_s = time.perf_counter() - started
            self.stats.engine_s = self.engine.stats.busy_s - before[0]
            self.stats.generated_tokens = self.engine.stats.generated_tokens - before[1]

    def close(self) -> None:
        """Stop the session's own event loop, if it has one."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Start a coroutine beside the engine."""
        if self._submit is not None:
            return self._submit(coroutine)
        if self._loop is None:
            self._loop = _LoopThread()
        return self._loop.submit(coroutine)


class _Run:
    """One `stream` call: its agents, and the tool calls in flight."""

    def __init__(self, session: RolloutSession, requests: Sequence[TrajectoryRequest]) -> None:
        self._session = session
        self._engine = session.engine
        self._answers: queue.SimpleQueue[tuple[Agent, Future[Any]]] = queue.SimpleQueue()
        self._running: dict[int, Future[Any]] = {}
        self._has_new_calls = False
        openings: dict[str, tuple[int, ...]] = {}
        self._agents: list[Agent] = []
        for position, request in enumerate(requests):
            key = request.prompt.prompt_id + "\0" + request.prompt.query
            if key not in openings:
                openings[key] = opening_ids_of(
                    session.chat, session.task.opening(request.prompt), session.task.toolset.schemas
                )
            self._agents.append(
                Agent(
                    position,
                    request,
                    openings[key],
                    session.chat,
                    session.limits,
                    session._max_context_tokens,
                )
            )

    def finished_agents(self) -> Iterator[Agent]:
        """Yield agents as they finish."""
        unfinished = len(self._agents)
        for agent in self._agents:
            if not self._ask(agent):
                unfinished -= 1
                yield agent
        while unfinished:
            for agent in self._after_step():
                if agent.finish is not None:
                    unfinished -= 1
                    yield agent

    def _after_step(self) -> list[Agent]:
        """Take answers that are there, step the engine, and return the agents that finished."""
        done = [agent for agent in self._answered() if not self._ask(agent)]
        if not self._engine.num_unfinished:
            return done
        for completion in self._engine.step():
            agent = self._receive(completion)
            if agent.finish is not None or (not self._is_waiting(agent) and not self._ask(agent)):
                done.append(agent)
        return done

    def _ask(self, agent: Agent) -> bool:
        """Queue the agent's next turn; False when it has no room left and is finished."""
        request = agent.next_request()
        if request is None:
            return False
        self._engine.add(request)
        return True

    def _receive(self, completion: Completion) -> Agent:
        position = completion.request_id // MAX_REQUESTS
        agent = self._agents[position]
        calls = agent.receive(completion)
        if calls:
            future = self._session.submit(self._answer(calls))
            self._running[position] = future
            self._has_new_calls = True
            future.add_done_callback(lambda future: self._answers.put((agent, future)))
        return agent

    def _is_waiting(self, agent: Agent) -> bool:
        return agent.position in self._running

    async def _answer(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        return list(await asyncio.gather(*(self._call(call) for call in calls)))

    async def _call(self, call: ToolCall) -> ToolResult:
        timeout_s = self._session.limits.tool_timeout_s
        try:
            return await asyncio.wait_for(self._session.task.toolset.call(call), timeout_s)
        except TimeoutError:
            return ToolResult(f"Error: no answer from {call.name} in {timeout_s:g} s", True)

    def _answered(self) -> list[Agent]:
        """Return agents whose tools have answered, in order of position.

        Waits for all tools when the engine is reproducible, for one when there is nothing else to
        do, else only for as long as a tool in this process takes.
        """
        answers: list[tuple[Agent, Future[Any]]] = []
        deadline = time.perf_counter() + (SYNC_TOOL_GRACE_S if self._has_new_calls else 0.0)
        self._has_new_calls = False
        while len(answers) < len(self._running):
            wait_s: float | None = None
            if not self._engine.is_reproducible and (answers or self._engine.num_unfinished):
                wait_s = deadline - time.perf_counter()
            try:
                answers.append(
                    self._answers.get_nowait()
                    if wait_s is not None and wait_s <= 0
                    else self._answers.get(timeout=wait_s)
                )
            except queue.Empty:
                break
        answers.sort(key=lambda answer: answer[0].position)
        for agent, future in answers:
            del self._running[agent.position]
            try:
                agent.observe(future.result())
            except Exception as error:
                raise RolloutError(
                    "a tool must report bad calls as an observation, but one raised "
                    f"{type(error).__name__}: {error} (prompt {agent.request.prompt.prompt_id}). "
                    "Return ToolResult(message, is_error=True) from the toolset."
                ) from error
        return [agent for agent, _ in answers]

    def cancel(self) -> None:
        """Drop the tool calls in flight."""
        for future in self._running.values():
            future.cancel()
        self._running.clear()


class _LoopThread:
    """An event loop on a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="tools")
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
