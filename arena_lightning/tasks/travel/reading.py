"""Reads a final answer: which known things it lists, what it says of each, what is only words.

`read_answer` turns text into lines with names, facts and their owners, for `rubric.py`. It knows
which names exist (the index) but not which statements are true. Lines copied from the query or
said before count for nothing but length.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from arena_lightning.tasks.travel.facts import Fact, facts_in

MODE_WORDS: Mapping[str, str] = {
    "walking": r"walk(?:ing|s)?|on foot|步行|走路",
    "electrobike": r"electrobik\w*|e-?bik\w*|electric bik\w*|电动车|电动自行车",
    "bicycling": r"bicycl\w*|cycl(?:e|ing)|bik(?:e|ing)|骑行|骑车|自行车",
    "transit": r"transit|public transport\w*|metro|bus|tram|公交|地铁|公共交通",
    "driving": r"driv(?:e|ing)|taxi|car|驾车|开车|打车|自驾",
    "flight": r"fl(?:y|ight|ights|ying)|plane|航班|飞机",
    "train": r"trains?|rail|火车|高铁|列车",
}
_MODES = re.compile(
    "|".join(rf"(?P<{mode}>(?<![a-z])(?:{words})(?![a-z]))" for mode, words in MODE_WORDS.items()),
    re.IGNORECASE,
)
_PICK = re.compile(
    r"\b(?:pick|recommend\w*|(?:my|best|top) (?:choice|option)|best overall"
    r"|i(?:'d| would) (?:choose|take|go|suggest))\b"
    r"|推荐|建议选|首选",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b(?:totals?|in total|sum|altogether)\b|总计|合计|共计|总共|总费用", re.IGNORECASE
)
_WEATHER = re.compile(
    r"\b(?:weather|forecast|rain|sunny|cloud\w*|snow|temperature)\b|天气|气温|降雨", re.I
)
_TOOL_SYNTAX = re.compile(
    r"</?(?:tool_call|tool_response|think|function|im_start|im_end)|<\|"
    r"|[\"']?(?:arguments|name)[\"']\s*:|\b(?:poi_search|around_search|search_flights|search_train_tickets"
    r"|web_search)\b|\bdirection\(|\bweather\(",
    re.IGNORECASE,
)
_TO_THE_JUDGE = re.compile(
    r"\b(?:judges?|grad(?:e|er|ing)|evaluat\w*|scor(?:e|es|ed|ing)|rubric|marks?|instructions?|10\s*/\s*10"
    r"|(?:ten|10) (?:points|out of))\b|评委|评审|打分|满分|裁判|给.{0,4}高分",
    re.IGNORECASE,
)
_DAY = re.compile(r"\bDay \d+|第\w天", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•·+]|\d{1,2}[.)、]|\|)\s*")
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?", re.UNICODE)
_CJK = re.compile(r"[\u3400-\u9fff]")


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
    num_days: int
    """Distinct days that have a heading ("Day 2")."""


class NameIndex:
    """Finds known names in text by their tokens: in time linear in the text."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Index `alias -> canonical name`; case is ignored."""
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        last_words = set()
        for alias, name in names.items():
            tokens = tuple(_tokens(alias))
            if tokens:
                self._by_first.setdefault(tokens[0], []).append((tokens, name))
                last_words.add(tokens[-1])
        for candidates in self._by_first.values():
            candidates.sort(key=lambda item: -len(item[0]))
        self._last_words = frozenset(last_words)

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Return (start, end, name) of the names in `text`, longest match first, no overlaps."""
        spans = list(_token_spans(text))
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
    return sum(0.6 if _CJK.match(token) else 1.0 for token in _tokens(text))


def _token_spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield lower-case tokens with their places; a Chinese character is a token."""
    for match in _TOKEN.finditer(text):
        start, end, token = match.start(), match.end(), match.group()
        if token.isascii():
            yield token.lower(), start, end
            continue
        begin = 0
        for offset, character in enumerate(token):
            if _CJK.match(character):
                if begin < offset:
                    yield token[begin:offset].lower(), start + begin, start + offset
                yield character, start + offset, start + offset + 1
                begin = offset + 1
        if begin < len(token):
            yield token[begin:].lower(), start + begin, end


