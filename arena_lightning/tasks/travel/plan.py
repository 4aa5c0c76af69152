"""Plans of days: which places fill the slots, what they cost, and the best one within a budget.

The query generator takes its budgets from here, so that at least one plan fits; the expert takes
the plan itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from arena_lightning.tasks.travel.places import Place


@dataclass(frozen=True, slots=True)
class Plan:
    """Places a kind, one a day, and a hotel where nights are asked for."""

    places: Mapping[str, tuple[Place, ...]]
    hotel: Place | None
    cost_eur: int
    """For the whole party; one room for all of them; ways not included."""

    @property
    def rating(self) -> float:
        """Sum over its places and hotel."""
        chosen = [place for places in self.places.values() for place in places]
        return round(sum(p.rating for p in (*chosen, *([self.hotel] if self.hotel else []))), 1)


def plans(
    options: Mapping[str, Sequence[Place]], hotels: Sequence[Place], days: int, party: int
) -> Iterator[Plan]:
    """Yield every plan: distinct places of each kind for the days, and a hotel for the nights."""
    kinds = list(options)
    choices = [list(combinations(options[kind], days)) for kind in kinds]
    rooms: Sequence[Place | None] = hotels if days > 1 else (None,)
    for *chosen, hotel in product(*choices, rooms):
        visits = sum(place.price_eur for places in chosen for place in places)
        nights = hotel.price_eur * (days - 1) if hotel else 0
        yield Plan(dict(zip(kinds, chosen, strict=True)), hotel, visits * party + nights)


def best_plan(made: Iterator[Plan], budget_eur: int | None) -> Plan:
    """Return the best rated plan within the budget, the cheaper one of equals.

    Raises:
        ValueError: none fits.
    """
    fitting = (p for p in made if budget_eur is None or p.cost_eur <= budget_eur)
    return min(fitting, key=lambda p: (-p.rating, p.cost_eur))
