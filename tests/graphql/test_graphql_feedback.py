"""Feedback over the API: what comes back, what is refused, and how it is taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ecphoria.model import EveryUser, MemoryInput, Role, Scope

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPERATIONS = Path(__file__).parents[2] / "graphql" / "operations"


def operation(name: str) -> str:
    return (OPERATIONS / f"{name}.graphql").read_text("utf-8")


GIVE, UNDO, COMPLETE = map(operation, ("feedback", "undo_feedback", "complete_task"))
RECORDS, TASKS = map(operation, ("feedback_records", "completion_tasks"))
SOURCES = "{ sources { id reliability declaredReliability } }"
DOUBT = 'query ($id: ID!) { memory(userId: "u1", id: $id) { doubt validUntil } }'


@pytest.fixture
async def memory(engine: Any, tenant: str) -> str:
    scope = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    text = "客户说包裹放在门口，The parcel is at the door"
    (receipt,) = await engine.remember(scope, [MemoryInput(text, "u1", source="crm")])
    id_: str = receipt.id
    return id_


def edges(found: Any) -> list[Any]:
    return [edge["node"] for edge in found["edges"]]


async def test_what_is_missing_is_asked_for_and_completed(
    engine: Any, tenant: str, api_over: Any, memory: str
) -> None:
    said = {"memoryId": memory, "userId": "u1", "verdict": "MISSING_INFO", "note": "哪个门？"}
    async with (
        api_over(engine, tenant=tenant, roles=(Role.AGENT,), users=["u1"]) as agent,
        api_over(engine, tenant=tenant, roles=(Role.OPERATOR,)) as operator,
    ):
        given = (await agent.data(GIVE, input=said))["feedback"]
        assert (given["status"], given["error"]) == ("GIVEN", None)
        assert given["task"] == {"id": given["task"]["id"], "status": "OPEN", "note": "哪个门？"}
        again = (await agent.data(GIVE, input=said))["feedback"]
        assert (again["status"], again["feedback"]["id"]) == ("DUPLICATE", given["feedback"]["id"])
        # an operator sees that there is one, and reads nothing internal
        (task,) = edges((await operator.data(TASKS, userId="u1"))["completionTasks"])
        assert (task["status"], task["note"], task["memoryId"]) == ("OPEN", "•••", memory)
        done = await agent.data(COMPLETE, userId="u1", id=task["id"], memoryId=memory)
        assert done["completeTask"]["task"]["status"] == "DONE"
        assert edges((await agent.data(TASKS, userId="u1", status="OPEN"))["completionTasks"]) == []
        undone = await operator.data(UNDO, userId="u1", feedbackId=given["feedback"]["id"])
        assert undone["undoFeedback"]["status"] == "UNDONE"
        (record,) = edges((await agent.data(RECORDS, userId="u1"))["feedback"])
        assert (record["standing"], record["verdict"]) == (False, "MISSING_INFO")


async def test_trust_is_shown_with_what_feedback_took(
    engine: Any, tenant: str, api_over: Any, memory: str
) -> None:
    async with api_over(engine, tenant=tenant, roles=(Role.AGENT, Role.ANALYST)) as api:
        said = {"memoryId": memory, "userId": "u1", "verdict": "WRONG"}
        given = (await api.data(GIVE, input=said))["feedback"]
        assert given["feedback"]["before"] == {
            "validUntil": None, "topic": None, "tags": [], "reliability": 0.95, "doubt": 0,
        }  # fmt: skip
        (crm,) = [each for each in (await api.data(SOURCES))["sources"] if each["id"] == "crm"]
        assert (crm["reliability"], crm["declaredReliability"]) == (0.94, 0.95)
        assert (await api.data(DOUBT, id=memory))["memory"]["doubt"] == 0.06
        await api.data(UNDO, userId="u1", feedbackId=given["feedback"]["id"])
        assert (await api.data(DOUBT, id=memory))["memory"]["doubt"] == 0


@pytest.mark.parametrize(
    ("more", "kind", "code", "path"),
    [
        ({"verdict": "EXPIRED"}, "RefusedFault", "LESS_RELIABLE", []),
        ({"verdict": "MISSING_INFO"}, "InvalidInputFault", "INVALID_INPUT", ["input", "note"]),
        (
            {"verdict": "WRONG_TOPIC", "topics": ["没有"]},
            "InvalidInputFault",
            "INVALID_INPUT",
            ["input", "topics", "0"],
        ),
        (
            {"verdict": "HELPFUL", "shared": True},
            "InvalidInputFault",
            "INVALID_SCOPE",
            ["input", "userId"],
        ),
        ({"verdict": "WRONG", "memoryId": "none"}, "NotFoundFault", "NOT_FOUND", []),
    ],
)
async def test_what_is_no_good_comes_in_the_payload(  # noqa: PLR0917 - a table's row
    engine: Any, tenant: str, api_over: Any, memory: str, more: Any, kind: str, code: str, path: Any
) -> None:
    async with api_over(engine, tenant=tenant, roles=(Role.AGENT,), users=["u1"]) as api:
        said = {"memoryId": memory, "userId": "u1"} | more
        refused = (await api.data(GIVE, input=said))["feedback"]
    assert (refused["status"], refused["feedback"]) == ("REJECTED", None)
    error = refused["error"]
    assert (error["__typename"], error["code"]) == (kind, code)
    assert error["path"][: len(path)] == path


async def test_a_key_that_says_too_much_is_told_when_to_go_on(
    engine: Any, tenant: str, api_over: Any, memory: str
) -> None:
    settings = engine.settings.model_copy(update={"feedback_per_day": 1})
    small = replace(engine, settings=settings)
    async with api_over(small, tenant=tenant, roles=(Role.AGENT,), users=["u1"]) as api:
        said = {"memoryId": memory, "userId": "u1"}
        await api.data(GIVE, input=said | {"verdict": "HELPFUL"})
        refused = (await api.data(GIVE, input=said | {"verdict": "WRONG"}))["feedback"]
    assert refused["error"]["code"] == "FEEDBACK_LIMIT"
    assert "try again at 20" in refused["error"]["message"]
