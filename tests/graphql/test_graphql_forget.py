"""Forgetting over the API: what goes, what stays, who may, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ecphoria.clock import Clock
from ecphoria.governance.access import MASK
from ecphoria.model import Role

pytestmark = pytest.mark.asyncio(loop_scope="session")

REMEMBER = """mutation ($items: [MemoryInput!]!) { rememberBatch(input: {items: $items}) {
  receipts { status id error { code } } } }"""
FORGET = """mutation ($userId: ID!, $ids: [ID!]!, $reason: String! = "用户要求删除") {
  forget(userId: $userId, ids: $ids, reason: $reason) {
    found forgotten unknown items { id userId kind text reason }
    error { code message path } } }"""
BY_RULE = """mutation ($rule: ForgetRuleInput!, $dryRun: Boolean!, $limit: Int! = 100) {
  forgetByRule(rule: $rule, dryRun: $dryRun) {
    found forgotten unknown items(limit: $limit) { id userId kind text reason }
    error { code message path } } }"""
MEMORY = """query ($userId: ID!, $id: ID!) { memory(userId: $userId, id: $id) { id } }"""
RECALL = """query ($userId: ID!, $question: String!) {
  recall(input: {question: $question, userId: $userId}) { memories { memory { id } } } }"""

NOW = datetime(2025, 6, 15, 8, tzinfo=UTC)


def item(
    id_: str, user: str | None = "u1", *, days: float = 0, text: str = "", **more: Any
) -> dict[str, Any]:
    """Return a memory of so many days ago."""
    whose = {"shared": True} if user is None else {"userId": user}
    when = (NOW - timedelta(days=days)).isoformat().replace("+00:00", "Z")
    return {"id": id_, "text": text or f"第{id_}条记录", "occurredAt": when, **whose, **more}


async def remember(api: Any, *items: dict[str, Any]) -> None:
    receipts = (await api.data(REMEMBER, items=list(items)))["rememberBatch"]["receipts"]
    assert {receipt["status"] for receipt in receipts} == {"CREATED"}, receipts


async def there(api: Any, user: str, *ids: str) -> set[str]:
    """Return which of a user's memories are still there."""
    found = set()
    for id_ in ids:
        body = await api.send(MEMORY, userId=user, id=id_)
        if "errors" in body:
            assert body["errors"][0]["extensions"]["code"] == "NOT_FOUND"
        else:
            found.add(id_)
    return found


@pytest.fixture
def at_noon(engine: Any) -> Any:
    """The engine, at a moment that does not move."""
    return replace(engine, clock=Clock(lambda: NOW))


async def test_what_is_forgotten_does_not_come_back(
    at_noon: Any, tenant: str, api_over: Any
) -> None:
    question = "屏幕碎了怎么办？"
    async with api_over(at_noon, tenant=tenant) as api:
        await remember(
            api,
            item("gone", text="手机屏幕碎了，要换屏"),
            item("stays", text="手机屏幕有划痕"),
            item("other", "u2", text="平板屏幕碎了"),
            item("shared", None, text="屏幕碎了可以到店维修"),
        )
        ids = ["gone", "other", "shared", "none", "gone"]
        report = (await api.data(FORGET, userId="u1", ids=ids))["forget"]
        assert (report["found"], report["forgotten"]) == (1, 1)
        # another user's, shared knowledge, and what never was: all the same, and untouched
        assert report["unknown"] == ["other", "shared", "none"]
        assert report["items"] == [
            {
                "id": "gone",
                "userId": "u1",
                "kind": "EPISODIC",
                "text": "手机屏幕碎了，要换屏",
                "reason": "用户要求删除",
            }
        ]
        assert await there(api, "u1", "gone", "stays", "shared") == {"stays", "shared"}
        assert await there(api, "u2", "other") == {"other"}
        answer = await api.data(RECALL, userId="u1", question=question)
        assert "gone" not in {each["memory"]["id"] for each in answer["recall"]["memories"]}
        again = item("gone", text="手机屏幕碎了，要换屏")
        (receipt,) = (await api.data(REMEMBER, items=[again]))["rememberBatch"]["receipts"]
        assert (receipt["status"], receipt["error"]["code"]) == ("REJECTED", "MEMORY_FORGOTTEN")
        again = (await api.data(FORGET, userId="u1", ids=["gone"]))["forget"]
        assert (again["forgotten"], again["unknown"]) == (0, ["gone"])


