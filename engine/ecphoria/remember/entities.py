"""Upsert entities and relations: all of one call, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ecphoria.errors import BatchTooLarge, DuplicateId, EcphoriaError, Forbidden, InvalidInput
from ecphoria.model import (
    EntityInput,
    EntityReceipts,
    EntityRef,
    EveryUser,
    Link,
    LinkMethod,
    Receipt,
    ReceiptStatus,
    RelationInput,
    Scope,
)
from ecphoria.parts import EngineParts
from ecphoria.remember.forgotten import tombstones
from ecphoria.remember.normalise import clean_entity, clean_relation, missing_required
from ecphoria.remember.protect import protected_entities
from ecphoria.stores.ports import EntityRow, GraphStore, RelationRow


async def upsert_entities(
    parts: EngineParts,
    scope: Scope,
    entities: Sequence[EntityInput],
    relations: Sequence[RelationInput],
) -> EntityReceipts:
    """Validate, then write in one transaction; see `Engine.upsert_entities`."""
    if not isinstance(scope.users, EveryUser):
        # whose an entity is follows from its relations: a key for some users could take others'
        msg = "entities are written by keys for every user of the tenant"
        raise Forbidden(msg)
    if len(entities) + len(relations) > parts.settings.max_batch:
        msg = (
            f"{len(entities)} entities and {len(relations)} relations are more than "
            f"{parts.settings.max_batch} in one call"
        )
        raise BatchTooLarge(msg)
    rows = await _clean_entities(parts, scope, entities)
    links: list[RelationRow] = []
    for index, relation in enumerate(relations):
        try:
            links.append(clean_relation(relation, parts.domain))
        except EcphoriaError as error:
            raise error.at("relations", index) from error
    unless = await _unless_forgotten(parts, scope.tenant, rows, links)
    rows = await protected_entities(parts, scope.tenant, rows, links)
    written = await parts.graph.upsert_entities(scope.tenant, rows, links, unless)
    # whose an entity is follows from relations that may lie anywhere
    parts.queries.drop(scope.tenant, None)
    return EntityReceipts(
        entities=tuple(
            Receipt(index, ReceiptStatus(outcome), id=row.ref.id, links=(_given(row.ref),))
            for index, (row, outcome) in enumerate(zip(rows, written.outcomes, strict=True))
        ),
        relations_created=written.relations_created,
        relations_unchanged=len(links) - written.relations_created,
    )


async def _unless_forgotten(
    parts: EngineParts, tenant: str, rows: Sequence[EntityRow], links: Sequence[RelationRow]
) -> tuple[str, ...]:
    """Return the keys of the tombstones that must not be in force when this is written.

    Raises:
        UserForgotten: For the first entity or relation of a forgotten user; its path names it.
    """
    root = parts.domain.root
    named: list[tuple[str, int, tuple[EntityRef, ...]]] = [
        ("entities", index, (row.ref,)) for index, row in enumerate(rows)
    ]
    named += [("relations", index, (link.from_, link.to)) for index, link in enumerate(links)]
    users = {ref.id for _, _, refs in named for ref in refs if ref.type == root}
    found = await tombstones(parts, tenant, users)
    for shape, index, refs in named if found.forgotten else ():
        for ref in refs:
            if ref.type == root and ref.id in found.forgotten:
                raise found.refusal().at(shape, index)
    return found.keys


def _given(ref: EntityRef) -> Link:
    return Link(ref, 1.0, LinkMethod.GIVEN)


async def _clean_entities(
    parts: EngineParts,
    scope: Scope,
    entities: Sequence[EntityInput],
) -> list[EntityRow]:
    rows: list[EntityRow] = []
    seen: dict[EntityRef, EntityRow] = {}
    incomplete: dict[int, tuple[str, ...]] = {}
    now = parts.clock.now()
    for index, entity in enumerate(entities):
        try:
            row = clean_entity(entity, parts.domain, now)
            twin = seen.setdefault(row.ref, row)
            if twin is not row and twin != row:
                msg = f"{row.ref.type} {row.ref.id!r} comes twice with different content"
                raise DuplicateId(msg, path=("id",))
        except EcphoriaError as error:
            raise error.at("entities", index) from error
        if missing := missing_required(row, parts.domain):
            incomplete[index] = missing
        rows.append(row)
    if incomplete:
        await _refuse_incomplete_new_ones(parts.graph, scope, rows, incomplete)
    return rows


async def _refuse_incomplete_new_ones(
    graph: GraphStore,
    scope: Scope,
    rows: Sequence[EntityRow],
    incomplete: dict[int, tuple[str, ...]],
) -> None:
    known = await graph.existing_entities(scope.tenant, [rows[index].ref for index in incomplete])
    for index, missing in incomplete.items():
        ref = rows[index].ref
        if ref not in known:
            msg = f"the new {ref.type} {ref.id!r} lacks {', '.join(missing)}"
            raise InvalidInput(msg, path=("entities", index, "props"))
