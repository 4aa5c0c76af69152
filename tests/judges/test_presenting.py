"""What a judge is shown: by option, by position only, bounded, and in the query's language."""

import re

import pytest

from arena_lightning.errors import ConfigError
from arena_lightning.judges.presenting import View, code_for, messages_for
from arena_lightning.judges.quoting import BAR, clean, cut, quoted
from arena_lightning.judges.rubric import load_rubric
from arena_lightning.types import Message, Prompt, ToolCall, Trajectory

PROMPT = Prompt("prompt-77", "How do I get from Bonn to Ulm?")
TRAVEL = load_rubric("travel")
WHOLE = View()


def traveller(thought="I look it up.", found="RE 5, 3 h", answer="Take RE 5.", index=4):
    call = ToolCall("find_route", {"from": "Bonn", "to": "Ulm"}, "call-1")
    return Trajectory(
        "prompt-77",
        (
            Message("assistant", "", reasoning=thought, tool_calls=(call,)),
            Message("tool", found, name="find_route"),
            Message("assistant", answer),
        ),
        index=index,
    )


def user_text(view=WHOLE, first=None, second=None, rubric=TRAVEL):
    shown = {"first": first or traveller(), "second": second or traveller(answer="Walk.")}
    return messages_for(PROMPT, shown, rubric, view)[1]["content"]


def test_query_steps_observations_and_answer_are_shown_in_order():
    text = user_text()
    parts = [PROMPT.query, "I look it up.", "find_route", '"Bonn"', "RE 5, 3 h", "Take RE 5."]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.index("Take RE 5.") < text.index("Walk.")


def test_observations_are_an_option():
    text = user_text(View(observations=False))
    assert "3 h" not in text and "find_route" in text
    system = [
        messages_for(PROMPT, {"first": traveller()}, TRAVEL, View(observations=seen))[0]["content"]
        for seen in (True, False)
    ]
    assert "check claims against it" in system[0] and "is not shown" in system[1]


def test_answer_only_shows_no_step():
    text = user_text(View(process_aware=False), rubric=TRAVEL.answer_only())
    assert "Take RE 5." in text
    assert not any(part in text for part in ("look it up", "find_route", "3 h", "Step"))


def test_positions_are_told_and_identities_are_not():
    low, high = user_text(first=traveller(index=3)), user_text(first=traveller(index=11))
    assert low == high
    assert "prompt-77" not in low and "call-1" not in low


def test_the_system_message_depends_on_no_text_of_others():
    one = messages_for(PROMPT, {"first": traveller()}, TRAVEL, View())[0]
    other_prompt = Prompt("q", "Other query", language="en")
    other = messages_for(other_prompt, {"first": traveller("x", "y", "z")}, TRAVEL, View())[0]
    assert one == other
    assert all(f"- {name}: " in one["content"] for name in TRAVEL.dimension_names)


def test_roles_are_system_and_user():
    messages = messages_for(PROMPT, {"first": traveller()}, TRAVEL, View())
    assert [message["role"] for message in messages] == ["system", "user"]
    assert all(set(message) == {"role", "content"} for message in messages)


def test_chinese_rubrics_get_a_chinese_frame():
    system, user = messages_for(PROMPT, {"first": traveller()}, load_rubric("travel", "zh"), View())
    assert "你是公正的评委" in system["content"] and "最终答案" in user["content"]
    assert "impartial" not in system["content"]


def test_a_missing_answer_is_said_by_us_not_quoted():
    unfinished = Trajectory("p", traveller().messages[:2], finish="max_turns")
    lines = user_text(first=unfinished).split("\n")
    assert any(line.startswith("(There is no final answer") for line in lines)


def test_a_trajectory_without_steps_says_so():
    assert "(There are no steps.)" in user_text(first=Trajectory("p", (Message("assistant", "A"),)))


def test_long_observations_are_cut_visibly():
    text = user_text(View(max_chars_per_observation=10), first=traveller(found="z" * 25))
    assert "z" * 10 + "⟨cut: 15 characters left out⟩" in text
    assert "z" * 11 not in text


@pytest.mark.parametrize("size", [10, 999, 5_000])
def test_a_long_process_never_pushes_out_the_answer(size):
    view = View(max_chars_per_trajectory=1_000)
    text = user_text(view, first=traveller(thought="t\n" * size, answer="a" * 400))
    assert "a" * 400 in text
    shown = text.split("BEGIN FIRST>>>\n")[1].split("\n<<<")[0]
    assert len(shown) < 1_000 + 200
    assert ("characters left out" in shown) == (size > 10)


def test_a_long_answer_leaves_half_to_the_process():
    view = View(max_chars_per_trajectory=1_000)
    text = user_text(view, first=traveller(thought="t" * 2_000, answer="a" * 2_000))
    assert text.count("a" * 500) == 1 and "⟨cut: 1500 characters left out⟩" in text


def test_codes_are_stable_differ_and_are_never_part_of_the_text():
    assert code_for(["a", "b"]) == code_for(["a", "b"]) != code_for(["a", "c"])
    assert re.fullmatch("[0-9a-f]{16}", code_for([""]))


def test_a_code_that_occurs_is_derived_again(monkeypatch):
    class Unlucky(str):
        """Contains whatever code is tried first."""

        tried = 0

        def lower(self):
            Unlucky.tried += 1
            return "".join(first) if Unlucky.tried == 1 else "text"

    first = [code_for(["text"])]
    assert code_for([Unlucky("text")]) != first[0]
    assert Unlucky.tried == 2


def test_cleaning_leaves_ordinary_text_alone():
    for text in ("Tea (2 < 3, a <= b) costs 5 €.\n\t- [x] done", "早上好：10:30 出发", "café 👩🏽"):
        assert clean(text) == text
    assert clean("👩\u200d🚀 ❤\ufe0f") == "👩🚀 ❤"


def test_cutting_and_quoting():
    assert cut("abc", 3) == "abc" and cut("abcd", 3) == "abc⟨cut: 1 characters left out⟩"
    assert quoted("a\n\nb") == f"{BAR}a\n{BAR}\n{BAR}b"


def test_limits_must_be_positive():
    with pytest.raises(ConfigError, match="max_chars_per_trajectory must be at least 1"):
        View(max_chars_per_trajectory=0)
