"""A source of verdicts for tests, apart from the product's: scores are utilities plus noise."""

import os
import signal
from pathlib import Path

import numpy as np

from arena_lightning.analysis.verdict_batch import VerdictBatch


class TinySource:
    def __init__(self, noise: float, trap: str = "") -> None:
        self.name = f"tiny {noise}"
        self.noise = noise
        self.trap = trap

    def draw(self, size: int, num_groups: int, seed: int) -> VerdictBatch:
        if self.trap and size == 5:
            self._spring()
        rng = np.random.default_rng([seed, size])
        truth = rng.normal(size=(num_groups, size))
        return self._judged(truth, rng)

    def retest(self, size: int, num_groups: int, seed: int) -> VerdictBatch:
        rng = np.random.default_rng([seed, size])
        truth = rng.normal(size=(num_groups, size))
        return self._judged(truth, np.random.default_rng([seed, size, 1]))

    def _judged(self, truth: np.ndarray, rng: np.random.Generator) -> VerdictBatch:
        shape = (*truth.shape, truth.shape[1])
        first = truth[:, :, None] + self.noise * rng.normal(size=shape)
        second = truth[:, None, :] + self.noise * rng.normal(size=shape)
        diagonal = np.arange(shape[1])
        first[:, diagonal, diagonal] = second[:, diagonal, diagonal] = np.nan
        return VerdictBatch(first, second, truth)

    def _spring(self) -> None:
        """Die or raise as often as the trap file says: "kill 1" kills the first process."""
        path = Path(self.trap)
        word, _, count = path.read_text().partition(" ")
        if int(count) > 0:
            path.write_text(f"{word} {int(count) - 1}")
            if word == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("sprung")


def build(settings):
    return {name: TinySource(**options) for name, options in settings.items()}
