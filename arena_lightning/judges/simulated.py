"""A simulated noisy judge: the errors of an LLM judge, laid over any judge that can `score`.

It is NOT an LLM and says so wherever it prints. It takes the true scores of the judge inside and
adds, each under its own switch, what LLM judges are measured to do: squeezing of pointwise scores,
score noise, rounding, a bonus for the answer shown first, a tie grid, failures. Studies and
training use it to meet an LLM judge's faults without paying for one. It knows no task.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from arena_lightning.errors import ConfigError, JudgeError
from arena_lightning.protocols import Judge, Score
from arena_lightning.rng import generator_for
from arena_lightning.types import Prompt, Trajectory, Verdict

Rounding = Literal["none", "integer"] | float


# No slots: the YAML parser merges nested settings through __dict__.
@dataclass(frozen=True)
class NoiseConfig:
    """How the judge errs. Scores run from 0 to `scale`; points are units of that scale.

    The defaults are calibrated to ArenaRL, Fig. 1a: on a 0-1 scale the scores of one group differ
    with a sigma of about 0.03 while the same trajectory scored again moves by about 0.02, so that
    a pointwise ranking hangs on noise. Groups of travel experts of mixed diligence have a true
    within-group sigma of 1.4 points of 10; a compression of 0.2 leaves 0.29 points (0.03 of the
    scale) under a noise of 0.2 points (0.02). Side by side the same faults are milder: little
    squeezing and a noise of 0.6 points a score, which both orders average while they cancel the
    position bias. On those groups the better of two is found in 0.80 of the pairs by two pointwise
    scores and in 0.89 by a comparison in both orders, which disagree in 0.20 of the pairs.
    """

    enabled: bool = True
    """The one switch: False passes the judge inside through untouched."""
    scale: float = 10.0
    """Upper end of the score scale of the judge inside, points; the lower end is 0."""
    pointwise_compression: float = 0.2
    """Share of a score's distance from `centre` that survives when it is judged alone, 0-1."""
    pairwise_compression: float = 0.9
    """The same share when two are shown side by side, 0-1."""
    centre: float = 7.0
    """The point that scores are squeezed toward, points."""
    pointwise_noise: float = 0.2
    """Sigma of the noise on a score given alone, points (0.02 of the scale)."""
    score_noise: float = 0.6
    """Sigma of the noise on each of the two scores of one comparison, points."""
    position_bias: float = 0.3
    """Bonus for the trajectory shown first in a comparison, points; may be negative."""
    rounding: Rounding = 0.1
    """Step of the scores given alone: "none", "integer", or a step in points."""
    tie_grid: float = 0.1
    """Step of the two scores of a comparison, points: equal on the grid is a tie; 0 is none."""
    failure_rate: float = 0.0
    """Probability that a call gives no usable verdict (`JudgeError`), 0-1."""

    def __post_init__(self) -> None:
        for name in ("pointwise_compression", "pairwise_compression", "failure_rate"):
            _must(0.0 <= getattr(self, name) <= 1.0, name, "lie in 0-1", getattr(self, name))
        for name in ("pointwise_noise", "score_noise", "tie_grid"):
            _must(getattr(self, name) >= 0.0, name, "be at least 0 points", getattr(self, name))
        _must(self.scale > 0.0, "scale", "be above 0 points", self.scale)
        _must(0.0 <= self.centre <= self.scale, "centre", "lie within the scale", self.centre)
        if isinstance(self.rounding, str):
            known = self.rounding in ("none", "integer")
        else:
            known = self.rounding > 0
        _must(known, "rounding", 'be "none", "integer" or a step above 0', self.rounding)

    @property
    def rounding_step(self) -> float:
        """Step of pointwise scores in points, 0.0 for none."""
        if isinstance(self.rounding, str):
            return 1.0 if self.rounding == "integer" else 0.0
        return self.rounding


