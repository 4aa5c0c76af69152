"""Record a judge bank from a run's trajectories: `python studies/record_bank.py --run DIR --out F`.

Reads the trajectories that training wrote, asks a judge about every pair of each group in both
orders, and writes a bank that `topology_fidelity.py --bank F` replays for any topology at no
further cost. Started again, it goes on where it stopped. Needs no GPU, no torch, no key.
"""

import argparse
import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

JUDGES = ("travel", "travel_noisy")


def parser() -> argparse.ArgumentParser:
    """Return the command line; nothing heavy is imported for `--help`."""
    made = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[1].replace("\n", " "),
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    made.add_argument("--run", type=Path, required=True, help="run folder with steps/*.jsonl")
    made.add_argument("--out", type=Path, required=True, help="the bank, JSON lines")
    made.add_argument(
        "--judge",
        choices=JUDGES,
        default="travel_noisy",
        help="the offline travel rubric, with simulated noise or without; neither is an LLM",
    )
    made.add_argument("--judge_seed", type=int, default=0, help="of the simulated noise")
    made.add_argument(
        "--world_seed", type=int, help="of the travel world; default: the one in config.yaml"
    )
    made.add_argument("--steps", type=int, nargs="+", help="of these steps only; default: all")
    made.add_argument(
        "--group_size", type=int, help="the first so many of each group; default: all"
    )
    made.add_argument("--max_groups", type=int, help="the first so many groups; default: all")
    made.add_argument("--concurrency", type=int, default=64, help="judge calls in flight")
    return made


@dataclass(frozen=True, slots=True)
class _Judging:
    """A judge, its name in the bank, and the rubric without noise that gives the truth."""

    judge: object
    label: str
    rubric: object


def main() -> int:
    """Record, and say what was recorded and how the judge judges."""
    options = parser().parse_args()
    from arena_lightning.analysis.bank import load_bank, sizes_of
    from arena_lightning.analysis.recording import record_groups
    from arena_lightning.errors import ArenaLightningError

    try:
        groups = read_groups(options.run, options.steps, options.group_size, options.max_groups)
        judging = _judging(options)
        done = asyncio.run(
            record_groups(
                options.out,
                groups,
                judging.judge,
                judging.label,
                source=_source(options),
                concurrency=options.concurrency,
                truth=lambda group: _truth(judging.rubric, group),
            )
        )
        bank = load_bank(options.out)
    except ArenaLightningError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(
        f"{options.out}: {len(bank.groups)} groups of {list(sizes_of(bank))}, judge {bank.judge}; "
        f"{done.num_new} new with {done.num_calls} calls ({done.num_failed} failed), "
        f"{done.num_known} were there"
    )
    return 0


def read_groups(
    run: Path, steps: list[int] | None, group_size: int | None, max_groups: int | None
) -> list:
    """Return the groups of a run's step records, in the order they were written.

    Raises:
        ConfigError: a size or count out of range.
        DataError: no records, a group without machine-readable needs, or none large enough.
    """
    from arena_lightning.analysis.recording import GroupToJudge
    from arena_lightning.errors import ConfigError, DataError
    from arena_lightning.training.records import read_jsonl

    if group_size is not None and group_size < 2:
        raise ConfigError(f"--group_size must be at least 2, got {group_size}. Raise it.")
    if max_groups is not None and max_groups < 1:
        raise ConfigError(f"--max_groups must be at least 1, got {max_groups}. Raise it.")
    paths = sorted((run / "steps").glob("step-*.jsonl"))
    if steps is not None:
        paths = [path for path in paths if int(path.stem.removeprefix("step-")) in steps]
    if not paths:
        of = f" of steps {steps}" if steps is not None else ""
        raise DataError(
            f"a run must have records steps/step-*.jsonl{of}, got none ({run}). Correct --run "
            "or --steps."
        )
    groups, sizes = [], set()
    for path in paths:
        for number, record in enumerate(read_jsonl(path), 1):
            group = _group(record, f"{path}:{number}")
            sizes.add(len(group))
            if len(group) < (group_size or 2):
                continue
            cut = type(group)(group.prompt, group.trajectories[: group_size or len(group)])
            group_id = f"step {record['step']}, {group.prompt.prompt_id}"
            groups.append(GroupToJudge(group_id, cut))
    if not groups:
        raise DataError(
            f"groups must have at least {group_size or 2} trajectories, got groups of "
            f"{sorted(sizes)} ({run}). Lower --group_size, or train with a larger group_size."
        )
    return groups[:max_groups]


def _group(record: object, where: str):
    from arena_lightning.errors import DataError
    from arena_lightning.training.records import trajectory_from_record
    from arena_lightning.types import Group, Prompt

    try:
        prompt = Prompt(**record["prompt"])  # type: ignore[index]
        trajectories = tuple(trajectory_from_record(t) for t in record["trajectories"])  # type: ignore[index]
        int(record["step"])  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            "a step's record must hold step, prompt and trajectories as training writes them, got "
            f"{error!r} ({where}). Is it another file?"
        ) from error
    if not prompt.needs:
        raise DataError(
            f"prompts must have machine-readable needs for the travel rubric, got none for "
            f"{prompt.prompt_id!r} ({where}). Record a run on generated prompts."
        )
    return Group(prompt, trajectories)


def _judging(options: argparse.Namespace) -> _Judging:
    from arena_lightning.judges.simulated import NoisyJudge
    from arena_lightning.tasks.travel.judge import TravelJudge
    from arena_lightning.tasks.travel.world import World

    seed = options.world_seed if options.world_seed is not None else _world_seed(options.run)
    rubric = TravelJudge(World(seed))
    if options.judge == "travel":
        return _Judging(rubric, rubric.name, rubric)
    noisy = NoisyJudge(rubric, options.judge_seed)
    return _Judging(noisy, f"{noisy.name}, seed {options.judge_seed}", rubric)


def _world_seed(run: Path) -> int:
    """Return the seed of the world that a run's trajectories were made in."""
    import yaml

    from arena_lightning.errors import ConfigError

    path = run / "config.yaml"
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        return int(config["data"]["init_args"]["seed"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the world's seed must be in the run's data.init_args.seed, got {error!r} ({path}). "
            "Give it with --world_seed."
        ) from error


def _truth(rubric, group):
    import numpy as np

    return np.array([rubric.rate(group.prompt, one).score for one in group.trajectories])


def _source(options: argparse.Namespace) -> str:
    steps = "all steps" if options.steps is None else f"steps {options.steps}"
    return f"run {options.run.name}, {steps}"


if __name__ == "__main__":
    raise SystemExit(main())
