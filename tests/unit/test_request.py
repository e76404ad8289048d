"""A recall request is checked before anything is read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from builders import AFTER_SALES, request
from ecphoria.errors import EcphoriaError, InvalidInput, InvalidTime, TextEmpty, TextTooLong
from ecphoria.recall.request import checked_request
from ecphoria.settings import Settings

SETTINGS = Settings(max_question_chars=20)

BAD = [
    ({"question": None}, InvalidInput, ("question",)),
    ({"question": " \n"}, TextEmpty, ("question",)),
    ({"question": "x" * 21}, TextTooLong, ("question",)),
    ({"as_of": datetime(2026, 1, 1)}, InvalidTime, ("as_of",)),  # noqa: DTZ001
    ({"as_of": "soon"}, InvalidTime, ("as_of",)),
    ({"kinds": ()}, InvalidInput, ("kinds",)),
    ({"kinds": ("dream",)}, InvalidInput, ("kinds",)),
    ({"kinds": "semantic"}, InvalidInput, ("kinds",)),
    ({"topics": ("weather",)}, InvalidInput, ("topics",)),
    ({"limit": 0}, InvalidInput, ("limit",)),
    ({"limit": 101}, InvalidInput, ("limit",)),
    ({"limit": 2.5}, InvalidInput, ("limit",)),
    ({"limit": True}, InvalidInput, ("limit",)),
    ({"limit": "5"}, InvalidInput, ("limit",)),
    ({"entity_limit": -1}, InvalidInput, ("entity_limit",)),
    ({"entity_limit": None}, InvalidInput, ("entity_limit",)),
    ({"context_tokens": 100_001}, InvalidInput, ("context_tokens",)),
    ({"min_importance": 1.1}, InvalidInput, ("min_importance",)),
    ({"min_importance": float("nan")}, InvalidInput, ("min_importance",)),
    ({"time_zone": "Beijing"}, InvalidInput, ("time_zone",)),
    ({"time_zone": ""}, InvalidInput, ("time_zone",)),
    ({"time_zone": "../UTC"}, InvalidInput, ("time_zone",)),
    ({"time_zone": "Asia"}, InvalidInput, ("time_zone",)),
    ({"time_zone": "UTC\0"}, InvalidInput, ("time_zone",)),
    ({"time_zone": "x" * 10_000}, InvalidInput, ("time_zone",)),
    ({"time_zone": 8}, InvalidInput, ("time_zone",)),
    ({"since": datetime(2026, 1, 1)}, InvalidTime, ("since",)),  # noqa: DTZ001
    ({"until": "soon"}, InvalidTime, ("until",)),
    (
        {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T08:00:00+08:00"},
        InvalidTime,
        ("until",),
    ),
    (
        {"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
        InvalidTime,
        ("until",),
    ),
]


@pytest.mark.parametrize(("changes", "kind", "path"), BAD)
def test_a_bad_request_is_refused_with_the_place(changes, kind, path):
    with pytest.raises(EcphoriaError) as caught:
        checked_request(request(**{"question": "why?"} | changes), SETTINGS, AFTER_SALES)
    assert (type(caught.value), caught.value.path) == (kind, path)


def test_a_good_request_is_cleaned():
    given = request("  why ?\n", as_of="2026-01-01T08:00:00+08:00", topics=("refund",), limit=100)
    checked = checked_request(given, SETTINGS, AFTER_SALES)
    assert checked.question == "why ?"
    assert checked.as_of == datetime(2026, 1, 1, tzinfo=UTC)
    assert (checked.topics, checked.limit, checked.kinds) == (("refund",), 100, None)


def test_the_time_zone_is_that_of_the_settings_unless_one_is_named():
    settings = SETTINGS.model_copy(update={"time_zone": "Asia/Shanghai"})
    assert checked_request(request("why?"), settings, AFTER_SALES).time_zone == "Asia/Shanghai"
    named = checked_request(request("why?", time_zone="Europe/Paris"), settings, AFTER_SALES)
    assert named.time_zone == "Europe/Paris"


def test_since_and_until_are_read_into_utc():
    checked = checked_request(
        request("why?", since="2026-01-01T08:00:00+08:00", until="2026-01-01T00:00:01Z"),
        SETTINGS,
        AFTER_SALES,
    )
    assert checked.since == datetime(2026, 1, 1, tzinfo=UTC)
    assert checked.until == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
