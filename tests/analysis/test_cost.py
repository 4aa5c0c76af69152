import numpy as np
import pytest

from arena_lightning.analysis.cost import CallCost, Latency, load_prices, pareto_front, wall_clock_s
from arena_lightning.errors import ConfigError

STEADY = Latency(2.0, 2.0)


def test_depth_decides_when_nothing_bounds_the_calls():
    assert wall_clock_s([[4, 2, 1]] * 3, 100, STEADY) == pytest.approx(6.0)


def test_calls_decide_when_slots_are_few():
    # 12 calls of 2 s over 3 slots, all at once.
    assert wall_clock_s([[4]] * 3, 3, STEADY) == pytest.approx(8.0)
    assert wall_clock_s([[1, 1, 1, 1]], 3, STEADY) == pytest.approx(8.0)
    assert wall_clock_s([[], [0, 0]], 3, STEADY) == 0.0


def test_the_longest_chain_goes_first():
    # One slot free beside a chain of four: the chain never waits, the others fill the gaps.
    assert wall_clock_s([[1, 1, 1, 1], [4]], 2, STEADY) == pytest.approx(8.0)


def test_latencies_have_the_quantiles_asked_for():
    drawn = Latency(3.0, 9.0).draw(np.random.default_rng(0), 200_000)
    assert np.quantile(drawn, 0.5) == pytest.approx(3.0, rel=0.02)
    assert np.quantile(drawn, 0.95) == pytest.approx(9.0, rel=0.02)


def test_dollars_are_tokens_times_prices():
    assert CallCost(1000, 100, 2.0, 10.0).usd == pytest.approx(0.003)


def test_the_front_keeps_what_nothing_beats():
    points = {
        "cheap": (1.0, 0.5),
        "good": (2.0, 0.9),
        "beaten": (2.0, 0.8),
        "dear": (3.0, 0.9),
        "best": (4.0, 1.0),
        "unknown": (1.0, float("nan")),
    }
    assert pareto_front(points) == ["cheap", "good", "best"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("other: {prompt: 1, completion: 2}", r"other but not 'm'.*Add a line `m"),
        ("m: {prompt: much, completion: 2}", r"got 'much'.*p.yaml: m.prompt"),
        ("m: {prompt: 1}", r"got None.*m.completion"),
        ("[1", "readable YAML"),
    ],
)
def test_a_price_table_without_the_price_is_refused(tmp_path, text, message):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_prices(path, "m")
