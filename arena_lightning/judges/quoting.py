"""Makes untrusted text safe to show to a judge: visible, without forged marks, bounded.

    raw text -> `clean` -> `cut` -> `quoted` (every line begins with the quote bar)

What a model could mistake for structure is replaced by look-alikes that no template knows: angle
brackets of tags, instruction brackets, role headings, our own marks. Hidden characters are counted
in the open. It changes how text looks, and doesn't decide whether it is an attack.
"""

import re

BAR = "| "
"""Begins every quoted line; no line of our own begins with it."""
_OPEN, _CLOSE = "⟨", "⟩"
"""Brackets of our own marks; they don't survive `clean`."""
_NEWLINES = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# Emoji and hyphenation use these one at a time; alone they hide nothing.
_HARMLESS = "\u00ad\u200d\ufe0e\ufe0f"
_HIDDEN = (
    "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"  # control characters
    "\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\ud800-\udfff\ue000-\uf8ff"  # surrogates, private use
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff"  # tags, further selectors, private use
)
_HIDDEN_RUN = re.compile(f"[{_HIDDEN}]+")
_LESS_THAN = re.compile(r"[<＜﹤](?=[^\s\d=])|(?<=[<＜﹤])[<＜﹤]")
_MANY_GREATER = re.compile(r"[>＞﹥]{2,}")
_TAG_END = re.compile(r"(‹[^<>‹›\n]{0,200})[>＞﹥]")
_PIPE_END = re.compile(r"([|｜])[>＞﹥]")
_INSTRUCTION = re.compile(r"\[(/?(?:[A-Z]{2,}[A-Z_]*|[a-z]+_[a-z_]+))\]")
_ROLE_LINE = re.compile(
    r"^(\W{0,8})(system|developer|user|human|assistant|ai|judge|tool|observation"
    r"|系统|用户|助手|评委)(\W{0,3}[:：])",
    re.IGNORECASE | re.MULTILINE,
)
_RULE_LINE = re.compile(r"^[ \t]*([=\-#*_~`])\1{2,}", re.MULTILINE)


def clean(text: str) -> str:
    """Return the text with hidden characters counted and forgeable marks replaced.

    Cleaning twice changes nothing more except our own marks, whose brackets fall.
    """
    text = _NEWLINES.sub("\n", text)
    text = text.replace(_OPEN, "〈").replace(_CLOSE, "〉")
    text = _HIDDEN_RUN.sub(_tell_hidden, text)
    text = _LESS_THAN.sub("‹", text)
    text = _MANY_GREATER.sub(lambda match: "›" * len(match[0]), text)
    text = _TAG_END.sub(r"\1›", text)
    text = _PIPE_END.sub(r"\1›", text)
    text = _INSTRUCTION.sub(r"〔\1〕", text)
    text = _RULE_LINE.sub(lambda match: "·" + match[1], text)
    return _ROLE_LINE.sub(r"\1‹\2›\3", text)


def _tell_hidden(match: re.Match[str]) -> str:
    run = match[0]
    if len(run) == 1 and run in _HARMLESS:
        return ""
    return f"{_OPEN}{len(run)} hidden characters{_CLOSE}"


def cut(text: str, max_chars: int) -> str:
    """Return at most `max_chars` characters and a mark that says how many were left out."""
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}{_OPEN}cut: {len(text) - max_chars} characters left out{_CLOSE}"


def quoted(text: str) -> str:
    """Return the text with the quote bar before every line, so that no line looks like ours."""
    return "\n".join(BAR + line for line in text.split("\n"))
