"""Values: a scope fails closed, ids are taken as they are, times have a zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from ecphoria.errors import EcphoriaError, Forbidden, InvalidInput, InvalidScope, InvalidTime
from ecphoria.model import (
    EntityRef,
    EveryUser,
    Role,
    Scope,
    checked_id,
    checked_user,
    entity_key,
    memory_key,
    parse_time,
    utc,
    vector_id,
)

ADMIN = frozenset({Role.ADMIN})
ALL = EveryUser.OF_TENANT

NO_ID = ["", " ", "\u3000", " u", "u\n", "u\0x", "a\x7fb", "u\ud800", "a\u2028b", None, 7, b"u"]
NO_USER = [*NO_ID, "*", "%", "x" * 257, ["u"], True]
NO_TENANT = ["", "*", None, " ", "a|b", "a b", "-a", "a-", "租户", "a" * 65, "a\n", "a\0", "\ud800"]


@pytest.mark.parametrize("tenant", [*NO_TENANT, 7, b"shop", "%", "../x", "'", "a' OR '1'='1"])
def test_a_scope_has_a_tenant(tenant):
    with pytest.raises(InvalidScope) as caught:
        Scope(tenant, "tester", ADMIN, ALL)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("principal", ["", " ", None, 7])
def test_a_scope_has_a_principal(principal):
    with pytest.raises(InvalidScope):
        Scope("shop", principal, ADMIN, ALL)


@pytest.mark.parametrize(
    "roles", [frozenset(), None, 5, {Role.ADMIN}, [Role.ADMIN], frozenset({"admin"}), "admin"]
)
def test_a_scope_has_roles(roles):
    with pytest.raises(InvalidScope):
        Scope("shop", "tester", roles, ALL)


@pytest.mark.parametrize(
    "users", [frozenset(), None, "u-1", "*", ["u-1"], {"u-1"}, *(frozenset({u}) for u in NO_ID)]
)
def test_a_scope_has_users(users):
    with pytest.raises(InvalidScope):
        Scope("shop", "tester", ADMIN, users)


@pytest.mark.parametrize("user", NO_USER)
def test_a_verb_names_one_user_whoever_asks(user):
    for users in (ALL, frozenset({"u-1"})):
        with pytest.raises(InvalidScope):
            Scope("shop", "tester", ADMIN, users).user(user)


def test_a_scope_allows_its_users_and_no_other():
    some = Scope("shop", "tester", ADMIN, frozenset({"u-1", "客户|2"}))
    assert (some.user("u-1"), some.user("客户|2")) == ("u-1", "客户|2")
    for other in ("u-10", "U-1", "u-１", "客户"):
        with pytest.raises(Forbidden):
            some.user(other)
    assert Scope("shop", "tester", ADMIN, ALL).user("anyone") == "anyone"


@pytest.mark.parametrize("tenant", ["a", "A.b_c-9", "a" * 64])
def test_tenants(tenant):
    assert Scope(tenant, "tester", ADMIN, ALL).tenant == tenant


@pytest.mark.parametrize("value", NO_ID)
def test_no_id(value):
    with pytest.raises(InvalidInput) as caught:
        checked_id(value, "order id")
    assert "order id" in caught.value.message
    caught.value.message.encode()


def test_a_long_id_is_refused_without_repeating_it():
    assert checked_id("x" * 256, "id")
    with pytest.raises(EcphoriaError) as caught:
        checked_id(" " + "x" * 1_000_000, "id")
    assert (caught.value.code, len(caught.value.message) < 200) == ("TEXT_TOO_LONG", True)


@given(st.text(max_size=300))
def test_an_id_is_refused_or_unchanged(text):
    try:
        assert checked_user(text) == text
    except InvalidScope:
        return
    assert text.strip() == text
    assert 0 < len(text) <= 256
    text.encode()


# --- keys ----------------------------------------------------------------------------------

IDS = st.text("a|*%'\"1", min_size=1, max_size=5)


@given(IDS, IDS, st.sampled_from(["Order", "Device"]), st.sampled_from(["Order", "Device"]))
def test_keys_are_equal_only_for_the_same_thing(one, other, type_, other_type):
    same = (type_, one) == (other_type, other)
    keys = [
        entity_key("shop", item) for item in (EntityRef(type_, one), EntityRef(other_type, other))
    ]
    assert (keys[0] == keys[1]) is same
    assert entity_key("shop2", EntityRef(type_, one)) != keys[0]
    assert memory_key("shop", one) not in keys


def test_vector_ids_are_stable():
    # rows that are there already must be found again
    assert vector_id("shop|Memory|m-1") == "f6dad7de4a357fcdab3503c809fb90df"
    assert len({vector_id(f"shop|Memory|{number}") for number in range(1000)}) == 1000


# --- times ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2026-03-01T12:00:00Z", NOW),
        ("2026-03-01T20:00:00+08:00", NOW),
        ("2026-03-01 12:00:00.000999+00:00", NOW),
        ("20260301T120000Z", NOW),
        (NOW.astimezone(timezone(timedelta(hours=-5))), NOW),
        (NOW.replace(microsecond=123_999), NOW.replace(microsecond=123_000)),
    ],
)
def test_times_become_utc_in_milliseconds(written, moment):
    found = parse_time(written)
    assert found == moment
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    [
        "",
        "now",
        "2026-03-01",
        "2026-03-01T12:00:00",
        "2026-02-30T12:00:00Z",
        "2026-03-01T25:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "２０２６-03-01T12:00:00Z ",
        "\ud800",
        "\0",
        "9" * 100_000,
        datetime(2026, 3, 1),  # noqa: DTZ001 - that it has no zone is the point
        NOW.date(),
        1772366400,
        None,
    ],
)
def test_what_is_no_moment(value):
    with pytest.raises(InvalidTime) as caught:
        parse_time(value, "valid_from")
    assert "valid_from" in caught.value.message
    assert len(caught.value.message) < 200


@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_every_moment_is_read_back_the_same(moment):
    try:
        found = utc(moment)
    except InvalidTime:
        assert moment.year in {1, 9999}
        return
    assert utc(found) == found == parse_time(found.isoformat())
    assert timedelta(0) <= moment - found < timedelta(milliseconds=1)
