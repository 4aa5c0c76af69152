"""Reads scores out of a judge's reply: lenient about the wrapping, never about the content.

    reply text -> the one JSON object in it -> checked dimension scores per side, or `ReadError`

Code fences, prose around the object and trailing commas are wrapping. A missing or further side or
dimension, a key given twice, text for a number, a value outside the scale or a cut-off object are
content: there is no verdict then. Nothing is repaired or guessed, and nothing is added up.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arena_lightning.errors import JudgeError
from arena_lightning.judges.rubric import Rubric

_Score = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


class ReadError(JudgeError):
    """A reply came, and holds no verdict that could be trusted."""


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    analysis: Any = None
    """Words for people; nothing hangs on them."""
    scores: dict[str, dict[str, _Score]]


def read_scores(text: str, rubric: Rubric, sides: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return side -> dimension -> points, in the order of `sides` and of the rubric.

    Args:
        text: the model's whole reply.
        rubric: names the dimensions and the scale.
        sides: keys that `scores` must have, all of them and no other.

    Raises:
        ReadError: there is no verdict in the reply.
    """
    try:
        reply = _Reply.model_validate(_object_in(text))
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        raise ReadError(
            f"a reply must be scores by side and dimension, got {fault['msg']!r} (key {key}). "
            "The match counts as failed."
        ) from error
    _check_names(reply.scores, sides, "side", "scores")
    for side in sides:
        _check_names(reply.scores[side], rubric.dimension_names, "dimension", f"scores.{side}")
        for name, value in reply.scores[side].items():
            if not (math.isfinite(value) and 0 <= value <= rubric.scale):
                raise ReadError(
                    f"a score must lie in 0-{rubric.scale:g}, got {value:g} (scores.{side}: "
                    f"{name}). The match counts as failed."
                )
    return {
        side: {name: float(reply.scores[side][name]) for name in rubric.dimension_names}
        for side in sides
    }


def schema_for(
    rubric: Rubric, sides: Sequence[str], with_analysis: bool = True
) -> Mapping[str, Any]:
    """Return the reply's JSON schema. Closed, everything required, analysis before scores."""
    score = {"type": "integer", "minimum": 0, "maximum": math.floor(rubric.scale)}
    side = _closed(dict.fromkeys(rubric.dimension_names, score))
    parts = {"scores": _closed(dict.fromkeys(sides, side))}
    if with_analysis:
        words = _closed({key: {"type": "string"} for key in sides})
        parts = {"analysis": words, **parts}
    return _closed(parts)


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _check_names(found: Mapping[str, Any], wanted: Sequence[str], kind: str, where: str) -> None:
    missing = [name for name in wanted if name not in found]
    unknown = [name for name in found if name not in wanted]
    if missing or unknown:
        raise ReadError(
            f"a reply must have every {kind} and no other, got {len(missing)} missing "
            f"({', '.join(missing)[:200]}) and {len(unknown)} unknown "
            f"({', '.join(unknown)[:200]}) (key {where}). The match counts as failed."
        )


def _object_in(text: str) -> Any:
    """Return the object from the first brace to the last one.

    What stands between them is one object or nothing: looking for a smaller object inside would
    find the fake verdict that a judge quotes.
    """
    thought = _THOUGHT.match(text)
    text = text[thought.end() :] if thought else text
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise ReadError(
            f"a reply must hold a JSON object, got none in {len(text)} characters. The match "
            "counts as failed."
        )
    whole = text[start : end + 1]
    try:
        return _parse(whole)
    except json.JSONDecodeError:
        whole = _STRING_OR_COMMA.sub(lambda match: match[1] or "", whole)
    try:
        return _parse(whole)
    except json.JSONDecodeError as error:
        raise ReadError(
            f"a reply must hold one complete JSON object, got {error}. The match counts as failed."
        ) from error


def _parse(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:  # digits without end, brackets without end
        raise ReadError(
            f"a reply must be of sane size, got {type(error).__name__} while reading. The match "
            "counts as failed."
        ) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = sorted({name for name in names if names.count(name) > 1})
        raise ReadError(
            f"a reply must name each key once, got {', '.join(doubled)[:200]} more than once. The "
            "match counts as failed."
        )
    return found


def _no_constant(name: str) -> float:
    raise ReadError(f"a score must be a finite number, got {name}. The match counts as failed.")
