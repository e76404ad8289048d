"""What is connected to an entity: along a path of the domain, or every way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ecphoria.errors import InvalidInput, NotFound, UnknownType
from ecphoria.governance.reveal import shown_entities
from ecphoria.model import Edge, Entity, EntityGraph, EntityRef, Scope, checked_id
from ecphoria.parts import EngineParts
from ecphoria.stores.ports import Neighbour, StepStarts
from ecphoria_schema.reading import Step, steps
from ecphoria_schema.walk import Hop, Walk

DEFAULT_DEPTH = 2
MAX_DEPTH = 4
# Of each start and relation, where no path has caps of its own.
ENDS_PER_RELATION = 20
# With so many entities the walk ends.
MAX_ENTITIES = 500


@dataclass(slots=True)
class _Walked:
    """What a walk has reached so far."""

    entities: dict[str, Entity]
    edges: dict[Edge, None] = field(default_factory=dict)
    truncated: bool = False

    def keep(self, found: Neighbour) -> bool:
        """Keep what a step has led to; return whether it is new. Over the limit it is left out."""
        key = found.entity.key
        new = key not in self.entities
        if new and len(self.entities) >= MAX_ENTITIES:
            self.truncated = True
            return False
        self.entities.setdefault(key, found.entity)
        ends = (found.start, key) if found.step.forward else (key, found.start)
        self.edges[Edge(found.step.relation, *ends)] = None
        return new

    def capped(self, found: Iterable[Neighbour], cap: int) -> list[Neighbour]:
        """Return the first ends of each start; one more than the cap was read."""
        counts: dict[str, int] = {}
        kept = []
        for each in found:
            counts[each.start] = counts.get(each.start, 0) + 1
            if counts[each.start] > cap:
                self.truncated = True
            else:
                kept.append(each)
        return kept


def _checked_depth(depth: int | None, otherwise: int) -> int:
    if depth is None:
        return otherwise
    if not 1 <= depth <= MAX_DEPTH:
        msg = f"depth must be 1 to {MAX_DEPTH}, not {depth}"
        raise InvalidInput(msg, path=("depth",))
    return depth


async def entity_graph(
    parts: EngineParts,
    scope: Scope,
    user_id: str,
    ref: EntityRef,
    path: str | None,
    depth: int | None,
) -> EntityGraph:
    """Return what is connected to an entity; see `Engine.entity_graph`."""
    user = scope.user(user_id)
    if ref.type not in parts.domain.entities:
        msg = f"the domain has no entity type {ref.type!r}"
        raise UnknownType(msg, path=("type",))
    checked_id(ref.id, "entity id")
    walk = None if path is None else _walk(parts, path, ref)
    levels = _checked_depth(depth, DEFAULT_DEPTH if walk is None else len(walk.hops))
    found = await parts.graph.visible_entities(scope.tenant, user, [ref])
    if not found:
        msg = f"there is no {ref.type} {ref.id!r} in this scope"
        raise NotFound(msg)
    start = found[0]
    walked = _Walked({start.key: start})
    if walk is None:
        await _every_way(parts, scope.tenant, user, walked, start, levels)
    else:
        await _along(parts, scope.tenant, user, walked, start, walk, levels)
    entities = tuple(walked.entities.values())
    seen = await shown_entities(parts.vault, parts.domain, scope, entities)
    return EntityGraph(ref, seen, tuple(walked.edges), truncated=walked.truncated)


def _walk(parts: EngineParts, path: str, ref: EntityRef) -> Walk:
    walk = parts.domain.walks.get(path)
    if walk is None:
        msg = f"the domain has no path {path!r}; it has {', '.join(parts.domain.walks)}"
        raise InvalidInput(msg, path=("path",))
    if ref.type not in walk.types:
        msg = f"the path {path} does not lead through {ref.type}, only {', '.join(walk.types)}"
        raise InvalidInput(msg, path=("type",))
    return walk


async def _every_way(
    parts: EngineParts, tenant: str, user: str, walked: _Walked, start: Entity, levels: int
) -> None:
    every = steps(parts.domain)
    frontier = [start]
    for _ in range(levels):
        by_type: dict[str, list[str]] = {}
        for entity in frontier:
            by_type.setdefault(entity.type, []).append(entity.key)
        starts = {
            step: StepStarts(tuple(by_type[step.start]), ENDS_PER_RELATION + 1)
            for step in every
            if step.start in by_type
        }
        if not starts:
            return
        by_step = _by_step(await parts.graph.neighbours(tenant, user, starts))
        frontier = [
            each.entity
            for step in every
            for each in walked.capped(by_step.get(step, ()), ENDS_PER_RELATION)
            if walked.keep(each)
        ]


async def _along(
    parts: EngineParts,
    tenant: str,
    user: str,
    walked: _Walked,
    start: Entity,
    walk: Walk,
    levels: int,
) -> None:
    # a type's first visit bears its name
    frontier: dict[str, set[str]] = {start.type: {start.key}}
    for _ in range(levels):
        hops = [hop for hop in walk.hops if frontier.get(hop.start_step)]
        if not hops:
            return
        by_step = _by_step(await parts.graph.neighbours(tenant, user, _starts(hops, frontier)))
        reached: dict[str, set[str]] = {}
        for hop in hops:
            of_hop = [
                each
                for each in by_step.get(_step(hop), ())
                if each.start in frontier[hop.start_step]
            ]
            for each in walked.capped(of_hop, hop.cap):
                walked.keep(each)
                if each.entity.key in walked.entities:
                    reached.setdefault(hop.end_step, set()).add(each.entity.key)
        frontier = reached


def _step(hop: Hop) -> Step:
    return Step(hop.relation, hop.start, hop.end, forward=True)


def _starts(hops: Sequence[Hop], frontier: Mapping[str, set[str]]) -> dict[Step, StepStarts]:
    """Return from where to take the steps of some hops; two may take the same one."""
    starts: dict[Step, StepStarts] = {}
    for hop in hops:
        before = starts.get(_step(hop), StepStarts((), 0))
        keys = sorted({*before.keys, *frontier[hop.start_step]})
        starts[_step(hop)] = StepStarts(tuple(keys), max(before.cap, hop.cap + 1))
    return starts


def _by_step(found: Iterable[Neighbour]) -> dict[Step, list[Neighbour]]:
    by_step: dict[Step, list[Neighbour]] = {}
    for each in found:
        by_step.setdefault(each.step, []).append(each)
    return by_step
