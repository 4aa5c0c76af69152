"""The fixed phrases of expert answers, English and Chinese: one style per fact."""

from dataclasses import dataclass

from arena_lightning.tasks.travel.places import Place
from arena_lightning.tasks.travel.transport import Ride, Route
from arena_lightning.tasks.travel.world import Weather


@dataclass(frozen=True, slots=True)
class Phrases:
    """Wording of one language."""

    chinese: bool

    def say(self, english: str, chinese: str) -> str:
        return chinese if self.chinese else english

    def place(self, place: Place, detail: int, km: float | None = None) -> str:
        """Return "Otto Cafe: 0.4 km, rating 4.5, 8 EUR, open 08:00-19:00" by level of detail."""
        facts = []
        if detail >= 2 and km is not None:
            facts.append(self.say(f"{km:.1f} km", f"{km:.1f}公里"))
        if detail >= 1:
            facts.append(self.say(f"rating {place.rating}", f"评分{place.rating}"))
            facts.append(self.say(f"{place.price_eur} EUR", f"{place.price_eur}欧元"))
        if detail >= 2 and place.kind != "hotel":
            facts.append(self.say(f"open {place.hours}", f"{place.hours}开放"))
        return self._joined(place.name, facts)

    def route(self, route: Route, name: str, detail: int) -> str:
        """Return "walking: 24 min, 1.9 km, 0 EUR" by level of detail."""
        facts = []
        if detail >= 1:
            facts.append(self.say(f"{route.minutes} min", f"{route.minutes}分钟"))
        if detail >= 2:
            facts.append(self.say(f"{route.km} km", f"{route.km}公里"))
            facts.append(self.say(f"{route.cost_eur} EUR", f"{route.cost_eur}欧元"))
        return self._joined(name, facts)

    def ride(self, ride: Ride, detail: int) -> str:
        """Return "Train R475: 08:40-10:45, 44 EUR, direct" by level of detail."""
        kind = self.say(*(("Flight", "航班") if ride.mode == "flight" else ("Train", "火车")))
        facts = []
        if detail >= 1:
            facts.append(f"{ride.depart}-{ride.arrive}")
            facts.append(self.say(f"{ride.price_eur} EUR", f"{ride.price_eur}欧元"))
        if detail >= 2 and ride.mode == "train":
            via = self.say(f"via {ride.via}", f"经{ride.via}")
            facts.append(via if ride.transfers else self.say("direct", "直达"))
        return self._joined(f"{kind} {ride.number}", facts)

    def weather(self, weather: Weather) -> str:
        return self.say(
            f"Weather: {weather.summary}, {weather.low_c}-{weather.high_c} C, "
            f"rain {weather.rain_percent}%.",
            f"天气：{weather.summary}，{weather.low_c}-{weather.high_c}度，"
            f"降雨{weather.rain_percent}%。",
        )

    def total(self, party: int, eur: int) -> str:
        return self.say(f"Total for {party}: {eur} EUR.", f"{party}人总计：{eur}欧元。")

    def pick(self, name: str, reason: str) -> str:
        return self.say(f"Pick: {name}, {reason}.", f"推荐：{name}，{reason}。")

    @property
    def chatter(self) -> str:
        return self.say(
            "I hope this helps, and have a wonderful and unforgettable trip!",
            "希望对您有所帮助，祝您旅途愉快，玩得开心！",
        )

    def _joined(self, head: str, facts: list[str]) -> str:
        if not facts:
            return head
        return self.say(f"{head}: {', '.join(facts)}", f"{head}：{'，'.join(facts)}")
