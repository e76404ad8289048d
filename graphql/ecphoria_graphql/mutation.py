"""Mutations."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, TypeAlias, TypeVar

import strawberry

from ecphoria.errors import BatchTooLarge, EcphoriaError
from ecphoria.governance.access import MASK
from ecphoria.lifecycle.forget import ForgetReport
from ecphoria.lifecycle.keyed_calls import Attempt, KeyedRequest, wrote_something
from ecphoria.model import MemoryInput, Receipt, ReceiptStatus
from ecphoria.session.flush import SessionFlush
from ecphoria_graphql.context import Context, Info
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.enums import WhoSpoke, plain
from ecphoria_graphql.error_codes import argument_path, input_path
from ecphoria_graphql.feedback_fields import feedback_mutations
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
from ecphoria_graphql.receipt_types import BatchReceiptsNode, ReceiptNode, UpsertReceiptsNode
from ecphoria_graphql.session_types import FlushNode, RememberTurnNode, SessionNode
from ecphoria_graphql.user_forget_types import (
    AllowForgottenNode,
    ForgetUserNode,
    UserForgetReceiptNode,
)
from ecphoria_graphql.write_faults import or_fault

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


IdempotencyKey = Annotated[
    strawberry.ID | None,
    strawberry.argument(
        description=(
            "A key that you make for this one write, e.g. a UUID: sent again with it after a lost"
            " answer, the same call brings the first answer, and nothing is written twice."
        )
    ),
]

_T = TypeVar("_T")
_Receipts: TypeAlias = tuple[Receipt, ...]


async def _once(
    context: Context,
    request: KeyedRequest | None,
    act: Callable[[Attempt | None], Awaitable[_T]],
    answer: type[_T],
    keep: Callable[[_T], _T | None],
) -> _T:
    if request is None:
        return await act(None)
    return await context.engine.once(context.scope, request, act, answer, keep)


def _keyed(
    key: str | None, operation: str, users: Iterable[str | None], *arguments: object
) -> KeyedRequest | None:
    if key is None:
        return None
    named = frozenset(user for user in users if user is not None)
    return KeyedRequest(key, operation, arguments, named)


def _kept_receipts(receipts: _Receipts) -> _Receipts | None:
    return receipts if wrote_something(receipts) else None


def _kept_receipt(receipt: Receipt) -> Receipt | None:
    return receipt if wrote_something([receipt]) else None


def _kept_report(report: ForgetReport) -> ForgetReport | None:
    # what was forgotten does not live on in an answer
    items = tuple(replace(item, text=MASK) for item in report.items)
    return replace(report, items=items) if report.forgotten else None


def _kept_flush(flush: SessionFlush) -> SessionFlush | None:
    return flush if wrote_something(flush.receipts) else None


def _argument(description: str, input_: type) -> object:
    return Annotated[input_, strawberry.argument(description=description)]


async def _remember(
    context: Context, items: list[MemoryData], attempt: Attempt | None
) -> _Receipts:
    """Keep the good ones; the others get their receipt at their place."""
    if len(items) > context.engine.settings.max_batch:
        msg = f"the batch has {len(items)} items; {context.engine.settings.max_batch} are allowed"
        raise BatchTooLarge(msg, path=("items",))
    receipts: dict[int, Receipt] = {}
    good: dict[int, MemoryInput] = {}
    for index, item in enumerate(items):
        try:
            good[index] = _at(item.memory(), attempt)
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
    return tuple(receipts[index] for index in sorted(receipts))


def _at(memory: MemoryInput, attempt: Attempt | None) -> MemoryInput:
    # what happens now happened at the first attempt: so its id is the same
    if attempt is None or memory.occurred_at is not None:
        return memory
    return replace(memory, occurred_at=attempt.since)


def _writes(entities: EntityTypes, inputs: InputTypes) -> dict[str, object]:
    async def kept(
        context: Context, operation: str, items: list[MemoryData], key: str | None
    ) -> _Receipts:
        async def act(attempt: Attempt | None) -> _Receipts:
            with input_path("input"):
                return await _remember(context, items, attempt)

        request = _keyed(key, operation, [item.user_id for item in items], items)
        return await _once(context, request, act, _Receipts, _kept_receipts)

    async def remember(
        info: Info,
        input: MemoryData,  # noqa: A002 - GraphQL's name
        idempotency_key: IdempotencyKey = None,
    ) -> ReceiptNode:
        async def work() -> ReceiptNode:
            (receipt,) = await kept(info.context, "remember", [input], idempotency_key)
            return ReceiptNode.of(receipt, "input")

        return await or_fault(work(), ReceiptNode.refused)

    async def remember_batch(
        info: Info,
        input: BatchData,  # noqa: A002 - GraphQL's name
        idempotency_key: IdempotencyKey = None,
    ) -> BatchReceiptsNode:
        async def work() -> BatchReceiptsNode:
            receipts = await kept(info.context, "rememberBatch", input.items, idempotency_key)
            nodes = [ReceiptNode.of(each, "input", "items", each.index) for each in receipts]
            return BatchReceiptsNode(receipts=nodes, error=None)

        return await or_fault(work(), BatchReceiptsNode.refused)

    async def upsert_entities(info: Info, input: UpsertData) -> UpsertReceiptsNode:  # noqa: A002 - GraphQL's name
        async def work() -> UpsertReceiptsNode:
            with input_path("input"):
                found = []
                for index, item in enumerate(input.entities):
                    with input_path("entities", index):
                        found.append(item.entity(entities.fields))
                receipts = await info.context.engine.upsert_entities(
                    info.context.scope, found, [item.relation() for item in input.relations]
                )
            return UpsertReceiptsNode.of(receipts)

        return await or_fault(work(), UpsertReceiptsNode.refused)

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
        info: Info,
        memory_id: MemoryId,
        new: MemoryData,
        reason: Reason,
        idempotency_key: IdempotencyKey = None,
    ) -> ReceiptNode:
        context = info.context

        async def act(attempt: Attempt | None) -> Receipt:
            with argument_path("new", "memory_id", "reason"):
                memory = _at(new.memory(), attempt)
                return await context.engine.supersede(
                    context.scope, memory_id, memory, reason, attempt=attempt
                )

        async def work() -> ReceiptNode:
            request = _keyed(idempotency_key, "supersede", [new.user_id], memory_id, new, reason)
            receipt = await _once(context, request, act, Receipt, _kept_receipt)
            return ReceiptNode.of(receipt, "new")

        return await or_fault(work(), ReceiptNode.refused)

    async def correct(
        info: Info,
        memory_id: MemoryId,
        new: MemoryData,
        reason: Reason,
        idempotency_key: IdempotencyKey = None,
    ) -> ReceiptNode:
        context = info.context

        async def act(attempt: Attempt | None) -> Receipt:
            with argument_path("new", "memory_id", "reason"):
                return await context.engine.correct(
                    context.scope, memory_id, new.memory(), reason, attempt=attempt
                )

        async def work() -> ReceiptNode:
            request = _keyed(idempotency_key, "correct", [new.user_id], memory_id, new, reason)
            receipt = await _once(context, request, act, Receipt, _kept_receipt)
            return ReceiptNode.of(receipt, "new")

        return await or_fault(work(), ReceiptNode.refused)

    async def retract(
        info: Info,
        memory_id: MemoryId,
        reason: Reason,
        user_id: Owner = None,
        shared: Shared = False,  # noqa: FBT002 - an argument of the schema
        idempotency_key: IdempotencyKey = None,
    ) -> ReceiptNode:
        context = info.context

        async def act(attempt: Attempt | None) -> Receipt:
            whose = owner(user_id, shared=shared)
            return await context.engine.retract(
                context.scope, whose, memory_id, reason, attempt=attempt
            )

        async def work() -> ReceiptNode:
            request = _keyed(
                idempotency_key, "retract", [user_id], memory_id, user_id, shared, reason
            )
            return ReceiptNode.of(await _once(context, request, act, Receipt, _kept_receipt))

        return await or_fault(work(), ReceiptNode.refused)

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
        info: Info,
        user_id: UserId,
        ids: MemoryIds,
        reason: Reason,
        idempotency_key: IdempotencyKey = None,
    ) -> ForgetReportNode:
        context = info.context

        async def act(_: Attempt | None) -> ForgetReport:
            limit = context.engine.settings.max_batch
            if len(ids) > limit:
                msg = f"there are {len(ids)} ids; {limit} are allowed"
                raise BatchTooLarge(msg, path=("ids",))
            return await context.engine.forget(context.scope, user_id, ids, reason)

        async def work() -> ForgetReportNode:
            request = _keyed(idempotency_key, "forget", [user_id], user_id, ids, reason)
            return ForgetReportNode(
                record=await _once(context, request, act, ForgetReport, _kept_report)
            )

        return await or_fault(work(), ForgetReportNode.refused)

    async def forget_by_rule(
        info: Info,
        rule: Rule,
        dry_run: DryRun = True,  # noqa: FBT002 - an argument of the schema
        idempotency_key: IdempotencyKey = None,
    ) -> ForgetReportNode:
        context = info.context

        async def act(_: Attempt | None) -> ForgetReport:
            with input_path("rule"):
                return await context.engine.forget_by_rule(
                    context.scope, rule.rule(), dry_run=dry_run
                )

        async def work() -> ForgetReportNode:
            # a dry run writes nothing: it may be asked for as often as one likes
            key = None if dry_run else idempotency_key
            request = _keyed(key, "forgetByRule", [rule.user_id], rule)
            return ForgetReportNode(
                record=await _once(context, request, act, ForgetReport, _kept_report)
            )

        return await or_fault(work(), ForgetReportNode.refused)

    return {
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


def _forgetting_users() -> dict[str, object]:
    async def forget_user(info: Info, user_id: UserId, reason: Reason) -> ForgetUserNode:
        async def work() -> ForgetUserNode:
            receipt = await info.context.engine.forget_user(info.context.scope, user_id, reason)
            return ForgetUserNode(receipt=UserForgetReceiptNode.of(receipt))

        return await or_fault(work(), ForgetUserNode.refused)

    async def allow_forgotten(info: Info, user_id: UserId) -> AllowForgottenNode:
        async def work() -> AllowForgottenNode:
            allowed = await info.context.engine.allow_forgotten(info.context.scope, user_id)
            return AllowForgottenNode(allowed=allowed)

        return await or_fault(work(), AllowForgottenNode.refused)

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
    ) -> RememberTurnNode:
        async def work() -> RememberTurnNode:
            session = await info.context.engine.remember_turn(
                info.context.scope,
                user_id,
                session_id,
                plain(speaker),
                text,
                said_at=said_at,
                turn_id=turn_id,
            )
            return RememberTurnNode(session=SessionNode.of(session))

        return await or_fault(work(), RememberTurnNode.refused)

    async def end_session(
        info: Info,
        user_id: Partner,
        session_id: SessionId,
        idempotency_key: IdempotencyKey = None,
    ) -> FlushNode:
        context = info.context

        async def act(_: Attempt | None) -> SessionFlush:
            return await context.engine.end_session(context.scope, user_id, session_id)

        async def work() -> FlushNode:
            request = _keyed(idempotency_key, "endSession", [user_id], user_id, session_id)
            return FlushNode.of(await _once(context, request, act, SessionFlush, _kept_flush))

        return await or_fault(work(), FlushNode.refused)

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
    fields = _writes(entities, inputs) | _changes(inputs) | _forgetting() | _forgetting_users()
    fields |= _talking() | feedback_mutations()
    made = type("Mutation", (), {"__annotations__": {}, **fields})
    return strawberry.type(made, name="Mutation", description="What can be written.")