class NoisyJudge:
    """A judge that errs on purpose, as `NoiseConfig` says. Simulated; not an LLM.

    The error is a function of (seed, the prompt's text, both trajectories' text, their order), so
    the same question gets the same answer, like a temperature-0 LLM with its prompt cached; another
    seed is another judge of the same quality. The dimensions err as the scores do.
    """

    def __init__(self, judge: Judge, seed: int = 0, noise: NoiseConfig | None = None) -> None:
        """Wrap `judge`; `noise=None` takes the calibrated defaults."""
        self._judge = judge
        self._seed = seed
        self.noise = noise or NoiseConfig()
        kind = "simulated noise" if self.noise.enabled else "simulated noise off"
        self.name = f"{kind} (not an LLM) over {judge.name}"

    def __repr__(self) -> str:
        changed = ", ".join(
            f"{item.name}={getattr(self.noise, item.name)!r}"
            for item in fields(self.noise)
            if getattr(self.noise, item.name) != item.default
        )
        return f"<NoisyJudge {self.name!r}, seed {self._seed}, NoiseConfig({changed})>"

    async def score(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        """Return the squeezed, noisy, rounded pointwise score.

        Raises:
            JudgeError: at `failure_rate`, always for the same questions; or from the judge inside.
        """
        true = await self._judge.score(prompt, trajectory)
        noise = self.noise
        if not noise.enabled:
            return true
        rng = self._generator("judges/simulated/score", prompt, trajectory)
        self._maybe_fail(rng, prompt)

        def err(value: float) -> float:
            squeezed = self._squeezed(value, noise.pointwise_compression)
            noisy = squeezed + noise.pointwise_noise * rng.standard_normal()
            return self._on_scale(noisy, noise.rounding_step)

        return Score(
            score=err(true.score),
            dimensions=_each(err, true.dimensions),
            usage=true.usage,
            comment=self.name,
        )

    async def compare(self, prompt: Prompt, first: Trajectory, second: Trajectory) -> Verdict:
        """Return the noisy verdict with `first` shown first, on the tie grid.

        Raises:
            JudgeError: at `failure_rate`, always for the same questions; or from the judge inside.
        """
        true = await self._judge.compare(prompt, first, second)
        noise = self.noise
        if not noise.enabled:
            return true
        rng = self._generator("judges/simulated/compare", prompt, first, second)
        self._maybe_fail(rng, prompt)

        def err(value: float, bonus: float = 0.0) -> float:
            squeezed = self._squeezed(value, noise.pairwise_compression)
            noisy = squeezed + bonus + noise.score_noise * rng.standard_normal()
            return self._on_scale(noisy, noise.tie_grid)

        return Verdict(
            score_first=err(true.score_first, noise.position_bias),
            score_second=err(true.score_second),
            dimensions_first=_each(lambda v: err(v, noise.position_bias), true.dimensions_first),
            dimensions_second=_each(err, true.dimensions_second),
            usage=true.usage,
            comment=self.name,
            judge=self.name,
        )

    def _squeezed(self, value: float, compression: float) -> float:
        return self.noise.centre + compression * (value - self.noise.centre)

    def _on_scale(self, value: float, step: float) -> float:
        """Clip to the scale, then round half up to the step (half to even would favour evens)."""
        clipped = min(max(value, 0.0), self.noise.scale)
        return float(np.floor(clipped / step + 0.5) * step) if step > 0 else float(clipped)

    def _generator(
        self, stream: str, prompt: Prompt, *trajectories: Trajectory
    ) -> np.random.Generator:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{prompt.prompt_id}\0{prompt.query}".encode(errors="surrogatepass"))
        for trajectory in trajectories:
            digest.update(_content(trajectory))
        address = digest.digest()
        halves = (int.from_bytes(address[:8], "little"), int.from_bytes(address[8:], "little"))
        return generator_for(self._seed, stream, *halves)

    def _maybe_fail(self, rng: np.random.Generator, prompt: Prompt) -> None:
        if rng.random() < self.noise.failure_rate:
            raise JudgeError(
                f"A judge must give a usable verdict, got a simulated failure (prompt "
                f"{prompt.prompt_id!r}, failure_rate {self.noise.failure_rate}). "
                "Set failure_rate to 0 if failures are not what you study."
            )


def _content(trajectory: Trajectory) -> bytes:
    """What a judge would read, as bytes; ids, versions and the index don't belong to it."""
    said = [
        [
            m.role,
            m.name,
            m.content,
            m.reasoning,
            [[c.name, dict(c.arguments)] for c in m.tool_calls],
        ]
        for m in trajectory.messages
    ]
    text = json.dumps([trajectory.finish, said], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _each(err: Callable[[float], float], values: Mapping[str, float]) -> dict[str, float]:
    return {name: err(value) for name, value in values.items()}


def _must(holds: bool, name: str, must: str, got: object) -> None:
    if not holds:
        raise ConfigError(f"`{name}` must {must}, got {got!r} (NoiseConfig). Change that key.")
