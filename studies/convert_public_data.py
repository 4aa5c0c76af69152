"""Turn public round robins into a judge bank: `python studies/convert_public_data.py IN OUT`.

The format is that of `arena_lightning/analysis/bank_format.py`. Calls that the source lacks are
written as failed, and counted; everything else that is wrong is refused with its line.
"""

import argparse
import sys
from pathlib import Path


def main() -> int:
    """Convert one file and say what is in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("input", type=Path, help="JSON lines of round robins by one judge")
    parser.add_argument("output", type=Path, help="the bank")
    options = parser.parse_args()
    from arena_lightning.analysis.bank import load_bank, save_bank, sizes_of
    from arena_lightning.errors import ArenaLightningError

    try:
        bank = load_bank(options.input, complete=False)
        save_bank(options.output, bank, source=options.input.name)
    except ArenaLightningError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    failed = sum(group.num_failed for group in bank.groups)
    calls = sum(group.size * (group.size - 1) for group in bank.groups)
    print(
        f"{options.output}: {len(bank.groups)} groups of {list(sizes_of(bank))}, judge "
        f"{bank.judge}, {bank.scale}; {failed} of {calls} calls missing, marked as failed"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
