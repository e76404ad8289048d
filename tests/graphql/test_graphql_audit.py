"""What is done, and refused, over the API is on record; only an admin reads it."""

from __future__ import annotations

from typing import Any

import pytest

from ecphoria.model import Role

pytestmark = pytest.mark.asyncio(loop_scope="session")

FORGET = """mutation ($userId: ID!) {
  forgetUser(userId: $userId, reason: "用户要求") {
    receipt { id by reason finishedAt } } }"""
VERIFY = """query ($userId: ID!) { verifyForgotten(userId: $userId) {
  clean left { what count } receipt { id } } }"""
MEMORIES = "query ($userId: ID!) { memories(userId: $userId) { edges { node { id } } } }"
LOG = """query ($filter: AuditFilter) {
  auditLog(filter: $filter, first: 50) { edges { node { operation outcome code count user } } } }"""


async def test_what_was_refused_is_on_record(engine: Any, tenant: str, api_over: Any) -> None:
    async with (
        api_over(engine, tenant=tenant) as admin,
        api_over(engine, tenant=tenant, roles=(Role.AGENT,), users=["u2"]) as agent,
    ):
        # once by the role, and once by the user, which the engine alone knows
        for refused in (FORGET, MEMORIES):
            error = await agent.error(refused, userId="u1")
            assert error["extensions"]["code"] == "FORBIDDEN"
        assert (await agent.error(LOG, filter=None))["extensions"]["code"] == "FORBIDDEN"
        receipt = (await admin.data(FORGET, userId="u1"))["forgetUser"]["receipt"]
        check = (await admin.data(VERIFY, userId="u1"))["verifyForgotten"]
        assert check == {"clean": True, "left": [], "receipt": {"id": receipt["id"]}}
        await engine.audit.flush()
        log = (await admin.data(LOG, filter={"userId": "u1"}))["auditLog"]
        entries = [edge["node"] for edge in log["edges"]]
        found = {(entry["operation"], entry["outcome"], entry["code"]) for entry in entries}
        assert found == {
            ("forgetUser", "REFUSED", "FORBIDDEN"),
            ("memories", "REFUSED", "FORBIDDEN"),
            ("forgetUser", "DONE", None),
            ("verifyForgotten", "DONE", None),
        }
        assert {entry["count"] for entry in entries if entry["outcome"] == "REFUSED"} == {1}
