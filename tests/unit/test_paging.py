"""Cursors and node ids: what was handed out comes back; anything else is a typed error."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.errors import InvalidCursor, InvalidInput, InvalidNodeId
from ecphoria.reading.paging import (
    MAX_CURSOR_CHARS,
    MAX_FIRST,
    checked_first,
    cursor_of,
    page_of,
    place_of,
)
from ecphoria_graphql.node_ids import MAX_CHARS, NodeRef, node_id, node_ref

WORDS = st.text(max_size=20)
PLACES = st.lists(st.one_of(WORDS, st.integers()), max_size=4)
LISTS = st.lists(st.one_of(WORDS, st.none(), st.booleans(), st.lists(WORDS)), max_size=5)


@given(LISTS, PLACES)
def test_a_cursor_leads_back_to_its_place_in_its_list(of, place):
    cursor = cursor_of(of, place)
    assert place_of(of, cursor) == place
    assert cursor.isascii()
    assert "=" not in cursor


@given(LISTS, LISTS, PLACES)
def test_a_cursor_of_another_list_is_refused(one, other, place):
    if one != other:
        with pytest.raises(InvalidCursor):
            place_of(other, cursor_of(one, place))


@given(LISTS, PLACES, st.data())
def test_a_cursor_that_was_changed_anywhere_is_refused(of, place, data):
    cursor = cursor_of(of, place)
    at = data.draw(st.integers(0, len(cursor)))
    changed = data.draw(
        st.sampled_from(
            [cursor[:at], cursor[:at] + "A" + cursor[at:], cursor[:at] + cursor[at + 1 :]]
        )
    )
    if changed != cursor:
        with pytest.raises(InvalidCursor) as caught:
            place_of(of, changed)
        assert caught.value.path == ("after",)


@given(st.text(max_size=60))
@pytest.mark.parametrize("read", [lambda text: place_of(["a list"], text), node_ref])
def test_any_text_is_a_typed_error(read, text):
    with pytest.raises((InvalidCursor, InvalidNodeId)):
        read(text)


def test_what_is_too_long_is_not_looked_at():
    cursor = cursor_of(["a list"], ["x" * MAX_CURSOR_CHARS])
    with pytest.raises(InvalidCursor):
        place_of(["a list"], cursor)
    with pytest.raises(InvalidNodeId):
        node_ref("A" * (MAX_CHARS + 1))


def test_lists_that_differ_in_one_part_only_are_two():
    place = ["x"]
    cursors = {
        cursor_of(of, place)
        for of in (["a", "b"], ["ab"], ["a", ["b"]], ["a", None], ["a", "None"], ["a"], ["a", ""])
    }
    assert len(cursors) == 7


@pytest.mark.parametrize("first", [0, -1, MAX_FIRST + 1])
def test_a_page_has_a_size_within_bounds(first):
    with pytest.raises(InvalidInput) as caught:
        checked_first(first)
    assert caught.value.path == ("first",)
    assert (checked_first(1), checked_first(MAX_FIRST)) == (1, MAX_FIRST)


def test_one_more_than_a_page_tells_that_there_is_a_next():
    whole = page_of(["a", "b"], 2, ["a list"], lambda item: (item,))
    assert (whole.items, whole.has_next) == (("a", "b"), False)
    part = page_of(["a", "b", "c"], 2, ["a list"], lambda item: (item,))
    assert (part.items, part.has_next) == (("a", "b"), True)
    assert place_of(["a list"], part.cursors[1]) == ["b"]


@given(WORDS, WORDS, WORDS)
def test_a_node_id_leads_back_to_what_it_stands_for(type_, user, id_):
    ref = NodeRef(type_, user, id_)
    assert node_ref(node_id(ref)) == ref


def test_the_longest_ids_fit():
    ref = NodeRef("T" * 60, "𠮷" * 256, "𠮷" * 256)
    assert node_ref(node_id(ref)) == ref


@pytest.mark.parametrize(
    "payload", [b"", b"null", b'["Memory","u1"]', b'["Memory","u1",1]', b'{"a":1}', b"[" * 2_000]
)
def test_a_node_id_of_another_shape_is_refused(payload):
    raw = hashlib.sha256(payload).digest()[:3] + payload
    with pytest.raises(InvalidNodeId) as caught:
        node_ref(base64.urlsafe_b64encode(raw).decode().rstrip("="))
    assert caught.value.path == ("node_id",)


def test_a_node_id_has_one_spelling():
    payload = json.dumps(["Memory", "u1", "m1"]).encode()
    raw = hashlib.sha256(payload).digest()[:3] + payload
    with pytest.raises(InvalidNodeId):
        node_ref(base64.urlsafe_b64encode(raw).decode().rstrip("="))
