"""Rows of the graph: what is newest wins in any order, and nothing is lost on the way."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neo4j.time import Date, DateTime

from builders import AFTER_SALES, CLINIC, NOW, day, entity, key, memory, ref
from ecphoria.model import ApiKey, EveryUser, IndexState, Memory, Role, Standing, Status
from ecphoria.stores.graph_rows import (
    caption,
    entity_from,
    key_from,
    key_props,
    memory_from,
    memory_props,
    merged_props,
    native,
    session_key,
    source_from,
    split_key,
)
from ecphoria.stores.ports import EntityRow

DEVICE = ref("Device", "d-1")


def arrived(domain, rows):
    """Return what a node holds after updates arrived in this order, as SET += leaves it."""
    stored = {}
    for row in rows:
        changed = merged_props(domain, row, stored)
        merged = stored | (changed or {})
        stored = {name: value for name, value in merged.items() if value is not None}
    return stored


VALUES = {
    "name": st.sampled_from(["iPhone 15", "苹果", "x" * 60]),
    "model": st.sampled_from(["A1", "A2"]),
    "color": st.sampled_from(["red", "黑色"]),
    "activated_at": st.sampled_from([NOW, day(1)]),
}
UPDATES = st.lists(
    st.tuples(st.integers(0, 30), st.fixed_dictionaries({}, optional=VALUES)),
    min_size=1,
    max_size=6,
    unique_by=lambda item: item[0],
).map(lambda items: [EntityRow(DEVICE, props, day(at)) for at, props in items])


@given(UPDATES.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_updates_give_the_same_whatever_the_order_of_arrival(pair):
    rows, shuffled = pair
    end = arrived(AFTER_SALES, shuffled)
    newest = {}
    for row in sorted(rows, key=lambda row: row.observed_at):
        newest |= row.props
    declared = AFTER_SALES.entities["Device"].properties
    shown = {name: value for name, value in end.items() if name in declared}
    # an unnamed device carries its caption as name
    assert shown == {"name": "Device d-1"} | newest
    assert end["observed_at"] == max(row.observed_at for row in rows)
    assert end == arrived(AFTER_SALES, rows)


@given(UPDATES)
def test_the_same_update_again_changes_nothing(rows):
    stored = arrived(AFTER_SALES, rows)
    for row in rows:
        assert merged_props(AFTER_SALES, row, stored) is None


def test_a_correction_of_the_same_moment_wins():
    rows = [EntityRow(DEVICE, {"color": color}, NOW) for color in ("red", "blue")]
    assert arrived(AFTER_SALES, rows)["color"] == "blue"


def test_old_news_fill_only_what_nothing_newer_says():
    rows = [
        EntityRow(DEVICE, {"name": "iPhone", "color": "red"}, day(5)),
        EntityRow(DEVICE, {"color": "blue", "model": "A1"}, day(3)),
        EntityRow(DEVICE, {"model": "A2"}, day(4)),
        EntityRow(DEVICE, {"model": "A0"}, day(2)),
    ]
    end = arrived(AFTER_SALES, rows)
    assert (end["color"], end["model"], end["observed_at"]) == ("red", "A2", day(5))
    # what is behind keeps its own time, and catches up with news of its own
    later = arrived(AFTER_SALES, [*rows, EntityRow(DEVICE, {"model": "A3"}, day(5))])
    assert later["model"] == "A3"
    assert "observed" not in later


def test_lists_are_compared_by_value():
    row = EntityRow(ref("Product", "p"), {"name": "iPhone", "aliases": ("a", "b")}, NOW)
    stored = arrived(AFTER_SALES, [row])
    assert stored["aliases"] == ["a", "b"]
    assert merged_props(AFTER_SALES, row, stored) is None


def test_a_store_that_gives_times_of_its_own_makes_no_difference():
    row = EntityRow(DEVICE, {"name": "iPhone", "activated_at": day(1)}, NOW)
    stored = {
        name: DateTime.from_native(value) if isinstance(value, datetime) else value
        for name, value in arrived(AFTER_SALES, [row]).items()
    }
    assert merged_props(AFTER_SALES, row, stored) is None


# --- memories ------------------------------------------------------------------------------

FULL = memory(
    id_="m|1",
    text="延保到五月",
    topic=None,
    status=Status.SUPERSEDED,
    index_state=IndexState.STALE,
    valid_until=day(1),
    expires_at=day(2),
    tags=("warranty", "repair"),
    session_id="s",
    agent_id="a",
    invalidated_at=day(-1),
    access_count=3,
    last_accessed_at=day(-2),
    supersedes="m|0",
    about=(key("Device", "d-1"), key("Order", "#1")),
    fact_type="order_status",
    intent="ask_status",
    urgency="high",
    evidence="客服答：“已发出”",
    details={"tracking_number": "SF112233", "订单": "#1"},
    attribute="user.preference",
    value="like",
    subject="咖啡",
    claim="shop|Claim|1",
    claim_number=3,
    stated_until=day(3),
    fixed_until=day(1),
    reliability=0.7,
    past=(
        Standing(day(-3), Status.ACTIVE, None),
        Standing(day(-2), Status.SUPERSEDED, day(2)),
    ),
    freshness=0.5,
    freshness_at=day(-4),
    archive_at=day(4),
    reinforced=2,
    ended_at=day(5),
    doubt=0.06,
    sealed="enc1:PXUtMQ==::AAAA",
    value_hash="1" * 32,
    words_hash="2" * 32,
)


@pytest.mark.parametrize(
    "given_", [memory(), FULL, replace(FULL, user_id=None, tags=(), supersedes=None)]
)
def test_a_memory_comes_back_as_it_went(given_):
    props = memory_props(given_)
    assert None not in props.values()
    stored = {
        name: DateTime.from_native(value) if isinstance(value, datetime) else value
        for name, value in props.items()
    }
    extra = {"write_token": "t", "name": "warranty"}
    about = [*reversed(given_.about), None]
    assert memory_from(stored | extra, about) == given_


def test_every_field_but_the_links_is_stored():
    assert {item.name for item in fields(Memory)} - memory_props(FULL).keys() == {
        "about",
        "supersedes",
        "topic",
    }


def test_what_a_memory_is_called_and_replaces():
    assert memory_props(FULL)["name"] == "order status"
    assert memory_props(memory(topic=None))["name"] == "semantic"
    assert memory_props(memory())["name"] == "warranty"
    assert memory_props(FULL)["supersedes_key"] == "shop|Memory|m|0"


def test_what_says_the_same_to_the_same_user_has_one_key_whatever_else_differs():
    one = memory_props(memory())["said_key"]
    assert memory_props(memory("other", importance=1.0))["said_key"] == one
    changes = ({"user_id": "u-2"}, {"user_id": None}, {"kind": "episodic"}, {"content_hash": "1"})
    keys = {memory_props(memory(**change))["said_key"] for change in changes}
    assert len(keys) == len(changes)
    assert one not in keys


@given(st.text("ab|1", min_size=1, max_size=4), st.text("ab|1", min_size=1, max_size=4))
def test_a_users_session_has_a_key_of_its_own(user, session):
    same = session_key("shop", user, session) == session_key("shop", session, user)
    assert same is (user == session)
    assert "session_key" not in memory_props(memory(user_id=None, session_id="s"))


# --- entities ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "type_", "props", "shown"),
    [
        (AFTER_SALES, "User", {"name": "张伟"}, "张伟"),
        (AFTER_SALES, "User", {}, "User x-1"),
        (AFTER_SALES, "Order", {"status": "paid"}, "x-1"),
        (AFTER_SALES, "Repair", {"fault": "{id} {0} {oops}"}, "{id} {0} {oops}"),
        (AFTER_SALES, "Repair", {"fault": None}, "Repair x-1"),
        (AFTER_SALES, "Repair", {"fault": "x" * 41}, "x" * 39 + "…"),
        (AFTER_SALES, "Repair", {"fault": "x" * 40}, "x" * 40),
        (CLINIC, "Prescription", {"drug": "Ibuprofen"}, "Ibuprofen"),
    ],
)
def test_caption(domain, type_, props, shown):
    assert caption(domain, ref(type_, "x-1"), props) == shown


def test_an_entity_shows_what_its_type_declares_and_nothing_of_ours():
    found = entity_from(
        CLINIC,
        {
            "key": key("Prescription", "rx|1"),
            "id": "rx|1",
            "tenant": "shop",
            "name": "old caption",
            "owner_key": key("Patient", "u-1"),
            "user_id": "u-1",
            "observed": "{}",
            "observed_at": DateTime.from_native(NOW),
            "recorded_at": DateTime.from_native(day(-1)),
            "drug": "Ibuprofen",
            "dose_mg": 5,
            "ends_at": DateTime.from_native(day(9)),
            "form": None,
            "left_over": "of an older domain file",
        },
    )
    assert found == entity(
        "Prescription",
        "rx|1",
        "Ibuprofen",
        props={"drug": "Ibuprofen", "dose_mg": 5.0, "ends_at": day(9)},
        observed_at=NOW,
        recorded_at=day(-1),
    )
    assert isinstance(found.props["dose_mg"], float)


@given(st.text(min_size=1))
def test_a_key_comes_apart_as_it_was_put_together(id_):
    assert split_key(key("Order", id_)) == ("shop", ref("Order", id_))


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (DateTime(2026, 3, 1, 12, tzinfo=UTC), NOW),
        (DateTime(2026, 3, 1, 12), NOW),
        (Date(2026, 3, 1), NOW.date()),
        (["a", ["b"]], ("a", ("b",))),
        ("text", "text"),
        (None, None),
    ],
)
def test_native(given_, expected):
    assert native(given_) == expected


# --- keys and sources ----------------------------------------------------------------------


@pytest.mark.parametrize("users", [EveryUser.OF_TENANT, frozenset({"u-2", "u-1"})])
@pytest.mark.parametrize("end", [None, day(3)])
def test_an_api_key_comes_back_as_it_went(users, end):
    given_ = ApiKey("k", "shop", "n", "h", frozenset(Role), users, NOW, end, revoked_at=end)
    assert key_from(key_props(given_)) == given_


def test_a_source_without_a_flag_is_not_disabled():
    props = {"id": "crm", "name": "CRM", "reliability": 1}
    assert source_from(props).disabled is False
    assert source_from(props | {"disabled": True}).disabled is True
    assert isinstance(source_from(props).reliability, float)
