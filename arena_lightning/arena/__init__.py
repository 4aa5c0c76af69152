"""Tournaments that rank a group: topologies, standings, advantages, and the arena that plays them.

The doors other rooms use. Pure Python and NumPy: no torch, no I/O.
"""

from arena_lightning.arena.advantages import (
    advantages_from_ranks,
    advantages_from_scores,
    rewards_from_ranks,
)
from arena_lightning.arena.arena import Arena
from arena_lightning.arena.bradley_terry_ranking import BradleyTerryTopology
from arena_lightning.arena.result import ArenaResult
from arena_lightning.arena.scoring import ScoringArena, build_arena
from arena_lightning.arena.standings import TournamentCost
from arena_lightning.arena.topology import TOPOLOGIES, Topology, build_topology, play
from arena_lightning.arena.verdicts import JudgeCall
from arena_lightning.types import Bye, Match, Pairing, Standings

__all__ = [
    "TOPOLOGIES",
    "Arena",
    "ArenaResult",
    "BradleyTerryTopology",
    "Bye",
    "JudgeCall",
    "Match",
    "Pairing",
    "ScoringArena",
    "Standings",
    "Topology",
    "TournamentCost",
    "advantages_from_ranks",
    "advantages_from_scores",
    "build_arena",
    "build_topology",
    "play",
    "rewards_from_ranks",
]
