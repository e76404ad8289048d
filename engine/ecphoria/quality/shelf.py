"""The checklist's customer behind the ports of the stores: what recall asks for, and no more.

All that is on the shelf is a candidate, as in a search without rules. What is let pass is what the
stores would: current memories, and what used to be where the question asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

import numpy as np

from ecphoria.access_log import AccessLog
from ecphoria.changes import ChangeFeed
from ecphoria.clock import Clock
from ecphoria.embedding.port import Embedder
from ecphoria.extraction.port import FactExtractor
from ecphoria.language.folding import language_of
from ecphoria.language.lexicon import Lexicon
from ecphoria.language.terms import terms
from ecphoria.model import (
    Edge,
    Entity,
    EntityRef,
    IndexState,
    Memory,
    NamedEntity,
    RecallRequest,
    RecallResult,
    Role,
    Scope,
    SourceInfo,
    Status,
    Vector,
    entity_key,
    memory_key,
    utc,
)
from ecphoria.parts import EngineParts
from ecphoria.quality.checklist import Shelf, ShelfEntity, ShelfMemory
from ecphoria.recall.as_known import holds
from ecphoria.recall.pipeline import recall
from ecphoria.recall.query_cache import QueryCache
from ecphoria.recall.topic_sense import TopicSense
from ecphoria.session.summary import ExtractiveSummarizer
from ecphoria.settings import Settings
from ecphoria.stores.ports import (
    ExpandQuery,
    Expansion,
    GraphStore,
    TermHit,
    VectorFilter,
    VectorHit,
    VectorIndex,
)
from ecphoria.stores.session_memory import InProcessSessions
from ecphoria_schema.domain import Domain, Kind

TENANT = "quality"
CUSTOMER = "customer"


@dataclass(frozen=True, slots=True)
class _Graph:
    """What recall asks of the graph."""

    memories_: tuple[Memory, ...]
    entities: tuple[Entity, ...]
    edges: tuple[Edge, ...]
    sources_: tuple[SourceInfo, ...]
    names_: tuple[NamedEntity, ...]

    async def names(self, _tenant: str, user_id: str | None) -> tuple[NamedEntity, ...]:
        return () if user_id is None else self.names_

    async def ids_ending(
        self, _tenant: str, _user_id: str, type_: str, ends: Sequence[str]
    ) -> tuple[str, ...]:
        ids = (entity.id for entity in self.entities if entity.type == type_)
        return tuple(sorted(id_ for id_ in ids if id_.endswith(tuple(ends))))

    async def memories(self, _tenant: str, ids: Sequence[str]) -> tuple[Memory, ...]:
        return tuple(memory for memory in self.memories_ if memory.id in ids)

    async def expand(self, query: ExpandQuery) -> Expansion:
        let_pass = [
            memory
            for memory in self.memories_
            if query.include_history or holds(memory, query.as_of)
        ]
        known = {entity.ref for entity in self.entities}
        return Expansion(
            seeds=tuple(memory for memory in let_pass if memory.key in query.seeds),
            others=tuple(memory for memory in let_pass if memory.key not in query.seeds),
            entities=self.entities,
            edges=self.edges,
            mentioned=tuple(ref for ref in query.mentions if ref in known),
            sources=self.sources_,
        )


@dataclass(frozen=True, slots=True)
class _Index:
    """What recall asks of the vector index."""

    memories: tuple[Memory, ...]
    vectors: Mapping[str, Vector]
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    async def search(
        self, kind: Kind, vector: Vector, _filter: VectorFilter, limit: int
    ) -> tuple[VectorHit, ...]:
        hits = [
            VectorHit(memory.key, float(np.dot(vector, self.vectors[memory.key])))
            for memory in self.memories
            if memory.kind == kind
        ]
        return tuple(sorted(hits, key=lambda hit: (-hit.similarity, hit.key))[:limit])

    async def search_terms(
        self, kind: Kind, asked: Sequence[str], _filter: VectorFilter, limit: int
    ) -> tuple[TermHit, ...]:
        hits = [
            TermHit(memory.key, float(len(met)), self.terms[memory.key])
            for memory in self.memories
            if memory.kind == kind and (met := set(asked).intersection(self.terms[memory.key]))
        ]
        return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.key))[:limit])


async def shelf_parts(
    shelf: Shelf,
    embedder: Embedder,
    domain: Domain,
    lexicon: Lexicon,
    settings: Settings,
    extractor: FactExtractor,
) -> EngineParts:
    """Return the parts of an engine that knows the shelf and nothing else.

    Raises:
        EmbeddingFailed: When the model fails.
    """
    memories = tuple(_memory(each, shelf, domain, lexicon) for each in shelf.memories)
    vectors = await embedder.embed_passages([memory.text for memory in memories])
    keys = [memory.key for memory in memories]
    graph = cast("GraphStore", _graph(shelf, memories, domain))
    index = _Index(
        memories,
        dict(zip(keys, vectors, strict=True)),
        {memory.key: tuple(terms(memory.text)) for memory in memories},
    )
    clock = Clock()
    return EngineParts(
        graph=graph,
        index=cast("VectorIndex", index),
        embedder=embedder,
        domain=domain,
        lexicon=lexicon,
        settings=settings,
        clock=clock,
        extractor=extractor,
        access=AccessLog(graph, domain, clock),
        changes=ChangeFeed(),
        sessions=InProcessSessions(settings.session_ttl_s),
        summarizer=ExtractiveSummarizer(lexicon),
        queries=QueryCache(0),
        topic_sense=TopicSense(domain),
    )


async def ask(parts: EngineParts, shelf: Shelf, question: str) -> RecallResult:
    """Ask a question about the shelf; as many memories may come back as there are."""
    scope = Scope(TENANT, "quality", frozenset({Role.AGENT}), frozenset({CUSTOMER}))
    request = RecallRequest(
        question, CUSTOMER, as_of=shelf.as_of, limit=min(100, len(shelf.memories))
    )
    return await recall(parts, scope, request)


def _graph(shelf: Shelf, memories: tuple[Memory, ...], domain: Domain) -> _Graph:
    entities = {each.id: _entity(each, domain) for each in shelf.entities}
    root = Entity(
        entity_key(TENANT, EntityRef(domain.root, CUSTOMER)), domain.root, CUSTOMER, CUSTOMER
    )
    edges = []
    for each in shelf.entities:
        above = root if each.under is None else entities[each.under]
        found = next(
            (
                relation.type
                for relation in domain.relations
                if relation.owns and relation.from_ == above.type and each.type in relation.to
            ),
            None,
        )
        if found is not None:
            edges.append(Edge(found, above.key, entities[each.id].key))
    sources = [
        SourceInfo(id_, declared.title.en, declared.reliability, disabled=id_ in shelf.disabled)
        for id_, declared in domain.sources.items()
    ]
    sources += [
        SourceInfo(id_, id_, 1.0, disabled=True)
        for id_ in shelf.disabled
        if id_ not in domain.sources
    ]
    named: dict[tuple[str, str], list[EntityRef]] = {}
    for entity in entities.values():
        for name in domain.entities[entity.type].recognise:
            value = entity.props.get(name)
            if isinstance(value, str):
                named.setdefault((value, name), []).append(entity.ref)
    return _Graph(
        memories,
        (root, *entities.values()),
        tuple(edges),
        tuple(sources),
        tuple(NamedEntity(name, prop, tuple(refs)) for (name, prop), refs in named.items()),
    )


def _entity(each: ShelfEntity, domain: Domain) -> Entity:
    declared = domain.entities[each.type]
    given = {"name": each.name, "name_zh": each.name_zh}
    # what the type is called by, and told apart by, is its name here
    given |= dict.fromkeys(declared.described_by, each.name)
    return Entity(
        key=entity_key(TENANT, EntityRef(each.type, each.id)),
        type=each.type,
        id=each.id,
        name=each.name,
        props={
            name: value
            for name, value in given.items()
            if value is not None and name in declared.properties
        },
        user_id=CUSTOMER,
    )


def _memory(each: ShelfMemory, shelf: Shelf, domain: Domain, lexicon: Lexicon) -> Memory:
    as_of = utc(shelf.as_of)
    said = as_of - timedelta(days=each.days)
    topics = lexicon.topics(each.text)
    types = {entity.id: entity.type for entity in shelf.entities}
    return Memory(
        key=memory_key(TENANT, each.id),
        id=each.id,
        tenant=TENANT,
        user_id=None if each.shared else CUSTOMER,
        kind=each.kind,
        topic=topics[0] if topics else None,
        text=each.text,
        lang=language_of(each.text),
        importance=domain.kinds[each.kind].importance,
        source_id=each.source,
        privacy="internal",
        occurred_at=said,
        valid_from=said,
        valid_until=None if each.until is None else as_of - timedelta(days=each.until),
        expires_at=None,
        recorded_at=said,
        status=Status.ACTIVE if each.until is None else Status.SUPERSEDED,
        tier="hot",
        content_hash="",
        embedding_model="",
        index_state=IndexState.INDEXED,
        tags=topics,
        about=tuple(entity_key(TENANT, EntityRef(types[id_], id_)) for id_ in each.about),
    )
