"""What contradicts what: memories that are current and cannot all be true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ecphoria.governance.access import readable_privacy
from ecphoria.model import Conflict, Memory, Page, Scope, SourceInfo, Status, checked_id, utc
from ecphoria.parts import EngineParts
from ecphoria.reading.paging import checked_first, page_of, place_of
from ecphoria.reading.visible import shown
from ecphoria.stores.ports import ConflictQuery, InConflict
from ecphoria.trust import believed

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# One memory alone contradicts nothing.
_LEAST = 2


def conflict_of(memories: Sequence[Memory], sources: Mapping[str, SourceInfo]) -> Conflict:
    """Return memories that belong together: the most believed first, then the newest.

    Args:
        memories: What contradicts itself.
        sources: By id, as feedback has left them.
    """
    ordered = sorted(
        memories,
        key=lambda one: (
            -believed(one, sources),
            -one.valid_from.timestamp(),
            -one.claim_number,
            one.key,
        ),
    )
    telling = next((one for one in ordered if one.attribute is not None), ordered[0])
    return Conflict(telling.attribute, telling.subject, tuple(ordered))


def _place(one: InConflict) -> tuple[int, str]:
    return (one.recorded_at - _EPOCH) // _MILLISECOND, one.id


def groups_of(pairs: Iterable[tuple[InConflict, InConflict]]) -> list[tuple[InConflict, ...]]:
    """Return what is connected, each group by what was recorded first, the latest group first.

    The first member stands for its group in a list: whoever joins later does not move the group.
    """
    group_of: dict[str, dict[str, InConflict]] = {}
    for one, other in pairs:
        joined = {one.id: one, other.id: other}
        joined |= group_of.get(one.id, {}) | group_of.get(other.id, {})
        group_of |= dict.fromkeys(joined, joined)
    unique = {id(group): group for group in group_of.values()}
    ordered = [tuple(sorted(group.values(), key=_place)) for group in unique.values()]
    return sorted(ordered, key=lambda group: _place(group[0]), reverse=True)


async def conflicts(
    parts: EngineParts,
    scope: Scope,
    user_id: str,
    topic: str | None,
    first: int,
    after: str | None,
) -> Page[Conflict]:
    """Return a page of a user's conflicts; see `Engine.conflicts`."""
    user = scope.user(user_id)
    if topic is not None:
        checked_id(topic, "topic")
    size = checked_first(first)
    of = ["conflicts", scope.tenant, user, topic]
    begin: tuple[int, str] | None = None
    if after is not None:
        at, id_ = place_of(of, after)
        begin = (int(at), str(id_))
    pairs = await parts.graph.conflicts(
        ConflictQuery(
            tenant=scope.tenant,
            user_id=user,
            privacy=tuple(sorted(readable_privacy(scope))),
            at=utc(parts.clock.now()),
        )
    )
    found = [
        group
        for group in groups_of(pairs)
        if (begin is None or _place(group[0]) < begin)
        and (topic is None or any(one.topic == topic for one in group))
    ]
    page = page_of(found[: size + 1], size, of, lambda group: _place(group[0]))
    ids = [one.id for group in page.items for one in group]
    rows = await parts.graph.memories(scope.tenant, ids) if ids else ()
    current = [memory for memory in rows if memory.status is Status.ACTIVE]
    seen = {memory.id: memory for memory in await shown(parts, scope, user, current)}
    found_sources = await parts.graph.sources(scope.tenant) if ids else ()
    sources = {source.id: source for source in found_sources}
    kept = [
        (conflict_of(members, sources), cursor)
        for group, cursor in zip(page.items, page.cursors, strict=True)
        # one may have been put right between the two reads
        if len(members := [seen[one.id] for one in group if one.id in seen]) >= _LEAST
    ]
    return Page(
        tuple(conflict for conflict, _ in kept), tuple(cursor for _, cursor in kept), page.has_next
    )
