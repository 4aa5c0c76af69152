"""Which chat format a model folder speaks: its own template where that knows tools, else ChatML."""

import json
from pathlib import Path

from arena_lightning.errors import ConfigError
from arena_lightning.rollout.chat import ChatFormat, ChatMLFormat
from arena_lightning.rollout.template_format import TemplateFormat
from arena_lightning.rollout.turns import CALL_START


def chat_format_for(model_dir: Path | str) -> ChatFormat:
    """Return the chat format of a model folder.

    A template that offers tools in the `<tool_call>` notation is followed; a model without one
    that has ChatML's tokens gets our compact ChatML.

    Raises:
        ConfigError: the folder has no tokenizer.json, or neither of the two applies.
    """
    template = chat_template_of(Path(model_dir))
    if "tools" in template and CALL_START in template:
        return TemplateFormat(model_dir)
    return ChatMLFormat(Path(model_dir))


def chat_template_of(model_dir: Path) -> str:
    """Return the folder's chat template, "" when it has none."""
    path = model_dir / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    path = model_dir / "tokenizer_config.json"
    if not path.is_file():
        return ""
    try:
        template = json.loads(path.read_text(encoding="utf-8")).get("chat_template") or ""
    except ValueError as error:
        raise ConfigError(
            f"tokenizer_config.json must be JSON, got {error} ({path}). Save the tokenizer again."
        ) from error
    return template if isinstance(template, str) else json.dumps(template)
