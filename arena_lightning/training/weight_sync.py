"""Weights into the engine after each update, and proof that they arrived (see `rollout.canary`)."""

from functools import partial

import torch
from torch import nn

from arena_lightning.policy.logprobs import token_logprobs
from arena_lightning.policy.model import named_weights_for_engine
from arena_lightning.policy.packing import pack
from arena_lightning.rollout.canary import CanaryReport, verify_sync
from arena_lightning.rollout.engine import RolloutEngine
from arena_lightning.training.policy_module import PolicyModule
from arena_lightning.types import Group, Prompt, Segment, Trajectory

EXACT_TOLERANCE = 1e-3
"""Mean |difference| in log-probability, nats: float32 on both sides agrees to about 1e-5."""
COARSE_TOLERANCE = 0.1
"""The same for engines in half precision."""
LENT_VERSION = 2**31 - 1
"""Version of weights that are not the module's; no training step has it."""


class WeightSync:
    """Keeps one engine at one module's weights.

    Args:
        engine: a started engine.
        module: the policy's owner.
        canary_ids: the canary's opening.
    """

    def __init__(
        self, engine: RolloutEngine, module: PolicyModule, canary_ids: tuple[int, ...]
    ) -> None:
        self._engine = engine
        self._module = module
        self._canary = canary_ids
        self._synced: int | None = None

    def to_version(self, version: int) -> dict[str, float]:
        """Sync to `version` unless done, verify, and return how far the two are apart.

        Raises:
            WeightSyncError: the engine's version or its log-probabilities are not the trainer's.
        """
        if self._synced == version:
            return {}
        assert self._module.policy is not None, "the module holds a policy once fit has begun"
        report = self._push(self._module.policy, version)
        self._synced = version
        return {
            "sync/logprob_abs_mean": report.mean_abs_delta,
            "sync/logprob_abs_max": report.max_abs_delta,
        }

    def lend(self, policy: nn.Module) -> None:
        """Give the engine another policy's weights until the next `to_version`, verified."""
        self._synced = None
        self._push(policy, LENT_VERSION)

    def _push(self, policy: nn.Module, version: int) -> CanaryReport:
        self._engine.sync(named_weights_for_engine(policy), version)
        dtype = getattr(self._engine, "dtype", "float32")
        is_exact = self._module.device.type == "cpu" and dtype in ("auto", "float32")
        return verify_sync(
            self._engine,
            version,
            [self._canary],
            partial(self._logprobs_of, policy),
            EXACT_TOLERANCE if is_exact else COARSE_TOLERANCE,
        )

    def _logprobs_of(
        self, policy: nn.Module, prompt: tuple[int, ...], ids: tuple[int, ...]
    ) -> list[float]:
        """Return the trainer's log-probabilities, in float32 without autocast."""
        segments = (Segment("prompt", prompt), Segment("policy", ids, (0.0,) * len(ids), 0))
        group = Group(Prompt("canary", ""), (Trajectory("canary", (), segments),))
        batch = pack([group], [torch.zeros(1).numpy()], 4096, "padded")[0]
        device = next(policy.parameters()).device
        with torch.no_grad():
            logprobs = token_logprobs(policy, batch.to(device)).logprobs
        return [float(value) for value in logprobs]
