"""The command line: `python -m arena_lightning fit --config configs/travel.yaml`.

LightningCLI builds module, data and trainer from one YAML; this adds the arena, the evaluation,
numbered run folders, the cold start, and errors that a person can read. Heavy libraries are
imported only once a subcommand runs.
"""

import os
import sys
from collections.abc import Sequence

from arena_lightning.errors import ArenaLightningError


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 for a mistake of the user's."""
    arguments = list(sys.argv[1:] if args is None else args)
    _quiet_environment()
    try:
        if arguments[:1] == ["plan"]:
            from arena_lightning.plan import main as plan

            return plan(arguments[1:])
        from arena_lightning.lightning_cli import run_cli

        run_cli(arguments)
    except Exception as error:
        mistake = _mistake_behind(error)
        if mistake is None:
            raise
        print(f"error: {mistake}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, SystemExit) as error:
        # Lightning ends an interrupted run by itself, and then exits from the handler.
        interrupts = (error, error.__context__, error.__cause__)
        if not any(isinstance(link, KeyboardInterrupt) for link in interrupts):
            raise
        print("stopped. Go on with the same command and --ckpt_path last.", file=sys.stderr)
        return 130
    return 0


def _mistake_behind(error: BaseException) -> ArenaLightningError | None:
    """Return the user's mistake in a chain of exceptions; argument parsing wraps what it meets."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue
        if isinstance(current, ArenaLightningError):
            return current
        seen.add(id(current))
        waiting += [current.__cause__, current.__context__]
    return None


def _quiet_environment() -> None:
    # Huge pages for large tensors: a CPU training step otherwise spends a fifth of its time on
    # page faults. Read by torch at import, and of no effect where the kernel has none.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # Bars of loaders, and notices about hardware that nobody asked for: what matters is told by us.
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_SILENT", "true")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
