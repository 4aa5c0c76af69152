"""`python -m arena_lightning.tasks.travel export --out DIR`: write the travel data as JSONL."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from arena_lightning.errors import ArenaLightningError
from arena_lightning.tasks.travel.export import export
from arena_lightning.tasks.travel.task import TravelTask


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m arena_lightning.tasks.travel")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("export", help="write cold_start, train and test as JSONL")
    command.add_argument("--out", type=Path, required=True, help="folder to write to")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--language", choices=("en", "zh"), default="en")
    command.add_argument("--count", type=int, help="prompts a split (default: the paper's sizes)")
    options = parser.parse_args(arguments)
    try:
        paths = export(TravelTask(options.seed, options.language), options.out, options.count)
    except ArenaLightningError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print("\n".join(map(str, paths)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
