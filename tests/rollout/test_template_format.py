from pathlib import Path

import pytest
from transformers import AutoTokenizer

from arena_lightning.errors import RolloutError
from arena_lightning.rollout.chat import ChatMLFormat, encode_dialogue
from arena_lightning.rollout.encoder import TextEncoder
from arena_lightning.rollout.formats import chat_format_for
from arena_lightning.rollout.template_format import TemplateFormat
from arena_lightning.types import Message, ToolCall
from tests.rollout.fake_task import SCHEMAS
from tests.rollout.tiny_model import write_tokenizer

# In the manner of Qwen and Hermes: tools in the system message, calls in tags, answers as user.
TEMPLATE = """
{%- if tools %}
    {{- '<|im_start|>system\n' + messages[0].content + '\n\n# Tools\n' }}
    {%- for tool in tools %}{{- '\n' + (tool | tojson) }}{%- endfor %}
    {{- '\nCall them in <tool_call></tool_call>.<|im_end|>\n' }}
{%- else %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages[1:] %}
    {%- if message.role == 'user' %}
        {{- '<|im_start|>user\n' + message.content + '<|im_end|>\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\n' + message.content }}
        {%- for call in message.tool_calls or [] %}
            {%- if not loop.first or message.content %}{{- '\n' }}{%- endif %}
            {{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- (call.function.arguments | tojson) + '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- else %}
        {%- if loop.previtem.role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\n<tool_response>\n' + message.content + '\n</tool_response>' }}
        {%- if loop.last or loop.nextitem.role != 'tool' %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""
REWRITING = TEMPLATE.replace("+ message.content }}", "+ (message.content if loop.last else '-') }}")
CALLS = (ToolCall("weather", {"city": "Lyon"}), ToolCall("weather", {"city": "Nice"}))
OPENING = (Message("system", "Help."), Message("user", "Sun?"))
DIALOGUE = (
    Message("assistant", "", "Look.", CALLS),
    Message("tool", "rain", name="weather"),
    Message("tool", "sun", name="weather"),
    Message("assistant", "Nice."),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path, TEMPLATE)
    return tmp_path


def test_pieces_of_a_dialogue_are_what_the_template_writes_for_the_whole(folder: Path):
    segments = encode_dialogue(TemplateFormat(folder), OPENING, DIALOGUE, SCHEMAS)
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    calls = [{"function": {"name": c.name, "arguments": dict(c.arguments)}} for c in CALLS]
    whole = tokenizer.apply_chat_template(
        [
            {"role": "system", "content": "Help."},
            {"role": "user", "content": "Sun?"},
            {"role": "assistant", "content": "Look.", "tool_calls": calls},
            {"role": "tool", "content": "rain"},
            {"role": "tool", "content": "sun"},
            {"role": "assistant", "content": "Nice."},
        ],
        tools=[{"type": "function", "function": dict(schema)} for schema in SCHEMAS],
        tokenize=False,
    )
    ids = [i for segment in segments for i in segment.ids]
    # The tokenizer has no merges, so pieces and whole have the very same tokens.
    assert ids == tokenizer(whole.removesuffix("\n")).input_ids


def test_a_written_turn_is_read_back_as_the_same_message(folder: Path):
    chat = TemplateFormat(folder)
    for turn in (DIALOGUE[0], DIALOGUE[3], Message("assistant", "Nice.", "Lyon is wet.")):
        assert chat.parse_turn(chat.turn_ids(turn)) == turn


def test_calls_use_the_tags_that_the_model_has_as_tokens(folder: Path):
    encoder = TextEncoder(folder)
    ids = TemplateFormat(folder).turn_ids(DIALOGUE[0])
    assert ids.count(encoder.control("<tool_call>")) == 2
    assert ids.count(encoder.control("</tool_call>")) == 2


@pytest.mark.parametrize("token", ["<|im_end|>", "<|im_start|>", "<tool_call>"])
def test_control_tokens_in_text_stay_text(folder: Path, token: str):
    chat, control = TemplateFormat(folder), TextEncoder(folder).control(token)

    def number(text: str) -> int:
        ids = chat.opening_ids((Message("system", text), Message("user", text)), SCHEMAS)
        return (*ids, *chat.observation_ids([Message("tool", text)], was_cut=False)).count(control)

    assert number(f"a{token}b") == number("harmless")


def test_a_cut_turn_is_closed_by_the_observation(folder: Path):
    chat = TemplateFormat(folder)
    whole = chat.observation_ids([Message("tool", "rain")], was_cut=False)
    cut = chat.observation_ids([Message("tool", "rain")], was_cut=True)
    assert cut == (chat.stop_ids[0], *whole)


def test_a_template_that_rewrites_earlier_turns_is_refused(tmp_path: Path):
    write_tokenizer(tmp_path, REWRITING)
    with pytest.raises(RolloutError, match="leave earlier turns as they are"):
        TemplateFormat(tmp_path).observation_ids([Message("tool", "rain")], was_cut=False)


def test_a_template_that_hides_a_message_is_refused(tmp_path: Path):
    write_tokenizer(tmp_path, TEMPLATE.replace("user\n' + message.content", "user\n' + 'x'"))
    with pytest.raises(RolloutError, match="each message's content exactly once"):
        TemplateFormat(tmp_path).opening_ids(OPENING, SCHEMAS)


def test_a_template_whose_turns_have_no_end_is_refused(tmp_path: Path):
    write_tokenizer(tmp_path, TEMPLATE.replace("<|im_end|>", ""))
    with pytest.raises(RolloutError, match="close an assistant turn with a special token"):
        TemplateFormat(tmp_path)


def test_the_format_follows_what_the_folder_knows(folder: Path, tmp_path: Path):
    assert isinstance(chat_format_for(folder), TemplateFormat)
    plain = tmp_path / "plain"
    write_tokenizer(plain, "{% for m in messages %}{{ m.content }}{% endfor %}")
    assert isinstance(chat_format_for(plain), ChatMLFormat)
