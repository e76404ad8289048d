"""Entities and relations in the graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from neo4j import AsyncDriver, AsyncManagedTransaction

from ecphoria.errors import CardinalityViolated, MissingEntity
from ecphoria.model import Entity, EntityRef, NamedEntity, entity_key
from ecphoria.stores.graph_rows import entity_from, merged_props, split_key
from ecphoria.stores.neo4j_connection import (
    Neo4jConnection,
    Row,
    grouped,
    records,
    run,
    whole_second,
)
from ecphoria.stores.neo4j_forgetting import refuse_forgotten
from ecphoria.stores.ports import EntityRow, EntityWrite, RelatedQuery, RelationRow
from ecphoria_schema.domain import Domain, Relation
from ecphoria_schema.expansion import names_of_query, names_query
from ecphoria_schema.queries import query
from ecphoria_schema.reading import entities_query

# How many entities of a type lend their names to a text (notes: a user may own thousands).
MAX_NAMED = 2_000
# Of so many users the names are read at once.
_MAX_ENDING = 100
_USERS_AT_ONCE = 100
# How many relations of one entity are looked at before the scope filter.
MAX_SCANNED = 1_000


Way: TypeAlias = Literal["owned", "forward", "backward"]
_RELATED: Final[Mapping[Way, str]] = {
    "owned": "related_owned",
    "forward": "related_forward",
    "backward": "related_backward",
}


def followed(
    start: str, other: str, owned: Collection[str], *, forward: bool
) -> tuple[Way, dict[str, str]]:
    """Return how a relation is followed, and the labels of its two ends.

    Args:
        start: Type of the entities that it is followed from.
        other: Type at its other end.
        owned: Types whose entities belong to a user.
        forward: Whether it leads from `start` to `other`.
    """
    if forward:
        return "forward", {"from": start, "to": other}
    # from a shared entity back to the user's own: the user has few, the product may have many
    back: Way = "owned" if start not in owned and other in owned else "backward"
    return back, {"from": other, "to": start}


class Neo4jEntities(Neo4jConnection):
    """The part of `GraphStore` that is about entities."""

    def __init__(
        self, driver: AsyncDriver, database: str, domain: Domain, timeout_s: float
    ) -> None:
        """Use a driver; `open` makes one."""
        super().__init__(driver, database, domain, timeout_s)
        self._entities = entities_query(domain)
        self._names = names_query(domain)
        self._names_of = names_of_query(domain)
        self._shared_names = names_query(domain, shared_only=True)
        self._owning = tuple(relation for relation in domain.relations if relation.owns)
        self._depth = _depths(domain)

    async def upsert_entities(
        self,
        tenant: str,
        entities: Sequence[EntityRow],
        relations: Sequence[RelationRow],
        unless: Sequence[str] = (),
    ) -> EntityWrite:
        """See `GraphStore.upsert_entities`."""
        now = whole_second()

        async def work(tx: AsyncManagedTransaction) -> EntityWrite:
            await refuse_forgotten(tx, unless)
            outcomes = await self._merge_entities(tx, tenant, entities, now)
            created = await self._merge_relations(tx, tenant, relations, now)
            await self._link_mentions(tx, tenant, entities, relations)
            return EntityWrite(tuple(outcomes), created)

        async with self._locked(entity_key(tenant, row.ref) for row in entities):
            return await self._write("writing entities", work)

    async def _merge_entities(
        self,
        tx: AsyncManagedTransaction,
        tenant: str,
        entities: Sequence[EntityRow],
        now: datetime,
    ) -> list[Any]:
        outcomes: list[Any] = [None] * len(entities)
        by_type: dict[str, list[tuple[int, EntityRow]]] = defaultdict(list)
        for index, row in enumerate(entities):
            by_type[row.ref.type].append((index, row))
        for label in sorted(by_type):
            # one order of keys for all writers, so that two batches cannot wait for each other
            group = sorted(by_type[label], key=lambda item: item[1].ref)
            keys = {index: entity_key(tenant, row.ref) for index, row in group}
            root = label == self._domain.root
            found = await run(
                tx,
                query("merge_entities", label=label),
                tenant=tenant,
                now=now,
                rows=[
                    {
                        "key": keys[index],
                        "id": row.ref.id,
                        "owner_key": keys[index] if root else None,
                        "user_id": row.ref.id if root else None,
                    }
                    for index, row in group
                ],
            )
            stored = {item["key"]: item["props"] for item in found}
            changes: list[Row] = []
            for index, row in group:
                before = stored[keys[index]]
                new = "observed_at" not in before
                props = merged_props(self._domain, row, before)
                if props is not None:
                    changes.append({"key": keys[index], "props": props})
                outcomes[index] = "CREATED" if new else "UNCHANGED" if props is None else "UPDATED"
            if changes:
                await run(tx, query("set_entities", label=label), rows=changes)
        return outcomes

    async def _merge_relations(
        self,
        tx: AsyncManagedTransaction,
        tenant: str,
        relations: Sequence[RelationRow],
        now: datetime,
    ) -> int:
        groups = grouped(
            (
                (row.type, row.from_.type, row.to.type),
                {
                    "index": index,
                    "from": entity_key(tenant, row.from_),
                    "to": entity_key(tenant, row.to),
                },
            )
            for index, row in enumerate(relations)
        )
        created = 0
        # owners first: what hangs below inherits from what was connected just before
        for group in sorted(groups, key=lambda item: (self._depth.get(item[1], 99), item)):
            type_, start, end = group
            rows = sorted(groups[group], key=lambda row: (row["from"], row["to"]))
            new = await self._new_relations(tx, relations, group, rows)
            if not new:
                continue
            await run(
                tx,
                query("merge_relations", type=type_, **{"from": start}, to=end),
                rows=new,
                now=now,
            )
            created += len(new)
            relation = self._domain.relation(type_, start, end)
            if relation is None:  # pragma: no cover - validated before
                continue
            await self._check_cardinality(tx, relation, start, end, new)
            if relation.owns:
                await self._hand_on_owner(tx, start, end, new)
        return created

    async def _new_relations(
        self,
        tx: AsyncManagedTransaction,
        relations: Sequence[RelationRow],
        group: tuple[str, str, str],
        rows: list[Row],
    ) -> list[Row]:
        type_, start, end = group
        found = await run(
            tx, query("find_relations", type=type_, **{"from": start}, to=end), rows=rows
        )
        there: set[int] = set()
        for item in found:
            row = relations[item["index"]]
            for ref, key in ((row.from_, item["from"]), (row.to, item["to"])):
                if key is None:
                    msg = f"{type_}: there is no {ref.type} {ref.id!r}"
                    raise MissingEntity(msg, path=("relations", item["index"]))
            if item["there"]:
                there.add(item["index"])
        unique = {(row["from"], row["to"]): row for row in rows if row["index"] not in there}
        return list(unique.values())

    async def _check_cardinality(
        self,
        tx: AsyncManagedTransaction,
        relation: Relation,
        start: str,
        end: str,
        rows: list[Row],
    ) -> None:
        checks = (
            (relation.end_has_one_start, "second_starts", "to", {"type": relation.type, "to": end}),
            (
                relation.start_has_one_end,
                "second_ends",
                "from",
                {"type": relation.type, "from": start},
            ),
        )
        for applies, name, side, identifiers in checks:
            if not applies:
                continue
            found = await run(
                tx, query(name, **identifiers), keys=sorted({row[side] for row in rows})
            )
            if found:
                key = found[0]["key"]
                ref = split_key(key)[1]
                index = next(row["index"] for row in rows if row[side] == key)
                partner = "start" if side == "to" else "end"
                msg = f"{relation.type}: {ref.type} {ref.id!r} would have a second {partner}"
                raise CardinalityViolated(msg, path=("relations", index))

    async def _hand_on_owner(
        self, tx: AsyncManagedTransaction, start: str, end: str, rows: list[Row]
    ) -> None:
        await run(tx, query("own_ends", **{"from": start}, to=end), rows=rows)
        below = self._owning_below(end)
        if below:
            keys = sorted({row["to"] for row in rows})
            await run(tx, query("own_below", to=end, owning=below), keys=keys)

    def _owning_below(self, label: str) -> tuple[str, ...]:
        return tuple(
            sorted({relation.type for relation in self._owning if self._below(label, relation)})
        )

    def _below(self, label: str, relation: Relation) -> bool:
        return self._depth.get(relation.from_, 0) >= self._depth.get(label, 0)

    async def _link_mentions(
        self,
        tx: AsyncManagedTransaction,
        tenant: str,
        entities: Sequence[EntityRow],
        relations: Sequence[RelationRow],
    ) -> None:
        """Link memories that named one of these entities before it, or its owner, was known."""
        touched = {row.ref for row in entities}
        touched |= {ref for row in relations for ref in (row.from_, row.to)}
        keys = {entity_key(tenant, ref) for ref in touched}
        # an owner that was handed on makes what hangs below visible, too
        for end in sorted({row.to.type for row in relations}):
            below = self._owning_below(end)
            if below:
                ends = sorted(
                    {entity_key(tenant, row.to) for row in relations if row.to.type == end}
                )
                found = await run(tx, query("owned_below", to=end, owning=below), keys=ends)
                keys |= {row["key"] for row in found}
        waiting = await run(tx, query("mentions_of_entities"), keys=sorted(keys))
        by_label = grouped((split_key(row["entity"])[1].type, row) for row in waiting)
        for label in sorted(by_label):
            await run(
                tx,
                query("link_mentions", label=label),
                keys=sorted(row["key"] for row in by_label[label]),
                shared=label not in self._domain.owned_types,
            )

    async def visible_entities(
        self, tenant: str, user_id: str | None, refs: Sequence[EntityRef]
    ) -> tuple[Entity, ...]:
        """See `GraphStore.visible_entities`."""
        keys: dict[str, list[str]] = {f"keys_{label}": [] for label in self._domain.entities}
        for ref in dict.fromkeys(refs):
            if ref.type in self._domain.entities:
                keys[f"keys_{ref.type}"].append(entity_key(tenant, ref))
        if not any(keys.values()):
            return ()
        rows = await self._read("reading entities", records(self._entities, p=keys))
        found = (entity_from(self._domain, row["props"]) for row in rows)
        return tuple(
            entity for entity in found if self._is_visible(entity.type, entity.user_id, user_id)
        )

    async def visible_refs(
        self, tenant: str, wanted: Mapping[str | None, Sequence[EntityRef]]
    ) -> Mapping[str | None, frozenset[EntityRef]]:
        """See `GraphStore.visible_refs`."""
        every = [ref for refs in wanted.values() for ref in refs]
        rows = await self._by_label("existing", tenant, every)
        owners = {split_key(row["key"])[1]: row["user_id"] for row in rows}
        return {
            user: frozenset(
                ref
                for ref in refs
                if ref in owners and self._is_visible(ref.type, owners[ref], user)
            )
            for user, refs in wanted.items()
        }

    async def existing_entities(
        self, tenant: str, refs: Sequence[EntityRef]
    ) -> frozenset[EntityRef]:
        """See `GraphStore.existing_entities`."""
        rows = await self._by_label("existing", tenant, refs)
        return frozenset(split_key(row["key"])[1] for row in rows)

    async def owners(
        self, tenant: str, refs: Sequence[EntityRef]
    ) -> Mapping[EntityRef, str | None]:
        """See `GraphStore.owners`."""
        rows = await self._by_label("existing", tenant, refs)
        return {split_key(row["key"])[1]: row["user_id"] for row in rows}

    async def _by_label(self, name: str, tenant: str, refs: Sequence[EntityRef]) -> list[Row]:
        groups: dict[str, list[str]] = defaultdict(list)
        for ref in dict.fromkeys(refs):
            groups[ref.type].append(entity_key(tenant, ref))
        if not groups:
            return []

        async def work(tx: AsyncManagedTransaction) -> list[Row]:
            rows: list[Row] = []
            for label, keys in groups.items():
                rows += await run(tx, query(name, label=label), keys=keys)
            return rows

        return await self._read("reading entities", work)

    def _is_visible(self, type_: str, owner: str | None, user_id: str | None) -> bool:
        # an owned entity without an owner is not yet connected: fail closed
        if type_ in self._domain.owned_types:
            return user_id is not None and owner == user_id
        return True

    async def names(self, tenant: str, user_id: str | None) -> tuple[NamedEntity, ...]:
        """See `GraphStore.names`."""
        owner = None if user_id is None else self._owner(tenant, user_id)
        text = self._shared_names if user_id is None else self._names
        rows = await self._read(
            "reading names", records(text, owner=owner, tenant=tenant, limit=MAX_NAMED)
        )
        return _named(rows)

    async def names_of(
        self, tenant: str, user_ids: Sequence[str | None]
    ) -> Mapping[str | None, tuple[NamedEntity, ...]]:
        """See `GraphStore.names_of`."""
        if len(user_ids) == 1:
            # by the text that a recall has had planned
            return {user_ids[0]: await self.names(tenant, user_ids[0])}
        users = dict.fromkeys(user for user in user_ids if user is not None)
        owners = {self._owner(tenant, user): user for user in users}
        found: dict[str | None, tuple[NamedEntity, ...]] = dict.fromkeys(users, ())
        if len(users) < len(set(user_ids)):
            found[None] = await self.names(tenant, None)
        keys = list(owners)
        for start in range(0, len(keys), _USERS_AT_ONCE):
            page = {"owners": keys[start : start + _USERS_AT_ONCE], "limit": MAX_NAMED}
            rows = await self._read("reading names", records(self._names_of, p=page))
            by_owner = grouped((row["owner"], row) for row in rows)
            found |= {owners[owner]: _named(its) for owner, its in by_owner.items()}
        return found

    async def ids_ending(
        self, tenant: str, user_id: str, type_: str, ends: Sequence[str]
    ) -> tuple[str, ...]:
        """See `GraphStore.ids_ending`."""
        rows = await self._read(
            "looking up ids",
            records(
                query("ids_ending", label=type_),
                owner=self._owner(tenant, user_id),
                ends=list(ends),
                limit=_MAX_ENDING,
            ),
        )
        return tuple(row["id"] for row in rows)

    async def related(self, query_: RelatedQuery) -> Mapping[EntityRef, tuple[Entity, ...]]:
        """See `GraphStore.related`."""
        start = query_.refs[0].type
        owned = self._domain.owned_types
        owner = self._owner(query_.tenant, query_.user_id)
        way, identifiers = followed(start, query_.other, owned, forward=query_.forward)
        rows = await self._read(
            "following a relation",
            records(
                query(_RELATED[way], type=query_.relation, **identifiers),
                keys=[entity_key(query_.tenant, ref) for ref in query_.refs],
                owner=owner,
                start_shared=start not in owned,
                shared=query_.other not in owned,
                scan=MAX_SCANNED,
                limit=query_.limit,
            ),
        )
        return {
            split_key(row["key"])[1]: tuple(
                sorted(
                    (entity_from(self._domain, props) for props in row["others"]),
                    key=lambda entity: entity.key,
                )
            )
            for row in rows
        }


def _named(rows: Sequence[Row]) -> tuple[NamedEntity, ...]:
    called: dict[tuple[str, str], dict[EntityRef, None]] = defaultdict(dict)
    for row in rows:
        refs = [split_key(key)[1] for key in (row["key"], *row["holders"])]
        for name, value in row["props"].items():
            for text_ in value if isinstance(value, list) else [value]:
                if text_:
                    called[str(text_), name].update(dict.fromkeys(refs))
    return tuple(NamedEntity(text_, name, tuple(refs)) for (text_, name), refs in called.items())


def _depths(domain: Domain) -> dict[str, int]:
    depths = {domain.root: 0}
    owning = [relation for relation in domain.relations if relation.owns]
    # longest way down: a type is written after everything it may inherit from
    for _ in domain.entities:
        for relation in owning:
            if relation.from_ in depths:
                for end in relation.to:
                    depth = depths[relation.from_] + 1
                    if end != domain.root and depth <= len(domain.entities):
                        depths[end] = max(depths.get(end, 0), depth)
    return depths
