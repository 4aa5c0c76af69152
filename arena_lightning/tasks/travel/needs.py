"""What a query asks for, machine-readable: the expert plans with it, the offline judge checks it.

`Prompt.needs` carries `Needs.to_dict()`. An LLM judge or a policy never sees it: the query says all
of it in words.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from arena_lightning.errors import DataError

SUBTASKS = (
    "search_around",
    "direction",
    "compare_itinerary",
    "one_day_travel",
    "multi_day_travel",
)


@dataclass(frozen=True, slots=True)
class PlacesNeed:
    """`count` distinct places of a kind that satisfy every constraint that isn't None."""

    id: str
    kind: str
    count: int
    near: str | None = None
    max_km: float | None = None
    min_rating: float | None = None
    max_price_eur: int | None = None
    type: str = "places"


@dataclass(frozen=True, slots=True)
class RouteNeed:
    """Time and cost of a way for each mode asked, and a choice among them."""

    id: str
    origin: str
    destination: str
    modes: tuple[str, ...]
    via: tuple[str, ...] = ()
    type: str = "route"


@dataclass(frozen=True, slots=True)
class TransportNeed:
    """One option a mode between two cities, with time and price."""

    id: str
    from_city: str
    to_city: str
    date: str
    modes: tuple[str, ...]
    type: str = "transport"


@dataclass(frozen=True, slots=True)
class WeatherNeed:
    """The forecast, asked for or implied by an outdoor plan."""

    id: str
    city: str
    date: str
    type: str = "weather"


@dataclass(frozen=True, slots=True)
class ScheduleNeed:
    """A plan with a place for each slot of each day, open when it is visited."""

    id: str
    slots: tuple[str, ...]
    days: int = 1
    type: str = "schedule"


@dataclass(frozen=True, slots=True)
class StayNeed:
    """A hotel for the nights."""

    id: str
    nights: int
    max_price_eur: int | None = None
    kind: str = "hotel"
    type: str = "stay"


@dataclass(frozen=True, slots=True)
class TotalNeed:
    """The sum of what the answer lists, for the whole party."""

    id: str
    type: str = "total"


@dataclass(frozen=True, slots=True)
class RecommendNeed:
    """A pick with a reason."""

    id: str
    type: str = "recommend"


Need = (
    PlacesNeed
    | RouteNeed
    | TransportNeed
    | WeatherNeed
    | ScheduleNeed
    | StayNeed
    | TotalNeed
    | RecommendNeed
)
_TYPES: dict[str, type[Need]] = {
    "places": PlacesNeed,
    "route": RouteNeed,
    "transport": TransportNeed,
    "weather": WeatherNeed,
    "schedule": ScheduleNeed,
    "stay": StayNeed,
    "total": TotalNeed,
    "recommend": RecommendNeed,
}


@dataclass(frozen=True, slots=True)
class Needs:
    """All of a query's needs. `date` is ISO; `budget_eur` is for the whole party, None = none."""

    subtask: str
    city: str
    date: str
    party: int
    budget_eur: int | None
    language: str
    items: tuple[Need, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        record = asdict(self)
        record["items"] = [
            {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(item).items()}
            for item in self.items
        ]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Needs":
        """Return what `to_dict` wrote.

        Raises:
            DataError: a key is missing or a need's type is unknown.
        """
        try:
            items = tuple(_need(item) for item in record["items"])
            return cls(
                record["subtask"],
                record["city"],
                record["date"],
                int(record["party"]),
                record["budget_eur"],
                record["language"],
                items,
            )
        except (KeyError, TypeError) as error:
            raise DataError(
                f"needs must have the keys of tasks/travel/needs.py, got {error} missing or wrong. "
                "Leave `needs` out for queries of your own."
            ) from error

    def of_type(self, kind: type[Need]) -> tuple[Any, ...]:
        """Return the needs of one class, in order."""
        return tuple(item for item in self.items if isinstance(item, kind))


def _need(item: Mapping[str, Any]) -> Need:
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in item.items()}
    return _TYPES[values["type"]](**values)
