"""Say how the judge of a bank judges: `python studies/describe_bank.py BANK [BANK ...]`.

Prints Markdown: flips, ties, first-slot share, failures, cycles, discrimination, what more calls
buy, and which dimensions agree with the verdict. Reads banks that `record_bank.py` or
`convert_public_data.py` wrote; it asks no judge.
"""

import argparse
import os
import sys
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

RATES = {
    "num_failed": "failed calls",
    "tie_rate": "ties, of single calls",
    "first_share": "decided calls won by the one shown first",
    "inconsistent_rate": "pairs whose two orders differ",
    "flip_rate": "pairs whose winner the order reverses",
    "summed_tie_rate": "pairs tied once both orders are summed",
    "cycle_rate": "triads that are cycles, both orders",
    "one_order_cycle_rate": "triads that are cycles, one random order",
    "spread": "sd of contestants within a group, points",
    "noise": "sd of one score around its contestant's mean, points",
    "discrimination": "spread / noise",
}


def main() -> int:
    """Describe each bank."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("banks", type=Path, nargs="+", metavar="BANK")
    options = parser.parse_args()
    from arena_lightning.analysis.bank import load_bank
    from arena_lightning.errors import ArenaLightningError

    try:
        for path in options.banks:
            print("\n".join(describe(load_bank(path))))
    except ArenaLightningError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def describe(bank) -> list[str]:
    """Return the lines about a bank.

    Raises:
        DataError: its groups have different sizes.
    """
    from arena_lightning.analysis.judging import dimension_agreement, reliability, report_judging

    batch = bank.batch()
    report = report_judging(batch)
    lines = [
        f"## {bank.name}",
        "",
        f"{report.num_groups} groups of {batch.size}, {report.num_calls} calls, judge "
        f"{bank.judge}; {bank.scale}.",
        "",
        "| of the judge | |",
        "|---|---|",
    ]
    for name, words in RATES.items():
        value = getattr(report, name)
        lines.append(f"| {words} | {value if isinstance(value, int) else f'{value:.3f}'} |")
    lines += ["", "| calls a contestant | tau between two halves | 95% interval |", "|---|---|---|"]
    for calls, tau in reliability(batch).items():
        lines.append(f"| {calls:g} | {tau.mean:.3f} | {tau.low:.3f} to {tau.high:.3f} |")
    lines += ["", "The halves meet different opponents: a faultless judge stays below 1, too."]
    agreement = dimension_agreement(bank)
    if agreement:
        lines += ["", "| dimension | names the verdict's winner |", "|---|---|"]
        lines += [f"| {name} | {share:.3f} |" for name, share in sorted(agreement.items())]
    return [*lines, ""]


if __name__ == "__main__":
    raise SystemExit(main())
