"""A Hugging Face causal LM as an engine, for machines without vLLM and for exact reproduction.

Continuous batching with a left-padded key-value cache: each `step` admits what is queued and
samples one token for every running request. Each request draws from its own generator. The same
requests added before the same steps give the same bits; batch neighbours change results only by
the rounding of matrix products. There is no cache across turns, so vLLM is much faster.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from arena_lightning.errors import ConfigError, RolloutError, WeightSyncError
from arena_lightning.rollout.engine import (
    Completion,
    CompletionReason,
    Request,
    RolloutEngine,
    Stopwatch,
)
from arena_lightning.rollout.sampling import sample_tokens

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(slots=True)
class _Row:
    """A request on its way. Its cache holds all of its tokens but the last one."""

    request: Request
    max_tokens: int
    generator: torch.Generator
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    @property
    def num_cached(self) -> int:
        return len(self.request.prompt_ids) + len(self.ids) - 1


class TransformersEngine(RolloutEngine):
    """Runs a causal LM token by token.

    Args:
        max_model_len: most tokens a trajectory may have.
        max_num_seqs: sequences that run at once.
        dtype: "float32" (agrees with the trainer to about 1e-6), "bfloat16" or "float16".
        device: "auto" is cuda where there is one, else cpu.
    """

    is_reproducible = True

    def __init__(
        self,
        max_model_len: int = 2048,
        max_num_seqs: int = 64,
        dtype: str = "float32",
        device: str = "auto",
    ) -> None:
        super().__init__(max_model_len)
        if dtype not in DTYPES:
            raise ConfigError(
                f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r} (arena.engine.dtype)."
            )
        if max_num_seqs < 1:
            raise ConfigError(
                f"max_num_seqs must be at least 1, got {max_num_seqs} (arena.engine.max_num_seqs)."
            )
        self.max_num_seqs = max_num_seqs
        self.dtype = dtype
        self.device = device
        self._model: Any = None
        self._stop_ids: frozenset[int] = frozenset()
        self._queue: list[_Row] = []
        self._rows: list[_Row] = []
        self._cache: Any = None
        self._mask = torch.zeros(0, 0, dtype=torch.long)

    def start(self, model_dir: Path, stop_ids: Sequence[int], seed: int) -> None:
        from transformers import AutoModelForCausalLM

        self._stop_ids = frozenset(stop_ids)
        device = self.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        model = AutoModelForCausalLM.from_pretrained(
            str(model_dir),
            dtype=getattr(torch, self.dtype),
            attn_implementation="sdpa",
            local_files_only=True,
        )
        self._model = model.requires_grad_(False).eval().to(device)
        self.version = 0

    def add(self, request: Request) -> None:
        max_tokens = self._admit(request)
        generator = torch.Generator().manual_seed(request.seed % 2**63)
        self._queue.append(_Row(request, max_tokens, generator))

    @torch.no_grad()
    def step(self) -> list[Completion]:
        if self._model is None:
            raise RolloutError("the engine must be started first. Call start(model_dir, ...).")
        with Stopwatch(self.stats):
            done: list[Completion] = []
            if self._rows:
                done += self._decode()
            free = self.max_num_seqs - len(self._rows)
            if self._queue and free:
                admitted, self._queue = self._queue[:free], self._queue[free:]
                done += self._prefill(admitted)
            return done

    def _decode(self) -> list[Completion]:
        """Sample one token for each running row."""
        ids = torch.tensor([[row.ids[-1]] for row in self._rows])
        positions = torch.tensor([[row.num_cached] for row in self._rows])
        self._mask = torch.cat([self._mask, torch.ones(len(ids), 1, dtype=torch.long)], dim=1)
        logits = self._logits(ids, positions, self._mask, self._cache)
        self._sample(self._rows, logits)
        return self._retire()

    def _prefill(self, rows: list[_Row]) -> list[Completion]:
        """Read prompts, equal ones once, and let the rows join those that run."""
        from transformers import DynamicCache

        prompts = list(dict.fromkeys(row.request.prompt_ids for row in rows))
        width = max(len(prompt) for prompt in prompts)
        ids = torch.zeros(len(prompts), width, dtype=torch.long)
        mask = torch.zeros(len(prompts), width, dtype=torch.long)
        for place, prompt in enumerate(prompts):
            ids[place, width - len(prompt) :] = torch.tensor(prompt)
            mask[place, width - len(prompt) :] = 1
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        cache = DynamicCache()
        logits = self._logits(ids, positions, mask, cache)
        places = torch.tensor([prompts.index(row.request.prompt_ids) for row in rows])
        _select(cache, places)
        self._sample(rows, logits[places])
        if self._rows:
            cache, mask = _joined((self._cache, self._mask), (cache, mask[places]))
        else:
            mask = mask[places]
        self._rows, self._cache, self._mask = self._rows + rows, cache, mask
        return self._retire()

    def _logits(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: Any
    ) -> torch.Tensor:
        """Run the model; return float32 logits of the last position, `[row, vocab]`."""
        device = self._model.device
        output = self._model(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            position_ids=positions.to(device),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1].float().cpu()

    def _sample(self, rows: list[_Row], logits: torch.Tensor) -> None:
        ids, logprobs = sample_tokens(
            logits,
            [row.request.temperature for row in rows],
            [row.generator for row in rows],
        )
        for row, token, logprob in zip(rows, ids, logprobs, strict=True):
            row.ids.append(token)
            row.logprobs.append(logprob)
        self.stats.generated_tokens += len(rows)

    def _retire(self) -> list[Completion]:
        """Take finished rows out of the batch, and padding that no row needs any more."""
        reasons = [self._reason(row) for row in self._rows]
        if not any(reasons):
            return []
        done = [
            Completion(
                row.request.request_id, tuple(row.ids), tuple(row.logprobs), reason, self.version
            )
            for row, reason in zip(self._rows, reasons, strict=True)
            if reason is not None
        ]
        kept = [place for place, reason in enumerate(reasons) if reason is None]
        self._rows = [self._rows[place] for place in kept]
        if not kept:
            self._cache = None
            return done
        mask = self._mask[kept]
        padding = int(mask.argmax(dim=1).min())
        self._mask = mask[:, padding:]
        _select(self._cache, torch.tensor(kept), padding)
        return done

    def _reason(self, row: _Row) -> CompletionReason | None:
        if row.ids[-1] in self._stop_ids:
            return "stop"
        if row.num_cached + 1 >= self.max_model_len:
            return "context"
        return "length" if len(row.ids) >= row.max_tokens else None

    def abort_all(self) -> None:
        self._queue, self._rows, self._cache = [], [], None

    @property
    def num_unfinished(self) -> int:
        return len(self._queue) + len(self._rows)

    @torch.no_grad()
    def sync(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        self._require_idle("sync")
        missing = dict(self._model.named_parameters())
        self.version = -1  # half-written weights are no version
        for name, tensor in named_tensors:
            parameter = missing.pop(name, None)
            if parameter is None or parameter.shape != tensor.shape:
                mine = "none" if parameter is None else tuple(parameter.shape)
                raise WeightSyncError(
                    f"synced weights must be those of the engine's model, got {name} "
                    f"{tuple(tensor.shape)} where it has {mine}. Start the engine with the "
                    "policy's own folder."
                )
            parameter.copy_(tensor)
        if missing:
            raise WeightSyncError(
                f"a sync must bring all weights, got none for {', '.join(sorted(missing)[:5])} "
                f"({len(missing)} missing). Pass every named tensor of the policy."
            )
        self.version = version

    def close(self) -> None:
        self.abort_all()
        self._model = None


def _select(cache: Any, places: torch.Tensor, padding: int = 0) -> None:
    """Keep the given rows of a cache, in that order, without its first `padding` positions."""
    for layer in cache.layers:
        places = places.to(layer.keys.device)
        layer.keys = layer.keys[places][:, :, padding:].contiguous()
        layer.values = layer.values[places][:, :, padding:].contiguous()


def _joined(
    first: tuple[Any, torch.Tensor], second: tuple[Any, torch.Tensor]
) -> tuple[Any, torch.Tensor]:
    """Return two (cache, mask) batches as one, the shorter padded on the left."""
    from transformers import DynamicCache

    width = max(first[1].shape[1], second[1].shape[1])

    def widened(tensor: torch.Tensor, dim: int) -> torch.Tensor:
        missing = width - tensor.shape[dim]
        return torch.nn.functional.pad(tensor, (0, 0) * (tensor.dim() - 1 - dim) + (missing, 0))

    mask = torch.cat([widened(first[1], 1), widened(second[1], 1)])
    layers = [
        tuple(
            torch.cat([widened(one, 2), widened(two, 2)])
            for one, two in ((old.keys, new.keys), (old.values, new.values))
        )
        for old, new in zip(first[0].layers, second[0].layers, strict=True)
    ]
    return DynamicCache(ddp_cache_data=layers), mask
