"""Mutations."""

from dataclasses import replace
from typing import Annotated

import strawberry

from ecphoria.errors import BatchTooLarge, EcphoriaError
from ecphoria.model import MemoryInput, Receipt, ReceiptStatus
from ecphoria_graphql.context import Context, Info
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.error_codes import input_path
from ecphoria_graphql.inputs import BatchData, InputTypes, MemoryData, UpsertData
from ecphoria_graphql.memory_types import ReceiptNode, UpsertReceiptsNode


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


def build_mutation(entities: EntityTypes, inputs: InputTypes) -> type:
    """Make the mutation type of a domain."""

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
    made = type(
        "Mutation",
        (),
        {
            "__annotations__": {},
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
        },
    )
    return strawberry.type(made, name="Mutation", description="What can be written.")
