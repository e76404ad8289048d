"""The chat protocol: what is sent, and what is made of whatever comes back."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from builders import NOW
from ecphoria.chat.protocol import (
    Dialect,
    Form,
    Message,
    prompt_tokens,
    read_content,
    read_reply,
    request_body,
    retry_after,
    server_words,
)


class Colour(BaseModel):
    name: str
    shades: tuple[str, ...] = ()


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
FORM = Form("colour", SCHEMA, Colour)
MESSAGES = [Message("system", "Name a colour."), Message("user", "天空是什么颜色？")]


def sent(dialect):
    return json.loads(request_body("m", MESSAGES, FORM, 50, dialect))


# --- requests --------------------------------------------------------------------------------


def test_a_request_asks_for_strict_structured_output():
    assert sent(Dialect()) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Name a colour."},
            {"role": "user", "content": "天空是什么颜色？"},
        ],
        "stream": False,
        "temperature": 0,
        "max_tokens": 50,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "colour", "strict": True, "schema": SCHEMA},
        },
    }


def test_without_schemas_the_schema_stands_in_the_prompt():
    body = sent(Dialect(schema=False))
    assert body["response_format"] == {"type": "json_object"}
    system, user = body["messages"]
    assert system["content"].startswith("Name a colour.")
    assert json.dumps(SCHEMA) in system["content"]
    assert user["content"] == "天空是什么颜色？"


def test_a_lone_surrogate_does_not_break_a_request():
    body = request_body("m", [Message("user", "a\ud800b")], FORM, 5, Dialect())
    assert json.loads(body)["messages"][0]["content"] == "a\ud800b"


def test_a_request_costs_its_messages_and_its_schema():
    alone = prompt_tokens(MESSAGES, FORM)
    longer = prompt_tokens([*MESSAGES, Message("user", "字" * 100)], FORM)
    assert 100 <= longer - alone <= 120
    assert alone > 20


@pytest.mark.parametrize(
    ("refusal", "left"),
    [
        ("this response_format type is unavailable now", Dialect(schema=False)),
        ("'json_schema' is not supported", Dialect(schema=False)),
        (
            (
                "unsupported parameter: 'max_tokens' is not supported with this model. use "
                "'max_completion_tokens' instead."
            ),
            Dialect(limit="max_completion_tokens"),
        ),
        (
            "unsupported value: 'temperature' does not support 0 with this model.",
            Dialect(temperature=False),
        ),
        ("the context is too long", None),
        ("", None),
    ],
)
def test_what_a_server_refuses_is_left_out(refusal, left):
    assert Dialect().without(refusal) == left


def test_what_is_left_out_already_is_not_the_cause():
    bare = Dialect(schema=False, limit="max_completion_tokens", temperature=False)
    assert bare.without("response_format temperature max_completion_tokens") is None
    body = sent(bare)
    assert "temperature" not in body
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 50


# --- replies ---------------------------------------------------------------------------------


def completion(content="{}", usage=None, **choice):
    message = {"role": "assistant", "content": content} | choice.pop("message", {})
    return json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"} | choice], "usage": usage}
    ).encode()


def test_a_reply_is_read():
    reply = read_reply(completion("hello", {"total_tokens": 12}))
    assert (reply.content, reply.finish, reply.refused, reply.tokens) == (
        "hello",
        "stop",
        False,
        12,
    )


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 7}, 12),
        ({"prompt_tokens": 5}, None),
        ({"total_tokens": -1}, None),
        ({"total_tokens": 0}, None),
        ({"total_tokens": "many"}, None),
        ({}, None),
        ([1], None),
        ("x", None),
        (None, None),
    ],
)
def test_a_strange_count_of_tokens_is_none(usage, tokens):
    assert read_reply(completion(usage=usage)).tokens == tokens


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"{}",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": null}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"error": {"message": "overloaded"}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_what_is_not_of_the_protocol_is_no_reply(body):
    assert read_reply(body) is None


@pytest.mark.parametrize(
    "content",
    [
        '{"name": "蓝"}',
        '  \n{"name": "蓝"}\n',
        '```json\n{"name": "蓝"}\n```',
        '```\n{"name": "蓝"}```',
        'Here it is:\n{"name": "蓝"}\nAnything else?',
        '<think>A {colour}? "name": …</think>\n{"name": "蓝"}',
        '{"name": "蓝", "sure": true}',
    ],
)
def test_the_object_is_found_in_whatever_is_around_it(content):
    assert read_content(content, FORM) == Colour(name="蓝")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("blue", "is not JSON"),
        ("", "is not JSON"),
        ("}{", "is not JSON"),
        ('{"name": "blue"', "is not JSON"),
        ('{"name": blue}', "is not JSON"),
        ("{" * 100_000 + "}", "is not JSON"),
        ("{}", "breaks the schema at name: Field required"),
        ('{"name": 5}', "breaks the schema at name: Input should be a valid string"),
        ('{"name": null}', "breaks the schema at name: Input should be a valid string"),
        (
            '{"name": "x", "shades": [1]}',
            "breaks the schema at shades.0: Input should be a valid string",
        ),
    ],
)
def test_what_is_wrong_is_said_without_the_words(content, fault):
    assert read_content(content, FORM) == fault


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "overloaded\nat line 5"}}, "overloaded"),
        ({"error": "model 'x' not found"}, "model 'x' not found"),
        ({"message": "模型不存在"}, "模型不存在"),
        ({"detail": [{"loc": ["body"], "msg": "too long"}]}, "too long"),
        ([{"error": {"message": "quota"}}], "quota"),
        ({"error": {}}, ""),
        ({"error": None}, ""),
        ([], ""),
        (5, ""),
        ({"error": "a\x1b[31mb\u200b"}, "a [31mb"),
    ],
)
def test_the_first_line_of_a_servers_error(body, words):
    assert server_words(json.dumps(body).encode(), []).strip() == words


def test_an_error_that_is_no_json():
    assert server_words(b"upstream timed out\nsorry", []) == "upstream timed out"
    assert server_words(b"<html><h1>502</h1></html>", []) == ""
    assert server_words(b"", []) == ""
    assert server_words(b"\xff\xfe bad", []) == "\ufffd\ufffd bad"


def test_a_long_error_is_cut():
    assert server_words(b"x" * 5_000, []) == "x" * 200 + "…"


@pytest.mark.parametrize(
    "line",
    [
        "Incorrect API key provided: sk-live-0123456789abcdef",
        "invalid content: 我的手机号是13812345678",
        "cannot parse 'call me at 13812345678 please'",
        "blocked: call me at once, says",
    ],
)
def test_an_error_that_repeats_what_was_sent_is_not_told(line):
    private = ["sk-live-0123456789abcdef", "我的手机号是13812345678", "Please call me at once!"]
    assert server_words(line.encode(), private) == "(its words repeat what was sent)"


def test_a_short_key_is_not_told_either():
    assert server_words(b"bad key abc", ["abc"]) == "(its words repeat what was sent)"
    assert server_words(b"bad key", ["", "abc"]) == "bad key"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        (" 1.5 ", 1.5),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("９", None),
        ("9" * 400, None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 12:00:30", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 99 Mar 2026 11:00:00 GMT", None),
    ],
)
def test_how_long_a_server_asks_to_wait(value, seconds):
    assert retry_after(value, NOW) == seconds


def test_a_wait_is_counted_from_now():
    date = "Sun, 01 Mar 2026 12:00:30 GMT"
    assert retry_after(date, NOW + timedelta(seconds=20)) == 10.0


@given(st.binary(max_size=200))
def test_no_bytes_break_the_readers(body):
    read_reply(body)
    assert len(server_words(body, ["private text that is long"])) <= 201


@given(st.text(max_size=200))
def test_no_words_break_the_reader(content):
    assert isinstance(read_content(content, FORM), str | Colour)
