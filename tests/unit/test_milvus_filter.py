"""Filters of the vector index: closed literals, closed scopes."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import string
import struct
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.errors import InvalidInput, InvalidScope
from ecphoria.stores.milvus_filter import (
    OPEN_END,
    expression,
    literal,
    literals,
    milliseconds,
    moment,
    stored_user,
    tenant_expression,
)
from ecphoria.stores.ports import VectorFilter

# What Milvus reads as one string: nothing but an escape may hold a quote or a backslash.
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
HOSTILE = st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.text(
    alphabet=st.sampled_from("\"'\\ )(or=%\n\u2028")
)
FILTER = VectorFilter(tenant="acme", user_id="U1", as_of=None, privacy=("public", "internal"))


@given(HOSTILE)
def test_a_literal_reads_back_and_ends_where_it_should(value: str) -> None:
    text = literal(value)

    assert json.loads(text) == value
    assert STRING.fullmatch(text)


@given(st.lists(HOSTILE))
def test_a_list_holds_each_value_once(values: list[str]) -> None:
    assert json.loads(literals(values)) == values


@given(HOSTILE.filter(bool), HOSTILE.filter(bool), st.lists(HOSTILE))
def test_no_value_changes_the_form_of_the_expression(
    tenant: str, user: str, topics: list[str]
) -> None:
    strange = dataclasses.replace(FILTER, tenant=tenant, user_id=user, topics=tuple(topics))
    plain = dataclasses.replace(FILTER, topics=("t",) * len(topics))

    assert STRING.sub("?", expression(strange)) == STRING.sub("?", expression(plain))


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        literal("a\ud800b")


def test_the_whole_expression() -> None:
    filter_ = VectorFilter(
        tenant="acme",
        user_id="U1",
        as_of=datetime(2025, 6, 15, 8, tzinfo=UTC),
        privacy=("public",),
        tiers=("hot", "archive"),
        topics=("退款",),
        min_importance=0.5,
    )

    assert expression(filter_) == (
        'tenant == "acme" and user_id in ["U1", ""] and privacy in ["public"]'
        ' and tier in ["hot", "archive"] and status in ["active", "superseded"]'
        " and valid_from <= 1749974400000 and valid_until > 1749974400000"
        " and expires_at > 1749974400000"
        ' and topic in ["退款"] and importance >= 0.5'
    )


def test_history_asks_for_no_time_and_for_what_is_disabled_only_when_told() -> None:
    text = expression(FILTER)

    assert "valid" not in text
    assert "expires" not in text
    assert 'status in ["active", "superseded"]' in text
    known = dataclasses.replace(FILTER, statuses=("active", "disabled"))
    assert 'status in ["active", "disabled"]' in expression(known)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_reads_back_to_the_millisecond(value: datetime) -> None:
    assert moment(milliseconds(value)) == value.replace(
        microsecond=value.microsecond // 1000 * 1000
    )


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tenant": ""}, InvalidScope),
        ({"user_id": ""}, InvalidScope),
        ({"privacy": ()}, InvalidScope),
        ({"tiers": ()}, InvalidInput),
        ({"statuses": ()}, InvalidInput),
        ({"statuses": ("active", "forgotten")}, InvalidInput),
        ({"min_importance": math.nan}, InvalidInput),
        ({"min_importance": math.inf}, InvalidInput),
        ({"min_importance": -0.1}, InvalidInput),
        ({"min_importance": 1.1}, InvalidInput),
    ],
)
def test_what_is_missing_never_means_all(change: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        expression(dataclasses.replace(FILTER, **change))  # type: ignore[arg-type]


def test_an_empty_tenant_or_user_is_refused() -> None:
    assert stored_user(None) == ""
    with pytest.raises(InvalidScope):
        stored_user("")
    with pytest.raises(InvalidScope):
        tenant_expression("")


@given(st.floats(min_value=0, max_value=1, exclude_min=True))
def test_the_least_importance_is_the_stored_number(value: float) -> None:
    text = expression(dataclasses.replace(FILTER, min_importance=value))
    number = text.rpartition(" >= ")[2]

    assert set(number) <= {*string.digits, "."}
    assert float(number) == struct.unpack("<f", struct.pack("<f", value))[0]


@given(st.datetimes(timezones=st.just(UTC)))
def test_milliseconds_are_exact_and_before_the_open_end(moment: datetime) -> None:
    value = milliseconds(moment)

    assert value < OPEN_END
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value) == moment.replace(
        microsecond=moment.microsecond // 1000 * 1000
    )


def test_milliseconds_know_zones() -> None:
    shanghai = timezone(timedelta(hours=8))

    assert milliseconds(datetime(1970, 1, 1, 8, tzinfo=shanghai)) == 0
