"""Reads the tools' observations as a stranger would: from their text alone."""

import datetime
import re
from dataclasses import dataclass

from arena_lightning.types import Message

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_PLACE = re.compile(
    r"(?P<name>[^|]+) \| (?P<rating>\d\.\d) \| (?P<eur>\d+) EUR"
    r"(?: \| (?P<opens>\d\d:\d\d)-(?P<closes>\d\d:\d\d)(?:, closed (?P<closed>\w+))?)?"
    r"(?: \| (?P<km>\d+\.\d) km)?"
)


@dataclass(frozen=True)
class Seen:
    """A place as a search showed it."""

    name: str
    rating: float
    eur: int
    opens: str
    closes: str
    closed: str
    km: float | None

    def is_open(self, date: datetime.date) -> bool:
        return WEEKDAYS[date.weekday()] != self.closed


def read_places(text: str) -> list[Seen]:
    """Return the places of an observation."""
    found = []
    for line in text.splitlines():
        match = _PLACE.fullmatch(line)
        assert match, f"unreadable line {line!r}"
        part = match.groupdict()
        found.append(
            Seen(
                part["name"],
                float(part["rating"]),
                int(part["eur"]),
                part["opens"] or "00:00",
                part["closes"] or "24:00",
                part["closed"] or "",
                float(part["km"]) if part["km"] else None,
            )
        )
    return found


def results_of(messages: tuple[Message, ...], tool: str) -> list[str]:
    """Return a tool's observations in a dialogue, in order."""
    return [m.content for m in messages if m.role == "tool" and m.name == tool]
