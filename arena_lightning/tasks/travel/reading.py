"""Reads a final answer: which known things it lists, what it says of each, what is only words.

`read_answer` turns text into lines with names, facts and their owners, for `rubric.py`. It knows
which names exist (the index) but not which statements are true. Lines copied from the query or
said before count for nothing but length.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from arena_lightning.tasks.travel.facts import Fact, facts_in
from arena_lightning.tasks.travel.names import CJK, NameIndex, num_words, tokens_of
from arena_lightning.tasks.travel.wording import (
    AFTER_DIFFERENCE,
    BEFORE_DIFFERENCE,
    BULLET,
    DAY,
    HEAD,
    LABEL,
    MODES,
    PICK,
    RIDE,
    RUN,
    TO_THE_JUDGE,
    TOOL_SYNTAX,
    TOTAL,
    WEATHER,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an answer, after copies and repeats were taken out."""

    text: str
    names: tuple[str, ...]
    """Known names that the query didn't give, in order, repeats kept."""
    facts: tuple[tuple[str, Fact], ...]
    """Facts with the name that each belongs to; "" when the line names nothing."""
    name_starts: tuple[tuple[int, str], ...]
    mode_starts: tuple[tuple[int, str], ...]
    """Where ways of going are named, and which."""
    pick_start: int
    """Where a pick is announced, -1 for nowhere."""
    total_start: int
    is_weather: bool
    carried: bool
    """Whether its facts belong to a name of an earlier line."""
    num_words: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says, by line, and how much of it is beside the point."""

    lines: tuple[Line, ...]
    unknown_names: tuple[str, ...]
    """Things it lists that no index knows: invented."""
    wasted_words: float
    """Words in lines copied from the query, said before, or talking to the judge."""
    num_repeats: int
    num_addressing: int
    """Lines that talk to the judge."""
    num_tool_leaks: int
    """Lines with tool-call or template syntax."""
    num_retold: int
    """Facts that stand in more than one line, picks and totals apart."""
    num_days: int
    """Distinct days that have a heading ("Day 2")."""


def read_answer(
    text: str, query: str, places: NameIndex, numbers: NameIndex, given: frozenset[str]
) -> Reading:
    """Read a final answer.

    Args:
        text: the answer.
        query: the user's words; lines copied from it are not an answer.
        places: every place of the cities asked about.
        numbers: flight and train numbers seen in this trajectory.
        given: canonical names that the query itself gave; they are not listed by the answer.
    """
    query_grams = _grams(tokens_of(query), 3)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    named: set[str] = set()
    said_grams: set[tuple[str, ...]] = set()
    lines: list[Line] = []
    told: set[tuple[str, str, float | str]] = set()
    num_retold = 0
    unknown: dict[str, None] = {}
    wasted_words, num_repeats, num_addressing, num_leaks = 0.0, 0, 0, 0
    carried = ""
    for raw in text.splitlines():
        tokens = tuple(tokens_of(raw))
        if not tokens:
            carried = ""
            continue
        num_leaks += bool(TOOL_SYNTAX.search(raw))
        known = sorted(places.find(raw) + numbers.find(raw))
        listed = [span for span in known if span[2] not in given]
        addresses = bool(TO_THE_JUDGE.search(raw))
        num_addressing += addresses
        # "- 8 EUR" may stand under two places: it repeats only what was said of the same one.
        said_of = (carried if BULLET.match(raw) and not known else "", tokens)
        things = {name for _, _, name in listed} | {m.lastgroup or "" for m in MODES.finditer(raw)}
        is_news = bool(things - named) or PICK.search(raw)
        repeated = said_of in seen or (not is_news and _is_copy(tokens, said_grams, 2, 0.75))
        num_repeats += repeated
        seen.add(said_of)
        named |= things
        said_grams |= _grams(tokens, 2)
        strange = dict.fromkeys(_unknown_names(raw, known, places))
        unknown |= strange
        if strange:
            carried = ""
        of_before, carried = carried, listed[-1][2] if listed else carried
        copied = not is_heading(raw) and _is_copy(tokens, query_grams, 3, 0.6)
        if repeated or copied or (addresses and not listed):
            wasted_words += num_words(raw)
            continue
        line = _line(raw, listed, of_before)
        lines.append(line)
        if line.pick_start < 0 and line.total_start < 0:
            said = {(owner, fact.kind, fact.value) for owner, fact in line.facts}
            num_retold += len(said & told)
            told |= said
    days = {match.group() for line in lines for match in DAY.finditer(line.text)}
    return Reading(
        tuple(lines),
        tuple(unknown),
        wasted_words,
        num_repeats,
        num_addressing,
        num_leaks,
        num_retold,
        min(len(days), 14),
    )


def _line(raw: str, listed: list[tuple[int, int, str]], carried: str) -> Line:
    masked = raw
    for start, end, _ in listed:
        masked = masked[:start] + "#" * (end - start) + masked[end:]
    modes = tuple((match.start(), match.lastgroup or "") for match in MODES.finditer(masked))
    pick, total = PICK.search(masked), TOTAL.search(masked)
    is_weather = bool(WEATHER.search(masked))
    anchors: Sequence[tuple[int, str]] = [(start, name) for start, _, name in listed] or modes
    takes_up = bool(not anchors and carried and not (pick or total or is_weather))
    if takes_up:
        anchors = [(0, carried)]
    return Line(
        text=raw,
        names=tuple(name for _, _, name in listed),
        facts=tuple(
            (_owner(fact, anchors), fact)
            for fact in facts_in(masked)
            if not _is_difference(masked, fact)
        ),
        name_starts=tuple((start, name) for start, _, name in listed),
        mode_starts=modes,
        pick_start=pick.start() if pick else -1,
        total_start=total.start() if total else -1,
        is_weather=is_weather,
        carried=takes_up,
        num_words=num_words(raw),
    )


def _is_difference(text: str, fact: Fact) -> bool:
    """Whether a figure compares ("by 9 min", "3 EUR cheaper") instead of stating a property."""
    before, after = text[max(0, fact.start - 12) : fact.start], text[fact.end : fact.end + 12]
    return bool(BEFORE_DIFFERENCE.search(before) or AFTER_DIFFERENCE.search(after))


def _owner(fact: Fact, anchors: Sequence[tuple[int, str]]) -> str:
    """A fact belongs to the last name before it, or to the first name of its line."""
    before = [name for start, name in anchors if start <= fact.start]
    return before[-1] if before else (anchors[0][1] if anchors else "")


def _grams(tokens: Iterable[str], size: int) -> frozenset[tuple[str, ...]]:
    words = list(tokens)
    return frozenset(tuple(words[i : i + size]) for i in range(len(words) - size + 1))


def is_heading(text: str) -> bool:
    """Whether a line is written as a heading: "Cafes:", "## Cafes", "**Cafes**"."""
    bare = text.strip()
    bold = bare.startswith("**") and bare.endswith("**") and bare.count("**") == 2
    return bold or bare.startswith("#") or bare.rstrip(" *").endswith((":", "："))


def _is_copy(tokens: tuple[str, ...], source: Set[tuple[str, ...]], size: int, most: float) -> bool:
    """Whether more than a share of a line's runs of `size` words stand in the source too."""
    grams = _grams(tokens, size)
    return len(tokens) >= 5 and sum(gram in source for gram in grams) > most * len(grams)


def _unknown_names(raw: str, known: list[tuple[int, int, str]], places: NameIndex) -> Iterator[str]:
    """Yield what a line lists that nobody knows: names, ride numbers, unknown heads of bullets."""
    masked = raw
    for start, end, _ in known:
        masked = masked[:start] + "#" * (end - start) + masked[end:]
    for run in RUN.findall(masked):
        words = run.split()
        for first in range(len(words) - 1):
            if places.looks_like_a_name(" ".join(words[first:])):
                yield " ".join(words[first:])
                return
    rides = RIDE.findall(masked)
    if rides:
        yield from rides
        return
    bullet = BULLET.match(raw)
    if not bullet or known:
        return
    head = HEAD.match(raw[bullet.end() :])
    name = head.group(1).strip(" *_") if head else ""
    if any(words.search(name) for words in (LABEL, MODES, PICK, TOTAL, WEATHER)):
        return
    if name and (name[0].isupper() or CJK.match(name)) and num_words(name) <= 5:
        yield name