def _tokens(text: str) -> list[str]:
    return [token for token, _, _ in _token_spans(text)]


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
    query_grams = _grams(_tokens(query))
    seen: set[tuple[str, ...]] = set()
    lines: list[Line] = []
    unknown: dict[str, None] = {}
    wasted_words, num_repeats, num_addressing, num_leaks = 0.0, 0, 0, 0
    carried = ""
    for raw in text.splitlines():
        tokens = tuple(_tokens(raw))
        if not tokens:
            carried = ""
            continue
        num_leaks += bool(_TOOL_SYNTAX.search(raw))
        known = sorted(places.find(raw) + numbers.find(raw))
        listed = [span for span in known if span[2] not in given]
        addresses = bool(_TO_THE_JUDGE.search(raw))
        num_addressing += addresses
        repeated = tokens in seen
        num_repeats += repeated
        seen.add(tokens)
        unknown.update(dict.fromkeys(_unknown_names(raw, known, places)))
        if repeated or (addresses and not listed) or _is_copy(tokens, query_grams):
            wasted_words += num_words(raw)
            continue
        line = _line(raw, listed, carried)
        lines.append(line)
        if line.names:
            carried = line.names[-1]
    days = {match.group() for line in lines for match in _DAY.finditer(line.text)}
    return Reading(
        tuple(lines),
        tuple(unknown),
        wasted_words,
        num_repeats,
        num_addressing,
        num_leaks,
        min(len(days), 14),
    )


def _line(raw: str, listed: list[tuple[int, int, str]], carried: str) -> Line:
    masked = raw
    for start, end, _ in listed:
        masked = masked[:start] + "#" * (end - start) + masked[end:]
    modes = tuple((match.start(), match.lastgroup or "") for match in _MODES.finditer(masked))
    pick, total = _PICK.search(masked), _TOTAL.search(masked)
    is_weather = bool(_WEATHER.search(masked))
    anchors: Sequence[tuple[int, str]] = [(start, name) for start, _, name in listed] or modes
    takes_up = bool(not anchors and carried and not (pick or total or is_weather))
    if takes_up:
        anchors = [(0, carried)]
    return Line(
        text=raw,
        names=tuple(name for _, _, name in listed),
        facts=tuple((_owner(fact, anchors), fact) for fact in facts_in(masked)),
        name_starts=tuple((start, name) for start, _, name in listed),
        mode_starts=modes,
        pick_start=pick.start() if pick else -1,
        total_start=total.start() if total else -1,
        is_weather=is_weather,
        carried=takes_up,
        num_words=num_words(raw),
    )


def _owner(fact: Fact, anchors: Sequence[tuple[int, str]]) -> str:
    """A fact belongs to the last name before it, or to the first name of its line."""
    before = [name for start, name in anchors if start <= fact.start]
    return before[-1] if before else (anchors[0][1] if anchors else "")


def _grams(tokens: Iterable[str], size: int = 3) -> frozenset[tuple[str, ...]]:
    words = list(tokens)
    return frozenset(tuple(words[i : i + size]) for i in range(len(words) - size + 1))


def _is_copy(tokens: tuple[str, ...], query_grams: frozenset[tuple[str, ...]]) -> bool:
    """Whether most of a line's word triples stand in the query too."""
    grams = _grams(tokens)
    return len(tokens) >= 5 and sum(gram in query_grams for gram in grams) > 0.6 * len(grams)


_RUN = re.compile(r"[A-Z][\w'’&-]*(?:[ \t]+[A-Z][\w'’&-]*){1,4}")
_HEAD = re.compile(r"^[\s*_]*([^:：|(（,，;–—]{2,40}?)[*_]*\s*(?:[:：|(（,，;–—]|\s-\s|$)")
_LABEL = re.compile(
    r"\b(?:ratings?|prices?|costs?|hours?|open\w*|clos\w*|distances?|times?|notes?|tips?|budget|why|reasons?"
    r"|address|transport\w*|depart\w*|arriv\w*|durations?|days?|morning|noon|lunch|afternoon|evening"
    r"|dinner|breakfast|night|stay|hotels?|routes?|walk\w*|from|to|options?|per|party|people|persons?)\b"
    r"|评分|价格|费用|营业|距离|时间|提示|预算|理由|第.天|上午|中午|午餐|下午|晚餐|晚上|住宿|酒店|路线|人",
    re.IGNORECASE,
)


def _unknown_names(raw: str, known: list[tuple[int, int, str]], places: NameIndex) -> Iterator[str]:
    """Yield what a line lists that nobody knows: name-like runs, and unknown heads of bullets."""
    masked = raw
    for start, end, _ in known:
        masked = masked[:start] + "#" * (end - start) + masked[end:]
    for run in _RUN.findall(masked):
        words = run.split()
        for first in range(len(words) - 1):
            if places.looks_like_a_name(" ".join(words[first:])):
                yield " ".join(words[first:])
                return
    bullet = _BULLET.match(raw)
    if not bullet or known:
        return
    head = _HEAD.match(raw[bullet.end() :])
    name = head.group(1).strip(" *_") if head else ""
    if any(words.search(name) for words in (_LABEL, _MODES, _PICK, _TOTAL, _WEATHER)):
        return
    if name and (name[0].isupper() or _CJK.match(name)) and num_words(name) <= 5:
        yield name
