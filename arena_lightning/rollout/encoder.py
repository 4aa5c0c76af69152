"""Text to ids with control tokens out of reach of text.

Control tokens (`<|im_end|>`, `<tool_call>` where a model has it as one token, ...) are put in by
id and nowhere else. All text goes through a copy of the tokenizer that knows none of them, so that
a query or an observation which spells one out becomes ordinary text and can't close a turn.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from arena_lightning.errors import ConfigError


class TextEncoder:
    """A model folder's tokenizer, split into control tokens and plain text.

    Args:
        model_dir: folder with `tokenizer.json`.
    """

    def __init__(self, model_dir: Path | str) -> None:
        self.path = Path(model_dir) / "tokenizer.json"
        if not self.path.is_file():
            raise ConfigError(
                f"the model folder must hold tokenizer.json, got none ({self.path}). "
                "Save a fast tokenizer there with its save_pretrained."
            )
        spec = json.loads(self.path.read_text(encoding="utf-8"))
        self._control = {token["content"]: token["id"] for token in spec["added_tokens"]}
        self._whole = Tokenizer.from_file(str(self.path))
        spec |= {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
        self._plain = Tokenizer.from_str(json.dumps(spec))

    def text(self, text: str) -> list[int]:
        """Return the ids of text, in which no control token is recognised."""
        return self._plain.encode(text, add_special_tokens=False).ids

    def control(self, token: str) -> int | None:
        """Return a control token's id, None when the tokenizer has no such token."""
        return self._control.get(token)

    def marked(self, text: str) -> list[int]:
        """Return the ids of trusted text, in which control tokens are recognised."""
        return self._whole.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, control tokens spelled out."""
        return self._whole.decode(list(ids), skip_special_tokens=False)
