"""Subscriptions. Each names exactly one user."""

import contextlib
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Any, cast

import strawberry

from ecphoria.model import MemoryChange
from ecphoria_graphql.context import Context, Info
from ecphoria_graphql.enums import Happening
from ecphoria_graphql.fields import described, typed_field
from ecphoria_graphql.memory_types import MemoryTypes

UserId = Annotated[
    strawberry.ID,
    strawberry.argument(description="Whose memories to follow: exactly one user."),
]


class ChangeNode:
    """A change, together with the user who follows it."""

    record: MemoryChange
    asked_for: str


@strawberry.type
class _ChangeFields(ChangeNode):
    """The fields of a change that are the same in every domain."""

    @described("What happened.")
    def kind(self) -> Happening:
        return Happening(self.record.kind.value)

    @described("Id of the memory that it happened to.")
    def memory_id(self) -> strawberry.ID:
        return strawberry.ID(self.record.memory_id)

    @described("Whose memory it is; null = shared by every user of the tenant.")
    def user_id(self) -> strawberry.ID | None:
        return None if self.record.user_id is None else strawberry.ID(self.record.user_id)

    @described("When it happened.")
    def at(self) -> datetime:
        return self.record.at


async def _following(
    context: Context, changes: AsyncGenerator[MemoryChange, None], made: type[ChangeNode], user: str
) -> AsyncGenerator[Any, None]:
    async with contextlib.aclosing(changes):
        async for change in changes:
            # nothing is handed to a key that no longer counts, and nothing loaded before is shown
            await context.again()
            node = made()
            node.record, node.asked_for = change, user
            yield node


def build_subscription(memories: MemoryTypes) -> type:
    """Make the subscription type of a domain."""

    async def memory_of(root: ChangeNode, info: Info) -> Any:  # noqa: ANN401 - typed by the domain
        found = await info.context.loaders.memory(root.asked_for, root.record.memory_id)
        return None if found is None else memories.node(found, root.asked_for)

    change = strawberry.type(
        type(
            "MemoryChange",
            (_ChangeFields,),
            {
                "__annotations__": {},
                "memory": typed_field(
                    memory_of,
                    memories.memory | None,
                    "The memory as it is now; null when it is gone, or the key may not read it.",
                ),
            },
        ),
        name="MemoryChange",
        description="That something happened to a memory.",
    )

    # returns the stream, and is none itself: whether the key may have it is said at once
    async def memory_changed(info: Info, user_id: UserId) -> AsyncGenerator[Any, None]:
        context = info.context
        changes = context.engine.listen(context.scope, user_id)
        stream = cast("AsyncGenerator[MemoryChange, None]", changes)
        return _following(context, stream, change, user_id)

    memory_changed.__annotations__["return"] = AsyncGenerator[change, None]  # type: ignore[valid-type]  # known at run time only
    made = type(
        "Subscription",
        (),
        {
            "__annotations__": {},
            "memory_changed": strawberry.subscription(
                resolver=memory_changed,
                description=(
                    "What happens to a user's own memories and to shared ones, from now on. Only"
                    " what happens through this server is seen; the graph is the record."
                ),
            ),
        },
    )
    return strawberry.type(made, name="Subscription", description="What can be followed.")
