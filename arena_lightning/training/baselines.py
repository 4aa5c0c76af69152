"""What a candidate is compared with: references, a file of outputs, another checkpoint, any LLM.

Everything that can be wrong is found before a model is loaded: `BaselineChoice.check`. Nothing
here judges.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from arena_lightning.errors import ConfigError, DataError
from arena_lightning.judges.budget import Budget
from arena_lightning.judges.client import JudgeClient
from arena_lightning.judges.limits import Limits
from arena_lightning.policy.embedded import check_model_dir
from arena_lightning.rollout.agent import SamplingLimits
from arena_lightning.tasks.prompts import messages_from_chat
from arena_lightning.training.records import trajectory_from_record
from arena_lightning.types import Message, Prompt, Trajectory

_SHAPE_KEYS = ("architectures", "hidden_size", "num_hidden_layers", "vocab_size")


# No slots on these: the YAML parser merges nested settings through __dict__.
@dataclass(frozen=True)
class LLMBaseline:
    """A model that works on the same tools, over litellm."""

    model: str = ""
    """litellm's name, e.g. "openai/gpt-4o". Its key comes from the environment."""
    api_base: str | None = None
    """URL of a server of your own, e.g. http://127.0.0.1:8000/v1."""
    temperature: float | None = 0.8
    max_tokens: int = 2048
    """Tokens of one turn."""
    max_concurrency: int = 32
    max_usd: float | None = None
    """Budget of the whole baseline; None is none."""
    max_calls: int | None = None

    def address(self, limits: SamplingLimits) -> str:
        """Return the content address of its outputs: all that decides them but the prompt."""
        parts = [self.model, self.api_base, self.temperature, self.max_tokens, asdict(limits)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class BaselineChoice:
    """Whose outputs the candidate must beat."""

    kind: Literal["reference", "file", "checkpoint", "llm"] = "reference"
    """"reference": the prompts' own references. "file": outputs of `path`, JSON Lines.
    "checkpoint": a model folder `path` of the same architecture, sampled now. "llm": see `llm`."""
    path: str | None = None
    llm: LLMBaseline = field(default_factory=LLMBaseline)
    """The model behind an LLM baseline."""

    @property
    def name(self) -> str:
        """How reports name it."""
        if self.kind == "llm":
            return self.llm.model
        return "reference" if self.path is None else self.path

    def check(self, prompts: Sequence[Prompt], model_dir: Path) -> None:
        """Refuse what can't work, without loading a model.

        Raises:
            ConfigError: a setting is missing, or the checkpoint is no model or another kind of one.
            DataError: the file is faulty, or prompts lack their output or reference.
        """
        if self.kind in ("file", "checkpoint") and not self.path:
            raise ConfigError(
                f"a baseline of kind {self.kind} must have a path, got none "
                "(evaluation.baseline.path). Name a file of outputs, or a model folder."
            )
        if self.kind == "reference":
            references_of(prompts)
        elif self.kind == "file":
            read_outputs(Path(str(self.path)), prompts)
        elif self.kind == "checkpoint":
            _check_same_shape(Path(str(self.path)), model_dir)
        elif not self.llm.model:
            raise ConfigError(
                "an LLM baseline must have a model, got none (evaluation.baseline.llm.model). Name "
                "one as litellm does, e.g. openai/gpt-4o; its key comes from the environment."
            )


def client_of(choice: LLMBaseline) -> JudgeClient:
    """Return the client that an LLM baseline is sampled with."""
    return JudgeClient(
        choice.model,
        api_base=choice.api_base,
        temperature=choice.temperature,
        max_tokens=choice.max_tokens,
        structured_output="never",
        limits=Limits(max_concurrency=choice.max_concurrency),
        budget=Budget(max_usd=choice.max_usd, max_calls=choice.max_calls),
    )


def references_of(prompts: Sequence[Prompt]) -> list[Trajectory]:
    """Return the prompts' references.

    Raises:
        DataError: a prompt has none.
    """
    bare = [prompt.prompt_id for prompt in prompts if not prompt.reference]
    if bare:
        raise DataError(
            f"every prompt must have a reference to be compared with, got {len(bare)} of "
            f"{len(prompts)} without, first {bare[0]!r} (evaluation.baseline.kind: reference). Add "
            "`reference` to the prompts file, or choose another baseline."
        )
    return [Trajectory(prompt.prompt_id, prompt.reference) for prompt in prompts]


def read_outputs(path: Path, prompts: Sequence[Prompt]) -> list[Trajectory]:
    """Return one output a prompt, from JSON Lines; further lines for other prompts don't matter.

    A line names its prompt by `prompt_id` or `query`, and holds `answer` (text), `messages` (chat
    messages in OpenAI's form, the last one the answer), or what a run wrote: a trajectory, or a
    record of `evaluation/`.

    Raises:
        DataError: the file can't be read, a line is none of these, a prompt is there twice or not
            at all; names file and line.
    """
    by_query = {prompt.query: prompt.prompt_id for prompt in prompts}
    found: dict[str, Trajectory] = {}
    lines: dict[str, int] = {}
    for number, record in _lines(path):
        try:
            output = _output(record, by_query)
        except (KeyError, TypeError, ValueError, DataError) as error:
            reason = str(error) if isinstance(error, DataError) else f"{error!r} on reading it."
            raise DataError(
                f"{path} line {number}: an output must have prompt_id or query, and answer or "
                f"messages: {reason} Correct the line."
            ) from error
        if output.prompt_id in found:
            raise DataError(
                f"{path} line {number}: a prompt must have one output, got another of "
                f"{output.prompt_id!r} after line {lines[output.prompt_id]}. Remove one."
            )
        found[output.prompt_id], lines[output.prompt_id] = output, number
    missing = [prompt.prompt_id for prompt in prompts if prompt.prompt_id not in found]
    if missing:
        raise DataError(
            f"{path}: every prompt must have an output, got none for {len(missing)} of "
            f"{len(prompts)}, first {missing[0]!r}. Add them, or evaluate on fewer prompts."
        )
    return [found[prompt.prompt_id] for prompt in prompts]


def _lines(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"a file of outputs must be readable UTF-8, got {error} ({path}). Correct the path."
        ) from error
    records = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(
                f"{path} line {number}: each line must be one JSON object, got {error}. Correct it."
            ) from error
        if not isinstance(record, Mapping):
            raise DataError(
                f"{path} line {number}: each line must be one JSON object, got "
                f"{type(record).__name__}. Correct it."
            )
        records.append((number, record))
    return records


def _output(record: Mapping[str, Any], by_query: Mapping[str, str]) -> Trajectory:
    if "trajectory" in record:
        return trajectory_from_record(record["trajectory"])
    if "finish" in record and "segments" in record:
        return trajectory_from_record(dict(record))
    prompt_id = record.get("prompt_id") or by_query.get(record["query"], record["query"])
    if "messages" in record:
        messages = messages_from_chat(record["messages"])
        last = messages[-1] if messages else None
        is_answered = last is not None and last.role == "assistant" and not last.tool_calls
        return Trajectory(prompt_id, messages, finish="answered" if is_answered else "max_turns")
    answer = record["answer"]
    if not isinstance(answer, str):
        raise DataError(f"answer must be text, got {type(answer).__name__}.")
    return Trajectory(prompt_id, (Message("assistant", answer),))


def _check_same_shape(path: Path, model_dir: Path) -> None:
    """Refuse a checkpoint whose weights wouldn't fit the engine, or whose tokens mean others."""
    check_model_dir(path)
    mine, theirs = (_shape_of(folder) for folder in (model_dir, path))
    if mine != theirs:
        raise ConfigError(
            f"a checkpoint baseline must have the candidate's architecture and tokenizer, got "
            f"another ({path}, candidate {model_dir}). Run `test` with it as "
            "model.init_args.policy first and give its evaluation/candidate.jsonl as a baseline of "
            "kind file."
        )


def _shape_of(folder: Path) -> list[Any]:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tokenizer = folder / "tokenizer.json"
    vocabulary = None
    if tokenizer.is_file():
        vocabulary = json.loads(tokenizer.read_text(encoding="utf-8")).get("model", {}).get("vocab")
    return [[config.get(key) for key in _SHAPE_KEYS], vocabulary]
