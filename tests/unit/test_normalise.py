"""Validation: every bad input has its error class and path, and nothing good is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, CLINIC, NOW, ref, scope
from ecphoria.errors import (
    EcphoriaError,
    Forbidden,
    InvalidInput,
    InvalidScope,
    InvalidTime,
    TextEmpty,
    TextTooLong,
    UnknownProperty,
    UnknownRelation,
    UnknownType,
)
from ecphoria.model import EntityInput, EntityRef, FactInput, MemoryInput, RelationInput, Role
from ecphoria.remember.normalise import (
    MAX_ABOUT,
    MAX_FACTS,
    MAX_REASON_CHARS,
    checked_reason,
    clean_entity,
    clean_memory,
    clean_relation,
    content_hash,
    missing_required,
)

MAX_CHARS = 50
ITEM = MemoryInput(text="The warranty ends in May.", user_id="u-1")
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that it has no zone is the point
LATE = datetime(2026, 6, 1, tzinfo=UTC)


def cleaned(item=ITEM, *, scope_=None, **changes):
    return clean_memory(
        replace(item, **changes),
        scope=scope_ or scope(Role.ADMIN),
        domain=AFTER_SALES,
        now=NOW,
        max_chars=MAX_CHARS,
    )


BAD_MEMORIES = [
    ({"text": None}, InvalidInput, ("text",)),
    ({"text": b"bytes"}, InvalidInput, ("text",)),
    ({"text": ""}, TextEmpty, ("text",)),
    ({"text": " \n\0\u200b\ud800"}, TextEmpty, ("text",)),
    ({"text": "x" * (MAX_CHARS + 1)}, TextTooLong, ("text",)),
    ({"user_id": ""}, InvalidScope, ("user_id",)),
    ({"user_id": "*"}, InvalidScope, ("user_id",)),
    ({"user_id": " u-1"}, InvalidScope, ("user_id",)),
    ({"user_id": 7}, InvalidScope, ("user_id",)),
    ({"user_id": "u" * 257}, InvalidScope, ("user_id",)),
    ({"user_id": "u\0"}, InvalidScope, ("user_id",)),
    ({"id": ""}, InvalidInput, ("id",)),
    ({"id": "a\nb"}, InvalidInput, ("id",)),
    ({"id": "a\ud800"}, InvalidInput, ("id",)),
    ({"id": 5}, InvalidInput, ("id",)),
    ({"id": "i" * 257}, TextTooLong, ("id",)),
    ({"session_id": " "}, InvalidInput, ("session_id",)),
    ({"agent_id": "a "}, InvalidInput, ("agent_id",)),
    ({"supersedes": ""}, InvalidInput, ("supersedes",)),
    ({"id": "m", "supersedes": "m"}, InvalidInput, ("supersedes",)),
    ({"topic": ""}, InvalidInput, ("topic",)),
    ({"topic": "t" * 65}, TextTooLong, ("topic",)),
    ({"kind": "dream"}, InvalidInput, ("kind",)),
    ({"kind": None}, InvalidInput, ("kind",)),
    ({"kind": ["semantic"]}, InvalidInput, ("kind",)),
    ({"privacy": "secret"}, InvalidInput, ("privacy",)),
    ({"lang": "fr"}, InvalidInput, ("lang",)),
    ({"source": "rumour"}, InvalidInput, ("source",)),
    ({"source": ""}, InvalidInput, ("source",)),
    ({"importance": -0.01}, InvalidInput, ("importance",)),
    ({"importance": 1.01}, InvalidInput, ("importance",)),
    ({"importance": float("nan")}, InvalidInput, ("importance",)),
    ({"importance": 10**5000}, InvalidInput, ("importance",)),
    ({"importance": True}, InvalidInput, ("importance",)),
    ({"importance": "0.5"}, InvalidInput, ("importance",)),
    ({"occurred_at": NAIVE}, InvalidTime, ("occurred_at",)),
    ({"occurred_at": "yesterday"}, InvalidTime, ("occurred_at",)),
    ({"occurred_at": 1767225600}, InvalidTime, ("occurred_at",)),
    ({"occurred_at": date(2026, 1, 1)}, InvalidTime, ("occurred_at",)),
    ({"valid_from": "2026-01-01T00:00:00"}, InvalidTime, ("valid_from",)),
    ({"valid_until": NAIVE}, InvalidTime, ("valid_until",)),
    ({"expires_at": "2026-02-30T00:00:00Z"}, InvalidTime, ("expires_at",)),
    ({"valid_from": LATE, "valid_until": NOW}, InvalidTime, ("valid_until",)),
    ({"valid_from": LATE, "valid_until": LATE}, InvalidTime, ("valid_until",)),
    ({"about": None}, InvalidInput, ("about",)),
    ({"about": (ref("Order", "1"),) * (MAX_ABOUT + 1)}, InvalidInput, ("about",)),
    ({"about": ("Order",)}, InvalidInput, ("about", 0)),
    ({"about": (ref("Order", "1"), ref("Ship", "1"))}, UnknownType, ("about", 1, "type")),
    ({"about": (EntityRef(["Order"], "1"),)}, UnknownType, ("about", 0, "type")),
    ({"about": (ref("Order", ""),)}, InvalidInput, ("about", 0, "id")),
    ({"about": (ref("Order", "x" * 257),)}, TextTooLong, ("about", 0, "id")),
]


BAD_FACTS = [
    ({"attribute": "order.colour"}, UnknownProperty, ("attribute",)),
    ({"attribute": None}, UnknownProperty, ("attribute",)),
    ({"entity": ref("User", "u-1")}, InvalidInput, ("entity",)),
    ({"entity": ref("Ship", "1")}, UnknownType, ("type",)),
    ({"entity": ref("Order", " ")}, InvalidInput, ("id",)),
    ({"entity": "Order"}, InvalidInput, ()),
    ({"value": "lost in space"}, InvalidInput, ("value",)),
    ({"value": ""}, TextEmpty, ("value",)),
    ({"value": 5}, InvalidInput, ("value",)),
    ({"subject": "me"}, InvalidInput, ("subject",)),
    ({"text": "x" * (MAX_CHARS + 1)}, TextTooLong, ("text",)),
    ({"text": "\0"}, TextEmpty, ("text",)),
]
SHIPPED = FactInput(ref("Order", "#1"), "order.status", "shipped")
LIKED = FactInput(ref("User", "u-1"), "user.preference", "like", subject="咖啡")


@pytest.mark.parametrize(("changes", "kind", "path"), BAD_FACTS)
def test_a_bad_fact_is_refused_with_the_place(changes, kind, path):
    facts = (SHIPPED, replace(SHIPPED, **changes))
    with pytest.raises(EcphoriaError) as caught:
        cleaned(facts=facts)
    assert (type(caught.value), caught.value.path) == (kind, ("facts", 1, *path))


def test_a_keyed_attribute_needs_its_subject():
    with pytest.raises(InvalidInput) as caught:
        cleaned(facts=(replace(LIKED, subject=None),))
    assert caught.value.path == ("facts", 0, "subject")
    assert cleaned(facts=(LIKED,)).item.facts == (LIKED,)


@pytest.mark.parametrize("word", ["shipped", "Shipped", "已发货", "已发出"])
def test_a_value_may_be_given_by_any_of_its_words(word):
    (fact,) = cleaned(facts=(replace(SHIPPED, value=word),)).item.facts
    assert fact.value == "shipped"


@pytest.mark.parametrize("facts", [None, "order.status", {"value": "shipped"}])
def test_facts_are_a_list(facts):
    with pytest.raises(InvalidInput) as caught:
        cleaned(facts=facts)
    assert caught.value.path == ("facts",)


def test_facts_may_stand_for_the_text_but_not_too_many_of_them():
    assert cleaned(text=" ", facts=(SHIPPED,)).item.text == ""
    assert cleaned(facts=(SHIPPED,) * MAX_FACTS)
    with pytest.raises(InvalidInput) as caught:
        cleaned(facts=(SHIPPED,) * (MAX_FACTS + 1))
    assert caught.value.path == ("facts",)


def test_words_of_a_fact_are_cleaned_like_any_text():
    fact = replace(SHIPPED, text="  订单　已\r\n发货 ", value=" shipped ")
    assert cleaned(facts=(fact,)).item.facts == (replace(SHIPPED, text="订单 已\n发货"),)


@pytest.mark.parametrize("reason", ["", " \n", None, 5, "x" * (MAX_REASON_CHARS + 1)])
def test_a_reason_says_something(reason):
    with pytest.raises(InvalidInput) as caught:
        checked_reason(reason)
    assert caught.value.path == ("reason",)
    assert checked_reason(" 客户更正 ") == "客户更正"


@pytest.mark.parametrize(("changes", "kind", "path"), BAD_MEMORIES)
def test_a_bad_memory_is_refused_with_the_place(changes, kind, path):
    with pytest.raises(EcphoriaError) as caught:
        cleaned(**changes)
    assert (type(caught.value), caught.value.path) == (kind, path)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("field", ["kind", "privacy", "lang", "source", "topic", "id", "user_id"])
def test_what_was_sent_does_not_flood_the_message(field):
    with pytest.raises(EcphoriaError) as caught:
        cleaned(**{field: " " + "x" * 1_000_000})
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("roles", [(Role.AGENT,), (Role.ANALYST,), (Role.AGENT, Role.ANALYST)])
def test_shared_knowledge_needs_an_operator_or_admin(roles):
    with pytest.raises(Forbidden) as caught:
        cleaned(scope_=scope(*roles), user_id=None)
    assert caught.value.path == ("user_id",)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_operators_and_admins_share_knowledge(role):
    assert cleaned(scope_=scope(role), user_id=None).item.user_id is None


def test_a_user_outside_the_scope_is_forbidden():
    some = scope(Role.AGENT, users=frozenset({"u-1"}))
    assert cleaned(scope_=some).item.user_id == "u-1"
    with pytest.raises(Forbidden) as caught:
        cleaned(scope_=some, user_id="u-10")
    assert caught.value.path == ("user_id",)


def test_defaults():
    clean = cleaned()
    assert clean.occurred_at == clean.valid_from == NOW
    assert clean.item.source == AFTER_SALES.default_source
    assert clean.item.valid_until is clean.item.expires_at is clean.item.importance is None


def test_everything_good_is_kept():
    east = timezone(timedelta(hours=8))
    clean = cleaned(
        text="  订单　已\r\n发货 ",
        importance=1,
        topic="logistics",
        source="crm",
        lang="zh",
        occurred_at=datetime(2026, 1, 1, 8, 0, 0, 123_999, tzinfo=east),
        valid_until="2026-06-01T08:00:00+08:00",
        about=(ref("Order", "#1"), ref("Device", "d"), ref("Order", "#1")),
    )
    assert clean.item.text == "订单 已\n发货"
    assert clean.item.importance == 1.0
    assert clean.occurred_at == datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
    assert clean.valid_from == clean.occurred_at
    assert clean.item.valid_until == datetime(2026, 6, 1, tzinfo=UTC)
    assert clean.item.about == (ref("Order", "#1"), ref("Device", "d"))


def test_the_limits_themselves_are_allowed():
    assert cleaned(text="x" * MAX_CHARS, id="i" * 256, topic="t" * 64)
    assert cleaned(about=tuple(ref("Order", str(number)) for number in range(MAX_ABOUT)))


@given(st.text(max_size=MAX_CHARS))
def test_any_text_is_cleaned_or_empty(text):
    try:
        clean = cleaned(text=text)
    except TextEmpty:
        return
    assert clean.item.text.strip()
    assert cleaned(text=clean.item.text[:MAX_CHARS]).item.text


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a b", "a  b\n", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("订单 882301", "订单 882302", False),
        ("a b", "ab", False),
        ("A", "a", False),
    ],
)
def test_equal_texts_have_one_fingerprint(one, other, same):
    assert (content_hash(one) == content_hash(other)) is same
    assert len(content_hash(one)) == 32


# --- entities ------------------------------------------------------------------------------

BAD_ENTITIES = [
    ("Ship", "1", {}, UnknownType, ("type",)),
    (["Order"], "1", {}, UnknownType, ("type",)),
    (None, "1", {}, UnknownType, ("type",)),
    ("Order", "", {}, InvalidInput, ("id",)),
    ("Order", 1, {}, InvalidInput, ("id",)),
    ("Order", "a\u2028b", {}, InvalidInput, ("id",)),
    ("Order", "1", None, InvalidInput, ("props",)),
    ("Order", "1", [("status", "x")], InvalidInput, ("props",)),
    ("Order", "1", {"colour": "red"}, UnknownProperty, ("props", "colour")),
    ("Order", "1", {"tenant": "other"}, UnknownProperty, ("props", "tenant")),
    ("Order", "1", {"owner_key": "x"}, UnknownProperty, ("props", "owner_key")),
    ("Order", "1", {5: "x"}, UnknownProperty, ("props", 5)),
    ("Order", "1", {"status": 5}, InvalidInput, ("props", "status")),
    ("Order", "1", {"status": " "}, TextEmpty, ("props", "status")),
    ("Order", "1", {"status": "x" * 10_001}, TextTooLong, ("props", "status")),
    ("Order", "1", {"total": "12"}, InvalidInput, ("props", "total")),
    ("Order", "1", {"total": True}, InvalidInput, ("props", "total")),
    ("Order", "1", {"total": float("nan")}, InvalidInput, ("props", "total")),
    ("Order", "1", {"total": float("inf")}, InvalidInput, ("props", "total")),
    ("Order", "1", {"total": 10**400}, InvalidInput, ("props", "total")),
    ("Order", "1", {"placed_at": NAIVE}, InvalidTime, ("props", "placed_at")),
    ("Order", "1", {"placed_at": "2026-01-01"}, InvalidTime, ("props", "placed_at")),
    ("Repair", "1", {"under_warranty": "yes"}, InvalidInput, ("props", "under_warranty")),
    ("Repair", "1", {"under_warranty": 1}, InvalidInput, ("props", "under_warranty")),
    ("Product", "1", {"aliases": "one"}, InvalidInput, ("props", "aliases")),
    ("Product", "1", {"aliases": ["a", 1]}, InvalidInput, ("props", "aliases")),
    ("Product", "1", {"aliases": ["a"] * 101}, InvalidInput, ("props", "aliases")),
]

BAD_CLINIC = [
    ("Doctor", {"room": 1.5}, InvalidInput, ("props", "room")),
    ("Doctor", {"room": 2**63}, InvalidInput, ("props", "room")),
    ("Doctor", {"room": 10**5000}, InvalidInput, ("props", "room")),
    ("Doctor", {"room": False}, InvalidInput, ("props", "room")),
    ("Patient", {"birth_date": "1990-13-01"}, InvalidTime, ("props", "birth_date")),
    ("Patient", {"birth_date": NOW}, InvalidTime, ("props", "birth_date")),
    ("Prescription", {"form": "powder"}, InvalidInput, ("props", "form")),
]


@pytest.mark.parametrize(("type_", "id_", "props", "kind", "path"), BAD_ENTITIES)
def test_a_bad_entity_is_refused_with_the_place(type_, id_, props, kind, path):
    with pytest.raises(EcphoriaError) as caught:
        clean_entity(EntityInput(type_, id_, props), AFTER_SALES, NOW)
    assert (type(caught.value), caught.value.path) == (kind, path)


@pytest.mark.parametrize(("type_", "props", "kind", "path"), BAD_CLINIC)
def test_a_bad_entity_of_the_second_domain(type_, props, kind, path):
    with pytest.raises(EcphoriaError) as caught:
        clean_entity(EntityInput(type_, "1", props), CLINIC, NOW)
    assert (type(caught.value), caught.value.path) == (kind, path)


def test_a_naive_observation_is_refused():
    with pytest.raises(InvalidTime) as caught:
        clean_entity(EntityInput("Order", "1", {}, NAIVE), AFTER_SALES, NOW)
    assert caught.value.path == ("observed_at",)


def test_properties_come_out_in_store_form():
    row = clean_entity(
        EntityInput("Patient", "p-1", {"name": " 王芳 ", "birth_date": "1990-02-03"}), CLINIC, NOW
    )
    assert row.props == {"name": "王芳", "birth_date": datetime(1990, 2, 3, tzinfo=UTC)}
    assert row.observed_at == NOW
    assert not missing_required(row, CLINIC)


def test_null_is_left_out_and_numbers_keep_their_type():
    row = clean_entity(
        EntityInput("Doctor", "d", {"name": "Li", "room": 7.0, "nicknames": ["a", " b "]}),
        CLINIC,
        NOW,
    )
    assert row.props == {"name": "Li", "room": 7, "nicknames": ("a", "b")}
    assert isinstance(row.props["room"], int)
    order = clean_entity(EntityInput("Order", "1", {"total": 5, "status": None}), AFTER_SALES, NOW)
    assert order.props == {"total": 5.0}
    assert isinstance(order.props["total"], float)


def test_missing_required_properties_are_named():
    row = clean_entity(EntityInput("Visit", "vis-001", {"urgent": True}), CLINIC, NOW)
    assert missing_required(row, CLINIC) == ("reason",)


# --- relations -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "start", "end", "kind", "path"),
    [
        ("PLACED", ("Order", "1"), ("User", "u"), UnknownRelation, ("type",)),
        ("OWNS", ("User", "u"), ("Order", "1"), UnknownRelation, ("type",)),
        (None, ("User", "u"), ("Order", "1"), UnknownRelation, ("type",)),
        ("PLACED", ("Person", "u"), ("Order", "1"), UnknownType, ("from", "type")),
        ("PLACED", ("User", "u"), ("Order", "*\0"), InvalidInput, ("to", "id")),
        ("PLACED", ("User", ""), ("Order", "1"), InvalidInput, ("from", "id")),
    ],
)
def test_a_bad_relation_is_refused_with_the_place(type_, start, end, kind, path):
    with pytest.raises(EcphoriaError) as caught:
        clean_relation(RelationInput(type_, ref(*start), ref(*end)), AFTER_SALES)
    assert (type(caught.value), caught.value.path) == (kind, path)


def test_a_relation_with_several_ends():
    for end in ("Order", "Device", "Repair"):
        row = clean_relation(
            RelationInput("CONCERNS", ref("Ticket", "t"), ref(end, "1")), AFTER_SALES
        )
        assert row.to == ref(end, "1")
