"""Trajectories -> micro-batches under a token budget, in one of two layouts with equal results.

`padded`: sequences of similar length share a rectangle, padded at the right. `shared_prefix`: the N
trajectories of a group start with the same prompt, which becomes a prefix that the group's rows
attend to; it is then computed once instead of N times. The loss mask is who emitted the token;
nothing here knows a chat template. Everything is deterministic.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from arena_lightning.errors import ConfigError, DataError
from arena_lightning.types import Group, Trajectory

Layout = Literal["padded", "shared_prefix"]
LAYOUTS: tuple[Layout, ...] = ("padded", "shared_prefix")


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """One trajectory as arrays.

    Shapes: `ids` int64 `[seq]`, `loss_mask` bool `[seq]` (True = the policy emitted it),
    `sampling_logprobs` float32 `[seq]` (0 where the policy did not emit, NaN where it was greedy).
    """

    ids: np.ndarray
    loss_mask: np.ndarray
    sampling_logprobs: np.ndarray
    num_prompt_tokens: int
    """Length of the leading run of prompt tokens."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Rows to run together, and which of their positions predict a trained token.

    Shapes: `ids` holds the rows end to end, `lengths` `[row]` their lengths. Rows come in blocks:
    `block_rows` `[block]` rows each, which continue a prefix of `prefix_lengths` `[block]` tokens
    (0: none); `prefix_ids` holds the prefixes end to end, None without any. Per trained token
    (`token` of them, row by row): `positions` is where in `ids` the token *before* it lies,
    `targets` its id, `rows` its row, `sampling_logprobs` the engine's (NaN for greedy turns). Per
    row: `advantages`,
    `token_counts` (the whole sequence's trained tokens), `sources` (place in the packed input).
    """

    ids: torch.Tensor
    lengths: torch.Tensor
    prefix_ids: torch.Tensor | None
    prefix_lengths: torch.Tensor
    block_rows: torch.Tensor
    positions: torch.Tensor
    targets: torch.Tensor
    rows: torch.Tensor
    sampling_logprobs: torch.Tensor
    advantages: torch.Tensor
    token_counts: torch.Tensor
    sources: torch.Tensor
    muted: bool = False
    """True for a filler that keeps ranks in step: its loss is multiplied by zero."""

    @property
    def num_rows(self) -> int:
        return self.lengths.numel()

    @property
    def num_trained_tokens(self) -> int:
        return self.targets.numel()

    @property
    def num_computed_tokens(self) -> int:
        """Tokens the transformer body processes, prefixes included, padding apart."""
        prefix = 0 if self.prefix_ids is None else self.prefix_ids.numel()
        return self.ids.numel() + prefix

    def to(self, device: torch.device | str) -> "MicroBatch":
        """Return a copy on `device`."""
        moved = {
            name: value.to(device)
            for name in self.__dataclass_fields__
            if isinstance(value := getattr(self, name), torch.Tensor)
        }
        return replace(self, **moved)

    def mute(self) -> "MicroBatch":
        """Return a copy with zero loss and metrics but a whole graph, for idle ranks."""
        return replace(self, muted=True)


@dataclass(frozen=True, slots=True)
class Totals:
    """What the loss of a whole update is divided by, so that micro-batching can't change it."""

    num_tokens: int
    num_sequences: int


def sequence_from_trajectory(trajectory: Trajectory) -> TokenSequence:
    """Concatenate a trajectory's segments.

    Raises:
        DataError: a policy segment with some log-probabilities, but not one for each id.
    """
    ids: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    num_prompt_tokens = 0
    for segment in trajectory.segments:
        is_policy = segment.emitter == "policy"
        if is_policy and len(segment.logprobs) not in (0, len(segment.ids)):
            raise DataError(
                f"a policy segment must have one log-probability for each id, got "
                f"{len(segment.logprobs)} for {len(segment.ids)} (prompt {trajectory.prompt_id}, "
                f"trajectory {trajectory.index}). Ask the engine for sampling log-probabilities."
            )
        if segment.emitter == "prompt" and len(ids) == num_prompt_tokens:
            num_prompt_tokens += len(segment.ids)
        ids.extend(segment.ids)
        mask.extend([is_policy] * len(segment.ids))
        unknown = math.nan if is_policy else 0.0
        logprobs.extend(segment.logprobs or [unknown] * len(segment.ids))
    return TokenSequence(
        np.asarray(ids, dtype=np.int64),
        np.asarray(mask, dtype=bool),
        np.asarray(logprobs, dtype=np.float32),
        num_prompt_tokens,
    )


def count_totals(groups: Iterable[Group]) -> Totals:
    """Count trained tokens and the sequences that have any, over this process's groups.

    A first token without context predicts nothing, so a policy token at position 0 isn't counted.
    """
    counts = [
        int(sequence_from_trajectory(trajectory).loss_mask[1:].sum())
        for group in groups
        for trajectory in group.trajectories
    ]
    return Totals(sum(counts), sum(count > 0 for count in counts))


def pack(
    groups: Sequence[Group],
    advantages: Sequence[np.ndarray],
    micro_batch_tokens: int,
    layout: Layout = "shared_prefix",
    drop_zero_advantages: bool = False,
) -> list[MicroBatch]:
    """Return micro-batches that together hold every trained token of `groups` once.

    Args:
        groups: trajectories with tokens; `sources` count them group by group.
        advantages: float `[group]` for each group, in contestant order.
        micro_batch_tokens: the most tokens that one micro-batch computes, padding and prefixes
            included; a single sequence longer than that gets a micro-batch of its own.
        layout: see the module docstring.
        drop_zero_advantages: leave out sequences whose advantage is 0. Their gradient is 0 unless
            a KL term is on; divide by `count_totals` of all groups, not by what is left.

    Raises:
        ConfigError: an unknown layout or a budget below 1.
    """
    if layout not in LAYOUTS:
        raise ConfigError(
            f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r} (packing). "
            "Name one of them."
        )
    if micro_batch_tokens < 1:
        raise ConfigError(
            f"micro_batch_tokens must be at least 1, got {micro_batch_tokens}. Use e.g. 4096."
        )
    blocks: list[_Block] = []
    pool: list[_Row] = []
    source = 0
    for group, group_advantages in zip(groups, advantages, strict=True):
        rows = []
        for trajectory, advantage in zip(group.trajectories, group_advantages, strict=True):
            sequence = sequence_from_trajectory(trajectory)
            trained = int(sequence.loss_mask[1:].sum())
            if trained and not (drop_zero_advantages and float(advantage) == 0.0):
                rows.append(_Row(sequence, float(advantage), trained, source))
            source += 1
        prefix_length = _shared_prompt_length(rows) if layout == "shared_prefix" else 0
        if prefix_length and len(rows) > 1:
            blocks += _fill(rows, prefix_length, micro_batch_tokens)
        else:
            pool += rows
    batches = _merge(blocks, micro_batch_tokens)
    return batches + [_build([block]) for block in _fill(pool, 0, micro_batch_tokens)]


