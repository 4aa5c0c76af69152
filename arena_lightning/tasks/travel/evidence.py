"""What a trajectory found out: its tool calls paired with what came back, read into facts.

The rubric's path side asks which calls served a need; its answer side asks whether a statement was
observed. Only tool messages count as evidence: what the policy itself wrote is never believed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arena_lightning.tasks.travel.facts import facts_in
from arena_lightning.tasks.travel.names import NameIndex
from arena_lightning.types import Message

_LEGS = re.compile(r"\(legs ([\d+ ]+) min\)")
_NUMBER = re.compile(r"^\s*[-*]?\s*([A-Z0-9]{1,4}[ -]?\d{1,5})\s*\|")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call and its observation."""

    tool: str
    arguments: Mapping[str, Any]
    text: str
    is_error: bool
    names: tuple[str, ...] = ()
    """Places that head a line of the observation, in order, without repeats."""

    def text_argument(self, *keys: str) -> str:
        """The first of these arguments that was given, as text, "" when none was."""
        for key in keys:
            value = self.arguments.get(key)
            if value not in (None, ""):
                if isinstance(value, list | tuple):
                    return "; ".join(str(item) for item in value)
                return str(value)
        return ""


@dataclass(frozen=True, slots=True)
class Option:
    """A flight or train that was seen."""

    number: str
    mode: str
    call: int
    """Which call showed it."""
    span: str
    price_eur: float
    text: str


@dataclass(frozen=True, slots=True)
class Leg:
    """A direction call that worked: figures of the whole way, "walking: 1.9 km, 24 min, 0 EUR"."""

    call: int
    mode: str
    stops: tuple[str, ...]
    """Origin, waypoints, destination as place names ("" when unknown)."""
    km: tuple[float, ...]
    """Every distance the observation states (the whole, and legs)."""
    minutes: tuple[float, ...]
    eur: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a trajectory did and saw."""

    calls: tuple[Call, ...]
    seen: frozenset[str]
    """Places that any observation names."""
    options: Mapping[str, Option] = field(default_factory=dict)
    legs: tuple[Leg, ...] = ()
    distances: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Distances, km, that searches printed beside a place."""


def paired_calls(messages: Sequence[Message]) -> list[tuple[str, Mapping[str, Any], str, bool]]:
    """Return (tool, arguments, observation, is_error) of each call, in order.

    A tool message without a call is an unreadable call; a call without a message never ran.
    """
    calls: list[tuple[str, Mapping[str, Any], str, bool]] = []
    waiting: list[tuple[str, Mapping[str, Any]]] = []
    for message in messages:
        if message.role == "assistant":
            calls.extend((name, arguments, "", True) for name, arguments in waiting)
            waiting = [(call.name, _mapping(call.arguments)) for call in message.tool_calls]
        elif message.role == "tool":
            name, arguments = waiting.pop(0) if waiting else (message.name, {})
            calls.append((name, arguments, message.content, message.is_error))
    calls.extend((name, arguments, "", True) for name, arguments in waiting)
    return calls


def gather(messages: Sequence[Message], places: NameIndex) -> Evidence:
    """Read the evidence of a trajectory's messages."""
    calls: list[Call] = []
    seen: dict[str, None] = {}
    options: dict[str, Option] = {}
    legs: list[Leg] = []
    distances: dict[str, tuple[float, ...]] = {}
    for tool, arguments, text, is_error in paired_calls(messages):
        if is_error:
            calls.append(Call(tool, arguments, text, True))
            continue
        heads: dict[str, None] = {}
        for line in text.splitlines():
            names = [name for _, _, name in places.find(line)]
            seen.update(dict.fromkeys(names))
            heads.update(dict.fromkeys(names[:1]))
            if names and tool == "around_search":
                km = tuple(float(f.value) for f in facts_in(line) if f.kind == "km")
                distances[names[0]] = distances.get(names[0], ()) + km
        call = Call(tool, arguments, text, False, tuple(heads))
        if tool in ("search_flights", "search_train_tickets"):
            options.update(_options(call, len(calls)))
        elif tool == "direction":
            legs.append(_leg(call, len(calls), places))
        calls.append(call)
    return Evidence(tuple(calls), frozenset(seen), options, tuple(legs), distances)


def stops_in(text: str, places: NameIndex) -> tuple[str, ...]:
    """Return the place names in an argument, "" for a part that names none."""
    parts = [part for part in re.split(r"[;|\n]", text) if part.strip()]
    stops = []
    for part in parts:
        names = places.find(part)
        stops.append(names[0][2] if names else "")
    return tuple(stops)


def _options(call: Call, position: int) -> dict[str, Option]:
    mode = "flight" if call.tool == "search_flights" else "train"
    found = {}
    for line in call.text.splitlines():
        number = _NUMBER.match(line)
        if not number:
            continue
        facts = facts_in(line[number.end() :])
        spans = [fact.value for fact in facts if fact.kind == "span"]
        prices = [fact.value for fact in facts if fact.kind == "eur"]
        if spans and prices:
            name = number.group(1)
            found[name] = Option(name, mode, position, str(spans[0]), float(prices[0]), line)
    return found


def _leg(call: Call, position: int, places: NameIndex) -> Leg:
    stops = stops_in(call.text_argument("origin"), places)[:1] or ("",)
    stops += stops_in(call.text_argument("waypoints"), places)
    stops += stops_in(call.text_argument("destination"), places)[:1] or ("",)
    facts = facts_in(call.text)
    values = {
        kind: tuple(float(fact.value) for fact in facts if fact.kind == kind)
        for kind in ("km", "minutes", "eur")
    }
    legs = _LEGS.search(call.text)
    if legs:
        values["minutes"] += tuple(float(part) for part in legs.group(1).split("+"))
    mode = call.text_argument("mode").lower() or "driving"
    return Leg(position, mode, stops, values["km"], values["minutes"], values["eur"])


def _mapping(arguments: Any) -> Mapping[str, Any]:
    return arguments if isinstance(arguments, Mapping) else {}
