"""Fit noise models to real judges: `python studies/fit_judges.py --data FOLDER`.

Reads public pairwise data (the format of `analysis/bank_format.py`): round robins in both orders,
pairs with human labels, calls made three times. Writes one JSON a judge, which
`topology_fidelity.py --judges NAME` then plays at any group size.
"""

import argparse
import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

ROUND_ROBINS = {
    "gpt4_like_vicuna80": "qlora_vicuna80_gpt4_roundrobin.jsonl",
    "gpt4_like_oa150": "qlora_oa_gpt4_roundrobin150.jsonl",
}
LABELLED = {"gpt4_like_llmbar": "GPT-4", "chatgpt_like": "ChatGPT", "falcon_like": "Falcon"}
REPEATS = {"GPT-4": "gpt-4-0613", "ChatGPT": "gpt-3.5-turbo-1106"}
CHANCE = 0.5
"""Chance that fresh noise gives the same answer: at least a coin's."""


def main() -> int:
    """Fit every judge and print how well each fits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--data", type=Path, required=True, help="folder of the pairwise files")
    parser.add_argument("--out", type=Path, help="where the fits go; default: the package's own")
    options = parser.parse_args()
    from arena_lightning.analysis import fitting
    from arena_lightning.analysis.bank import load_bank
    from arena_lightning.errors import ArenaLightningError

    out = options.out or fitting.FITS
    try:
        repeats = options.data / "mtbench_star_repeats_9judges.jsonl"
        stable = {
            judge: fitting.stable_fraction(read_repeats(repeats, model), CHANCE)
            for judge, model in REPEATS.items()
        }
        fits = [
            fitting.fit_round_robins(
                load_bank(options.data / file, complete=False), name, file, stable["GPT-4"]
            )
            for name, file in ROUND_ROBINS.items()
        ]
        for name, judge in LABELLED.items():
            outcomes = read_labelled(options.data / "llmbar.jsonl", judge)
            source = f"llmbar.jsonl, judge {judge}, all prompting strategies"
            fits.append(fitting.fit_labelled_pairs(outcomes, name, source, stable.get(judge, 0.0)))
    except ArenaLightningError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for fit in fits:
        print(f"{fit.name}: {fit.noise.describe()} -> {fitting.save_fit(fit, out)}")
        for rate, seen in fit.observed.items():
            error = fit.standard_errors[rate]
            print(f"  {rate:22} observed {seen:.3f} +- {error:.3f}  fitted {fit.fitted[rate]:.3f}")
    return 0


def read_repeats(path: Path, judge: str) -> list[list[str]]:
    """Return the answers to each call that a judge was asked three times."""
    from arena_lightning.analysis.public_data import load_calls

    answers: dict[tuple, list[str]] = {}
    for group in load_calls(path, judge):
        for call in group.calls:
            key = (group.group_id, call.a, call.b, call.a_is_first)
            answers.setdefault(key, []).append(call.winner)
    return [winners for winners in answers.values() if len(winners) == 3]


def read_labelled(path: Path, judge: str):
    """Return the outcomes of a judge's pairs for `fit_labelled_pairs`, failed calls left out."""
    import numpy as np

    from arena_lightning.analysis.public_data import load_calls

    outcomes = []
    for group in load_calls(path, judge):
        by_order = {call.a_is_first: call.winner for call in group.calls}
        # Order 0 shows the better side first.
        a_is_better = group.label == "a"
        answers = [by_order.get(order, "failed") for order in (a_is_better, not a_is_better)]
        if "failed" not in answers:
            outcomes.append([0 if a == "tie" else 1 if a == group.label else -1 for a in answers])
    return np.array(outcomes)


if __name__ == "__main__":
    raise SystemExit(main())
