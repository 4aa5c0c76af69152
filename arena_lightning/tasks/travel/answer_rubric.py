"""The answer side of the travel rubric: needs answered, feasible, exact, and not a word too many.

Credit comes only from what a need asked for; everything else can only subtract. A need whose list
is longer than asked earns nothing: a user who asks for two cafes wants a choice, and a judge that
pays for long lists gets whole observations copied back.
"""

from statistics import fmean

from arena_lightning.tasks.travel.answer_parts import answer_parts, unasked_things
from arena_lightning.tasks.travel.case import Case
from arena_lightning.tasks.travel.reading import Line, Reading, is_heading

_INVENTED_COST = {"relevance": 3.0, "feasibility": 3.0, "details": 2.0}
"""Points off for each thing listed that doesn't exist or was never observed."""
_UNASKED_COST = {"relevance": 1.5, "feasibility": 1.5, "details": 0.0}
"""Points off for each real, observed thing that no need asked for."""
_WORDS_A_LINE = 20.0
"""Words that a line with something to say has for nothing."""
_HEADER_WORDS = 16.0
_WORD_COST = 0.25
_LINE_COST = 1.0
_RETOLD_COST = 0.75
_LEAK_COST = 4.0
_ADDRESS_COST = 3.0


def answer_dimensions(case: Case) -> dict[str, float]:
    """Return relevance, feasibility, details and clarity, 0-10 each, 10 best.

    A trajectory that ended without an answer gets zeros.
    """
    if case.reading is None:
        return dict.fromkeys(("relevance", "feasibility", "details", "clarity"), 0.0)
    parts = answer_parts(case, case.reading)
    shares = {
        name: _mean([(getattr(part, name), part.weight) for part in parts])
        for name in ("relevance", "feasibility", "details")
    }
    invented, unasked = unasked_things(case, case.reading)
    scores = {
        name: 10.0 * share - invented * _INVENTED_COST[name] - unasked * _UNASKED_COST[name]
        for name, share in shares.items()
    }
    # An answer that answers nothing is not clear either, however tidy it looks.
    substance = min(1.0, 2.0 * max(0.0, shares["relevance"]))
    scores["clarity"] = substance * max(0.0, 10.0 - _clutter(case.reading))
    return {name: min(10.0, max(0.0, score)) for name, score in scores.items()}


def _mean(values: list[tuple[float | None, float]]) -> float:
    """Weighted mean over the parts that have the dimension."""
    kept = [(value, weight) for value, weight in values if value is not None]
    return fmean((v for v, _ in kept), [w for _, w in kept]) if kept else 0.0


def _clutter(reading: Reading) -> float:
    """Points off for words beside the point; grows with every word that is added."""
    points = _WORD_COST * reading.wasted_words + _LINE_COST * reading.num_repeats
    points += _LEAK_COST * reading.num_tool_leaks + _ADDRESS_COST * reading.num_addressing
    points += _RETOLD_COST * reading.num_retold
    headers = 0
    for line in reading.lines:
        if _says_something(line):
            points += _WORD_COST * max(0.0, line.num_words - _WORDS_A_LINE)
            continue
        is_header = is_heading(line.text) and line.num_words <= _HEADER_WORDS
        headers += is_header
        if not is_header or headers > 1 + reading.num_days:
            points += _LINE_COST + _WORD_COST * line.num_words
    return points


def _says_something(line: Line) -> bool:
    """Whether a line names a listed thing, or states a fact, a pick or a total."""
    if line.names or line.pick_start >= 0 or line.total_start >= 0:
        return True
    return bool(line.facts) and (bool(line.mode_starts) or line.is_weather or bool(line.carried))
