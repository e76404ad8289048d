"""Mutations."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated

import strawberry

from ecphoria.errors import BatchTooLarge, EcphoriaError
from ecphoria.model import MemoryInput, Receipt, ReceiptStatus
from ecphoria_graphql.context import Context, Info
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.enums import WhoSpoke, plain
from ecphoria_graphql.error_codes import argument_path, input_path
from ecphoria_graphql.forget_types import ForgetReportNode
from ecphoria_graphql.inputs import (
    SHARED,
    USER_ID,
    BatchData,
    InputTypes,
    MemoryData,
    RuleData,
    UpsertData,
    owner,
)
from ecphoria_graphql.receipt_types import ReceiptNode, UpsertReceiptsNode
from ecphoria_graphql.session_types import FlushNode, SessionNode
from ecphoria_graphql.user_forget_types import UserForgetReceiptNode

MemoryId = Annotated[strawberry.ID, strawberry.argument(description="Id of the memory.")]
MemoryIds = Annotated[list[strawberry.ID], strawberry.argument(description="Ids of the memories.")]
Reason = Annotated[
    str,
    strawberry.argument(description="Why, in a sentence; kept together with who did it."),
]
Owner = Annotated[strawberry.ID | None, strawberry.argument(description=USER_ID)]
Shared = Annotated[bool, strawberry.argument(description=SHARED)]
UserId = Annotated[
    strawberry.ID, strawberry.argument(description="Whose memories they are: exactly one user.")
]
Partner = Annotated[
    strawberry.ID, strawberry.argument(description="Whose conversation it is: exactly one user.")
]
SessionId = Annotated[
    strawberry.ID, strawberry.argument(description="The caller's own id of the conversation.")
]
WhoSays = Annotated[WhoSpoke, strawberry.argument(description="Who says it.")]
Said = Annotated[str, strawberry.argument(description="What is said.")]
SaidAt = Annotated[
    datetime | None, strawberry.argument(description="When it is said; now when not given.")
]
TurnId = Annotated[
    strawberry.ID | None,
    strawberry.argument(
        description="The caller's own id of the turn: sent again, it is the same turn."
    ),
]
Rule = Annotated[RuleData, strawberry.argument(description="Which memories are to go.")]
DryRun = Annotated[
    bool,
    strawberry.argument(description="Only tell what would go and why; `false` erases it."),
]


def _argument(description: str, input_: type) -> object:
    return Annotated[input_, strawberry.argument(description=description)]


async def _remember(context: Context, items: list[MemoryData]) -> list[Receipt]:
    """Keep the good ones; the others get their receipt at their place."""
    if len(items) > context.engine.settings.max_batch:
        msg = f"the batch has {len(items)} items; {context.engine.settings.max_batch} are allowed"
        raise BatchTooLarge(msg, path=("items",))
    receipts: dict[int, Receipt] = {}
    good: dict[int, MemoryInput] = {}
    for index, item in enumerate(items):
        try:
            good[index] = item.memory()
        except EcphoriaError as error:
            receipts[index] = Receipt(
                index,
                ReceiptStatus.REJECTED,
                code=error.code,
                reason=error.message,
                path=error.path,
            )
    # also when there is none: the engine says whether the scope may write at all
    written = await context.engine.remember(context.scope, list(good.values()))
    for index, receipt in zip(good, written, strict=True):
        receipts[index] = replace(receipt, index=index)
    return [receipts[index] for index in sorted(receipts)]


def _writes(entities: EntityTypes, inputs: InputTypes) -> dict[str, object]:
    async def remember(info: Info, input: MemoryData) -> ReceiptNode:  # noqa: A002 - GraphQL's name
        with input_path("input"):
            (receipt,) = await _remember(info.context, [input])
        return ReceiptNode.of(receipt)

    async def remember_batch(info: Info, input: BatchData) -> list[ReceiptNode]:  # noqa: A002 - GraphQL's name
        with input_path("input"):
            receipts = await _remember(info.context, input.items)
        return [ReceiptNode.of(receipt) for receipt in receipts]

    async def upsert_entities(info: Info, input: UpsertData) -> UpsertReceiptsNode:  # noqa: A002 - GraphQL's name
        with input_path("input"):
            found = []
            for index, item in enumerate(input.entities):
                with input_path("entities", index):
                    found.append(item.entity(entities.fields))
            receipts = await info.context.engine.upsert_entities(
                info.context.scope, found, [item.relation() for item in input.relations]
            )
        return UpsertReceiptsNode.of(receipts)

    remember.__annotations__["input"] = _argument("The memory.", inputs.memory)
    remember_batch.__annotations__["input"] = _argument("The memories.", inputs.batch)
    upsert_entities.__annotations__["input"] = _argument("What to write.", inputs.upsert)
    return {
        "remember": strawberry.field(
            resolver=remember,
            description=(
                "Keep a memory. CREATED is durable; a memory that breaks a rule comes back as"
                " REJECTED with a code."
            ),
        ),
        "remember_batch": strawberry.field(
            resolver=remember_batch,
            description="Keep memories; one receipt an item, a bad one does not harm others.",
        ),
        "upsert_entities": strawberry.field(
            resolver=upsert_entities,
            description=(
                "Write entities and relations in one transaction, or nothing: the first fault"
                " is the error."
            ),
        ),
    }


def _changes(inputs: InputTypes) -> dict[str, object]:
    async def supersede(
        info: Info, memory_id: MemoryId, new: MemoryData, reason: Reason
    ) -> ReceiptNode:
        with argument_path("new", "memory_id", "reason"):
            return ReceiptNode.of(
                await info.context.engine.supersede(
                    info.context.scope, memory_id, new.memory(), reason
                )
            )

    async def correct(
        info: Info, memory_id: MemoryId, new: MemoryData, reason: Reason
    ) -> ReceiptNode:
        with argument_path("new", "memory_id", "reason"):
            return ReceiptNode.of(
                await info.context.engine.correct(
                    info.context.scope, memory_id, new.memory(), reason
                )
            )

    async def retract(
        info: Info,
        memory_id: MemoryId,
        reason: Reason,
        user_id: Owner = None,
        shared: Shared = False,  # noqa: FBT002 - an argument of the schema
    ) -> ReceiptNode:
        whose = owner(user_id, shared=shared)
        return ReceiptNode.of(
            await info.context.engine.retract(info.context.scope, whose, memory_id, reason)
        )

    supersede.__annotations__["new"] = _argument(
        "The memory that takes its place, from its own `validFrom` on; of the same user and kind.",
        inputs.memory,
    )
    correct.__annotations__["new"] = _argument(
        "What was right all along; `validFrom` and kind are those of the old one.", inputs.memory
    )
    return {
        "supersede": strawberry.field(
            resolver=supersede,
            description=(
                "Put a new memory in an old one's place: the world has changed. The old one"
                " stays as history. NOT_CURRENT when it was replaced before; LESS_RELIABLE"
                " when the new source is less reliable and the key may not overrule it."
            ),
        ),
        "correct": strawberry.field(
            resolver=correct,
            description=(
                "Put a memory in the place of one that was wrong all along, from the same time"
                " on. Who asks what was known before (`knownAt`) still gets the old one."
            ),
        ),
        "retract": strawberry.field(
            resolver=retract,
            description=(
                "Take a memory back: it was never true, and nothing is known instead. What it"
                " had replaced holds again."
            ),
        ),
    }


def _forgetting() -> dict[str, object]:
    async def forget(
        info: Info, user_id: UserId, ids: MemoryIds, reason: Reason
    ) -> ForgetReportNode:
        limit = info.context.engine.settings.max_batch
        if len(ids) > limit:
            msg = f"there are {len(ids)} ids; {limit} are allowed"
            raise BatchTooLarge(msg, path=("ids",))
        return ForgetReportNode(
            record=await info.context.engine.forget(info.context.scope, user_id, ids, reason)
        )

    async def forget_by_rule(
        info: Info,
        rule: Rule,
        dry_run: DryRun = True,  # noqa: FBT002 - an argument of the schema
    ) -> ForgetReportNode:
        with input_path("rule"):
            return ForgetReportNode(
                record=await info.context.engine.forget_by_rule(
                    info.context.scope, rule.rule(), dry_run=dry_run
                )
            )

    async def forget_user(info: Info, user_id: UserId, reason: Reason) -> UserForgetReceiptNode:
        return UserForgetReceiptNode.of(
            await info.context.engine.forget_user(info.context.scope, user_id, reason)
        )

    async def allow_forgotten(info: Info, user_id: UserId) -> bool:
        return await info.context.engine.allow_forgotten(info.context.scope, user_id)

    return {
        "forget_user": strawberry.field(
            resolver=forget_user,
            description=(
                "Forget a user: memories, own entities, conversations, index rows, and the key"
                " that his sensitive data are sealed with. From the first moment nobody sees any"
                " of it. What is shared, and what is others', stays. Nothing about him is taken"
                " any more (USER_FORGOTTEN) until `allowForgotten`. It cannot be undone."
            ),
        ),
        "allow_forgotten": strawberry.field(
            resolver=allow_forgotten,
            description=(
                "Let a forgotten user come back: what is written from now on is kept. What was"
                " forgotten stays so. False when he was not forgotten."
            ),
        ),
        "forget": strawberry.field(
            resolver=forget,
            description=(
                "Erase a user's own memories for good, whatever they say. Only their ids stay,"
                " so that none comes back. It cannot be undone."
            ),
        ),
        "forget_by_rule": strawberry.field(
            resolver=forget_by_rule,
            description=(
                "Tell which memories a rule meets and why, or with `dryRun: false` erase them"
                " for good."
            ),
        ),
    }


def _talking() -> dict[str, object]:
    async def remember_turn(
        info: Info,
        user_id: Partner,
        session_id: SessionId,
        speaker: WhoSays,
        text: Said,
        said_at: SaidAt = None,
        turn_id: TurnId = None,
    ) -> SessionNode:
        return SessionNode.of(
            await info.context.engine.remember_turn(
                info.context.scope,
                user_id,
                session_id,
                plain(speaker),
                text,
                said_at=said_at,
                turn_id=turn_id,
            )
        )

    async def end_session(info: Info, user_id: Partner, session_id: SessionId) -> FlushNode:
        return FlushNode.of(
            await info.context.engine.end_session(info.context.scope, user_id, session_id)
        )

    return {
        "remember_turn": strawberry.field(
            resolver=remember_turn,
            description=(
                "Keep one message of a conversation, and return what is kept of it. It becomes"
                " long-term memory when the conversation ends, or when nothing is said any more."
            ),
        ),
        "end_session": strawberry.field(
            resolver=end_session,
            description="Bring a conversation to long-term memory now.",
        ),
    }


def build_mutation(entities: EntityTypes, inputs: InputTypes) -> type:
    """Make the mutation type of a domain."""
    fields = _writes(entities, inputs) | _changes(inputs) | _forgetting() | _talking()
    made = type("Mutation", (), {"__annotations__": {}, **fields})
    return strawberry.type(made, name="Mutation", description="What can be written.")