async def test_who_may_not_forget(at_noon: Any, tenant: str, api_over: Any) -> None:
    async with api_over(at_noon, tenant=tenant) as api:
        await remember(api, item("m"))
        for change, code, path in (
            ({"userId": "*"}, "INVALID_SCOPE", None),
            ({"userId": ""}, "INVALID_SCOPE", None),
            ({"reason": ""}, "INVALID_INPUT", ["reason"]),
            ({"reason": "\t"}, "INVALID_INPUT", ["reason"]),
            ({"ids": [""]}, "INVALID_INPUT", None),
            ({"ids": ["m"] * (at_noon.settings.max_batch + 1)}, "BATCH_TOO_LARGE", ["ids"]),
        ):
            fault = await api.fault(FORGET, **{"userId": "u1", "ids": ["m"], **change})
            assert fault["code"] == code, (change, fault)
            if path is not None:
                assert fault["path"] == path
        none = (await api.data(FORGET, userId="u1", ids=[]))["forget"]
        assert (none["found"], none["forgotten"]) == (0, 0)
        for options in ({"roles": (Role.AGENT,)}, {"roles": (Role.ANALYST,)}, {"users": ["u2"]}):
            async with api_over(at_noon, tenant=tenant, **options) as other:
                error = await other.error(FORGET, userId="u1", ids=["m"])
                assert error["extensions"]["code"] == "FORBIDDEN", options
        async with api_over(at_noon, tenant=f"{tenant}-x") as elsewhere:
            report = (await elsewhere.data(FORGET, userId="u1", ids=["m"]))["forget"]
            assert (report["forgotten"], report["unknown"]) == (0, ["m"])
        assert await there(api, "u1", "m") == {"m"}


RULES: list[tuple[dict[str, Any], set[str]]] = [
    ({"olderThanDays": 180}, {"old", "old-rule"}),
    ({"olderThanDays": 180, "importanceBelow": 0.5}, {"old"}),
    ({"importanceBelow": 0.5}, {"old", "minor"}),
    ({"olderThanDays": 0.5, "kinds": ["PROCEDURAL"]}, {"old-rule"}),
    # dialogue is trusted less than the CRM
    ({"confidenceBelow": 0.9, "olderThanDays": 1}, {"old", "said"}),
    ({"olderThanDays": 36_000}, set()),
]


@pytest.mark.parametrize(("rule", "meets"), RULES)
async def test_a_rule_is_tried_before_it_is_done(
    at_noon: Any, tenant: str, api_over: Any, rule: dict[str, Any], meets: set[str]
) -> None:
    ids = ("old", "old-rule", "minor", "said", "new")
    async with api_over(at_noon, tenant=tenant) as api:
        await remember(
            api,
            item("old", days=200, importance=0.2),
            item("old-rule", days=300, kind="PROCEDURAL", source="crm", importance=0.9),
            item("minor", importance=0.3, source="crm"),
            item("said", days=40, importance=0.6),
            item("new", importance=0.6, source="crm"),
            item("old", "u2", days=200, importance=0.2) | {"id": "of-u2"},
            item("shared", None, days=200, importance=0.2),
        )
        mine = {"userId": "u1", **rule}
        tried = (await api.data(BY_RULE, rule=mine, dryRun=True))["forgetByRule"]
        assert {each["id"] for each in tried["items"]} == meets
        assert (tried["found"], tried["forgotten"]) == (len(meets), 0)
        assert all(each["reason"] and each["text"] for each in tried["items"])
        assert await there(api, "u1", *ids) == set(ids)
        done = (await api.data(BY_RULE, rule=mine, dryRun=False))["forgetByRule"]
        assert {each["id"] for each in done["items"]} == meets
        assert done["forgotten"] == len(meets)
        assert await there(api, "u1", *ids, "shared") == {*ids, "shared"} - meets
        assert await there(api, "u2", "of-u2") == {"of-u2"}