@dataclass(frozen=True, slots=True)
class _Row:
    sequence: TokenSequence
    advantage: float
    token_count: int
    source: int

    def __len__(self) -> int:
        return len(self.sequence.ids)


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows, longest first, that continue the same `prefix_length` first tokens."""

    rows: Sequence[_Row]
    prefix_length: int

    @property
    def num_tokens(self) -> int:
        """What the block costs, padding included."""
        return self.prefix_length + len(self.rows) * (len(self.rows[0]) - self.prefix_length)


def _shared_prompt_length(rows: Sequence[_Row]) -> int:
    """Length of the prompt all rows share, less one: the last prompt token predicts a row's own."""
    if not rows:
        return 0
    length = min(row.sequence.num_prompt_tokens for row in rows)
    first = rows[0].sequence.ids[:length]
    for row in rows[1:]:
        different = np.flatnonzero(row.sequence.ids[:length] != first[:length])
        if different.size:
            length = int(different[0])
    return max(0, length - 1)


def _fill(rows: Sequence[_Row], prefix_length: int, budget: int) -> list[_Block]:
    """Fill rectangles, longest rows first, so that a rectangle's rows have similar lengths."""
    blocks = []
    waiting = sorted(rows, key=lambda row: (-len(row), row.source))
    while waiting:
        width = len(waiting[0]) - prefix_length
        count = max(1, (budget - prefix_length) // width)
        blocks.append(_Block(waiting[:count], prefix_length))
        waiting = waiting[count:]
    return blocks


def _merge(blocks: Sequence[_Block], budget: int) -> list[MicroBatch]:
    """Put consecutive blocks together while they fit: fewer, larger products are faster."""
    batches: list[list[_Block]] = []
    spent = budget + 1
    for block in blocks:
        spent += block.num_tokens
        if spent > budget:
            batches.append([])
            spent = block.num_tokens
        batches[-1].append(block)
    return [_build(batch) for batch in batches]


def _build(blocks: Sequence[_Block]) -> MicroBatch:
    positions, targets, row_of, sampling, ids = [], [], [], [], []
    start = 0
    rows = [(row, block.prefix_length) for block in blocks for row in block.rows]
    for index, (row, prefix_length) in enumerate(rows):
        suffix = row.sequence.ids[prefix_length:]
        trained = np.flatnonzero(row.sequence.loss_mask[prefix_length:])
        trained = trained[trained > 0]
        ids.append(suffix)
        positions.append(start + trained - 1)
        targets.append(suffix[trained])
        row_of.append(np.full(len(trained), index))
        sampling.append(row.sequence.sampling_logprobs[prefix_length:][trained])
        start += len(suffix)
    prefixes = [block.rows[0].sequence.ids[: block.prefix_length] for block in blocks]
    has_prefix = any(block.prefix_length for block in blocks)
    return MicroBatch(
        ids=torch.from_numpy(np.concatenate(ids)),
        lengths=torch.tensor([len(suffix) for suffix in ids]),
        prefix_ids=torch.from_numpy(np.concatenate(prefixes)) if has_prefix else None,
        prefix_lengths=torch.tensor([block.prefix_length for block in blocks]),
        block_rows=torch.tensor([len(block.rows) for block in blocks]),
        positions=torch.from_numpy(np.concatenate(positions)),
        targets=torch.from_numpy(np.concatenate(targets)),
        rows=torch.from_numpy(np.concatenate(row_of)),
        sampling_logprobs=torch.from_numpy(np.concatenate(sampling)),
        advantages=torch.tensor([row.advantage for row, _ in rows], dtype=torch.float64),
        token_counts=torch.tensor([row.token_count for row, _ in rows]),
        sources=torch.tensor([row.source for row, _ in rows]),
    )
