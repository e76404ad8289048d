"""Whose yesterday a question means, over the real engine and its stores."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="session")

RECALL = """query ($input: RecallInput!) { recall(input: $input) { trace { stage note } } }"""
AS_OF = "2026-03-11T20:00:00Z"


async def note(api: Any, question: str, **more: Any) -> str:
    given = {"question": question, "userId": "u1", "asOf": AS_OF, **more}
    trace = (await api.data(RECALL, input=given))["recall"]["trace"]
    return next(step["note"] for step in trace if step["stage"] == "understand")


@pytest.mark.parametrize("question", ["What broke yesterday?", "昨天什么坏了"])
async def test_yesterday_is_that_of_the_time_zone(
    engine: Any, tenant: str, api_over: Any, question: str
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        plain = await note(api, question)
        there = await note(api, question, timeZone="Asia/Shanghai")
        fixed = await note(api, question, since="2026-01-01T08:00:00+08:00", timeZone="Asia/Tokyo")
    assert "time 2026-03-10T00:00Z..2026-03-11T00:00Z" in plain
    assert "time 2026-03-10T16:00Z..2026-03-11T16:00Z" in there
    assert fixed.endswith("time 2026-01-01T00:00Z..")


@pytest.mark.parametrize("question", ["What broke?", "什么坏了"])
@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"timeZone": "Beijing"}, "INVALID_INPUT", "timeZone"),
        ({"timeZone": "../../UTC"}, "INVALID_INPUT", "timeZone"),
        ({"timeZone": ""}, "INVALID_INPUT", "timeZone"),
        ({"since": "2026-01-01"}, "INVALID_TIME", "since"),
        (
            {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T08:00:00+08:00"},
            "INVALID_TIME",
            "until",
        ),
        (
            {"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
            "INVALID_TIME",
            "until",
        ),
    ],
)
async def test_bad_times_are_refused_with_their_place(
    engine: Any,
    tenant: str,
    api_over: Any,
    question: str,
    change: dict[str, str],
    code: str,
    field: str,
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        error = await api.error(RECALL, input={"question": question, "userId": "u1", **change})
    assert (error["extensions"]["code"], error["extensions"]["path"]) == (code, ["input", field])