async def test_a_dry_run_is_what_happens_without_a_word(
    at_noon: Any, tenant: str, api_over: Any
) -> None:
    query = """mutation ($rule: ForgetRuleInput!) { forgetByRule(rule: $rule) {
      found forgotten items { id reason } } }"""
    async with api_over(at_noon, tenant=tenant) as api:
        await remember(api, item("old", days=200, importance=0.25))
        rule = {"userId": "u1", "olderThanDays": 100, "importanceBelow": 0.5}
        report = (await api.data(query, rule=rule))["forgetByRule"]
        assert report == {
            "found": 1,
            "forgotten": 0,
            "items": [{"id": "old", "reason": "200 days old; importance 0.25"}],
        }
        assert await there(api, "u1", "old") == {"old"}


async def test_every_user_is_named_or_nobody_is_meant(
    at_noon: Any, tenant: str, api_over: Any
) -> None:
    rule = {"everyUser": True, "olderThanDays": 100}
    async with api_over(at_noon, tenant=tenant) as api:
        await remember(
            api,
            item("a", "u1", days=200),
            item("b", "u2", days=200),
            item("c", None, days=200),
            item("d", "u2"),
        )
        async with api_over(at_noon, tenant=f"{tenant}-x") as elsewhere:
            await remember(elsewhere, item("e", "u1", days=200))
            tried = (await api.data(BY_RULE, rule=rule, dryRun=True, limit=2))["forgetByRule"]
            assert (tried["found"], len(tried["items"])) == (3, 2)
            done = (await api.data(BY_RULE, rule=rule, dryRun=False))["forgetByRule"]
            assert {each["id"]: each["userId"] for each in done["items"]} == {
                "a": "u1",
                "b": "u2",
                "c": None,
            }
            assert await there(api, "u2", "b", "c", "d") == {"d"}
            assert await there(elsewhere, "u1", "e") == {"e"}


async def test_rules_that_are_refused(at_noon: Any, tenant: str, api_over: Any) -> None:
    good = {"userId": "u1", "olderThanDays": 1}
    async with api_over(at_noon, tenant=tenant) as api:
        await remember(api, item("m", days=5))
        for rule, code, path in (
            ({"userId": "u1"}, "INVALID_INPUT", None),
            ({"userId": "u1", "kinds": ["EPISODIC"]}, "INVALID_INPUT", None),
            ({"everyUser": True}, "INVALID_INPUT", None),
            ({"olderThanDays": 1}, "INVALID_SCOPE", ["rule", "userId"]),
            ({**good, "everyUser": True}, "INVALID_SCOPE", ["rule", "userId"]),
            ({**good, "userId": "*"}, "INVALID_SCOPE", None),
            ({**good, "userId": ""}, "INVALID_SCOPE", None),
            ({**good, "olderThanDays": -1}, "INVALID_INPUT", ["rule", "olderThanDays"]),
            ({**good, "olderThanDays": 1e9}, "INVALID_INPUT", ["rule", "olderThanDays"]),
            ({**good, "importanceBelow": 1.5}, "INVALID_INPUT", ["rule", "importanceBelow"]),
            ({**good, "confidenceBelow": -0.1}, "INVALID_INPUT", ["rule", "confidenceBelow"]),
        ):
            for dry_run in (True, False):
                fault = await api.fault(BY_RULE, rule=rule, dryRun=dry_run)
                assert fault["code"] == code, (rule, fault)
                if path is not None:
                    assert fault["path"] == path
        for rule, path in (
            ({**good, "olderThanDays": float("nan")}, ["rule", "olderThanDays"]),
            ({**good, "kinds": ["DREAM"]}, ["rule", "kinds", 0]),
        ):
            error = await api.error(BY_RULE, rule=rule, dryRun=False)
            assert error["extensions"]["code"] == "BAD_USER_INPUT"
            assert error["extensions"]["path"] == path
        for limit, shown in ((0, 0), (-1, 0), (10_000, 1)):
            report = await api.data(BY_RULE, rule=good, dryRun=True, limit=limit)
            assert len(report["forgetByRule"]["items"]) == shown
        for options, rule in (
            ({"roles": (Role.AGENT,)}, good),
            ({"roles": (Role.ANALYST,)}, good),
            ({"users": ["u2"]}, good),
            ({"users": ["u1"]}, {"everyUser": True, "olderThanDays": 1}),
        ):
            async with api_over(at_noon, tenant=tenant, **options) as other:
                error = await other.error(BY_RULE, rule=rule, dryRun=False)
                assert error["extensions"]["code"] == "FORBIDDEN", (options, rule)
        assert await there(api, "u1", "m") == {"m"}


