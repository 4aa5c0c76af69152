"""Finds known names in text by tokens, and counts words, in English and Chinese."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?", re.UNICODE)
CJK = re.compile(r"[\u3400-\u9fff]")


class NameIndex:
    """Finds known names in text by their tokens: in time linear in the text."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Index `alias -> canonical name`; case is ignored."""
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        last_words = set()
        for alias, name in names.items():
            tokens = tuple(tokens_of(alias))
            if tokens:
                self._by_first.setdefault(tokens[0], []).append((tokens, name))
                last_words.add(tokens[-1])
        for candidates in self._by_first.values():
            candidates.sort(key=lambda item: -len(item[0]))
        self._last_words = frozenset(last_words)

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Return (start, end, name) of the names in `text`, longest match first, no overlaps."""
        spans = _token_spans(text)
        words = [word for word, _, _ in spans]
        found = []
        position = 0
        while position < len(words):
            for tokens, name in self._by_first.get(words[position], ()):
                if tuple(words[position : position + len(tokens)]) == tokens:
                    last = position + len(tokens) - 1
                    found.append((spans[position][1], spans[last][2], name))
                    position = last
                    break
            position += 1
        return found

    def looks_like_a_name(self, text: str) -> bool:
        """Whether capitalised words end in a word that ends known names ("Ghost Cafe")."""
        tokens = [token for token in text.split() if token]
        if not 2 <= len(tokens) <= 5 or not all(token[0].isupper() for token in tokens):
            return False
        return tokens[-1].lower().strip(".,;:!*") in self._last_words


def num_words(text: str) -> float:
    """Count words; a Chinese character is 0.6 of one."""
    return sum(0.6 if CJK.match(token) else 1.0 for token in tokens_of(text))


@lru_cache(maxsize=1 << 14)
def _token_spans(text: str) -> tuple[tuple[str, int, int], ...]:
    """Return lower-case tokens with their places; a Chinese character is a token.

    Cached: the lines of one group's answers and observations repeat.
    """
    return tuple(_read_tokens(text))


def _read_tokens(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _TOKEN.finditer(text):
        start, end, token = match.start(), match.end(), match.group()
        if token.isascii():
            yield token.lower(), start, end
            continue
        begin = 0
        for offset, character in enumerate(token):
            if CJK.match(character):
                if begin < offset:
                    yield token[begin:offset].lower(), start + begin, start + offset
                yield character, start + offset, start + offset + 1
                begin = offset + 1
        if begin < len(token):
            yield token[begin:].lower(), start + begin, end


def tokens_of(text: str) -> list[str]:
    return [token for token, _, _ in _token_spans(text)]
