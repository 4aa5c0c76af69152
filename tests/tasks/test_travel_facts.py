"""Reading figures out of free text, English and Chinese."""

import pytest

from arena_lightning.tasks.travel.facts import facts_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- Otto Cafe: 0.4 km, rating 4.5, 8 EUR, open 08:00-19:00",
            [("km", 0.4), ("rating", 4.5), ("eur", 8.0), ("span", "08:00-19:00")],
        ),
        (
            "| **Mira** | ★ 4.3 | €12 | 300 m | free |",
            [("rating", 4.3), ("eur", 12.0), ("km", 0.3), ("eur", 0.0)],
        ),
        (
            "Mira | cafe | 4.6 | 12 EUR | 09:00-18:00, closed Mon",
            [("rating", 4.6), ("eur", 12.0), ("span", "09:00-18:00")],
        ),
        (
            "评分4.5,8欧元,0.4公里,24分钟,营业 8:00至19:00",
            [
                ("rating", 4.5),
                ("eur", 8.0),
                ("km", 0.4),
                ("minutes", 24.0),
                ("span", "08:00-19:00"),
            ],
        ),
        (
            "12:45-14:47,107欧元",
            [("span", "12:45-14:47"), ("eur", 107.0)],
        ),
        (
            "light rain, -3-16 C, rain 70%",
            [("celsius", -3.0), ("celsius", 16.0), ("percent", 70.0)],
        ),
        ("1 h 20 min, or 2 hours", [("minutes", 80.0), ("minutes", 120.0)]),
        ("leave at 7:04 for 1,200 euros", [("clock", "07:04"), ("eur", 1200.0)]),
        ("4.6/5 on 2026-05-12", [("rating", 4.6)]),
        ("walk 24 mins (1.9 kilometres)", [("minutes", 24.0), ("km", 1.9)]),
        ("R475 leaves platform 12", []),
        ("", []),
    ],
)
def test_figures_are_read_with_their_units(text, expected):
    assert [(fact.kind, fact.value) for fact in facts_in(text)] == expected
