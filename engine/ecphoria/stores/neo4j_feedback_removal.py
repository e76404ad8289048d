"""Removing feedback from the graph, together with what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from neo4j import AsyncManagedTransaction

from ecphoria.model import Verdict
from ecphoria.stores.neo4j_connection import run
from ecphoria_schema.queries import query

FEEDBACK: Final = "Feedback"
TASK: Final = "CompletionTask"


def feedback_owner(tenant: str, user_id: str | None) -> str:
    """Return what all feedback and tasks on the memories of one user, or shared ones, have."""
    return f"{tenant}|" if user_id is None else f"{tenant}|={user_id}"


async def drop_feedback(
    tx: AsyncManagedTransaction, of: Literal["memory", "owner"], keys: Sequence[str]
) -> int:
    """Remove feedback and tasks by an indexed property; return how many there were.

    Of what lowers a source's trust there stays who said so and of which source, so that the trust
    stays what it was; nothing leads from there to a memory or a user.
    """
    found = 0
    for label in (FEEDBACK, TASK):
        rows = await run(tx, query("count_of", label=label, of=of), keys=list(keys))
        found += rows[0]["count"] if rows else 0
    if found:
        await run(tx, query("strip_feedback", of=of), keys=list(keys), verdict=Verdict.WRONG)
        for label in (FEEDBACK, TASK):
            await run(tx, query("drop_of", label=label, of=of), keys=list(keys))
    return found
