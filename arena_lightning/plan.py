"""`python -m arena_lightning plan --config ...`: what a run will take, before it takes anything.

Reads the YAML alone: derived sizes, matches, judge calls, tokens, dollars, critical path, memory.
It loads no model and asks nobody; what can't be known before is named as an assumption.
"""

import argparse
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from arena_lightning.arena import build_topology
from arena_lightning.errors import ConfigError
from arena_lightning.tasks.prompts import load_prompts
from arena_lightning.tasks.travel.needs import SUBTASKS

PROMPT_TOKENS, COMPLETION_TOKENS = 6000, 400
"""Assumed tokens of one judge call when the command line doesn't say: two trajectories shown with
their observations, and a reply with words before the scores."""
EMBEDDED_PARAMETERS = 134_515_008
"""Weights of the embedded model, SmolLM2-135M."""
GIB = 2**30
_LLM_KINDS = ("llm", "panel")


def plan_lines(path: Path, options: argparse.Namespace) -> list[str]:
    """Return what a run of a config takes, a line each.

    Raises:
        ConfigError: no such file, not a config for `fit`, or a judge's price is unknown.
    """
    config = _read(path)
    arena = _init_args(config, "arena", path)
    data = _init_args(config, "data", path)
    model = _init_args(config, "model", path)
    groups = _number(data, "groups_per_step", "arena_lightning.training.data", "PromptData")
    steps = _number(data, "num_steps", "arena_lightning.training.data", "PromptData")
    size = int(arena.get("group_size", 8))
    name = str(arena.get("topology", "single_elimination"))
    presentation = str(arena.get("presentation", "both"))
    cost = build_topology(name).cost(size)
    orders = {"both": 2, "random": 1, "second_if_close": 2}[presentation]
    ranking = str(arena.get("ranking", "tournament"))
    calls = groups * {"tournament": cost.matches * orders, "listwise": 1}.get(ranking, size)
    about = "" if cost.exact and presentation != "second_if_close" else "at most "
    updates = int(model.get("updates_per_rollout", 1))
    trained = model.get("trained_per_group") or size
    lines = [
        f"{path}: {steps} steps",
        f"a step: K = {groups} groups x N = {size} = {groups * size} trajectories, "
        f"{groups * int(trained)} of them trained on, {updates} optimizer step"
        f"{'s' if updates > 1 else ''}",
        f"topology {name}: {about}{cost.matches} matches a group, {cost.rounds} sequential rounds",
        f"judge calls ({presentation}): {about}{calls} a step, {calls * steps} in all",
    ]
    if ranking != "tournament":
        lines[2:] = [f"judge calls ({ranking}): {calls} a step, {calls * steps} in all"]
    lines += _judge_lines(arena, calls, steps, options)
    return lines + _evaluation_lines(config, steps) + _memory_lines(model, arena)


def _judge_lines(
    arena: Mapping[str, Any], calls: int, steps: int, options: argparse.Namespace
) -> list[str]:
    judge = arena.get("judge") or {}
    kind = judge.get("kind", "travel")
    if kind == "travel":
        return ["judge: the offline travel rubric (a program, not an LLM): no tokens, no dollars"]
    members = {"arena.judge.llm": judge.get("llm") or {}}
    if kind == "panel":
        found = (judge.get("panel") or {}).get("members") or []
        members = {f"arena.judge.panel.members[{i}]": member for i, member in enumerate(found)}
        if not members:
            raise ConfigError(
                "a panel must have members, got none (arena.judge.panel.members). Name some."
            )
    lines = [f"a panel of {len(members)}, each asked every question"] if kind == "panel" else []
    for where, llm in members.items():
        lines += _model_lines(llm, where, calls, steps, options)
    concurrency = min(int(llm.get("max_concurrency", 64)) for llm in members.values())
    concurrency = min(int(arena.get("concurrency", 64)), concurrency)
    return [*lines, _time_line(arena, calls, concurrency, options)]


def _model_lines(
    llm: Mapping[str, Any], where: str, calls: int, steps: int, options: argparse.Namespace
) -> list[str]:
    model = llm.get("model") or ""
    if not model:
        raise ConfigError(
            f"an LLM judge must have a model, got none ({where}.model). Name one as litellm does."
        )
    tokens = calls * (options.prompt_tokens + options.completion_tokens)
    lines = [
        f"judge: {model}, assuming {options.prompt_tokens} + {options.completion_tokens} tokens a "
        "call",
        f"judge tokens: {tokens:,} a step, {tokens * steps:,} in all",
    ]
    price = _price(llm, model)
    if price is None:
        lines.append(
            f"judge dollars: not known; litellm's table lacks this model. Set {where}."
            "usd_per_million_prompt_tokens and usd_per_million_completion_tokens."
        )
        return lines
    usd = calls * price.cost_usd(options.prompt_tokens, options.completion_tokens)
    lines.append(f"judge dollars: {usd:.2f} a step, {usd * steps:.2f} in all")
    bound = llm.get("max_usd")
    if bound is not None:
        reach = "enough" if usd * steps <= bound else f"spent after {int(bound / usd)} steps"
        lines.append(f"budget: {bound:.2f} dollars, {reach}")
    return lines


