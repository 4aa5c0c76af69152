"""Which tournament is worth its judge calls? `python studies/topology_fidelity.py`.

Sweeps group size N, group count K, topology and presentation order with Optuna, on simulated,
fitted or recorded judges; fidelity is Kendall's tau to round robin on the same verdicts. Writes
tables, pictures and a report, and ends with its findings in words. Needs no GPU, no torch, no key.
"""

import argparse
import os
import sys
from pathlib import Path

COMMAND = "python studies/topology_fidelity.py"


def parser() -> argparse.ArgumentParser:
    """Return the command line; nothing heavy is imported for `--help`."""
    made = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__.split("\n\n")[1].replace("\n", " ")
    )
    grid = made.add_argument_group("grid")
    grid.add_argument("--sizes", type=int, nargs="+", default=[4, 8, 16, 32], help="group sizes N")
    grid.add_argument(
        "--groups_per_step", type=int, nargs="+", default=[1, 4, 16], help="group counts K"
    )
    grid.add_argument("--topologies", nargs="+", help="names; default: all")
    grid.add_argument(
        "--presentations",
        nargs="+",
        choices=["both", "random"],
        default=["both"],
        help="orders a pair is shown in; one random order is also tried at one N",
    )
    grid.add_argument("--tie_margins", type=float, nargs="+", default=[0.0], help="judge's points")
    grid.add_argument("--rankings", nargs="+", default=["own"], help='"own", or rules over it')
    grid.add_argument("--groups", type=int, default=1000, help="groups a cell")
    grid.add_argument("--seed", type=int, default=0)
    judges = made.add_argument_group("judges")
    judges.add_argument(
        "--judges",
        nargs="*",
        default=["cardinal", "win_lose", "llm_like"],
        help="simulated: cardinal, win_lose, llm_like; fitted: see --list_judges",
    )
    judges.add_argument("--list_judges", action="store_true", help="print their settings and stop")
    judges.add_argument("--bank", type=Path, nargs="+", default=[], help="recorded banks to replay")
    judges.add_argument(
        "--noise",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="change settings of the simulated judges, e.g. score_noise=1.0 position_bias=0.5",
    )
    cost = made.add_argument_group("cost")
    cost.add_argument("--prices", type=Path, default=Path(__file__).parent / "prices.yaml")
    cost.add_argument("--price_model", default="example-large", help="entry of the price table")
    cost.add_argument("--prompt_tokens", type=float, default=6000, help="of one judge call")
    cost.add_argument("--completion_tokens", type=float, default=400)
    cost.add_argument("--concurrency", type=int, default=64, help="judge calls in flight")
    cost.add_argument("--latency_s", type=float, nargs=2, default=[3.0, 9.0], help="median, p95")
    cost.add_argument("--step_groups", type=int, default=8, help="K for wall-clock and dollars")
    running = made.add_argument_group("running")
    running.add_argument("--workers", type=int, default=2, help="processes")
    running.add_argument(
        "--pareto",
        type=int,
        default=0,
        metavar="TRIALS",
        help="search fidelity against calls with NSGA-II instead of the grid",
    )
    running.add_argument("--work", type=Path, default=Path("runs/topology_fidelity"))
    running.add_argument("--out", type=Path, default=Path("reports/topology_fidelity"))
    running.add_argument(
        "--wandb", choices=["off", "offline", "online"], default="offline", help="tables, pictures"
    )
    running.add_argument("--wandb_cells", action="store_true", help="also one W&B run a cell")
    running.add_argument("--publish", action="store_true", help="make a W&B Report (needs login)")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the study; return the exit code."""
    options = parser().parse_args(arguments)
    # Before NumPy is loaded: workers are processes, and small matrices gain nothing from threads.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from arena_lightning.errors import ArenaLightningError
    from arena_lightning.reporting.topology_study import run_study

    command = " ".join([COMMAND, *(sys.argv[1:] if arguments is None else arguments)])
    try:
        run_study(options, command)
    except ArenaLightningError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on where it was", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
