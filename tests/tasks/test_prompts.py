"""The JSONL loader: Open-Travel's format comes in whole, and every fault names file and line."""

import json

import pytest

from arena_lightning.errors import DataError
from arena_lightning.tasks.prompts import load_prompts
from arena_lightning.types import Message, ToolCall

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "杭州"}'},
}
REFERENCE = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": None, "reasoning_content": "Look.", "tool_calls": [CALL]},
    {"role": "tool", "name": "weather", "content": "sunny"},
    {"role": "assistant", "content": "It is sunny."},
]


def write(tmp_path, *lines):
    path = tmp_path / "prompts.jsonl"
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_reference_in_openai_form_becomes_messages_without_system_and_user(tmp_path):
    (prompt,) = load_prompts(write(tmp_path, {"query": "Weather?", "reference": REFERENCE}))
    call = ToolCall("weather", {"city": "杭州"}, "c1")
    assert prompt.reference == (
        Message("assistant", "", reasoning="Look.", tool_calls=(call,)),
        Message("tool", "sunny", name="weather"),
        Message("assistant", "It is sunny."),
    )


def test_optional_fields_are_taken_and_their_defaults_name_the_line(tmp_path):
    full = {
        "query": "q",
        "subtask": "s",
        "language": "zh",
        "prompt_id": "mine",
        "needs": {"a": 1},
        "city": "Lyon",
    }
    first, second = load_prompts(write(tmp_path, full, "", {"query": "other", "reference": None}))
    assert (first.subtask, first.language, first.prompt_id) == ("s", "zh", "mine")
    assert first.needs == {"a": 1, "extra": {"city": "Lyon"}}
    assert (second.prompt_id, second.language, second.subtask) == ("prompts-3", "en", "")
    assert second.reference == () and second.needs == {}


def test_a_byte_order_mark_windows_line_ends_and_a_line_separator_in_text_do_no_harm(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"query": "one\xe2\x80\xa8still one"}\r\n{"query": "two"}\r\n')
    assert [p.query for p in load_prompts(path)] == ["one\u2028still one", "two"]


def test_tool_arguments_may_be_an_object_and_content_a_list_of_text_parts(tmp_path):
    turns = [
        {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": {"x": 1}}]},
        {"role": "tool", "content": "1"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"text": "b"}]},
    ]
    (prompt,) = load_prompts(write(tmp_path, {"query": "q", "reference": turns}))
    assert prompt.reference[0].tool_calls == (ToolCall("f", {"x": 1}),)
    assert prompt.reference[-1].content == "ab"


GOOD = '{"query": "fine"}'


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"query": "unclosed', 'must be one JSON object, got \'{"query": "unclosed\''),
        ("[1, 2]", "must be one JSON object, got a list"),
        ('{"qury": "typo"}', "must have the key 'query', got 'qury'"),
        ('{"query": ""}', "query must be non-empty text, got ''"),
        ('{"query": "   "}', "query must be non-empty text"),
        ('{"query": 7}', "query must be non-empty text, got a number"),
        ('{"query": null}', "query must be non-empty text, got null"),
        ('{"query": "q", "subtask": 3}', "subtask must be text, got 3"),
        ('{"query": "q", "needs": []}', "needs must be a JSON object, got a list"),
        ('{"query": "q", "reference": "text"}', "reference must be a list of chat messages"),
        ('{"query": "q", "reference": []}', "got no assistant message"),
        ('{"query": "q", "reference": [3]}', r"reference\[0\] must be a message object"),
        ('{"query": "q", "reference": [{"role": "bot"}]}', r"reference\[0\].role must be one of"),
        (
            '{"query": "q", "reference": [{"role": "assistant", "content": 5}]}',
            r"reference\[0\].content must be text",
        ),
        (
            '{"query": "q", "reference": [{"role": "assistant", "tool_calls": "x"}]}',
            r"reference\[0\].tool_calls must be a list",
        ),
        (
            '{"query": "q", "reference": [{"role": "assistant", "tool_calls": [{}]}]}',
            r"tool_calls\[0\] must name a function",
        ),
        (
            '{"query": "q", "reference": [{"role": "assistant", "tool_calls": '
            '[{"function": {"name": "f", "arguments": "{"}}]}]}',
            r"tool_calls\[0\] arguments must be a JSON object",
        ),
        (
            '{"query": "q", "reference": [{"role": "assistant", "content": ""}]}',
            "must end with the baseline's answer",
        ),
    ],
)
def test_a_bad_record_is_named_with_file_and_line(tmp_path, line, what):
    path = write(tmp_path, *[GOOD] * 16, line)
    with pytest.raises(DataError, match=rf"prompts\.jsonl line 17: .*{what}"):
        load_prompts(path)


def test_two_records_with_one_id_are_refused(tmp_path):
    path = write(tmp_path, *[{"query": "q", "prompt_id": "same"}] * 2)
    with pytest.raises(DataError, match="line 2: prompt_id must be unique, got 'same' as on line"):
        load_prompts(path)


def test_an_empty_a_missing_and_a_binary_file_are_refused(tmp_path):
    with pytest.raises(DataError, match="at least one record, got an empty file"):
        load_prompts(write(tmp_path, "", "  "))
    with pytest.raises(DataError, match="must be readable, got No such file"):
        load_prompts(tmp_path / "none.jsonl")
    binary = tmp_path / "b.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="must be UTF-8 text"):
        load_prompts(binary)


def test_deeply_nested_json_is_a_bad_record_not_a_crash(tmp_path):
    path = write(tmp_path, '{"query": ' + "[" * 200_000)
    with pytest.raises(DataError, match="line 1: each line must be one JSON object"):
        load_prompts(path)
