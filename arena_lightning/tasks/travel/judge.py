"""The offline travel judge: the paper's travel rubric computed by a program, not by an LLM.

It combines `path_rubric` and `answer_rubric` into scores and verdicts with the paper's dimensions
and weights. It has no noise of its own: `judges/simulated.py` adds that on request. It can judge
only prompts whose needs are machine-readable.
"""

from collections import OrderedDict
from statistics import fmean

from arena_lightning.errors import JudgeError
from arena_lightning.protocols import Score
from arena_lightning.tasks.travel.answer_rubric import answer_dimensions
from arena_lightning.tasks.travel.case import CaseReader
from arena_lightning.tasks.travel.path_rubric import path_dimensions
from arena_lightning.tasks.travel.world import World
from arena_lightning.types import Prompt, Trajectory, Verdict

PATH_WEIGHT = 0.6
ANSWER_WEIGHT = 0.4
_CACHE_SIZE = 512


class TravelJudge:
    """Scores a travel trajectory 0-10 per dimension, combined as the paper does.

    Dimensions: path breadth, relevance, detail (named `path_*`), answer relevance, feasibility,
    details, clarity (`answer_*`). Combined: 0.6 x mean(path) + 0.4 x mean(answer), unrounded, so
    that different trajectories rarely tie. Source: ArenaRL, arXiv:2601.06487, App. E, travel
    rubric; differs: computed, unrounded, and it reads the observations, which the paper's judge
    isn't shown.
    """

    name = "travel-rubric (offline, programmatic; not an LLM)"

    def __init__(self, world: World) -> None:
        """Judge against `world`: the one that the toolset ran on."""
        self._reader = CaseReader(world)
        self._cache: OrderedDict[tuple[int, int], tuple[Prompt, Trajectory, Score]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<TravelJudge {self.name!r}>"

    async def score(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        """Return the score of one trajectory; an unfinished one gets 0 for its answer.

        Raises:
            JudgeError: the prompt has no machine-readable needs.
        """
        return self.rate(prompt, trajectory)

    async def compare(self, prompt: Prompt, first: Trajectory, second: Trajectory) -> Verdict:
        """Return both scores as a verdict; the order shown makes no difference to this judge.

        Raises:
            JudgeError: the prompt has no machine-readable needs.
        """
        one, two = self.rate(prompt, first), self.rate(prompt, second)
        return Verdict(
            score_first=one.score,
            score_second=two.score,
            dimensions_first=one.dimensions,
            dimensions_second=two.dimensions,
            usage=one.usage,
            judge=self.name,
        )

    def rate(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        """Score without an event loop, for studies; the same as `score`.

        A trajectory object is read once: carriers are frozen, so object identity is enough, and
        the cache keeps them alive while it holds their ids.
        """
        key = id(prompt), id(trajectory)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key][2]
        score = self._rate(prompt, trajectory)
        self._cache[key] = prompt, trajectory, score
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return score

    def _rate(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        if "items" not in prompt.needs:
            raise JudgeError(
                "The offline travel judge needs a prompt's machine-readable `needs`, got none "
                f"(prompt {prompt.prompt_id!r}). Prompts from your own files have no needs: "
                "configure an LLM judge for them."
            )
        case = self._reader.read(prompt, trajectory)
        path = path_dimensions(case)
        answer = answer_dimensions(case)
        combined = PATH_WEIGHT * fmean(path.values()) + ANSWER_WEIGHT * fmean(answer.values())
        dimensions = {f"path_{name}": value for name, value in path.items()}
        dimensions |= {f"answer_{name}": value for name, value in answer.items()}
        return Score(score=combined, dimensions=dimensions, comment=self.name)
