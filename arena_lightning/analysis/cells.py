"""One cell of a study: a topology played on every group of a verdict batch.

    VerdictBatch + Cell -> Played (ranks, matches, calls, rounds of each group)

All topologies of a cell's (source, N, presentation) see the same groups, verdicts, starting orders
and presentation orders, so they can be compared group by group. It computes no statistics.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from arena_lightning.analysis.verdict_batch import Presentation, VerdictBatch, decider
from arena_lightning.arena.ranking import RankingRule
from arena_lightning.arena.reranked import RerankedTopology
from arena_lightning.arena.topology import Topology, build_topology, play
from arena_lightning.errors import ConfigError
from arena_lightning.rng import generator_for

Ranking = Literal["own"] | RankingRule


@dataclass(frozen=True)
class Cell:
    """Where in the study's grid a tournament is played; K enters later, when steps are made."""

    source: str
    """Name of the source of verdicts."""
    size: int
    """N, contestants."""
    topology: str
    presentation: Presentation = "both"
    tie_margin: float = 0.0
    """Sums of both orders this close are a tie, judge's points."""
    ranking: Ranking = "own"
    """"own": as the topology ranks; else its matches under another rule."""

    @cached_property
    def key(self) -> str:
        """A name that is safe for a file."""
        parts = (self.source, self.size, self.topology, self.presentation)
        text = "-".join(map(str, (*parts, f"{self.tie_margin:g}", self.ranking)))
        return re.sub(r"[^A-Za-z0-9_.-]", "_", text)

    @property
    def target(self) -> "Cell":
        """Round robin on the same verdicts."""
        return Cell(self.source, self.size, "round_robin", self.presentation, self.tie_margin)

    @property
    def full_target(self) -> "Cell":
        """Round robin on the verdicts of both presentation orders."""
        return Cell(self.source, self.size, "round_robin", "both", self.tie_margin)

    def build(self) -> Topology:
        """Return the cell's topology.

        Raises:
            ConfigError: an unknown topology, or an N that can't be ranked.
        """
        if self.size < 2:
            raise ConfigError(
                f"group_size must be at least 2, got {self.size} (study). A group of one has no "
                "ranking; raise it."
            )
        topology = build_topology(self.topology)
        if self.ranking == "own":
            return topology
        return RerankedTopology(inner=topology, ranking=self.ranking)


@dataclass(frozen=True, slots=True)
class Played:
    """What happened in each group of a cell. Shapes: `ranks` `[group, N]`, the rest `[group]`."""

    ranks: np.ndarray
    """float64, 0.0 best, ties share the mean."""
    matches: np.ndarray
    calls: np.ndarray
    """Judge calls: a rematch is not paid twice; both orders are two calls."""
    rounds: np.ndarray
    """Sequential rounds, the critical path."""
    failed: np.ndarray
    """Failed matches."""
    clusters: np.ndarray
    """Which independent unit each group belongs to (see `VerdictBatch.clusters`)."""


def play_cell(
    cell: Cell, batch: VerdictBatch, seed: int, topology: Topology | None = None
) -> Played:
    """Play the cell's topology on every group of a batch.

    Args:
        cell: what is played; `cell.size` must be the batch's.
        batch: all verdicts of its groups.
        seed: root seed of starting orders and of one-order presentations.
        topology: played instead of the one that the cell names.
    """
    topology = topology or cell.build()
    count, size = batch.num_groups, batch.size
    assert size == cell.size, "the batch was drawn for this cell"
    orders = generator_for(seed, "studies/order", size).permuted(
        np.tile(np.arange(size), (count, 1)), axis=1
    )
    rng = generator_for(seed, "studies/presentation", size)
    scores, opponents = batch.merged(cell.presentation, rng)
    calls_per_match = 2 if cell.presentation == "both" else 1
    ranks = np.empty((count, size))
    tallies = np.empty((4, count), dtype=np.int64)
    for group, order in enumerate(orders.tolist()):
        decide = decider(scores[group], opponents[group], cell.tie_margin)
        standings = play(topology, size, decide, order)
        ranks[group] = standings.ranks
        matches = standings.matches
        pairs = {(m[0], m[1]) if m[0] < m[1] else (m[1], m[0]) for m in matches}
        tallies[:, group] = (
            len(matches),
            calls_per_match * len(pairs),
            standings.num_rounds,
            sum(match[4] == "failed" for match in matches),
        )
    clusters = np.arange(count) if batch.clusters is None else batch.clusters
    return Played(ranks, *tallies, clusters)