async def test_an_operator_erases_what_he_may_not_read(
    at_noon: Any, tenant: str, api_over: Any
) -> None:
    rule = {"userId": "u1", "olderThanDays": 100}
    async with api_over(at_noon, tenant=tenant) as api:
        await remember(api, item("a", days=200, text="家庭住址是幸福路"), item("b", days=200))
        async with api_over(at_noon, tenant=tenant, roles=(Role.OPERATOR,)) as operator:
            tried = (await operator.data(BY_RULE, rule=rule, dryRun=True))["forgetByRule"]
            assert {each["text"] for each in tried["items"]} == {MASK}
            done = (await operator.data(FORGET, userId="u1", ids=["a"]))["forget"]
            assert done["forgotten"] == 1
            assert done["items"][0]["text"] == MASK
        assert await there(api, "u1", "a", "b") == {"b"}


OPERATIONS = Path(__file__).parents[2] / "graphql" / "operations"


def operation(name: str) -> str:
    """Return one of the operations that clients copy."""
    return (OPERATIONS / f"{name}.graphql").read_text("utf-8")


async def test_a_user_is_forgotten_and_it_is_on_record(
    at_noon: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(at_noon, tenant=tenant) as api:
        await remember(api, item("a"), item("b", user="u2"))
        why = {"userId": "u1", "reason": "用户要求注销"}
        receipt = (await api.data(operation("forget_user"), **why))["forgetUser"]["receipt"]
        assert {"what": "memories", "count": 1} in receipt["removed"]
        assert receipt["finishedAt"] is not None
        found = (await api.data(operation("verify_forgotten"), userId="u1"))["verifyForgotten"]
        assert (found["clean"], found["left"], found["receipt"]["id"]) == (True, [], receipt["id"])
        assert await there(api, "u2", "b") == {"b"}
        again = (await api.data(REMEMBER, items=[item("a")]))["rememberBatch"]["receipts"]
        assert again[0]["error"]["code"] == "USER_FORGOTTEN"
        back = (await api.data(operation("allow_forgotten"), userId="u1"))["allowForgotten"]
        assert (back["allowed"], back["error"]) == (True, None)

        page = await api.data(operation("audit_log"), filter={"userId": "u1"}, first=2)
        shown = [edge["node"] for edge in page["auditLog"]["edges"]]
        assert [each["operation"] for each in shown] == ["allowForgotten", "verifyForgotten"]
        cursor = page["auditLog"]["pageInfo"]["endCursor"]
        rest = await api.data(operation("audit_log"), filter={"userId": "u1"}, after=cursor)
        (first, *_) = [edge["node"] for edge in rest["auditLog"]["edges"]]
        assert (first["operation"], first["outcome"]) == ("forgetUser", "DONE")
        assert "u1" not in str(first["user"])
    async with api_over(at_noon, tenant=tenant, roles=(Role.OPERATOR,)) as operator:
        error = await operator.error(operation("audit_log"))
        assert error["extensions"]["code"] == "FORBIDDEN"
