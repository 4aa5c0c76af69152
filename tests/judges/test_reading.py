"""A reply is either a complete verdict or none: no reply makes a number nobody gave."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_lightning.errors import JudgeError
from arena_lightning.judges.reading import ReadError, read_scores, schema_for
from arena_lightning.judges.rubric import load_rubric
from tests.judges.attacks import FAKE_VERDICT

TRAVEL = load_rubric("travel")
NAMES = TRAVEL.dimension_names
SIDES = ("first", "second")


def verdict(first=7, second=4):
    return {
        "analysis": {"first": "Good.", "second": "Thin, {really}."},
        "scores": {"first": dict.fromkeys(NAMES, first), "second": dict.fromkeys(NAMES, second)},
    }


def read(text):
    return read_scores(text, TRAVEL, SIDES)


def edited(*path, to):
    content = copy.deepcopy(verdict())
    node = content
    for key in path[:-1]:
        node = node[key]
    if to is None:
        del node[path[-1]]
    else:
        node[path[-1]] = to
    return json.dumps(content)


PLAIN = json.dumps(verdict())
EXPECTED = {"first": dict.fromkeys(NAMES, 7.0), "second": dict.fromkeys(NAMES, 4.0)}


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        json.dumps(verdict(), indent=2),
        f"```json\n{PLAIN}\n```",
        f"Here is my verdict:\n\n{PLAIN}\nI hope it helps.",
        PLAIN[:-1] + ",}",
        PLAIN.replace("}, ", ",}, "),
        f"<think>one could say {{}}, but no</think>{PLAIN}",
        edited("analysis", to=None),
        json.dumps({"scores": verdict()["scores"], "analysis": "swapped"}),
        json.dumps(verdict(7.0, 4)),
    ],
)
def test_wrapping_is_forgiven(text):
    assert read(text) == EXPECTED


def test_trailing_commas_inside_words_are_kept_and_harmless():
    text = edited("analysis", "first", to='said ",}" and ",]"')[:-1] + ",}"
    assert read(text) == EXPECTED


def test_result_follows_the_order_of_sides_and_rubric():
    text = json.dumps({"scores": dict(reversed(verdict()["scores"].items()))})
    result = read(text)
    assert list(result) == list(SIDES) and list(result["first"]) == list(NAMES)


ONE = ("scores", "first", "path.breadth")
BAD_CONTENT = {
    "missing dimension": edited(*ONE, to=None),
    "extra dimension": edited("scores", "first", "path.charm", to=3),
    "unqualified dimension": edited("scores", "first", "breadth", to=3),
    "missing side": edited("scores", "second", to=None),
    "extra side": edited("scores", "third", to=verdict()["scores"]["first"]),
    "extra key": edited("winner", to="first"),
    "missing scores": edited("scores", to=None),
    "string": edited(*ONE, to="7"),
    "bool": edited(*ONE, to=True),
    "null": PLAIN.replace('"path.breadth": 7', '"path.breadth": null'),
    "list": edited(*ONE, to=[7]),
    "side is a number": edited("scores", "first", to=7),
    "NaN": PLAIN.replace('"path.breadth": 7', '"path.breadth": NaN'),
    "Infinity": PLAIN.replace('"path.breadth": 7', '"path.breadth": Infinity'),
    "overflow": PLAIN.replace('"path.breadth": 7', '"path.breadth": 1e999'),
    "endless digits": PLAIN.replace('"path.breadth": 7', '"path.breadth": ' + "9" * 5000),
    "huge integer": PLAIN.replace('"path.breadth": 7', '"path.breadth": ' + "9" * 400),
    "above": edited(*ONE, to=11),
    "just above": edited(*ONE, to=10.001),
    "below": edited(*ONE, to=-1),
    "doubled dimension": PLAIN.replace('"path.breadth": 7', '"path.breadth": 7, "path.breadth": 7'),
    "doubled side": PLAIN.replace('"second": {"p', '"first": {}, "second": {"p'),
    "two objects": f"{PLAIN}\n{PLAIN}",
    "quoted object first": f"{{}} {PLAIN}",
    "list around": f"[{PLAIN}, 1] }}",
    "single quotes": PLAIN.replace('"', "'"),
    "empty": "",
    "prose": "The first is better: 9 against 4.",
    "array": "[1, 2]",
    "deep": "{" + '"a":{' * 100_000 + "}" * 100_001,
    "fake verdict quoted badly": '{"analysis": "it says ' + FAKE_VERDICT + '", "scores": {}}',
}


@pytest.mark.parametrize("name", BAD_CONTENT)
def test_bad_content_is_never_a_number(name):
    with pytest.raises(ReadError, match="failed"):
        read(BAD_CONTENT[name])


def test_read_errors_are_judge_errors():
    assert issubclass(ReadError, JudgeError)


def test_every_truncation_is_an_error():
    for end in range(len(PLAIN)):
        with pytest.raises(ReadError):
            read(PLAIN[:end])


def test_a_thought_hides_no_verdict():
    with pytest.raises(ReadError):
        read(f"<think>{PLAIN}</think>")


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    side=st.sampled_from(SIDES),
    name=st.sampled_from(NAMES),
    value=st.one_of(
        st.none(),
        st.booleans(),
        st.text(max_size=5),
        st.floats(max_value=0, exclude_max=True, width=32),
        st.floats(min_value=10, exclude_min=True),
        st.just(float("nan")),
        st.lists(st.integers(0, 10), max_size=2),
    ),
)
def test_any_value_off_the_scale_is_an_error(side, name, value):
    content = verdict()
    content["scores"][side][name] = value
    with pytest.raises(ReadError):
        read(json.dumps(content))


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.lists(st.floats(0, 10), min_size=14, max_size=14))
def test_any_values_on_the_scale_are_read_as_they_are(values):
    scores = {
        "first": dict(zip(NAMES, values[:7], strict=True)),
        "second": dict(zip(NAMES, values[7:], strict=True)),
    }
    assert read(json.dumps({"scores": scores})) == scores


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.text(alphabet='{}[]",:0123 .eE-NafirstcoeINT\\n', max_size=60))
def test_any_other_text_is_an_error(text):
    with pytest.raises(ReadError):
        read(text)


def test_the_schema_is_closed_and_asks_for_words_first():
    schema = schema_for(TRAVEL, SIDES)
    assert list(schema["properties"]) == schema["required"] == ["analysis", "scores"]
    side = schema["properties"]["scores"]["properties"]["second"]
    assert side["required"] == list(NAMES) and side["additionalProperties"] is False
    assert side["properties"][NAMES[0]] == {"type": "integer", "minimum": 0, "maximum": 10}
    assert list(schema_for(TRAVEL, SIDES, with_analysis=False)["properties"]) == ["scores"]
