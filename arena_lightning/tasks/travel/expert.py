"""The scripted expert: solves a query with the tools, as diligently as asked.

It calls the toolset as a policy would and answers with nothing but what came back; that it takes
the figures from the world instead of parsing observations makes no difference, and a test checks
so. Its dialogues are the cold start (mixed diligence) and the references of the test split (full).
"""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.tasks.travel.geo import City
from arena_lightning.tasks.travel.needs import (
    Needs,
    PlacesNeed,
    RouteNeed,
    StayNeed,
    TransportNeed,
    WeatherNeed,
)
from arena_lightning.tasks.travel.phrases import Phrases
from arena_lightning.tasks.travel.places import ZH_NOUNS, Place, minutes_of
from arena_lightning.tasks.travel.plan import Plan, best_plan
from arena_lightning.tasks.travel.queries import ZH_MODES, QueryGenerator
from arena_lightning.tasks.travel.tools import TravelToolset
from arena_lightning.tasks.travel.world import TODAY, World
from arena_lightning.types import Message, Prompt, ToolCall

_START_MIN = {"morning": 10 * 60, "lunch": 13 * 60, "afternoon": 15 * 60}
_SLOT_NAMES = {
    "morning": ("Morning", "上午"),
    "lunch": ("Lunch", "午餐"),
    "afternoon": ("Afternoon", "下午"),
}


