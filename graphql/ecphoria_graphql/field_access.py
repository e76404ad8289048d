"""Which operation of the engine each top-level field is, so which roles may use it.

A field that is in no row here is open to nobody, and a test fails: whoever adds one to the schema
says here what it is.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Final

from ecphoria.errors import Forbidden
from ecphoria.governance.access import Operation, check_access
from ecphoria.model import AuditOutcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from graphql import GraphQLSchema

    from ecphoria_graphql.context import Context, Info

FIELD_OPERATIONS: Final[dict[str, Operation]] = {
    "Query.attributeHistory": Operation.READ,
    "Query.auditLog": Operation.AUDIT,
    "Query.completionTasks": Operation.READ_FEEDBACK,
    "Query.conflicts": Operation.READ,
    "Query.entities": Operation.READ,
    "Query.entity": Operation.READ,
    "Query.entityGraph": Operation.READ,
    "Query.feedback": Operation.READ_FEEDBACK,
    "Query.me": Operation.KNOW_ONESELF,
    "Query.memories": Operation.READ,
    "Query.memory": Operation.READ,
    "Query.node": Operation.READ,
    "Query.recall": Operation.RECALL,
    "Query.session": Operation.SESSION,
    "Query.sources": Operation.READ,
    "Query.stats": Operation.READ,
    "Query.tenantStats": Operation.OPERATE,
    "Query.verifyForgotten": Operation.FORGET,
    "Mutation.allowForgotten": Operation.FORGET,
    "Mutation.completeTask": Operation.FEEDBACK,
    "Mutation.correct": Operation.CHANGE,
    "Mutation.endSession": Operation.SESSION,
    "Mutation.feedback": Operation.FEEDBACK,
    "Mutation.forget": Operation.FORGET,
    "Mutation.forgetByRule": Operation.FORGET,
    "Mutation.forgetUser": Operation.FORGET,
    "Mutation.remember": Operation.REMEMBER,
    "Mutation.rememberBatch": Operation.REMEMBER,
    "Mutation.rememberTurn": Operation.SESSION,
    "Mutation.retract": Operation.CHANGE,
    "Mutation.supersede": Operation.CHANGE,
    "Mutation.undoFeedback": Operation.FEEDBACK,
    "Mutation.upsertEntities": Operation.UPSERT_ENTITIES,
    "Subscription.memoryChanged": Operation.READ,
}


# Of these the engine puts refusals on record itself, once it is called.
_ON_RECORD: Final = frozenset(
    {Operation.UPSERT_ENTITIES, Operation.CHANGE, Operation.FEEDBACK, Operation.FORGET}
)


def top_level_fields(schema: GraphQLSchema) -> list[str]:
    """Return the names of all top-level fields, e.g. ``Query.recall``."""
    roots = (schema.query_type, schema.mutation_type, schema.subscription_type)
    return [f"{root.name}.{name}" for root in roots if root is not None for name in root.fields]


def guard(schema: GraphQLSchema) -> None:
    """Have every top-level field of a schema look at the table before it does anything.

    The engine's verbs look, too: this is for a field that would call none, or the wrong one.
    """
    for root in (schema.query_type, schema.mutation_type):
        for name, field in (root.fields if root is not None else {}).items():
            if field.resolve is not None and root is not None:
                field.resolve = _guarded(field.resolve, f"{root.name}.{name}")
    following = schema.subscription_type
    for name, field in (following.fields if following is not None else {}).items():
        if field.subscribe is not None and following is not None:
            field.subscribe = _guarded(field.subscribe, f"{following.name}.{name}")


def _guarded(resolver: Callable[..., Any], field: str) -> Callable[..., Any]:
    operation = FIELD_OPERATIONS.get(field)

    @functools.wraps(resolver)
    def guarded(root: object, info: Info, **arguments: Any) -> Any:  # noqa: ANN401 - any field's
        if operation is None:
            msg = f"{field} is open to no role"
            raise Forbidden(msg)
        refused = functools.partial(_note_refusal, info.context, field, arguments.get("userId"))
        try:
            check_access(info.context.scope, operation)
        except Forbidden as error:
            refused(error)
            raise
        found = resolver(root, info, **arguments)
        if operation in _ON_RECORD or not inspect.isawaitable(found):
            return found
        return _watched(found, refused)

    return guarded


def _note_refusal(context: Context, field: str, user_id: object, error: Forbidden) -> None:
    user = user_id if isinstance(user_id, str) else None
    context.engine.audit.note(
        context.scope,
        field.partition(".")[2],
        user,
        outcome=AuditOutcome.REFUSED,
        code=error.code,
    )


async def _watched(found: Awaitable[Any], refused: Callable[[Forbidden], None]) -> Any:  # noqa: ANN401 - any field's
    try:
        return await found
    except Forbidden as error:
        refused(error)
        raise
