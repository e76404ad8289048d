"""The question that ecphoria exists for, over HTTP, on the demo data."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from ecphoria.bulk_import import import_files, sources
from ecphoria.governance.keys import create_key
from ecphoria.model import EveryUser, Role, Scope
from ecphoria_graphql.app import create_app_for

ROOT = Path(__file__).parents[2]
DEMO_DATA = ROOT / "engine" / "ecphoria" / "demo_data"
RECALL = (ROOT / "graphql" / "operations" / "recall.graphql").read_text(encoding="utf-8")
QUESTIONS = json.loads((DEMO_DATA / "questions.json").read_text(encoding="utf-8"))
AS_OF = "2026-11-30T09:00:00Z"

_loaded: dict[int, str] = {}


@pytest.fixture
async def ask(engine, tenant):
    # the demo data once a store set, they are only read here
    if id(engine) not in _loaded:
        scope = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
        async for _ in import_files(engine, scope, sources([str(DEMO_DATA)])):
            pass
        _loaded[id(engine)] = tenant
    _, secret = await create_key(
        engine.graph,
        engine.clock,
        tenant=_loaded[id(engine)],
        name="test",
        roles=[Role.AGENT],
        users=EveryUser.OF_TENANT,
    )
    transport = httpx.ASGITransport(create_app_for(engine))
    async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:

        async def post(question, user_id, as_of=AS_OF):
            answer = await client.post(
                "/graphql",
                headers={"Authorization": f"Bearer {secret}"},
                json={
                    "query": RECALL,
                    "variables": {"question": question, "userId": user_id, "asOf": as_of},
                },
            )
            body = answer.json()
            assert "errors" not in body, body
            return body["data"]["recall"]

        yield post


def entities(answer):
    return {(item["__typename"], item["id"]) for item in answer["entities"]}


def refs(items):
    return {(item["type"], item["id"]) for item in items}


@pytest.mark.parametrize("item", QUESTIONS, ids=[item["question"] for item in QUESTIONS])
async def test_the_demo_questions_are_answered_right(ask, item):
    answer = await ask(item["question"], item["user_id"])
    assert answer["action"] == item["expect"]["action"]
    assert answer["degradations"] == []
    assert refs(item["expect"].get("entities", [])) <= entities(answer)
    assert not refs(item["expect"].get("absent_entities", [])) & entities(answer)


@pytest.mark.parametrize(
    "question",
    [
        "张伟买的iPhone15维修后还能享受延保吗",
        "Can the iPhone 15 that Zhang Wei bought still use its extended warranty after the repair?",
    ],
)
async def test_the_answer_comes_from_the_graph(ask, question):
    answer = await ask(question, "u-zhangwei-1")
    chain = {"User", "Order", "Device", "Repair", "Warranty"}
    assert chain <= {type_ for type_, _ in entities(answer)}
    warranty = ("Warranty", "war-zhangwei-1-iphone15-ext")
    assert warranty in entities(answer)
    walked = {(item["from"]["id"], item["type"], item["to"]["id"]) for item in answer["relations"]}
    device = "dev-zhangwei-1-iphone15"
    assert {
        ("u-zhangwei-1", "PLACED", "#882301"),
        ("#882301", "CONTAINS", device),
        (device, "HAS_REPAIR", "rep-7f31"),
        (device, "COVERED_BY", warranty[1]),
    } <= walked
    # no memory alone says it
    for item in answer["memories"]:
        text = item["memory"]["text"]
        assert sum(word in text for word in ("#882301", "rep-7f31", warranty[1])) <= 1
    assert 0 < answer["confidence"]["overall"] <= 1
    assert all(part["reason"] for name, part in answer["confidence"].items() if name != "overall")
    assert "war-zhangwei-1-iphone15-ext" in answer["contextBlock"]


async def test_nothing_of_his_namesakes_is_said(ask):
    own = await ask("张伟买的iPhone15维修后还能享受延保吗", "u-zhangwei-1")
    said = json.dumps(own, ensure_ascii=False)
    for foreign in ("u-zhangwei-2", "u-zhangwei-3", "#882302", "rep-7f32", "zhangwei-2"):
        assert foreign not in said
    other = await ask("张伟买的iPhone15维修后还能享受延保吗", "u-zhangwei-2")
    assert ("Warranty", "war-zhangwei-2-iphone15-ext") in entities(other)
    assert "zhangwei-1" not in json.dumps(other, ensure_ascii=False)


async def test_another_users_order_number_answers_nothing(ask):
    answer = await ask("订单#882302现在是什么状态?", "u-zhangwei-1")
    assert answer["action"] == "FALLBACK"
    assert answer["advisory"]
    assert (answer["memories"], answer["entities"]) == ([], [])
    mine = await ask("订单#882301现在是什么状态?", "u-zhangwei-1")
    assert mine["action"] == "ANSWER"
    assert ("Order", "#882301") in entities(mine)


async def test_small_talk_reads_nothing(ask):
    answer = await ask("你好,谢谢!", "u-zhangwei-1")
    assert answer["action"] == "SKIP"
    assert [step["stage"] for step in answer["trace"]] == ["understand"]
