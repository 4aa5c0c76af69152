"""Stale or impossible policy versions never reach the loss."""

import pytest

from arena_lightning.errors import WeightSyncError
from arena_lightning.training.freshness import check_freshness
from arena_lightning.types import Group, Prompt, Segment, Trajectory


def group_of(*versions):
    segments = [Segment("prompt", (1,))]
    segments += [Segment("policy", (2,), (-1.0,), version) for version in versions]
    return Group(Prompt("p", "q"), (Trajectory("p", (), tuple(segments)),))


def test_the_current_version_is_fresh():
    check_freshness([group_of(5, 5)], version=5, max_lag=0)


def test_an_older_version_within_the_lag_is_fresh():
    check_freshness([group_of(3, 4)], version=5, max_lag=2)


@pytest.mark.parametrize("versions", [(4,), (5, 4), (6,), (-1,)])
def test_an_older_newer_or_unknown_version_is_refused(versions):
    with pytest.raises(WeightSyncError, match=r"at most 0 steps old, got version -?\d at step 5"):
        check_freshness([group_of(*versions)], version=5, max_lag=0)
