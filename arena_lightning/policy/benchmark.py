"""How fast the policy trains here, and what each precision recipe costs in accuracy.

    python -m arena_lightning.policy.benchmark --model embedded --rows 8 --tokens 400

Runs forward and backward of one group's log-probabilities in each recipe and prints tokens per
second (all tokens of the trajectories, whether computed or shared), the same per core-second, and
the mean |delta log-probability| to float32. It takes no optimizer step and downloads nothing.
"""

import argparse
import inspect
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from arena_lightning.policy import losses, packing
from arena_lightning.policy.embedded import EMBEDDED, resolve_model
from arena_lightning.policy.logprobs import Precision, token_logprobs
from arena_lightning.policy.model import LoRAConfig, load_policy
from arena_lightning.types import Group, Prompt, Segment, Trajectory

POLICY_FRACTION = 0.4


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to compute the same log-probabilities."""

    name: str
    precision: Precision
    layout: packing.Layout
    kernels: bool = True
    """Use the project's CPU kernels where the model allows it."""
    lora: bool = False


RECIPES = (
    Recipe("Hugging Face, float32", "float32", "padded"),
    Recipe("Hugging Face, bfloat16 autocast", "bfloat16", "padded", kernels=False),
    Recipe("CPU kernels, bfloat16", "bfloat16", "padded"),
    Recipe("CPU kernels, bfloat16, shared prompt", "bfloat16", "shared_prefix"),
    Recipe(
        "LoRA rank 32, bfloat16 autocast, shared prompt", "bfloat16", "shared_prefix", lora=True
    ),
)


@dataclass(frozen=True, slots=True)
class Measurement:
    """`tokens_per_s` by the wall clock, `tokens_per_core_s` by this process's CPU time."""

    tokens_per_s: float
    tokens_per_core_s: float
    logprobs: torch.Tensor
    """`[token]`, sorted by source and position."""


def text_group(token_ids: Sequence[int], rows: int, tokens: int, prompt: int) -> Group:
    """Cut a group of `rows` trajectories out of a text: shared prompt, answer, tool, answer."""
    text = np.resize(np.asarray(token_ids), rows * tokens + prompt)
    spoken = int(tokens * POLICY_FRACTION) // 2
    seen = tokens - prompt - 2 * spoken
    trajectories = []
    for row in range(rows):
        rest = text[prompt + row * tokens :]
        ids = [
            tuple(map(int, part))
            for part in np.split(rest[: tokens - prompt], (spoken, spoken + seen))
        ]
        segments = [Segment("prompt", tuple(map(int, text[:prompt])))]
        for emitter, part in zip(("policy", "tool", "policy"), ids, strict=True):
            logprobs = (0.0,) * len(part) if emitter == "policy" else ()
            segments.append(Segment(emitter, part, logprobs))
        trajectories.append(Trajectory("benchmark", (), tuple(segments), index=row))
    return Group(Prompt("benchmark", "benchmark"), tuple(trajectories))


def measure(model: nn.Module, group: Group, recipe: Recipe, micro_batch_tokens: int) -> Measurement:
    """Run forward and backward of the group once."""
    advantages = [np.ones(len(group))]
    batches = packing.pack([group], advantages, micro_batch_tokens, recipe.layout)
    total = sum(trajectory.num_tokens for trajectory in group.trajectories)
    model.zero_grad()
    by_source = {}
    started, used = time.perf_counter(), time.process_time()
    for batch in batches:
        logprobs = token_logprobs(
            model, batch, precision=recipe.precision, use_kernels=recipe.kernels
        ).logprobs
        (-logprobs.mean()).backward()
        for row, source in enumerate(batch.sources.tolist()):
            by_source[source] = logprobs.detach()[batch.rows == row]
    wall, cpu = time.perf_counter() - started, time.process_time() - used
    ordered = torch.cat([by_source[source] for source in sorted(by_source)])
    return Measurement(total / wall, total / cpu, ordered)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a Markdown table, one line a recipe."""
    parser = argparse.ArgumentParser(description=inspect.getdoc(inspect.getmodule(main)))
    parser.add_argument("--model", default=EMBEDDED, help="'embedded' or a model folder")
    parser.add_argument("--cache_dir", default="runs/models")
    parser.add_argument("--rows", type=int, default=8, help="trajectories in the group")
    parser.add_argument("--tokens", type=int, default=400, help="tokens a trajectory")
    parser.add_argument("--prompt", type=int, default=150, help="shared prompt tokens")
    parser.add_argument("--micro_batch_tokens", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3, help="the best counts")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    from transformers import AutoTokenizer

    folder = resolve_model(options.model, Path(options.cache_dir))
    text = inspect.getsource(losses) + inspect.getsource(packing)
    ids = AutoTokenizer.from_pretrained(folder, local_files_only=True)(text).input_ids
    group = text_group(ids, options.rows, options.tokens, options.prompt)
    print(f"{options.rows} x {options.tokens} tokens, {options.threads} threads, {folder.name}")
    print("| recipe | tokens/s | tokens/core-s | mean abs delta log-prob |\n|---|---|---|---|")
    models = {lora: load_policy(folder, lora=LoRAConfig() if lora else None) for lora in (0, 1)}
    # Rounds over all recipes: on a shared machine, neighbours then disturb all of them alike.
    rounds = [
        [
            measure(models[recipe.lora], group, recipe, options.micro_batch_tokens)
            for recipe in RECIPES
        ]
        for _ in range(options.repeats)
    ]
    exact = rounds[0][0].logprobs
    for recipe, found in zip(RECIPES, zip(*rounds, strict=True), strict=True):
        delta = (found[0].logprobs - exact).abs().mean().item()
        print(
            f"| {recipe.name} | {max(one.tokens_per_s for one in found):.0f} "
            f"| {max(one.tokens_per_core_s for one in found):.0f} | {delta:.2g} |"
        )


if __name__ == "__main__":
    main()
