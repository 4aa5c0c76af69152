"""The cold start behind a recipe: trained once, found again by its content, resumed when killed.

The address is a hash of the recipe's YAML and of the code that makes its data, so a changed recipe
trains anew and an unchanged one never does.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import yaml

import arena_lightning
from arena_lightning.errors import ConfigError

COLD_START_ROOT = Path("runs/cold_start")
DATA_SOURCES = (
    "tasks/travel",
    "rollout/chat.py",
    "rollout/encoder.py",
    "rollout/formats.py",
    "rollout/template_format.py",
    "rollout/turns.py",
    "training/sft.py",
)
"""Code that decides what the cold start is trained on; a change of it is another recipe."""


def ensure_cold_start(config: Path, root: Path = COLD_START_ROOT) -> Path:
    """Return the folder of the cold-started model, training it first when there is none.

    Args:
        config: a config for `fit` whose model is an `SFTModule`.
        root: where cold starts are kept, each below its address.

    Raises:
        ConfigError: the recipe is missing or unreadable, or its training failed.
    """
    address = recipe_address(config)
    home = root / address
    model_dir = home / "model"
    if model_dir.is_dir():
        print(f"cold start: {model_dir} (recipe {config})", flush=True)
        return model_dir
    recipe = yaml.safe_load(config.read_text())
    expected = recipe.get("expected_minutes", "some")
    has_run = any((home / "run").glob("*/checkpoints/last.ckpt"))
    print(
        f"cold start: no model for {config} yet; "
        f"{'going on with' if has_run else 'training'} it once (about {expected} minutes on two "
        f"cores), kept in {home}",
        flush=True,
    )
    command = [
        *(sys.executable, "-m", "arena_lightning", "fit", "--config", str(config)),
        *("--run_dir", str(home / "run"), "--model.init_args.export_dir", str(model_dir)),
        *(("--ckpt_path", "last") if has_run else ()),
    ]
    code = subprocess.run(command, check=False).returncode
    if code in (130, -2):
        raise KeyboardInterrupt
    if code or not model_dir.is_dir():
        raise ConfigError(
            f"the cold start must leave a model in {model_dir}, but it ended with exit code {code} "
            f"({config}). See its messages above; the same command goes on where it stopped."
        )
    return model_dir


def recipe_address(config: Path) -> str:
    """Return the content address of a recipe: its settings and the code that makes its data.

    Raises:
        ConfigError: the file is missing or not a YAML mapping.
    """
    try:
        recipe = yaml.safe_load(config.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(
            f"cold_start must name a readable YAML config, got {error} ({config}). "
            "Correct the path or the file."
        ) from error
    if not isinstance(recipe, dict):
        raise ConfigError(
            f"cold_start must name a YAML mapping, got {type(recipe).__name__} ({config})."
        )
    recipe.pop("run_dir", None)
    recipe.pop("expected_minutes", None)
    digest = hashlib.sha256(yaml.safe_dump(recipe, sort_keys=True).encode())
    package = Path(arena_lightning.__file__).parent
    for source in DATA_SOURCES:
        path = package / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if file.name != "judge.py":
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
