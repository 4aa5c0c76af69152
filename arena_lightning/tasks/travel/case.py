"""One judged case: a prompt's needs, what the trajectory found out, what its answer says.

`CaseReader` brings the readers (`evidence.py`, `reading.py`) and the world together; the two
rubrics only look at the `Case` it returns. It judges nothing.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from arena_lightning.tasks.travel.evidence import Evidence, gather
from arena_lightning.tasks.travel.names import NameIndex
from arena_lightning.tasks.travel.needs import (
    Needs,
    PlacesNeed,
    RouteNeed,
    ScheduleNeed,
    StayNeed,
    TransportNeed,
)
from arena_lightning.tasks.travel.places import Place
from arena_lightning.tasks.travel.reading import Reading, read_answer
from arena_lightning.tasks.travel.world import TODAY, World
from arena_lightning.types import Prompt, Trajectory


@dataclass(frozen=True, slots=True)
class Case:
    """Everything the rubrics look at."""

    needs: Needs
    world: World
    places: Mapping[str, Place]
    """Places of the cities asked about, by name."""
    evidence: Evidence
    reading: Reading | None
    """None when the trajectory ended without an answer."""
    given: frozenset[str]
    """Places that the query names."""

    weekdays: tuple[int, ...]
    """Weekdays of the days asked about, 0 = Monday; today's when the query gives no date."""

    def satisfying(self, need: PlacesNeed | StayNeed) -> frozenset[str]:
        """Return the names of all places that satisfy a need's constraints."""
        return frozenset(
            name
            for name, place in self.places.items()
            if name not in self.given and self._satisfies(need, place)
        )

    def _satisfies(self, need: PlacesNeed | StayNeed, place: Place) -> bool:
        if place.kind != need.kind:
            return False
        if need.max_price_eur is not None and place.price_eur > need.max_price_eur:
            return False
        if isinstance(need, StayNeed):
            return True
        if need.min_rating is not None and place.rating < need.min_rating - 1e-9:
            return False
        if need.near is None or need.max_km is None:
            return True
        home = self.places.get(need.near)
        # The tools print one decimal, so a place at 1.54 km satisfies "within 1.5 km".
        return home is None or self.world.distance_km(home, place) <= need.max_km + 0.05

    def open_on_the_day(self, name: str) -> bool:
        """Whether a place is open at all on some day asked about."""
        return any(self.places[name].is_open(weekday) for weekday in self.weekdays)


class CaseReader:
    """Reads cases against a world; name indices are built once a set of cities."""

    def __init__(self, world: World) -> None:
        self._worlds = {world.language: world}
        self._seed = world.seed
        self._indices: dict[tuple[str, ...], tuple[NameIndex, dict[str, Place]]] = {}

    def read(self, prompt: Prompt, trajectory: Trajectory) -> Case:
        """Read one trajectory.

        Raises:
            DataError: the prompt's needs are not in the schema.
        """
        needs = Needs.from_dict(prompt.needs)
        world = self._world(needs.language)
        index, places = self._index(world, needs)
        evidence = gather(trajectory.messages, index)
        given = frozenset(name for _, _, name in index.find(prompt.query)) | _named(needs)
        answer = trajectory.answer.strip()
        reading = None
        if answer:
            numbers = NameIndex({number: number for number in evidence.options})
            reading = read_answer(answer, prompt.query, index, numbers, given)
        weekdays = _weekdays(needs, prompt.query)
        return Case(needs, world, places, evidence, reading, given, weekdays)

    def _world(self, language: str) -> World:
        """The world of a prompt's language: English and Chinese places live in different ones."""
        if language not in self._worlds:
            self._worlds[language] = World(self._seed, language)
        return self._worlds[language]

    def _index(self, world: World, needs: Needs) -> tuple[NameIndex, dict[str, Place]]:
        trips = needs.of_type(TransportNeed)
        names = {needs.city, *(t.from_city for t in trips), *(t.to_city for t in trips)}
        key = (world.language, *sorted(names))
        if key not in self._indices:
            cities = [city for city in map(world.city, sorted(names)) if city is not None]
            places = {place.name: place for city in cities for place in world.places(city)}
            self._indices[key] = NameIndex({name: name for name in places}), places
        return self._indices[key]


def _weekdays(needs: Needs, query: str) -> tuple[int, ...]:
    """A query without a date is about today; the user never said the date in `needs`."""
    first = datetime.date.fromisoformat(needs.date) if needs.date in query else TODAY
    days = max((need.days for need in needs.of_type(ScheduleNeed)), default=1)
    return tuple((first.weekday() + day) % 7 for day in range(days))


def _named(needs: Needs) -> frozenset[str]:
    """Places that the needs themselves name."""
    names = {need.near for need in needs.of_type(PlacesNeed) if need.near}
    for route in needs.of_type(RouteNeed):
        names |= {route.origin, route.destination, *route.via}
    return frozenset(names)
