"""Sources of verdicts by name: plain settings into sources that worker processes can rebuild.

    names, banks, changes -> settings (JSON) -> build_sources -> VerdictSource

The names are those of the study's command line. It draws nothing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from arena_lightning.analysis.bank import BankSource, load_bank, sizes_of
from arena_lightning.analysis.fitting import fit_names, load_fit
from arena_lightning.analysis.simulated import NoiseModel, SimulatedSource, noise_from
from arena_lightning.analysis.verdict_batch import VerdictSource
from arena_lightning.errors import ConfigError

SIMULATED: Mapping[str, NoiseModel] = {
    # Both orders summed leave a noise of 0.5 on a spread of 1: the reference figures' setting.
    "cardinal": NoiseModel(score_noise=0.5 * 2**0.5),
    # Logistic, scale 0.5, winners only.
    "win_lose": NoiseModel(score_noise=0.5, win_lose=True),
    # The calibrated faults of `judges/simulated.py`, on a grid of half points and with some pairs
    # that no order explains.
    "llm_like": NoiseModel(
        spread=1.4,
        compression=0.9,
        score_noise=0.6,
        position_bias=0.3,
        tie_grid=0.5,
        intransitivity=0.3,
    ),
}
BIASES = (0.0, 0.5, 1.0, 2.0)
TIE_GRIDS = (0.0, 0.5, 1.0, 2.0)


def source_settings(
    judges: Sequence[str], banks: Sequence[Path], changes: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return name -> plain settings of each source.

    Args:
        judges: names of simulated judges.
        banks: recorded banks; each is named by its file.
        changes: "key=value" settings laid over the simulated judges.

    Raises:
        ConfigError: an unknown judge, or a change that no noise model has.
        DataError: a bank that can't be read; file and line are named.
    """
    changed = _changes(changes)
    settings: dict[str, dict[str, Any]] = {}
    fitted = fit_names()
    for name in judges:
        if name not in SIMULATED and name not in fitted:
            raise ConfigError(
                f"judges must be among {', '.join([*SIMULATED, *fitted])}, got {name!r} "
                "(--judges). Name one of them, or give a recorded bank with --bank."
            )
        noise = SIMULATED[name] if name in SIMULATED else load_fit(name).noise
        values = {item: getattr(noise, item) for item in NoiseModel.__slots__} | changed
        noise_from(values)
        settings[name] = {"kind": "simulated", "noise": values}
        if name in fitted:
            settings[name]["fitted_to"] = load_fit(name).source
    for path in banks:
        if path.stem in settings:
            raise ConfigError(
                f"sources must have different names, got {path.stem!r} twice (--bank {path}). "
                "Rename the file."
            )
        bank = load_bank(path)
        settings[path.stem] = {
            "kind": "bank",
            "path": str(path),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "max_size": max(sizes_of(bank)),
            "judge": bank.judge,
            "num_groups": len(bank.groups),
        }
    return settings


def effect_settings() -> dict[str, dict[str, Any]]:
    """Return judges that differ in one fault: "bias=b" and "ties=t" for each level."""
    base = SIMULATED["cardinal"]
    varied = {f"bias={bias:g}": replace(base, position_bias=bias) for bias in BIASES}
    varied |= {f"ties={grid:g}": replace(base, tie_grid=grid) for grid in TIE_GRIDS}
    return {
        name: {
            "kind": "simulated",
            "noise": {item: getattr(noise, item) for item in NoiseModel.__slots__},
        }
        for name, noise in varied.items()
    }


def build_sources(settings: Mapping[str, Any]) -> dict[str, VerdictSource]:
    """Return the sources of plain settings.

    Raises:
        DataError: a bank that can't be read.
    """
    return {name: _build(name, values) for name, values in settings.items()}


def _build(name: str, values: Mapping[str, Any]) -> VerdictSource:
    if values["kind"] == "bank":
        return BankSource(load_bank(Path(values["path"])))
    return SimulatedSource(name, noise_from(values["noise"]))


def describe(name: str, values: Mapping[str, Any]) -> str:
    """Return a line about a source."""
    if values["kind"] == "bank":
        return (
            f"{name}: {values['num_groups']} recorded groups, judge {values['judge']}, groups of "
            f"at most {values['max_size']}"
        )
    fitted = f" (fitted to {values['fitted_to']})" if "fitted_to" in values else ""
    return f"{name}: simulated{fitted}, {noise_from(values['noise']).describe()}"


def _changes(changes: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for change in changes:
        name, _, value = change.partition("=")
        try:
            found[name] = value == "true" if value in ("true", "false") else float(value)
        except ValueError as error:
            raise ConfigError(
                f"a change of a judge must be KEY=NUMBER or KEY=true, got {change!r} (--noise). "
                "Correct it."
            ) from error
    return found
