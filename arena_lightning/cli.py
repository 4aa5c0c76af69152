"""The command line: `python -m arena_lightning fit --config configs/travel.yaml`.

LightningCLI builds module, data and trainer from one YAML; this adds the arena, the evaluation,
numbered run folders, the cold start, and errors that a person can read. Heavy libraries are
imported only once a subcommand runs.
"""

import ctypes
import os
import sys
from collections.abc import Sequence

from arena_lightning.errors import ArenaLightningError


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 for a mistake of the user's."""
    arguments = list(sys.argv[1:] if args is None else args)
    _quiet_environment()
    _steady_allocator()
    try:
        from arena_lightning.lightning_cli import run_cli

        run_cli(arguments)
    except ArenaLightningError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "stopped. Go on with the same command and --ckpt_path last.",
            file=sys.stderr,
        )
        return 130
    return 0


def _quiet_environment() -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_SILENT", "true")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def _steady_allocator() -> None:
    """Keep glibc from giving memory back between micro-batches.

    By default every large activation is mapped, zeroed page by page and unmapped again, which costs
    a fifth of the time of a CPU training step. No effect elsewhere.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    trim_threshold, top_pad, mmap_max = -1, -2, -4
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 2**31 - 1)
    mallopt(top_pad, 256 * 2**20)