class Expert:
    """Plays one world.

    Args:
        world: where the queries take place.
        toolset: the tools the policy will have; observations come from it.
    """

    def __init__(self, world: World, toolset: TravelToolset) -> None:
        self.world = world
        self.toolset = toolset
        self._queries = QueryGenerator(world)
        self._say = Phrases(world.is_chinese)

    def trajectory(
        self, prompt: Prompt, diligence: Diligence, generator: np.random.Generator
    ) -> tuple[Message, ...]:
        """Return the dialogue from the first assistant turn to the answer."""
        needs = Needs.from_dict(prompt.needs)
        play = _Play(self, needs, diligence, generator)
        solve = {
            "search_around": self._search_around,
            "direction": self._direction,
            "compare_itinerary": self._compare,
            "one_day_travel": self._plan,
            "multi_day_travel": self._plan,
        }[needs.subtask]
        lines = solve(play)
        if diligence.chatter:
            lines.append(self._say.chatter)
        return (*play.messages, Message("assistant", "\n".join(lines)))

    def _search_around(self, play: "_Play") -> list[str]:
        need: PlacesNeed = play.needs.of_type(PlacesNeed)[0]
        hotel = self._place(need.near or "", play.city)
        metres = int(1000 * (need.max_km or 5))
        arguments = {"location": hotel.name, "radius": metres, "keyword": self._kind(need.kind)}
        play.turn(("around_search", arguments | {"region": play.needs.city}))
        fits = [p for p in self._queries.nearest(hotel, need.kind) if self._fits(p, need, hotel)]
        best = max(fits, key=lambda p: (p.rating, -self.world.distance_km(hotel, p)))
        listed = [best, *[p for p in fits if p != best]][: play.share(need.count)]
        lines = [
            self._say.say(f"{need.kind.capitalize()}s near {hotel.name}:", f"{hotel.name}附近：")
        ]
        for place in listed:
            km = self.world.distance_km(hotel, place)
            lines.append("- " + self._say.place(place, play.diligence.detail, km))
        if play.diligence.checks:
            walk = {"origin": hotel.name, "destination": best.name, "mode": "walking"}
            play.turn(("direction", walk))
            minutes = self.world.route((hotel, best), "walking").minutes
            lines.append(
                self._say.say(
                    f"Walk to {best.name}: {minutes} min.", f"步行到{best.name}：{minutes}分钟。"
                )
            )
        self._finish(play, lines)
        if play.diligence.recommend:
            lines.append(self._say.pick(best.name, self._say.say("best rated", "评分最高")))
        return lines

    def _direction(self, play: "_Play") -> list[str]:
        need: RouteNeed = play.needs.of_type(RouteNeed)[0]
        weather: WeatherNeed = play.needs.of_type(WeatherNeed)[0]
        stops = [self._place(n, play.city) for n in (need.origin, *need.via, need.destination)]
        modes = need.modes[: play.share(len(need.modes))]
        calls: list[tuple[str, dict[str, Any]]] = []
        for mode in modes:
            arguments = {"origin": need.origin, "destination": need.destination, "mode": mode}
            if need.via:
                arguments["waypoints"] = ";".join(need.via)
            calls.append(("direction", arguments))
        if play.diligence.checks:
            calls.append(("weather", {"city": weather.city, "date": weather.date}))
        play.turn(*calls)
        routes = {mode: self.world.route(stops, mode) for mode in modes}
        lines = [
            self._say.say(
                f"From {need.origin} to {need.destination}:",
                f"从{need.origin}到{need.destination}：",
            )
        ]
        for mode, route in routes.items():
            name = self._say.say(mode, ZH_MODES[mode])
            lines.append("- " + self._say.route(route, name, play.diligence.detail))
        if play.diligence.checks:
            lines.append(self._say.weather(self._weather(weather)))
        self._finish(play, lines)
        if play.diligence.recommend:
            pick = min(routes, key=lambda mode: (routes[mode].minutes, mode))
            name = self._say.say(pick, ZH_MODES[pick])
            lines.append(self._say.pick(name, self._say.say("the fastest", "最快")))
        return lines

    def _compare(self, play: "_Play") -> list[str]:
        need: TransportNeed = play.needs.of_type(TransportNeed)[0]
        weather: WeatherNeed = play.needs.of_type(WeatherNeed)[0]
        start, end = self._city(need.from_city), self._city(need.to_city)
        day = datetime.date.fromisoformat(need.date)
        trip = {"date": need.date, "from_city": need.from_city, "to_city": need.to_city}
        modes = need.modes[: play.share(len(need.modes))]
        tools = {"flight": "search_flights", "train": "search_train_tickets"}
        calls: list[tuple[str, dict[str, Any]]] = [(tools[mode], dict(trip)) for mode in modes]
        if play.diligence.checks:
            calls.append(("weather", {"city": weather.city, "date": weather.date}))
        play.turn(*calls)
        find = {"flight": self.world.flights, "train": self.world.trains}
        rides = [
            min(find[mode](day, start, end), key=lambda r: (r.price_eur, r.depart))
            for mode in modes
        ]
        lines = [
            self._say.say(
                f"{need.from_city} to {need.to_city}, {need.date}:",
                f"{need.from_city}到{need.to_city}，{need.date}：",
            )
        ]
        lines += ["- " + self._say.ride(ride, play.diligence.detail) for ride in rides]
        if play.diligence.checks:
            lines.append(self._say.weather(self._weather(weather)))
        pick = min(rides, key=lambda ride: (ride.price_eur, ride.number))
        self._finish(play, lines)
        if play.diligence.recommend:
            lines.append(self._say.pick(pick.number, self._say.say("the cheapest", "最便宜")))
        if play.diligence.total:
            lines.append(self._say.total(play.needs.party, pick.price_eur * play.needs.party))
        return lines

    def _plan(self, play: "_Play") -> list[str]:
        needs, diligence = play.needs, play.diligence
        weather: WeatherNeed = needs.of_type(WeatherNeed)[0]
        wanted: Sequence[PlacesNeed] = needs.of_type(PlacesNeed)
        kinds = [need.kind for need in wanted[: play.share(len(wanted))]]
        searches = [*kinds, *["hotel" for _ in needs.of_type(StayNeed)]]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("poi_search", {"address": self._kind(kind), "region": needs.city}) for kind in searches
        ]
        if diligence.checks:
            calls.append(("weather", {"city": weather.city, "date": weather.date}))
        play.turn(*calls)
        days = wanted[0].count
        options = self._queries.plan_options(play.city, kinds, needs.date, days)
        made = self._queries.plans(play.city, options, days, needs.party)
        plan = best_plan(made, needs.budget_eur)
        lines = self._plan_lines(plan, days, diligence.detail)
        if diligence.checks:
            first_day = [places[0] for places in plan.places.values()]
            if len(first_day) > 1:
                lines.append(self._between(play, first_day))
            lines.append(self._say.weather(self._weather(weather)))
        self._finish(play, lines)
        if diligence.total:
            lines.append(self._say.total(needs.party, plan.cost_eur))
        return lines

    def _plan_lines(self, plan: Plan, days: int, detail: int) -> list[str]:
        lines = []
        for day in range(days):
            if days > 1:
                lines.append(self._say.say(f"Day {day + 1}:", f"第{day + 1}天："))
            for slot, places in zip(_START_MIN, plan.places.values(), strict=False):
                place = places[day]
                start = max(_START_MIN[slot], minutes_of(place.opens))
                head = f"{self._say.say(*_SLOT_NAMES[slot])} {start // 60:02d}:{start % 60:02d}"
                lines.append(f"- {head} {self._say.place(place, detail)}")
        if plan.hotel is not None:
            hotel = self._say.place(plan.hotel, detail)
            lines.append(self._say.say("- Hotel: ", "- 酒店：") + hotel)
        return lines

    def _between(self, play: "_Play", stops: list[Place]) -> str:
        arguments = {
            "origin": stops[0].name,
            "destination": stops[-1].name,
            "mode": "transit",
        }
        if len(stops) > 2:
            arguments["waypoints"] = ";".join(p.name for p in stops[1:-1])
        play.turn(("direction", arguments))
        route = self.world.route(stops, "transit")
        return self._say.say(
            f"Between the stops: transit, {route.minutes} min, {route.km} km, {route.cost_eur} EUR "
            "each.",
            f"各站之间：公交，{route.minutes}分钟，{route.km}公里，每人{route.cost_eur}欧元。",
        )

    def _finish(self, play: "_Play", lines: list[str]) -> None:
        """The bad habits that are the same in every subtask."""
        if play.diligence.redundant:
            play.repeat()
        if play.diligence.invents:
            rating = round(4.5 + 0.1 * int(play.generator.integers(0, 5)), 1)
            lines.append(
                self._say.say(
                    f"- Grand {play.needs.city} Corner: rating {rating}, 10 EUR",
                    f"- {play.needs.city}大观园：评分{rating}，10欧元",
                )
            )

    def _fits(self, place: Place, need: PlacesNeed, hotel: Place) -> bool:
        return (
            place.is_open(TODAY.weekday())
            and self.world.distance_km(hotel, place) <= (need.max_km or 1e9)
            and place.rating >= (need.min_rating or 0)
            and place.price_eur <= (1e9 if need.max_price_eur is None else need.max_price_eur)
        )

    def _kind(self, kind: str) -> str:
        return ZH_NOUNS[kind] if self.world.is_chinese else kind

    def _place(self, name: str, city: City) -> Place:
        place = self.world.place(name, city)
        assert place is not None, f"a query names {name}, which is not in {city.name}"
        return place

    def _city(self, name: str) -> City:
        city = self.world.city(name)
        assert city is not None, f"a query names {name}, which is not in the world"
        return city

    def _weather(self, need: WeatherNeed) -> Any:
        return self.world.weather(self._city(need.city), datetime.date.fromisoformat(need.date))


class _Play:
    """One dialogue as it grows."""

    def __init__(
        self, expert: Expert, needs: Needs, diligence: Diligence, generator: np.random.Generator
    ) -> None:
        self.needs = needs
        self.diligence = diligence
        self.generator = generator
        self.messages: list[Message] = []
        self.city = expert._city(needs.city)
        self._toolset = expert.toolset
        self._last: tuple[str, dict[str, Any]] | None = None

    def share(self, count: int) -> int:
        """How many of `count` this expert bothers with."""
        return max(1, int(self.diligence.coverage * count))

    def turn(self, *calls: tuple[str, dict[str, Any]]) -> None:
        """Make calls in one turn and take in what comes back."""
        made = tuple(ToolCall(name, arguments) for name, arguments in calls)
        self.messages.append(Message("assistant", "", tool_calls=made))
        for call in made:
            result = self._toolset.run(call)
            assert not result.is_error, f"the expert's call failed: {call} -> {result.content}"
            self.messages.append(Message("tool", result.content, name=call.name))
        self._last = calls[0]

    def repeat(self) -> None:
        """Ask the last question again."""
        assert self._last is not None, "nothing was asked yet"
        self.turn(self._last)
