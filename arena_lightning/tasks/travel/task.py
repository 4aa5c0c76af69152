"""The travel task: opening messages, tools, prompts of each split, cold-start dialogues.

Sizes follow the paper (Table 1): 2,600 cold-start dialogues without `multi_day_travel`, 1,626
training prompts over all five subtasks, 5 x 50 test prompts with references.
"""

from collections.abc import Sequence
from dataclasses import replace

from arena_lightning.errors import ConfigError
from arena_lightning.rng import generator_for
from arena_lightning.tasks.travel.diligence import Diligence
from arena_lightning.tasks.travel.expert import Expert
from arena_lightning.tasks.travel.needs import SUBTASKS
from arena_lightning.tasks.travel.queries import SPLITS, QueryGenerator
from arena_lightning.tasks.travel.tools import TravelToolset
from arena_lightning.tasks.travel.world import TODAY, World, weekday_name
from arena_lightning.types import Message, Prompt

DEFAULT_COUNTS = {"cold_start": 2600, "train": 1626, "test": 250}
HELD_OUT_OF_COLD_START = "multi_day_travel"


class TravelTask:
    """An offline, deterministic world of travel queries.

    Args:
        seed: root seed of the world and its queries.
        language: "en", or "zh" for a world in China with Chinese queries.
        max_results: lines an observation holds at most.
    """

    def __init__(self, seed: int = 0, language: str = "en", max_results: int = 4) -> None:
        self.world = World(seed, language)
        self.toolset = TravelToolset(self.world, max_results)
        self._queries = QueryGenerator(self.world)
        self._expert = Expert(self.world, self.toolset)

    def opening(self, prompt: Prompt) -> tuple[Message, ...]:
        """Return the system and user messages."""
        today = f"{TODAY} ({weekday_name(TODAY.weekday())})"
        if prompt.language == "zh":
            system = f"你是旅行助手。今天是{today}。先用尽量少的工具调用查证，再用查到的事实作答。"
        else:
            system = (
                f"You are a travel assistant. Today is {today}. Check facts with few tool calls, "
                "then answer."
            )
        return Message("system", system), Message("user", prompt.query)

    def prompts(
        self, split: str, subtasks: Sequence[str] | None = None, count: int | None = None
    ) -> list[Prompt]:
        """Return prompts of "cold_start", "train" or "test", subtasks taking turns.

        Raises:
            ConfigError: an unknown split or subtask, or a count below 1.
        """
        if split not in SPLITS:
            raise ConfigError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
        wanted = list(subtasks) if subtasks is not None else list(SUBTASKS)
        unknown = [name for name in wanted if name not in SUBTASKS]
        if unknown or not wanted:
            raise ConfigError(
                f"subtasks must be some of {', '.join(SUBTASKS)}, got {unknown or 'none'} "
                "(subtasks). Correct the names."
            )
        if split == "cold_start" and subtasks is None:
            wanted.remove(HELD_OUT_OF_COLD_START)
        if count is not None and count < 1:
            raise ConfigError(f"count must be at least 1, got {count}. Raise it.")
        default = 50 * len(wanted) if split == "test" else DEFAULT_COUNTS[split]
        prompts = [
            self._queries.prompt(split, wanted[i % len(wanted)], i // len(wanted))
            for i in range(count or default)
        ]
        return [self._with_reference(p) for p in prompts] if split == "test" else prompts

    def cold_start_dialogues(
        self, count: int = DEFAULT_COUNTS["cold_start"], subtasks: Sequence[str] | None = None
    ) -> list[tuple[Prompt, tuple[Message, ...]]]:
        """Return dialogues of experts whose habits are drawn independently for each."""
        dialogues = []
        for index, prompt in enumerate(self.prompts("cold_start", subtasks, count)):
            generator = generator_for(self.world.seed, "travel/diligence", index)
            diligence = Diligence.sample(generator)
            dialogues.append((prompt, self._expert.trajectory(prompt, diligence, generator)))
        return dialogues

    def expert_messages(
        self, prompt: Prompt, diligence: Diligence, seed: int = 0
    ) -> tuple[Message, ...]:
        """Return one expert's dialogue for a prompt of this task."""
        generator = generator_for(seed, "travel/expert", 0)
        return self._expert.trajectory(prompt, diligence, generator)

    def _with_reference(self, prompt: Prompt) -> Prompt:
        return replace(prompt, reference=self.expert_messages(prompt, Diligence.full()))
