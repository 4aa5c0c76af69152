"""Deciders for `play`: functions that stand in for a judge."""

from collections.abc import Callable, Sequence

import pytest

from arena_lightning.arena import Match, Pairing


def _match(pairing: Pairing, score_first: float, score_second: float) -> Match:
    status = "tie" if score_first == score_second else "decided"
    return Match(*pairing, score_first, score_second, status)


@pytest.fixture
def perfect() -> Callable[[Sequence[float]], Callable[[Pairing], Match]]:
    """Utilities -> a noiseless cardinal judge."""

    def build(utilities: Sequence[float]) -> Callable[[Pairing], Match]:
        return lambda pairing: _match(pairing, utilities[pairing.first], utilities[pairing.second])

    return build


@pytest.fixture
def scripted() -> Callable[[dict[tuple[int, int], object]], Callable[[Pairing], Match]]:
    """(contestant, contestant) -> (score, score), "failed"; either orientation may be given."""

    def build(results: dict[tuple[int, int], object]) -> Callable[[Pairing], Match]:
        def decide(pairing: Pairing) -> Match:
            first, second = pairing
            result = results.get((first, second))
            if result is None:
                result = results[(second, first)]
                result = result if result == "failed" else result[::-1]
            if result == "failed":
                return Match(first, second, None, None, "failed")
            return _match(pairing, *result)

        return decide

    return build
