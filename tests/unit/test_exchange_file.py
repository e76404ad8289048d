"""Reading the exchange format: every shape, every kind of bad line, and whatever else."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.errors import EcphoriaError, MalformedLine
from ecphoria.exchange_file import MAX_LINE_BYTES, Line, parse_line, read_lines
from ecphoria.model import EntityInput, EntityRef, FactInput, MemoryInput, RelationInput

DEMO_DATA = Path(__file__).parents[2] / "engine" / "ecphoria" / "demo_data"
NOON = datetime(2025, 6, 15, 12, tzinfo=UTC)


def line(**keys: object) -> bytes:
    return json.dumps(keys, ensure_ascii=False).encode()


def memory(**keys: object) -> bytes:
    return line(**{"user_id": "u-1", "text": "hi", **keys})


def test_reads_an_entity() -> None:
    raw = line(type="User", id="u-1", props={"name": "张伟"}, observed_at="2025-06-15T12:00:00Z")
    assert parse_line(raw) == EntityInput("User", "u-1", {"name": "张伟"}, NOON)


def test_reads_a_relation() -> None:
    raw = b'{"type":"PLACED","from":{"type":"User","id":"u"},"to":{"type":"Order","id":"#1"}}'
    assert parse_line(raw) == RelationInput(
        "PLACED", EntityRef("User", "u"), EntityRef("Order", "#1")
    )


def test_reads_a_memory_with_every_key() -> None:
    raw = memory(
        id="m-1",
        kind="semantic",
        topic="warranty",
        source="crm",
        lang="en",
        importance=1,
        privacy="public",
        occurred_at="2025-06-15T20:00:00+08:00",
        valid_from="2025-06-15T12:00:00Z",
        valid_until="2025-06-15T12:00:00Z",
        expires_at="2025-06-15T12:00:00Z",
        session_id="s",
        agent_id="a",
        about=[{"type": "Device", "id": "d"}],
        supersedes="m-0",
        facts=[
            {
                "entity": {"type": "Order", "id": "882301"},
                "attribute": "order.status",
                "value": "已发货",
            },
            {
                "entity": {"type": "User", "id": "u-1"},
                "attribute": "user.preference",
                "value": "like",
                "subject": "茶",
                "text": "我喜欢茶",
            },
        ],
    )
    assert parse_line(raw) == MemoryInput(
        text="hi",
        user_id="u-1",
        id="m-1",
        kind="semantic",
        topic="warranty",
        source="crm",
        lang="en",
        importance=1.0,
        privacy="public",
        occurred_at=NOON,
        valid_from=NOON,
        valid_until=NOON,
        expires_at=NOON,
        session_id="s",
        agent_id="a",
        about=(EntityRef("Device", "d"),),
        supersedes="m-0",
        facts=(
            FactInput(EntityRef("Order", "882301"), "order.status", "已发货"),
            FactInput(EntityRef("User", "u-1"), "user.preference", "like", "茶", "我喜欢茶"),
        ),
    )


FACT = {"entity": {"type": "Order", "id": "1"}, "attribute": "order.status", "value": "paid"}


@pytest.mark.parametrize("text", [{}, {"text": None}, {"text": ""}])
def test_facts_alone_are_a_memory(text: dict[str, object]) -> None:
    assert parse_line(line(user_id="u-1", facts=[FACT], **text)) == MemoryInput(
        text="",
        user_id="u-1",
        facts=(FactInput(EntityRef("Order", "1"), "order.status", "paid"),),
    )


@pytest.mark.parametrize("facts", [None, []])
def test_without_facts_a_memory_needs_a_text(facts: object) -> None:
    with pytest.raises(MalformedLine, match="'text' is missing"):
        parse_line(line(user_id="u-1", facts=facts))
    assert parse_line(memory(facts=facts)) == MemoryInput(text="hi", user_id="u-1")


@pytest.mark.parametrize(
    ("facts", "code", "path"),
    [
        ("paid", "INVALID_INPUT", ("facts",)),
        (FACT, "INVALID_INPUT", ("facts",)),
        (["paid"], "MALFORMED_LINE", ("facts", 0)),
        ([FACT, {**FACT, "colour": "red"}], "MALFORMED_LINE", ("facts", 1, "colour")),
        ([{"entity": FACT["entity"], "value": "x"}], "MALFORMED_LINE", ("facts", 0, "attribute")),
        ([{**FACT, "value": None}], "INVALID_INPUT", ("facts", 0, "value")),
        ([{**FACT, "value": 5}], "INVALID_INPUT", ("facts", 0, "value")),
        ([{**FACT, "subject": []}], "INVALID_INPUT", ("facts", 0, "subject")),
        ([{**FACT, "entity": "Order 1"}], "MALFORMED_LINE", ("facts", 0, "entity")),
        (
            [{**FACT, "entity": {"type": "Order", "id": ""}}],
            "INVALID_INPUT",
            ("facts", 0, "entity", "id"),
        ),
    ],
)
def test_a_bad_fact_is_named(facts: object, code: str, path: tuple[str | int, ...]) -> None:
    with pytest.raises(EcphoriaError) as caught:
        parse_line(memory(facts=facts))
    assert (caught.value.code, caught.value.path) == (code, path)


def test_null_is_the_same_as_leaving_a_key_out() -> None:
    nulls = dict.fromkeys(["id", "kind", "topic", "lang", "importance", "about", "valid_until"])
    assert parse_line(memory(**nulls)) == MemoryInput(text="hi", user_id="u-1")


def test_shared_knowledge_has_an_explicit_null_user() -> None:
    assert parse_line(memory(user_id=None)) == MemoryInput(text="hi", user_id=None)


BAD_LINES = {
    "not JSON": (b"{", "MALFORMED_LINE", "not JSON"),
    "two objects": (b"{} {}", "MALFORMED_LINE", "not JSON"),
    "not UTF-8": (b'{"type": "\xff"}', "MALFORMED_LINE", "not UTF-8: byte 11 is 0xff"),
    "a list": (b"[]", "MALFORMED_LINE", "not a list"),
    "a number": (b"1", "MALFORMED_LINE", "not a number"),
    "null": (b"null", "MALFORMED_LINE", "not null"),
    "no shape": (b"{}", "MALFORMED_LINE", "no entity"),
    "no shape but a type": (line(type="User", id="u"), "MALFORMED_LINE", "no entity"),
    "a key twice": (b'{"type":"A","type":"B","id":"1","props":{}}', "MALFORMED_LINE", "twice"),
    "nested deeply": (b"[" * 100_000, "MALFORMED_LINE", "nested"),
    "a huge number": (memory(importance=0)[:-2] + b"1" * 5000 + b"}", "MALFORMED_LINE", "long"),
    "NaN": (b'{"user_id":"u","text":"t","importance":NaN}', "MALFORMED_LINE", "NaN"),
    "Infinity": (b'{"type":"A","id":"1","props":{"x":-Infinity}}', "MALFORMED_LINE", "Infinity"),
    "1e999": (b'{"type":"A","id":"1","props":{"x":1e999}}', "MALFORMED_LINE", "out of range"),
    "entity: unknown key": (
        line(type="A", id="1", props={}, colour="red"), "MALFORMED_LINE", "unknown key 'colour'"),
    "entity: no id": (line(type="A", props={}), "MALFORMED_LINE", "'id' is missing"),
    "entity: id is a number": (line(type="A", id=1, props={}), "INVALID_INPUT", "must be a string"),
    "entity: id is blank": (line(type="A", id=" ", props={}), "INVALID_INPUT", "empty"),
    "entity: id is long": (line(type="A", id="x" * 257, props={}), "TEXT_TOO_LONG", "257"),
    "entity: props are a list": (line(type="A", id="1", props=[]), "MALFORMED_LINE", "object"),
    "entity: naive time": (
        line(type="A", id="1", props={}, observed_at="2025-06-15T12:00"), "INVALID_TIME", "zone"),
    "relation: no end": (line(type="R", **{"from": {"type": "A", "id": "1"}}),
                         "MALFORMED_LINE", "'to' is missing"),
    "relation: end is a string": (
        line(type="R", to="1", **{"from": {"type": "A", "id": "1"}}), "MALFORMED_LINE", "object"),
    "relation: end has no type": (
        line(type="R", to={"id": "1"}, **{"from": {"type": "A", "id": "1"}}),
        "MALFORMED_LINE", "'type' is missing"),
    "memory: no user": (line(text="hi"), "MALFORMED_LINE", "null, written out"),
    "memory: user is empty": (memory(user_id=""), "INVALID_SCOPE", "empty"),
    "memory: user is *": (memory(user_id="*"), "INVALID_SCOPE", "exactly one user"),
    "memory: user is a number": (memory(user_id=7), "INVALID_SCOPE", "must be a string"),
    "memory: no text": (line(user_id="u"), "MALFORMED_LINE", "'text' is missing"),
    "memory: text is null": (memory(text=None), "INVALID_INPUT", "not null"),
    "memory: misspelt key": (memory(valid_untill="x"), "MALFORMED_LINE", "unknown key"),
    "memory: kind": (memory(kind="fact"), "INVALID_INPUT", "episodic, semantic, procedural"),
    "memory: kind is a list": (memory(kind=[]), "INVALID_INPUT", "one of"),
    "memory: privacy": (memory(privacy="secret"), "INVALID_INPUT", "public, internal, sensitive"),
    "memory: lang": (memory(lang="fr"), "INVALID_INPUT", "en, zh"),
    "memory: importance is text": (memory(importance="1"), "INVALID_INPUT", "must be a number"),
    "memory: importance is true": (memory(importance=True), "INVALID_INPUT", "not a boolean"),
    "memory: importance is huge": (memory(importance=10**400), "INVALID_INPUT", "out of range"),
    "memory: time": (memory(valid_until="tomorrow"), "INVALID_TIME", "ISO 8601"),
    "memory: time is a number": (memory(occurred_at=1), "INVALID_TIME", "string"),
    "memory: time out of range": (
        memory(occurred_at="9999-12-31T23:59:59-10:00"), "INVALID_TIME", "range"),
    "memory: about is an object": (memory(about={"type": "A"}), "INVALID_INPUT", "list"),
    "memory: about holds ids": (memory(about=["x"]), "MALFORMED_LINE", "object"),
    "memory: surrogate in an id": (
        b'{"user_id":"u","text":"t","id":"\\ud800"}', "INVALID_INPUT", "control"),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "code", "words"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_has_a_code_and_a_sentence(raw: bytes, code: str, words: str) -> None:
    with pytest.raises(EcphoriaError) as caught:
        parse_line(raw)
    assert (caught.value.code, words in caught.value.message) == (code, True), caught.value.message


def test_the_path_names_the_key() -> None:
    with pytest.raises(EcphoriaError) as caught:
        parse_line(memory(about=[{"type": "A", "id": "1"}, {"type": "A", "id": ""}]))
    assert caught.value.path == ("about", 1, "id")


def test_one_bad_line_leaves_the_others() -> None:
    text = b"\xef\xbb\xbf" + memory(id="1") + b"\r\n\r\n \n{\xff\n" + memory(id="2")
    lines = list(read_lines(io.BytesIO(text)))
    assert [(each.number, _what(each)) for each in lines] == [
        (1, "1"), (2, None), (3, None), (4, "MALFORMED_LINE"), (5, "2"),
    ]  # fmt: skip
    assert lines[0].start == 0
    assert lines[-1].end == len(text)


def test_offsets_allow_to_go_on_anywhere() -> None:
    text = b"\n".join(memory(id=str(number), text="字" * number) for number in range(9))
    whole = list(read_lines(io.BytesIO(text)))
    for line_ in whole:
        stream = io.BytesIO(text)
        stream.seek(line_.end)
        rest = list(read_lines(stream, number=line_.number, offset=line_.end))
        assert rest == whole[line_.number :]


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    text = memory() + b"\n\xef\xbb\xbf" + memory()
    assert [_what(each) for each in read_lines(io.BytesIO(text))] == [None, "MALFORMED_LINE"]


class _Reads(io.BytesIO):
    """Remembers the longest read."""

    longest = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        found = super().readline(size)
        self.longest = max(self.longest, len(found))
        return found


def test_a_huge_line_is_passed_over_without_holding_it() -> None:
    text = memory(id="1") + b"\n" + b"x" * 5_000_000 + b"\n" + memory(id="2")
    stream = _Reads(text)
    lines = list(read_lines(stream, limit=1000))
    assert [_what(each) for each in lines] == ["1", "MALFORMED_LINE", "2"]
    assert "5,000,001 bytes; 1,000 are allowed" in str(lines[1].error)
    assert stream.longest <= 64 * 1024


def test_the_longest_text_that_is_allowed_fits_a_line() -> None:
    raw = json.dumps({"user_id": "u", "text": "😀" * 131_072}).encode()
    assert len(raw) < MAX_LINE_BYTES


@pytest.mark.parametrize("limit", [10, 11, 12])
def test_the_limit_counts_the_line_end(limit: int) -> None:
    lines = list(read_lines(io.BytesIO(b"0123456789\n{}"), limit=limit))
    assert [each.number for each in lines] == [1, 2]
    assert lines[1].start == 11


@given(st.binary())
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    for each in read_lines(io.BytesIO(raw)):
        assert each.item is None or each.error is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["type", "id", "props", "observed_at", "from", "to", "user_id", "text", "kind", "topic",
        "importance", "privacy", "about", "valid_from", "supersedes", "lang"]  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), json_values | st.sampled_from(["u", "A"])))
def test_no_json_raises_anything_else(keys: dict[str, object]) -> None:
    with contextlib.suppress(EcphoriaError):
        found = parse_line(json.dumps(keys).encode())
        assert isinstance(found, EntityInput | RelationInput | MemoryInput)


@given(st.text(min_size=1), st.none() | st.floats(0, 1))
def test_a_text_comes_back_as_it_was(text: str, importance: float | None) -> None:
    found = parse_line(memory(text=text, importance=importance))
    assert isinstance(found, MemoryInput)
    assert (found.text, found.importance) == (text, importance)


@pytest.mark.parametrize("name", ["entities", "relations", "memories"])
def test_the_demo_data_are_in_the_format(name: str) -> None:
    with (DEMO_DATA / f"{name}.jsonl").open("rb") as stream:
        assert not [each.error for each in read_lines(stream) if each.error or not each.item]


def _what(found: Line) -> str | None:
    """Return the id of a memory, or the code of an error."""
    if found.error is not None:
        return found.error.code
    return found.item.id if isinstance(found.item, MemoryInput) else None
