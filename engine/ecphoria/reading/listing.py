"""Lists of memories and entities, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ecphoria.errors import EcphoriaError, InvalidInput, InvalidTime, UnknownRelation, UnknownType
from ecphoria.governance.access import readable_privacy
from ecphoria.governance.reveal import shown_entities
from ecphoria.model import (
    Entity,
    EntityRef,
    Memory,
    MemoryFilter,
    Page,
    Scope,
    Status,
    checked_id,
    entity_key,
    memory_key,
    parse_time,
    utc,
)
from ecphoria.parts import EngineParts
from ecphoria.reading.paging import checked_first, page_of, place_of
from ecphoria.reading.visible import shown, shown_groups
from ecphoria.stores.ports import ListQuery, RelatedPageQuery
from ecphoria_schema.domain import KINDS

MAX_FILTER_VALUES = 100

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)


# --- memories ------------------------------------------------------------------------------


def _words(values: Sequence[str], name: str) -> tuple[str, ...]:
    if len(values) > MAX_FILTER_VALUES:
        msg = f"{name} has {len(values)} values; {MAX_FILTER_VALUES} are allowed"
        raise InvalidInput(msg, path=("filter", name))
    for place, value in enumerate(values):
        try:
            checked_id(value, f"{name} filter")
        except InvalidInput as error:
            raise error.at("filter", name, place) from error
    return tuple(sorted(set(values)))


def _moment(value: datetime | None, name: str, otherwise: datetime) -> datetime:
    if value is None:
        return otherwise
    try:
        return parse_time(value, name)
    except InvalidTime as error:
        raise error.at("filter", name) from error


def _entity(scope: Scope, parts: EngineParts, ref: EntityRef | None) -> str | None:
    if ref is None:
        return None
    if ref.type not in parts.domain.entities:
        msg = f"the domain has no entity type {ref.type!r}"
        raise UnknownType(msg, path=("filter", "entity", "type"))
    try:
        checked_id(ref.id, "entity id")
    except EcphoriaError as error:
        raise error.at("filter", "entity", "id") from error
    return entity_key(scope.tenant, ref)


def _query(parts: EngineParts, scope: Scope, user: str, given: MemoryFilter) -> ListQuery:
    if not given.statuses or Status.FORGOTTEN in given.statuses:
        msg = "name statuses other than forgotten: of a forgotten memory nothing is left to list"
        raise InvalidInput(msg, path=("filter", "statuses"))
    valid_at = given.valid_at
    query = ListQuery(
        tenant=scope.tenant,
        user_id=user,
        privacy=tuple(sorted(readable_privacy(scope))),
        now=utc(parts.clock.now()),
        since=_moment(given.occurred_since, "occurred_since", _FIRST),
        until=_moment(given.occurred_until, "occurred_until", _LAST),
        kinds=tuple(sorted(set(given.kinds))) or KINDS,
        statuses=tuple(sorted(set(given.statuses))),
        topics=_words(given.topics, "topics"),
        sources=_words(given.sources, "sources"),
        entity=_entity(scope, parts, given.entity),
        valid_at=None if valid_at is None else _moment(valid_at, "valid_at", _FIRST),
        shared=given.include_shared,
    )
    if query.since >= query.until:
        msg = "occurred_until must be after occurred_since"
        raise InvalidTime(msg, path=("filter", "occurred_until"))
    return query


def _list_of(query: ListQuery) -> list[object]:
    """Return what tells one list from another: what was asked for, not who may read how much."""
    return [
        "memories",
        query.tenant,
        query.user_id,
        query.since.isoformat(),
        query.until.isoformat(),
        list(query.kinds),
        list(query.statuses),
        list(query.topics),
        list(query.sources),
        query.entity,
        None if query.valid_at is None else query.valid_at.isoformat(),
        query.shared,
    ]


async def list_memories(
    parts: EngineParts,
    scope: Scope,
    user_id: str,
    filter_: MemoryFilter,
    first: int,
    after: str | None,
) -> Page[Memory]:
    """Return a page of a user's memories; see `Engine.list_memories`."""
    query = _query(parts, scope, scope.user(user_id), filter_)
    of = _list_of(query)
    size = checked_first(first)
    begin = None
    if after is not None:
        at, id_ = place_of(of, after)
        begin = (_EPOCH + int(at) * _MILLISECOND, memory_key(scope.tenant, str(id_)))
    found = await parts.graph.list_memories(query, begin, size + 1)
    page = page_of(
        found, size, of, lambda memory: ((memory.occurred_at - _EPOCH) // _MILLISECOND, memory.id)
    )
    seen = {memory.id: memory for memory in await shown(parts, scope, query.user_id, page.items)}
    kept = [
        (seen[memory.id], cursor)
        for memory, cursor in zip(page.items, page.cursors, strict=True)
        if memory.id in seen
    ]
    return Page(
        tuple(memory for memory, _ in kept), tuple(cursor for _, cursor in kept), page.has_next
    )


async def count_memories(
    parts: EngineParts, scope: Scope, user_id: str, filter_: MemoryFilter
) -> int:
    """Return how many memories a filter meets; see `Engine.count_memories`."""
    return await parts.graph.count_listed(_query(parts, scope, scope.user(user_id), filter_))


# --- entities ------------------------------------------------------------------------------


def _check_type(parts: EngineParts, type_: str) -> None:
    if type_ not in parts.domain.entities:
        msg = f"the domain has no entity type {type_!r}"
        raise UnknownType(msg, path=("type",))


async def list_entities(
    parts: EngineParts, scope: Scope, user_id: str, type_: str, first: int, after: str | None
) -> Page[Entity]:
    """Return a page of a user's own or shared entities; see `Engine.list_entities`."""
    user = scope.user(user_id)
    _check_type(parts, type_)
    size = checked_first(first)
    of = ["entities", scope.tenant, user, type_]
    begin = ""
    if after is not None:
        (id_,) = place_of(of, after)
        begin = entity_key(scope.tenant, EntityRef(type_, str(id_)))
    rows = await parts.graph.list_entities(scope.tenant, user, type_, begin, size + 1)
    found = await shown_entities(parts.vault, parts.domain, scope, rows)
    return page_of(found, size, of, lambda entity: (entity.id,))


async def count_entities(parts: EngineParts, scope: Scope, user_id: str, type_: str) -> int:
    """Return how many entities of a type a user may see; see `Engine.count_entities`."""
    user = scope.user(user_id)
    _check_type(parts, type_)
    return await parts.graph.count_entities(scope.tenant, user, type_)


async def related_pages(  # noqa: PLR0913 - those of the verb
    parts: EngineParts,
    scope: Scope,
    user_id: str,
    refs: Sequence[EntityRef],
    relation: str,
    others: Sequence[str],
    *,
    forward: bool,
    first: int,
    after: str | None,
) -> Mapping[EntityRef, Page[Entity]]:
    """Return a page of a relation's ends for each entity; see `Engine.related_pages`."""
    user = scope.user(user_id)
    for ref in refs:
        for other in others:
            start, end = (ref.type, other) if forward else (other, ref.type)
            if parts.domain.relation(relation, start, end) is None:
                msg = f"the domain has no relation {start}-{relation}->{end}"
                raise UnknownRelation(msg)
    size = checked_first(first)
    starts = tuple(dict.fromkeys(refs))
    if not starts:
        return {}
    places = {ref: ["related", scope.tenant, user, *_named(ref), relation, forward] for ref in refs}
    begin: tuple[str, str] = ("", "")
    if after is not None:
        if len(starts) > 1:
            msg = "a cursor belongs to one entity's list"
            raise InvalidInput(msg, path=("after",))
        type_, id_ = place_of(places[starts[0]], after)
        begin = (str(type_), str(id_))
    found: dict[EntityRef, list[Entity]] = {ref: [] for ref in starts}
    # one type after the other: that is the order of the list
    for other in sorted(others):
        if other < begin[0] or all(len(ends) > size for ends in found.values()):
            continue
        follows = begin[1] if other == begin[0] else ""
        read = await parts.graph.related_page(
            RelatedPageQuery(
                tenant=scope.tenant,
                user_id=user,
                refs=starts,
                relation=relation,
                other=other,
                forward=forward,
                after=entity_key(scope.tenant, EntityRef(other, follows)),
                limit=size + 1,
            )
        )
        for ref, ends in read.items():
            found[ref].extend(ends)
    as_shown = await shown_groups(parts, scope, found)
    return {ref: page_of(ends, size, places[ref], _named_entity) for ref, ends in as_shown.items()}


def _named(ref: EntityRef) -> tuple[str, str]:
    return ref.type, ref.id


def _named_entity(entity: Entity) -> tuple[str, str]:
    return entity.type, entity.id
