"""Listwise judging: one call scores a whole group.

    group -> opaque ids in a drawn order -> one question -> scores bound by id -> group order

Contestants are shown under ids that say nothing, in an order drawn at an address, and each score
is found by the id it was given to, never by its place in the reply. Cheaper than a tournament and
coarser; it has no `compare` and is no `protocols.Judge`.
"""

from collections.abc import Sequence
from pathlib import Path

from arena_lightning.errors import ConfigError
from arena_lightning.judges.asking import Asker, Client, Question
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.presenting import View, messages_for
from arena_lightning.judges.rubric import RubricBook
from arena_lightning.protocols import Score
from arena_lightning.rng import generator_for
from arena_lightning.types import Prompt, Trajectory, Usage

_LETTERS = "bcdfghjkmnpqrstvwxz"
"""No vowels: ids spell nothing that could please a judge."""
_ID_LENGTH = 4
_STREAM = "judges/listwise"


class ListwiseJudge:
    """Scores all trajectories of a prompt side by side, 0 to the rubric's scale."""

    def __init__(
        self,
        client: Client,
        rubric_name: str | Path = "travel",
        ledger: Ledger | None = None,
        process_aware: bool = True,
        observations: bool = False,
        max_chars_per_trajectory: int = 8_000,
        max_chars_per_observation: int = 1_000,
        repair_attempts: int = 1,
        with_analysis: bool = False,
        name: str = "",
    ) -> None:
        """Set up a judge; arguments as of `LLMJudge`, shorter by default: all share one call."""
        self.name = name or f"{client.model}:{Path(rubric_name).stem}:listwise"
        self.rubrics = RubricBook(rubric_name, process_aware)
        self.view = View(
            process_aware, observations, max_chars_per_observation, max_chars_per_trajectory
        )
        self.with_analysis = with_analysis
        self.asker = Asker(client, ledger, repair_attempts)

    async def score_group(
        self, prompt: Prompt, trajectories: Sequence[Trajectory], seed: int = 0
    ) -> list[Score]:
        """Score a group in one call.

        Args:
            prompt: whose query is shown.
            trajectories: at least one, in contestant order.
            seed: of the ids and the order shown; another seed is another question.

        Returns:
            One score a trajectory, in the order of `trajectories`. The first one carries the
            call's whole usage and the others none, so that the sum is right.

        Raises:
            JudgeError: no usable reply; ids missing, doubled or unknown; `.usage` is all billed.
            ConfigError: an empty group, or a language that the rubric lacks.
        """
        if not trajectories:
            raise ConfigError(
                f"a group must have at least 1 trajectory, got 0 (listwise judge, prompt "
                f"{prompt.prompt_id!r}). Leave the prompt out."
            )
        ids, order = _ids_and_order(len(trajectories), seed)
        rubric = self.rubrics[prompt.language]
        shown = {ids[index]: trajectories[index] for index in order}
        question = Question(
            kind="listwise",
            prompt=prompt,
            messages=messages_for(prompt, shown, rubric, self.view, self.with_analysis),
            sides=tuple(shown),
            rubric=rubric,
            with_analysis=self.with_analysis,
            contents=[repr((t.finish, t.messages)) for t in shown.values()],
        )
        answer = await self.asker.ask(question)
        free = Usage(calls=0, cached=answer.usage.cached)
        return [
            Score(
                score=rubric.total(answer.scores[ids[index]]),
                dimensions=answer.scores[ids[index]],
                usage=answer.usage if index == 0 else free,
                comment=answer.text if index == 0 else "",
            )
            for index in range(len(trajectories))
        ]


def _ids_and_order(size: int, seed: int) -> tuple[list[str], list[int]]:
    """Return a distinct id for each contestant, and the order they are shown in."""
    rng = generator_for(seed, _STREAM, size)
    ids: list[str] = []
    while len(ids) < size:
        letters = rng.integers(len(_LETTERS), size=_ID_LENGTH)
        drawn = "".join(_LETTERS[int(letter)] for letter in letters)
        if drawn not in ids:
            ids.append(drawn)
    return ids, [int(index) for index in rng.permutation(size)]
