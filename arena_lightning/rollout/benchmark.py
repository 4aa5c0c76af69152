"""What turns and tools cost: `python -m arena_lightning.rollout.benchmark --model DIR`.

Runs multi-turn rollouts on vLLM, records every request, then gives the same requests to bare
`LLM.generate` all at once at the same concurrency, and prints tokens/s of both. Bare vLLM knows all
turns from the start and waits for no tool, so the ratio is a lower bound of what a session reaches.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from arena_lightning.protocols import ToolResult
from arena_lightning.rollout.agent import SamplingLimits, plan_groups
from arena_lightning.rollout.chat import ChatMLFormat
from arena_lightning.rollout.engine import Completion, Request
from arena_lightning.rollout.session import RolloutSession
from arena_lightning.rollout.vllm_engine import VLLMEngine
from arena_lightning.types import Message, Prompt, ToolCall

LOOKUP: Mapping[str, Any] = {
    "name": "lookup",
    "description": "facts about a place",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}, "about": {"type": "string"}},
        "required": ["place"],
    },
}
SYSTEM = "You are a travel assistant. Check facts with tools, then answer. " * 8


class _RecordingEngine(VLLMEngine):
    """Remembers its requests; a turn that used up its tokens counts as ended by the policy."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.requests: list[Request] = []

    def add(self, request: Request) -> None:
        self.requests.append(request)
        super().add(request)

    def step(self) -> list[Completion]:
        return [replace(done, finish_reason="stop") for done in super().step()]

    def forget_prefixes(self) -> None:
        self.requests = []
        self._engine.reset_prefix_cache()

    def bare_tokens_per_s(self, requests: Sequence[Request]) -> float:
        """Run requests through `LLM.generate`."""
        prompts = [{"prompt_token_ids": list(request.prompt_ids)} for request in requests]
        params = [self._sampling_params(request, request.max_tokens) for request in requests]
        started = time.perf_counter()
        outputs = self._llm.generate(prompts, params, use_tqdm=False)
        seconds = time.perf_counter() - started
        return sum(len(output.outputs[0].token_ids) for output in outputs) / seconds


class _CallingFormat(ChatMLFormat):
    """Reads every turn as a tool call, so that any model makes multi-turn trajectories."""

    def parse_turn(self, ids: Sequence[int]) -> Message:
        return Message("assistant", "", "", (ToolCall("lookup", {"place": "Lyon"}),))


class _LookupTask:
    """One in-process tool with an answer of fixed length."""

    def __init__(self, tool_chars: int) -> None:
        self.toolset = self
        self.schemas = (LOOKUP,)
        self._content = ("Lyon museum | 09:00-18:00 | 12 EUR\n" * (tool_chars // 35 + 1))[
            :tool_chars
        ]

    def opening(self, prompt: Prompt) -> tuple[Message, ...]:
        return Message("system", SYSTEM), Message("user", prompt.query)

    async def call(self, call: ToolCall) -> ToolResult:
        return ToolResult(self._content)


def measure(options: argparse.Namespace) -> list[tuple[float, float]]:
    """Return (session, bare) tokens/s of each repeat."""
    engine = _RecordingEngine(
        max_model_len=options.max_model_len,
        max_num_seqs=options.groups * options.group_size,
        kv_cache_gib=options.kv_cache_gib,
    )
    engine.start(options.model, stop_ids=(), seed=0)
    limits = SamplingLimits(
        max_turns=options.turns - 1, max_tokens_per_turn=options.tokens_per_turn
    )
    task = _LookupTask(options.tool_chars)
    session = RolloutSession(engine, _CallingFormat(options.model), task, limits)
    prompts = [
        Prompt(f"p{number}", f"Plan day {number} in Lyon.") for number in range(options.groups)
    ]
    results = []
    for repeat in range(options.repeats + 1):
        engine.forget_prefixes()
        plan = plan_groups(prompts, options.group_size, 1.0, (0, "benchmark", repeat))
        session.run(plan)
        session_tokens_per_s = session.stats.metrics()["rollout/tokens_per_s"]
        requests = list(engine.requests)
        engine.forget_prefixes()
        bare_tokens_per_s = engine.bare_tokens_per_s(requests)
        if repeat:  # the first one warms up
            results.append((session_tokens_per_s, bare_tokens_per_s))
            outside = session.stats.metrics()["rollout/outside_engine_fraction"]
            print(
                f"repeat {repeat}: {len(requests)} requests, session {session_tokens_per_s:.0f} "
                f"tokens/s, bare vLLM {bare_tokens_per_s:.0f} tokens/s, outside the engine "
                f"{outside:.1%}",
                flush=True,
            )
    session.close()
    engine.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="Hugging Face folder, ChatML")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--group_size", type=int, default=8)
    parser.add_argument("--turns", type=int, default=3, help="turns of a trajectory")
    parser.add_argument("--tokens_per_turn", type=int, default=48)
    parser.add_argument("--tool_chars", type=int, default=250)
    parser.add_argument("--max_model_len", type=int, default=1024)
    parser.add_argument("--kv_cache_gib", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=3)
    results = measure(parser.parse_args())
    session, bare = (statistics.median(column) for column in zip(*results, strict=True))
    ratio = statistics.median(mine / theirs for mine, theirs in results)
    print(
        f"multi-turn session {session:.0f} tokens/s, bare vLLM {bare:.0f} tokens/s, "
        f"ratio {ratio:.0%} (goal: at least 80%)"
    )


if __name__ == "__main__":
    main()
