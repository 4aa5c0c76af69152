"""Which trajectories enter the loss, and with which advantages."""

import numpy as np

from arena_lightning.training.module import ArenaModule, extremes
from arena_lightning.types import Group, Prompt, Trajectory

GROUP = Group(Prompt("p", "q"), tuple(Trajectory("p", (), index=i) for i in range(6)))
ADVANTAGES = np.array([0.2, -1.4, 0.9, -0.5, 1.4, -0.6])


def indices(group):
    return [trajectory.index for trajectory in group.trajectories]


def test_extremes_keep_the_largest_advantages_in_contestant_order():
    group, kept = extremes(GROUP, ADVANTAGES, 3)
    assert indices(group) == [1, 2, 4]
    assert kept.tolist() == [-1.4, 0.9, 1.4]


def test_asking_for_more_than_there_are_keeps_all():
    group, kept = extremes(GROUP, ADVANTAGES, 10)
    assert indices(group) == list(range(6))
    assert kept.tolist() == ADVANTAGES.tolist()


def test_an_untrained_anchor_is_left_out_with_its_advantage():
    module = ArenaModule()
    module.train_on_anchor = False
    group, kept = module._trained(GROUP, ADVANTAGES)
    assert indices(group) == [1, 2, 3, 4, 5]
    assert kept.tolist() == ADVANTAGES[1:].tolist()
