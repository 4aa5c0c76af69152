"""The LLM judge: compares two trajectories, or scores one, by a rubric in the query's language.

    question -> presenting -> asking (ledger, client, reading) -> Rubric.total -> Verdict

One `compare` is one question in the order it is given; both orders, merging and failures are the
arena's. The scores are summed up here from the dimension scores, whatever the model thinks they
come to. It never makes up a verdict: no usable reply is a `JudgeError`.
"""

from collections.abc import Mapping
from pathlib import Path

from arena_lightning.judges.asking import Asker, Client, Question
from arena_lightning.judges.ledger import Ledger
from arena_lightning.judges.presenting import View, messages_for
from arena_lightning.judges.rubric import RubricBook
from arena_lightning.protocols import Score
from arena_lightning.types import Prompt, Trajectory, Verdict

_ALONE = "work"
"""Key of the only side when a trajectory is scored alone."""


class LLMJudge:
    """Judges with one model behind a client. Scores run from 0 to the rubric's scale (10)."""

    def __init__(
        self,
        client: Client,
        rubric_name: str | Path = "travel",
        ledger: Ledger | None = None,
        process_aware: bool = True,
        observations: bool = True,
        max_chars_per_trajectory: int = 24_000,
        max_chars_per_observation: int = 2_000,
        repair_attempts: int = 1,
        with_analysis: bool = True,
        name: str = "",
    ) -> None:
        """Set up a judge; nothing is sent yet.

        Args:
            client: asks the model.
            rubric_name: a shipped rubric, or a YAML file's path.
            ledger: where verdicts are kept and looked up; None keeps none.
            process_aware: show steps beside the answer and judge them; False leaves out the
                rubric's levels that read the process (the paper's pointwise baselines).
            observations: show what the tools returned. The paper: False.
            max_chars_per_trajectory: characters of steps and answer; more is cut, visibly.
            max_chars_per_observation: characters of one tool's result; more is cut, visibly.
            repair_attempts: further calls when a reply can't be read.
            with_analysis: ask for words before the scores, as the paper; costs output tokens.
            name: in reports; "" names it after the model and the rubric.

        Raises:
            ConfigError: the rubric is faulty, or a number is out of range.
        """
        self.name = name or f"{client.model}:{Path(rubric_name).stem}"
        self.rubrics = RubricBook(rubric_name, process_aware)
        self.view = View(
            process_aware, observations, max_chars_per_observation, max_chars_per_trajectory
        )
        self.with_analysis = with_analysis
        self.asker = Asker(client, ledger, repair_attempts)

    async def compare(self, prompt: Prompt, first: Trajectory, second: Trajectory) -> Verdict:
        """Return one verdict with `first` shown first.

        Raises:
            JudgeError: no usable reply, repairs included; `.usage` is everything billed.
            ConfigError: the rubric has no text in the prompt's language.
        """
        question = self._question("compare", prompt, {"first": first, "second": second})
        answer = await self.asker.ask(question)
        one, other = answer.scores["first"], answer.scores["second"]
        return Verdict(
            score_first=question.rubric.total(one),
            score_second=question.rubric.total(other),
            dimensions_first=one,
            dimensions_second=other,
            usage=answer.usage,
            comment=answer.text,
            judge=answer.model,
        )

    async def score(self, prompt: Prompt, trajectory: Trajectory) -> Score:
        """Score one trajectory alone by the same rubric. Raises as `compare`."""
        question = self._question("score", prompt, {_ALONE: trajectory})
        answer = await self.asker.ask(question)
        dimensions = answer.scores[_ALONE]
        return Score(question.rubric.total(dimensions), dimensions, answer.usage, answer.text)

    def key_of(
        self, kind: str, prompt: Prompt, first: Trajectory, second: Trajectory | None
    ) -> str:
        """Return a question's ledger key, for replaying a ledger with `RecordedJudge`."""
        sides = {_ALONE: first} if second is None else {"first": first, "second": second}
        return self.asker.key(self._question(kind, prompt, sides))

    def _question(self, kind: str, prompt: Prompt, sides: Mapping[str, Trajectory]) -> Question:
        rubric = self.rubrics[prompt.language]
        return Question(
            kind=kind,
            prompt=prompt,
            messages=messages_for(prompt, sides, rubric, self.view, self.with_analysis),
            sides=tuple(sides),
            rubric=rubric,
            with_analysis=self.with_analysis,
            contents=[repr((t.finish, t.messages)) for t in sides.values()],
        )
