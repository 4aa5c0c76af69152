from pathlib import Path

import pytest

from arena_lightning.rollout.chat import ChatMLFormat
from tests.rollout.tiny_model import write_model, write_tokenizer


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_tokenizer(folder)
    write_model(folder)
    return folder


@pytest.fixture(scope="session")
def chat(model_dir: Path) -> ChatMLFormat:
    return ChatMLFormat(model_dir)
