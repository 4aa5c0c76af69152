"""JSON schemas of the travel tools. Descriptions are short, as every prompt lists them.

Names and parameters are those of the paper's release, so that its prompts and agents fit.
"""

from collections.abc import Mapping
from typing import Any


def _tool(
    name: str, description: str, required: tuple[str, ...], **properties: Mapping[str, Any]
) -> Mapping[str, Any]:
    return {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
    }


def _text(description: str) -> Mapping[str, Any]:
    return {"type": "string", "description": description}


_DATE = _text("YYYY-MM-DD")
_NUMBER = {"type": "number", "description": "accepted, not needed"}

SCHEMAS: tuple[Mapping[str, Any], ...] = (
    _tool(
        "poi_search",
        "best places of a kind, or one by name",
        ("address",),
        address=_text("kind or name"),
        region=_text("city"),
    ),
    _tool(
        "around_search",
        "nearest places",
        ("location",),
        location=_text("place name or lon,lat"),
        radius={"type": "integer", "description": "metres", "default": 5000},
        keyword=_text("kind"),
        region=_text("city"),
    ),
    _tool(
        "direction",
        "time and cost of a way",
        ("origin", "destination"),
        origin=_text("place name or lon,lat"),
        destination=_text("place name or lon,lat"),
        mode={
            "type": "string",
            "enum": ["driving", "walking", "bicycling", "electrobike", "transit"],
            "description": "way of going",
        },
        waypoints={
            "type": ["array", "string"],
            "items": {"type": "string"},
            "maxItems": 16,
            "description": "stops, ;-separated",
        },
    ),
    _tool("weather", "forecast", ("city",), city=_text("city"), date=_DATE),
    _tool(
        "web_search",
        "travel tips",
        ("query",),
        query={"type": ["string", "array"], "items": {"type": "string"}, "description": "words"},
    ),
    _tool(
        "search_flights",
        "flights",
        ("date", "from_city", "to_city"),
        date=_DATE,
        from_city=_text("city"),
        to_city=_text("city"),
    ),
    _tool(
        "search_train_tickets",
        "trains",
        ("date", "from_city", "to_city"),
        date=_DATE,
        from_city=_text("city"),
        to_city=_text("city"),
        from_city_adcode=_text("accepted, not needed"),
        to_city_adcode=_text("accepted, not needed"),
        from_lat=_NUMBER,
        from_lon=_NUMBER,
        to_lat=_NUMBER,
        to_lon=_NUMBER,
    ),
)
