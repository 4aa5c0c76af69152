"""Rubrics: what a judge looks at, with which weight, in the language of the query.

    YAML file -> Rubric in one language -> system text, JSON schema, and `total`

A rubric has levels (the paper: `path`, how the agent went about it, and `answer`) and each level
its dimensions. `Rubric.total` is the only place where dimension scores become one score: what a
model adds up itself is never read. Nothing here knows trajectories or models.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from arena_lightning.errors import ConfigError

SHIPPED = Path(__file__).parent / "rubrics"
_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Weight = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
_FROZEN = ConfigDict(frozen=True, extra="forbid")


class Dimension(BaseModel):
    """One line of a level."""

    model_config = _FROZEN
    name: _Name
    weight: _Weight = 1.0
    """Relative to the other dimensions of its level; above 0."""
    instruction: _Text


class Level(BaseModel):
    """Dimensions that are averaged together."""

    model_config = _FROZEN
    name: _Name
    weight: _Weight
    """Relative to the other levels; above 0."""
    reads_process: bool = False
    """True when it can only be judged with the steps in view; left out of answer-only judging."""
    instruction: _Text
    dimensions: Annotated[tuple[Dimension, ...], Field(min_length=1)]


class Rubric(BaseModel):
    """A rubric in one language. Scores of all dimensions run from 0 to `scale`, `scale` is best."""

    model_config = _FROZEN
    name: _Name
    language: _Text
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] = 10.0
    """Upper end of the scores, points. The paper: 10."""
    instruction: _Text
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]

    @property
    def version(self) -> str:
        """A hash of everything above: a changed word is another rubric."""
        content = json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """`level.dimension`, in the order they are judged."""
        return tuple(f"{level.name}.{d.name}" for level in self.levels for d in level.dimensions)

    def answer_only(self) -> "Rubric":
        """Return the rubric without the levels that read the process.

        Raises:
            ConfigError: no level is left.
        """
        levels = tuple(level for level in self.levels if not level.reads_process)
        if not levels:
            raise ConfigError(
                f"answer-only judging must have a level that reads the answer, got none "
                f"(rubric {self.name!r}: levels). Add one, or judge process-aware."
            )
        return self.model_copy(update={"levels": levels})

    def total(self, scores: Mapping[str, float]) -> float:
        """Return the score of one trajectory, 0 to `scale`, `scale` is best.

        Weighted mean over a level's dimensions, then over levels, never rounded.

        Args:
            scores: points by `dimension_names`, all of them and no other.

        Source: ArenaRL, arXiv:2601.06487, App. E; differs: the paper's prompts let the judge add
        up, and round level means to whole points, which makes ties.

        Raises:
            ValueError: names or values are not this rubric's.
        """
        if set(scores) != set(self.dimension_names):
            raise ValueError(f"scores must name {self.dimension_names}, got {tuple(scores)}")
        if not all(0 <= value <= self.scale for value in scores.values()):
            raise ValueError(f"scores must lie in 0-{self.scale:g}, got {dict(scores)}")
        means = []
        for level in self.levels:
            values = [scores[f"{level.name}.{d.name}"] for d in level.dimensions]
            means.append(_weighted_mean(values, [d.weight for d in level.dimensions]))
        # Rounding of the last bit must not carry equal scores past the end of the scale.
        mean = _weighted_mean(means, [level.weight for level in self.levels])
        return min(max(mean, min(scores.values())), max(scores.values()))


def load_rubric(name_or_path: str | Path, language: str = "en") -> Rubric:
    """Return a rubric in one language.

    Args:
        name_or_path: `travel`, `deepresearch`, `writing`, or the path of a YAML file (`.yaml`).
            In the file every `instruction` is a mapping from language to text.
        language: e.g. `en`, `zh`; every text of the file must have it.

    Raises:
        ConfigError: no such rubric, or a fault in the file; the message names file and key.
    """
    path = _path_of(name_or_path)
    content = _read(path)
    if "language" in content:
        raise ConfigError(
            f"a rubric's language must come from its texts, got a key (language, {path}). Write "
            "`instruction: {en: ...}` instead."
        )
    picked = _in_language(content, language, path, "")
    try:
        rubric = Rubric.model_validate({**picked, "language": language})
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        raise ConfigError(
            f"a rubric must be complete and known key by key, got {fault['msg']!r} for "
            f"{_short(fault['input'])} ({path}: {key}). Mend that key."
        ) from error
    _check_unique(rubric, path)
    return rubric


class RubricBook:
    """One rubric in all its languages, answer-only or whole, checked when it is opened."""

    def __init__(self, name_or_path: str | Path, process_aware: bool = True) -> None:
        """Load every language that the rubric's own `instruction` has.

        Raises:
            ConfigError: as `load_rubric`, for any of them.
        """
        self.path = _path_of(name_or_path)
        texts = _read(self.path).get("instruction")
        languages = list(texts) if isinstance(texts, dict) and texts else ["en"]
        wholes = {str(language): load_rubric(name_or_path, language) for language in languages}
        self._rubrics = {
            language: whole if process_aware else whole.answer_only()
            for language, whole in wholes.items()
        }

    def __getitem__(self, language: str) -> Rubric:
        """Return the rubric in a prompt's language; `ConfigError` when it isn't written in it."""
        if language not in self._rubrics:
            raise ConfigError(
                f"a prompt's language must be one of its rubric's, got {language!r} of "
                f"{', '.join(self._rubrics)} ({self.path}). Add the texts, or set the prompt's "
                "language."
            )
        return self._rubrics[language]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"a rubric must be a readable YAML file, got {error} ({path}). Mend the file."
        ) from error
    if not isinstance(content, dict):
        raise ConfigError(
            f"a rubric must be a mapping, got {type(content).__name__} ({path}). See the shipped "
            f"ones in {SHIPPED.name}/."
        )
    return content


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(v * w for v, w in zip(values, weights, strict=True)) / math.fsum(weights)


def _path_of(name_or_path: str | Path) -> Path:
    if str(name_or_path).endswith((".yaml", ".yml")):
        return Path(name_or_path)
    path = SHIPPED / f"{name_or_path}.yaml"
    shipped = sorted(file.stem for file in SHIPPED.glob("*.yaml"))
    if Path(name_or_path).name not in shipped or path.parent != SHIPPED:
        raise ConfigError(
            f"a rubric must be one of {', '.join(shipped)} or a .yaml file, got "
            f"{str(name_or_path)!r} (rubric). Choose one or write a file."
        )
    return path


def _in_language(node: Any, language: str, path: Path, key: str) -> Any:
    """Return the content with each `instruction` mapping replaced by its text."""
    if isinstance(node, list):
        return [_in_language(n, language, path, f"{key}.{i}") for i, n in enumerate(node)]
    if not isinstance(node, dict):
        return node
    picked = {}
    for name, value in node.items():
        where = f"{key}.{name}".lstrip(".")
        if name != "instruction":
            picked[name] = _in_language(value, language, path, where)
        elif isinstance(value, dict) and language in value:
            picked[name] = value[language]
        else:
            got = sorted(map(str, value)) if isinstance(value, dict) else type(value).__name__
            raise ConfigError(
                f"an instruction must have a text for language {language!r}, got {got} "
                f"({path}: {where}). Add the text, or give the prompt another language."
            )
    return picked


def _check_unique(rubric: Rubric, path: Path) -> None:
    names = [level.name for level in rubric.levels]
    lists = {"levels": names} | {
        f"levels.{level.name}.dimensions": [d.name for d in level.dimensions]
        for level in rubric.levels
    }
    for key, names in lists.items():
        doubled = {name for name in names if names.count(name) > 1}
        if doubled:
            raise ConfigError(
                f"names must differ, got {', '.join(sorted(doubled))} more than once "
                f"({path}: {key}). Rename or remove one."
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key given twice, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice", node.start_mark
                )
        return super().construct_mapping(node, deep)
