"""Idempotency keys: a write that is sent again is made once, and brings the first answer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ecphoria.errors import StoreUnavailable
from ecphoria.lifecycle.keyed_calls import drop_old_calls
from ecphoria.model import EveryUser, Role, Scope
from ecphoria.testing import ManualClock

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
OPERATIONS = Path(__file__).parents[2] / "graphql" / "operations"
TEXTS = "query ($userId: ID!) { memories(userId: $userId) { edges { node { id text status } } } }"


def operation(name: str) -> str:
    """Return one of the operations that clients copy."""
    return (OPERATIONS / f"{name}.graphql").read_text("utf-8")


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, "userId": "u1", "source": "crm", **more}


async def sent(api: Any, name: str, key: str | None, **variables: Any) -> Any:
    """Send one of the operations; return its payload."""
    data = await api.data(operation(name), **variables, idempotencyKey=key)
    (payload,) = data.values()
    return payload


async def memories(api: Any, user: str = "u1") -> dict[str, str]:
    page = (await api.data(TEXTS, userId=user))["memories"]
    return {edge["node"]["id"]: edge["node"]["text"] for edge in page["edges"]}


async def records(engine: Any, tenant: str) -> list[dict[str, Any]]:
    """Return what is on record of the calls of a tenant."""
    query = "MATCH (c:KeyedCall) WHERE c.tenant = $tenant RETURN properties(c) AS props"
    graph = engine.graph
    async with graph._driver.session(database=graph._database) as session:
        found = await session.run(query, tenant=tenant)
        return [dict(row["props"]) async for row in found]


async def test_sent_again_it_brings_the_first_answer(
    engine: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await sent(api, "remember_batch", None, items=[
            said(f"第{name}条：客户要求回电", id=name) for name in ("a", "b", "c", "d")
        ])  # fmt: skip
        why = {"reason": "客服核实"}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("remember", {"input": said("Wants the invoice by e-mail, not on paper")}),
            ("remember_batch", {"items": [said("喜欢乌龙茶"), said(" "), said("住在杭州")]}),
            ("supersede", {"memoryId": "a", "new": said("客户要求发邮件"), **why}),
            ("correct", {"memoryId": "b", "new": said("客户从未要求回电"), **why}),
            ("retract", {"memoryId": "c", "userId": "u1", **why}),
            ("forget", {"userId": "u1", "ids": ["d", "none"], **why}),
        ]
        for name, variables in calls:
            first = await sent(api, name, f"{name}-1", **variables)
            assert first["error"] is None, (name, first)
            before = await memories(api)
            again = await sent(api, name, f"{name}-1", **variables)
            assert again == first, name
            assert await memories(api) == before, name
        here = {"userId": "u1", "sessionId": "s1"}
        turn = {"speaker": "CUSTOMER", "text": "我的手机屏幕碎了，想换屏", "turnId": "1"}
        await api.data(operation("remember_turn"), **here, **turn)
        ended = [await sent(api, "end_session", "end-1", **here) for _ in range(2)]
        assert (ended[0]["turns"], len(ended[0]["receipts"])) == (1, 1)
        assert ended[0] == ended[1]


async def test_without_a_key_the_second_call_has_another_answer(
    engine: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await sent(api, "remember", None, input=said("要求回电", id="a"))
        variables = {"memoryId": "a", "userId": "u1", "reason": "从未说过"}
        first, second = [await sent(api, "retract", None, **variables) for _ in range(2)]
        assert first["status"] == "RETRACTED"
        assert (second["status"], second["error"]["code"]) == ("REJECTED", "NOT_CURRENT")
        assert second["error"]["__typename"] == "ConflictFault"


async def test_news_that_is_sent_again_late_does_not_become_new(
    engine: Any, tenant: str, api_over: Any
) -> None:
    def state(value: str) -> dict[str, Any]:
        order = {"type": "Order", "id": "882301"}
        fact = {"entity": order, "attribute": "order.status", "value": value}
        return {"userId": "u1", "source": "crm", "facts": [fact]}

    clock = ManualClock(NOW)
    async with api_over(replace(engine, clock=clock), tenant=tenant) as api:
        paid = await sent(api, "remember", "k", input=state("paid"))
        clock.advance(timedelta(minutes=20))
        shipped = await sent(api, "remember", None, input=state("shipped"))
        assert shipped["supersedes"] == [paid["id"]]
        clock.advance(timedelta(minutes=20))
        assert await sent(api, "remember", "k", input=state("paid")) == paid
        assert list(await memories(api)) == [shipped["id"]]
        # without the key it is news
        late = await sent(api, "remember", None, input=state("paid"))
        assert late["supersedes"] == [shipped["id"]]


async def test_a_key_stands_for_one_request_of_one_api_key(
    engine: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api, api_over(engine, tenant=tenant) as other:
        first = await sent(api, "remember", "k", input=said("喜欢乌龙茶"))
        for name, variables in (
            ("remember", {"input": said("喜欢红茶")}),
            ("remember_batch", {"items": [said("喜欢乌龙茶")]}),
            ("forget", {"userId": "u1", "ids": [first["id"]], "reason": "x"}),
        ):
            payload = await sent(api, name, "k", **variables)
            assert payload["error"]["__typename"] == "ConflictFault"
            assert payload["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
            assert payload["error"]["path"] == ["idempotencyKey"]
        # the same key of somebody else is another one
        theirs = await sent(other, "remember", "k", input=said("喜欢红茶"))
        assert theirs["status"] == "CREATED"
        async with api_over(engine, tenant=f"{tenant}-x") as elsewhere:
            there = await sent(elsewhere, "remember", "k", input=said("喜欢红茶"))
            assert there["status"] == "CREATED"
        for bad in ("", " x", "a\u0000b", "k" * 10_000):
            payload = await sent(api, "remember", bad, input=said("喜欢红茶"))
            assert payload["error"]["path"] == ["idempotencyKey"], bad
        assert set((await memories(api)).values()) == {"喜欢乌龙茶", "喜欢红茶"}


async def test_what_was_refused_may_be_mended_and_sent_with_the_same_key(
    engine: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        bad = await sent(api, "remember", "k", input=said(" "))
        assert bad["error"]["code"] == "TEXT_EMPTY"
        missing = {"memoryId": "none", "new": said("x"), "reason": "x"}
        assert (await sent(api, "correct", "k2", **missing))["error"]["code"] == "NOT_FOUND"
        assert len(await records(engine, tenant)) == 0
        good = await sent(api, "remember", "k", input=said("喜欢乌龙茶"))
        assert good["status"] == "CREATED"
        assert len(await records(engine, tenant)) == 1


async def test_of_calls_at_the_same_time_one_acts(engine: Any, tenant: str, api_over: Any) -> None:
    item = said("Wants a call on Monday morning")
    async with api_over(engine, tenant=tenant) as api:
        found = await asyncio.gather(*(sent(api, "remember", "k", input=item) for _ in range(6)))
        for each in found:
            if each["error"] is not None:
                assert each["error"]["code"] == "IDEMPOTENCY_KEY_IN_USE"
        acted = [each for each in found if each["error"] is None]
        assert acted
        assert acted == [acted[0]] * len(acted)
        assert await sent(api, "remember", "k", input=item) == acted[0]
        assert list(await memories(api)) == [acted[0]["id"]]


class Dies:
    """A graph whose process dies at one verb: before it is done, or just after it."""

    def __init__(self, graph: Any, verb: str, *, after: bool = False) -> None:
        self._graph, self._verb, self._after = graph, verb, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._graph, name)
        if name != self._verb:
            return found

        async def dying(*arguments: Any, **more: Any) -> None:
            if self._after:
                await found(*arguments, **more)
            raise Killed

        return dying


class Killed(BaseException):
    """As when a process is killed: nothing after it runs in the engine."""


@pytest.mark.parametrize(
    ("verb", "after"),
    [("write_memories", False), ("write_memories", True), ("finish_call", False)],
    ids=["before the write", "after the write", "before the answer is kept"],
)
@pytest.mark.parametrize("name", ["remember", "supersede", "correct"])
async def test_a_crash_between_write_and_record_writes_nothing_twice(
    engine: Any, tenant: str, api_over: Any, new_key: Any, name: str, verb: str, *, after: bool
) -> None:
    clock = ManualClock(NOW)
    engine = replace(engine, clock=clock)
    new = said("The customer wants an e-mail, not a call")
    variables = {"memoryId": "old", "new": new, "reason": "客服核实"}
    if name == "remember":
        variables = {"input": new}
    body = {"query": operation(name), "variables": {**variables, "idempotencyKey": "k"}}
    headers = {"Authorization": f"Bearer {await new_key(engine, tenant)}"}
    async with api_over(engine, tenant=tenant) as api:
        await sent(api, "remember", None, input=said("The customer wants a call", id="old"))
        dying = replace(engine, graph=Dies(engine.graph, verb, after=after))
        async with api_over(dying, tenant=tenant) as doomed:
            with pytest.raises(Killed):
                await doomed.http.post("/graphql", json=body, headers=headers)
        # as long as the dead one may be alive, others wait
        waiting = (await api.http.post("/graphql", json=body, headers=headers)).json()
        assert waiting["data"][name]["error"]["code"] == "IDEMPOTENCY_KEY_IN_USE"
        # another ten minutes: without the key it would be another memory
        clock.advance(timedelta(minutes=20))
        answers = [
            (await api.http.post("/graphql", json=body, headers=headers)).json()["data"][name]
            for _ in range(2)
        ]
        assert answers[0] == answers[1]
        assert answers[0]["error"] is None
        wrote = verb == "write_memories" and not after
        expected = {"remember": "CREATED" if wrote else "DUPLICATE"}.get(name, "SUPERSEDED")
        assert answers[0]["status"] == expected
        now = await memories(api)
        assert now.keys() == ({"old"} if name == "remember" else set()) | {answers[0]["id"]}


async def test_an_outage_leaves_the_call_to_the_next_try(
    engine: Any, tenant: str, api_over: Any, new_key: Any
) -> None:
    class Away(Dies):
        def __getattr__(self, name: str) -> Any:
            if name != self._verb:
                return getattr(self._graph, name)
            msg = "the graph store does not answer"
            raise StoreUnavailable(msg)

    body = {
        "query": operation("remember"),
        "variables": {"input": said("喜欢乌龙茶"), "idempotencyKey": "k"},
    }
    headers = {"Authorization": f"Bearer {await new_key(engine, tenant)}"}
    away = replace(engine, graph=Away(engine.graph, "write_memories"))
    async with api_over(away, tenant=tenant) as api:
        answer = (await api.http.post("/graphql", json=body, headers=headers)).json()
        assert answer["errors"][0]["extensions"]["code"] == "STORE_UNAVAILABLE"
    async with api_over(engine, tenant=tenant) as api:
        answer = (await api.http.post("/graphql", json=body, headers=headers)).json()
        assert answer["data"]["remember"]["status"] == "CREATED"


async def test_its_record_ends_with_its_time_and_with_its_user(
    engine: Any, tenant: str, api_over: Any
) -> None:
    clock = ManualClock(NOW)
    engine = replace(engine, clock=clock)
    admin = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    async with api_over(engine, tenant=tenant) as api:
        await sent(api, "remember", "secret-key", input=said("我的手机号是13912345678", id="a"))
        both = [said("喜欢茶"), {**said("喜欢咖啡"), "userId": "u2"}]
        await sent(api, "remember_batch", "both", items=both)
        await sent(api, "remember", "other", input={**said("住在杭州"), "userId": "u2"})
        assert len(await records(engine, tenant)) == 3
        await engine.forget_user(admin, "u1", "用户要求")
        check = await engine.verify_forgotten(admin, "u1")
        assert check.clean, check
        assert check.receipt.counts["keyed calls"] == 2
        assert len(await records(engine, tenant)) == 1
        refused = await sent(api, "remember", "late", input=said("回来了"))
        assert refused["error"]["code"] == "USER_FORGOTTEN"
        assert len(await records(engine, tenant)) == 1
        clock.advance(timedelta(hours=engine.settings.idempotency_hours - 1))
        await drop_old_calls(engine)
        assert len(await records(engine, tenant)) == 1
        clock.advance(timedelta(hours=2))
        # its time is over, also when nobody has swept
        again = await sent(api, "remember", "other", input={**said("住在上海"), "userId": "u2"})
        assert again["status"] == "CREATED"
        clock.advance(timedelta(hours=engine.settings.idempotency_hours + 1))
        await drop_old_calls(engine)
        assert len(await records(engine, tenant)) == 0


async def test_its_record_tells_nothing(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await sent(api, "remember", "my-idempotency-key", input=said("住在杭州西湖区", id="mine"))
        erased = await sent(api, "forget", "gone", userId="u1", ids=["mine"], reason="用户要求")
        again = await sent(api, "forget", "gone", userId="u1", ids=["mine"], reason="用户要求")
        assert (erased["forgotten"], again["forgotten"]) == (1, 1)
        # what was forgotten does not live on in an answer
        query = operation("forget").replace("id kind reason", "id text")
        shown = await api.data(
            query, userId="u1", ids=["mine"], reason="用户要求", idempotencyKey="gone"
        )
        assert shown["forget"]["items"] == [{"id": "mine", "text": "•••"}]
    kept = json.dumps(await records(engine, tenant), default=str)
    assert kept.count("request") == 2
    for secret in ("my-idempotency-key", "gone", "mine", "西湖", "u1"):
        assert secret not in kept, secret
