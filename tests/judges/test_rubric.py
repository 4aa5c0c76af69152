"""Rubrics: the paper's weights, the one place of the arithmetic, and every fault named."""

import math

import pytest
import yaml

from arena_lightning.errors import ConfigError
from arena_lightning.judges.rubric import load_rubric

PAPER = {
    "travel": (0.6, 0.4, "breadth relevance detail", "relevance feasibility details clarity"),
    "deepresearch": (0.5, 0.5, "framework tool_usage coverage", "relevance accuracy depth clarity"),
    "writing": (
        0.4,
        0.6,
        "understanding logic richness",
        "relevance content_quality language_style clarity",
    ),
}


def user_rubric(**changes):
    text = {"en": "Look closely."}
    content = {
        "name": "mine",
        "instruction": text,
        "levels": [
            {
                "name": "answer",
                "weight": 1.0,
                "instruction": text,
                "dimensions": [
                    {"name": "truth", "weight": 3.0, "instruction": text},
                    {"name": "wit", "instruction": text},
                ],
            }
        ],
    }
    return content | changes


def written(tmp_path, content):
    path = tmp_path / "mine.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), "utf-8")
    return path


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", PAPER)
def test_shipped_rubrics_have_the_papers_dimensions_and_weights(name, language):
    path_weight, answer_weight, path_names, answer_names = PAPER[name]
    rubric = load_rubric(name, language)
    assert rubric.scale == 10 and rubric.language == language
    assert [(level.name, level.weight) for level in rubric.levels] == [
        ("path", path_weight),
        ("answer", answer_weight),
    ]
    assert [d.name for d in rubric.levels[0].dimensions] == path_names.split()
    assert [d.name for d in rubric.levels[1].dimensions] == answer_names.split()
    assert all(d.weight == 1 for level in rubric.levels for d in level.dimensions)


def test_languages_share_names_and_differ_in_text():
    english, chinese = load_rubric("travel", "en"), load_rubric("travel", "zh")
    assert english.dimension_names == chinese.dimension_names
    assert english.version != chinese.version
    assert any("一" <= char <= "鿿" for char in chinese.instruction)


def test_total_is_the_weighted_mean_of_level_means():
    rubric = load_rubric("travel")
    scores = dict(zip(rubric.dimension_names, [9, 6, 6, 4, 8, 2, 2], strict=True))
    # path (9+6+6)/3 = 7, answer (4+8+2+2)/4 = 4; 0.6*7 + 0.4*4
    assert rubric.total(scores) == pytest.approx(5.8, rel=1e-12)
    assert rubric.total(dict.fromkeys(scores, 10)) == 10
    assert rubric.total(dict.fromkeys(scores, 0)) == 0


def test_dimension_weights_count_within_their_level(tmp_path):
    rubric = load_rubric(written(tmp_path, user_rubric()))
    assert rubric.total({"answer.truth": 8.0, "answer.wit": 4.0}) == pytest.approx(7.0)


def test_total_takes_no_foreign_names_or_values(tmp_path):
    rubric = load_rubric(written(tmp_path, user_rubric()))
    for scores in (
        {"answer.truth": 1},
        {"answer.truth": 1, "answer.wit": 1, "answer.x": 1},
        {"answer.truth": math.nan, "answer.wit": 1},
        {"answer.truth": 10.01, "answer.wit": 1},
    ):
        with pytest.raises(ValueError, match="scores must"):
            rubric.total(scores)


def test_answer_only_leaves_the_process_out():
    whole = load_rubric("travel")
    rubric = whole.answer_only()
    assert [level.name for level in rubric.levels] == ["answer"]
    assert rubric.version != whole.version
    scores = dict(zip(rubric.dimension_names, [4, 8, 2, 2], strict=True))
    assert rubric.total(scores) == pytest.approx(4.0)


def test_answer_only_needs_a_level_that_reads_the_answer(tmp_path):
    content = user_rubric()
    content["levels"][0]["reads_process"] = True
    with pytest.raises(ConfigError, match="must have a level that reads the answer"):
        load_rubric(written(tmp_path, content)).answer_only()


def test_a_changed_word_is_another_version(tmp_path):
    before = load_rubric(written(tmp_path, user_rubric())).version
    assert load_rubric(written(tmp_path, user_rubric())).version == before
    after = load_rubric(written(tmp_path, user_rubric(instruction={"en": "Look closer."}))).version
    assert after != before


def mutated(change):
    content = user_rubric()
    change(content["levels"][0])
    return content


FAULTS = {
    "zero weight": (mutated(lambda level: level.update(weight=0.0)), "levels.0.weight"),
    "infinite": (
        mutated(lambda level: level["dimensions"][0].update(weight=math.inf)),
        "levels.0.dimensions.0.weight",
    ),
    "nan": (mutated(lambda level: level.update(weight=math.nan)), "levels.0.weight"),
    "text weight": (mutated(lambda level: level.update(weight="0.5")), "levels.0.weight"),
    "unknown key": (mutated(lambda level: level.update(colour="red")), "levels.0.colour"),
    "no dimension": (mutated(lambda level: level.update(dimensions=[])), "levels.0.dimensions"),
    "doubled": (
        mutated(lambda level: level["dimensions"][1].update(name="truth")),
        "levels.answer.dimensions",
    ),
    "doubled level": (user_rubric(levels=user_rubric()["levels"] * 2), "mine.yaml: levels"),
    "language": (
        mutated(lambda level: level["dimensions"][1].update(instruction={"zh": "好"})),
        "levels.0.dimensions.1.instruction",
    ),
    "no text": (mutated(lambda level: level.update(instruction={"en": " "})), "instruction"),
    "scale": (user_rubric(scale=0.0), "scale"),
    "key twice": ("name: a\nname: b\n", "given twice"),
    "no mapping": ("- 1\n", "must be a mapping"),
    "no yaml": ("{", "readable YAML"),
    "own language": (user_rubric(language="en"), "language"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_file_and_key(tmp_path, fault):
    content, key = FAULTS[fault]
    with pytest.raises(ConfigError) as caught:
        load_rubric(written(tmp_path, content))
    assert key in str(caught.value) and "mine.yaml" in str(caught.value)


def test_missing_rubrics_and_languages_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="one of deepresearch, travel, writing"):
        load_rubric("../rubrics/travel")
    with pytest.raises(ConfigError, match="readable YAML"):
        load_rubric(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="language 'fr'"):
        load_rubric("travel", "fr")