def _price(llm: Mapping[str, Any], model: str) -> Any:
    from arena_lightning.judges.pricing import Price, price_of

    given = [llm.get(f"usd_per_million_{kind}_tokens") for kind in ("prompt", "completion")]
    if given != [None, None]:
        return Price(given[0] or 0.0, given[1] or 0.0)
    return price_of(model)


def _time_line(
    arena: Mapping[str, Any], calls: int, concurrency: int, options: argparse.Namespace
) -> str:
    size = int(arena.get("group_size", 8))
    rounds = build_topology(str(arena.get("topology", "single_elimination"))).cost(size).rounds
    rounds = rounds if arena.get("ranking", "tournament") == "tournament" else 1
    seconds = max(rounds, calls / concurrency) * options.latency_s
    return (
        f"judging: at least {seconds:.0f} s a step ({rounds} rounds after each other, "
        f"{concurrency} calls at once, {options.latency_s:g} s a call)"
    )


def _evaluation_lines(config: Mapping[str, Any], steps: int) -> list[str]:
    """Return what evaluations ask of LLM judges: both orders, against the start and a baseline."""
    settings = (config.get("evaluation") or {}).get("init_args") or {}
    judges = [judge for judge in settings.get("judges") or [] if judge.get("kind") in _LLM_KINDS]
    if not judges:
        return []
    models = sum(len((judge.get("panel") or {}).get("members") or [0]) for judge in judges)
    if settings.get("prompts_file"):
        prompts = len(load_prompts(settings["prompts_file"]))
    else:
        subtasks = len(settings.get("subtasks") or SUBTASKS)
        prompts = subtasks * int(settings.get("prompts_per_subtask", 10))
    times = 1 + -(-steps // int(settings.get("every_n_steps", 10)))
    calls = prompts * 2 * 2 * times * models
    return [
        f"evaluation: {prompts} prompts, {times} times, {models} judging models: at most {calls} "
        "judge calls more"
    ]


def _memory_lines(model: Mapping[str, Any], arena: Mapping[str, Any]) -> list[str]:
    policy = model.get("policy", "embedded")
    count, source = _num_parameters(policy)
    if count is None:
        return [f"memory: not known: {source}"]
    has_reference = float((model.get("loss") or {}).get("kl_coef", 0.0)) > 0
    copies = 4 + has_reference  # weights, gradients, two Adam moments, the reference
    if model.get("lora"):
        copies = 1
    cache = (arena.get("engine") or {}).get("init_args", {}).get("kv_cache_gib", 2.0)
    held = count * 4 * copies / GIB
    return [
        f"memory: {held:.1f} GiB for {count / 1e6:.0f}M parameters in training ({source}), "
        f"{count * 2 / GIB:.1f} GiB or more for the engine's weights, {cache} GiB for its cache, "
        "and activations on top"
    ]


def _num_parameters(policy: str) -> tuple[int | None, str]:
    """Return the number of parameters, and where the number comes from."""
    if policy == "embedded":
        return EMBEDDED_PARAMETERS, "embedded model"
    files = sorted(Path(policy).glob("*.safetensors"))
    if not files:
        return None, f"{policy} holds no safetensors"
    # The header of a safetensors file: 8 bytes of length, then JSON with every tensor's shape.
    import json

    count = 0
    for file in files:
        with file.open("rb") as raw:
            length = int.from_bytes(raw.read(8), "little")
            header = json.loads(raw.read(length))
        for name, tensor in header.items():
            if name != "__metadata__":
                size = 1
                for side in tensor["shape"]:
                    size *= side
                count += size
    return count, policy


def _read(path: Path) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(
            f"--config must name a readable YAML file, got {error} ({path}). Correct it."
        ) from error
    if not isinstance(config, dict):
        raise ConfigError(
            f"--config must be a YAML mapping, got {type(config).__name__} ({path}). Correct it."
        )
    return config


def _init_args(config: Mapping[str, Any], section: str, path: Path) -> Mapping[str, Any]:
    if not isinstance(config.get(section), dict):
        raise ConfigError(
            f"a config to plan must have the section `{section}`, got none ({path}). Name a config "
            "for `fit` with an arena."
        )
    return config[section].get("init_args") or {}


def _number(values: Mapping[str, Any], key: str, module: str, owner: str) -> int:
    """Return a setting, or the default of the class that it belongs to."""
    if key in values:
        return int(values[key])
    import importlib

    cls = getattr(importlib.import_module(module), owner)
    return int(inspect.signature(cls).parameters[key].default)


def main(arguments: Sequence[str]) -> int:
    """Print the plan."""
    parser = argparse.ArgumentParser(
        prog="python -m arena_lightning plan", description="What a run will take."
    )
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--prompt_tokens", type=int, default=PROMPT_TOKENS, help="of a judge call")
    parser.add_argument("--completion_tokens", type=int, default=COMPLETION_TOKENS)
    parser.add_argument("--latency_s", type=float, default=5.0, help="of a judge call")
    options = parser.parse_args(list(arguments))
    print("\n".join(plan_lines(options.config, options)))
    return 0
