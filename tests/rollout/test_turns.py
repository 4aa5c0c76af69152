import pytest

from arena_lightning.rollout.turns import MAX_CALLS_PER_TURN, TurnError, parse_turn
from arena_lightning.types import Message, ToolCall


def test_text_without_a_call_is_the_answer():
    assert parse_turn(" Take the 8:05 train.\n") == Message("assistant", "Take the 8:05 train.")


def test_text_before_the_first_call_is_reasoning_and_all_calls_are_read_in_order():
    text = (
        'Two cities.\n<tool_call>{"name":"weather","arguments":{"city":"Lyon"}}</tool_call>\n'
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Nice"}}\n</tool_call>'
    )
    assert parse_turn(text) == Message(
        "assistant",
        "",
        "Two cities.",
        (ToolCall("weather", {"city": "Lyon"}), ToolCall("weather", {"city": "Nice"})),
    )


def test_a_think_block_is_reasoning_even_when_the_prompt_opened_it():
    expected = Message("assistant", "Nice.", "Sun?")
    assert parse_turn("<think>\nSun?\n</think>\n\nNice.") == expected
    assert parse_turn("Sun?\n</think>\nNice.") == expected


def test_arguments_may_be_left_out():
    assert parse_turn('<tool_call>{"name":"now"}</tool_call>').tool_calls == (ToolCall("now", {}),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<tool_call>{"name":"weather"}', "must end with </tool_call>"),
        ("<tool_call>weather(Lyon)</tool_call>", "must be JSON"),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "must be JSON"),
        ("<tool_call>[1]</tool_call>", 'must be {"name"'),
        ('<tool_call>{"arguments":{}}</tool_call>', 'must be {"name"'),
        ('<tool_call>{"name":"weather","arguments":"Lyon"}</tool_call>', "must be a JSON object"),
        ('<tool_call>{"name":"a"}</tool_call>' * (MAX_CALLS_PER_TURN + 1), "at most 8 tool calls"),
    ],
)
def test_an_unreadable_call_says_what_is_wrong_and_keeps_what_was_said(text: str, problem: str):
    with pytest.raises(TurnError, match=problem) as raised:
        parse_turn(text)
    assert raised.value.message == Message("assistant", "", text)
