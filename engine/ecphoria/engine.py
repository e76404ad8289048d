"""The engine: the verbs, nothing else. Each verb's first argument is the scope."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ecphoria.clock import Clock
from ecphoria.embedding.open import open_embedder
from ecphoria.errors import DomainFileInvalid, NotFound, UnknownRelation, UnknownType
from ecphoria.governance.access import Operation, check_access, readable_privacy
from ecphoria.language.lexicon import Lexicon
from ecphoria.lifecycle.reconcile import ReconcileReport, reconcile, reconcile_in_batches
from ecphoria.model import (
    Entity,
    EntityInput,
    EntityReceipts,
    EntityRef,
    Memory,
    MemoryInput,
    RecallRequest,
    RecallResult,
    Receipt,
    RelationInput,
    Scope,
    checked_id,
)
from ecphoria.parts import EngineParts
from ecphoria.recall.pipeline import recall
from ecphoria.remember.entities import upsert_entities
from ecphoria.remember.pipeline import remember
from ecphoria.settings import Settings
from ecphoria.stores.open import open_stores
from ecphoria.stores.ports import ExpandQuery, RelatedQuery, ServerInfo
from ecphoria_schema.domain import Domain, DomainFault, load_domain, shipped_domain

MAX_RELATED = 200


@dataclass(frozen=True, slots=True)
class Health:
    """What answered a ping: the two stores and the embedding model."""

    graph: ServerInfo
    vectors: ServerInfo
    model: str


@dataclass(frozen=True, slots=True)
class Engine(EngineParts):
    """A memory engine over one graph store and one vector index.

    Open one with `Engine.open`; it is safe for concurrent use in one event loop.
    """

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, settings: Settings, *, clock: Clock | None = None, rebuild_index: bool = False
    ) -> AsyncIterator[Engine]:
        """Start or connect to the stores, migrate the graph, prepare the index.

        Args:
            settings: Which stores, model and domain.
            clock: Where time comes from.
            rebuild_index: Drop the vector index and queue every memory, whatever model it was
                built with; `reconcile` then fills it.

        Raises:
            DomainFileInvalid: With every fault of the domain file.
            StoreError: When a store cannot be started, reached, or does not fit the settings.
            ModelUnavailable: When the embedding model cannot be loaded.
        """
        domain = open_domain(settings)
        async with contextlib.AsyncExitStack() as stack:
            embedder = await open_embedder(settings)
            stack.push_async_callback(embedder.close)
            graph, index = await stack.enter_async_context(open_stores(settings, domain))
            await graph.migrate()
            clock = clock or Clock()
            if rebuild_index:
                # queued first: a crash after this leaves work to do, not an index with holes
                await graph.requeue_all(clock.token())
                await index.drop()
            await index.prepare(embedder.spec)
            yield cls(graph, index, embedder, domain, Lexicon(domain), settings, clock)

    async def health(self) -> Health:
        """Ping both stores.

        Raises:
            StoreUnavailable: When one does not answer.
        """
        return Health(await self.graph.ping(), await self.index.ping(), self.embedder.spec.model)

    async def warm_up(self) -> None:
        """Load the model and let the graph store plan every expansion.

        A graph store takes seconds to plan a text that it has never seen (measured: 2 to 6 s on
        Neo4j), which the first question would pay for.

        Raises:
            StoreUnavailable: When the graph does not answer.
            EmbeddingFailed: When the model fails.
        """
        await self.embedder.embed_query("warm up")
        for path in self.domain.paths:
            await self.graph.expand(
                ExpandQuery(
                    tenant="warm-up",
                    user_id="nobody",
                    path=path,
                    seeds=(),
                    anchors=0,
                    mentions=(),
                    from_root=True,
                    as_of=self.clock.now(),
                    privacy=("public",),
                    memories_per_entity=1,
                    scan_cap=1,
                )
            )
        await self.graph.names("warm-up", "nobody")

    async def upsert_entities(
        self,
        scope: Scope,
        entities: Sequence[EntityInput],
        relations: Sequence[RelationInput] = (),
    ) -> EntityReceipts:
        """Write entities and relations in one transaction, or nothing.

        Raises:
            InvalidInput: For the first item that breaks the domain; `path` names it.
            MissingEntity: When a relation's end does not exist.
            Forbidden: When the scope's roles or users do not allow it.
        """
        check_access(scope, Operation.UPSERT_ENTITIES)
        return await upsert_entities(self, scope, entities, relations)

    async def remember(self, scope: Scope, items: Sequence[MemoryInput]) -> tuple[Receipt, ...]:
        """Keep memories; one receipt an item, in order. A bad item does not harm the others.

        A receipt that says CREATED is durable: the graph has it. If the index could not be
        written, `indexed` is false and the reconciler finishes it.

        Raises:
            BatchTooLarge: For more items than `max_batch`.
            Forbidden: When the scope's roles do not allow it.
        """
        check_access(scope, Operation.REMEMBER)
        return await remember(self, scope, items)

    async def recall(self, scope: Scope, request: RecallRequest) -> RecallResult:
        """Answer a question with a joined, structured context.

        Raises:
            InvalidInput: For an empty or over-long question, bad times or limits.
            InvalidScope: When the user is missing, empty or ``*``.
            Forbidden: When the scope's roles or users do not allow it.
            StoreUnavailable: When the graph does not answer; without the vector index the
                answer comes from the graph alone and says so.
        """
        check_access(scope, Operation.RECALL)
        return await recall(self, scope, request)

    async def memories(
        self, scope: Scope, user_id: str, ids: Sequence[str]
    ) -> Mapping[str, Memory]:
        """Return the user's own and shared memories by id; what he may not see is left out.

        Raises:
            InvalidScope: When the user is missing, empty or ``*``.
        """
        check_access(scope, Operation.READ)
        user = scope.user(user_id)
        allowed = readable_privacy(scope)
        found = await self.graph.memories(
            scope.tenant, [checked_id(item, "memory id") for item in ids]
        )
        return {
            memory.id: memory
            for memory in found
            if memory.user_id in {None, user} and memory.privacy in allowed
        }

    async def memory(self, scope: Scope, user_id: str, memory_id: str) -> Memory:
        """Return one memory of a user, or a shared one.

        Raises:
            NotFound: When there is none that the user may see.
        """
        found = await self.memories(scope, user_id, [memory_id])
        if memory_id not in found:
            msg = f"there is no memory {memory_id!r} in this scope"
            raise NotFound(msg)
        return found[memory_id]

    async def entities(
        self, scope: Scope, user_id: str, refs: Sequence[EntityRef]
    ) -> Mapping[EntityRef, Entity]:
        """Return the user's own and shared entities; what he may not see is left out.

        Raises:
            UnknownType: When the domain has no such type.
        """
        check_access(scope, Operation.READ)
        user = scope.user(user_id)
        for ref in refs:
            if ref.type not in self.domain.entities:
                msg = f"the domain has no entity type {ref.type!r}"
                raise UnknownType(msg)
            checked_id(ref.id, "entity id")
        return {
            entity.ref: entity
            for entity in await self.graph.visible_entities(scope.tenant, user, refs)
        }

    async def entity(self, scope: Scope, user_id: str, ref: EntityRef) -> Entity:
        """Return one entity of a user, or a shared one.

        Raises:
            NotFound: When there is none that the user may see.
        """
        found = await self.entities(scope, user_id, [ref])
        if ref not in found:
            msg = f"there is no {ref.type} {ref.id!r} in this scope"
            raise NotFound(msg)
        return found[ref]

    async def related(
        self,
        scope: Scope,
        user_id: str,
        refs: Sequence[EntityRef],
        relation: str,
        other: str,
        *,
        forward: bool = True,
        limit: int = 50,
    ) -> Mapping[EntityRef, tuple[Entity, ...]]:
        """Return, for each entity, the user's own or shared entities at a relation's other end.

        All of `refs` must have one type.

        Raises:
            UnknownRelation: When the domain has no such relation between the two types.
        """
        check_access(scope, Operation.READ)
        user = scope.user(user_id)
        for ref in refs:
            start, end = (ref.type, other) if forward else (other, ref.type)
            if self.domain.relation(relation, start, end) is None:
                msg = f"the domain has no relation {start}-{relation}->{end}"
                raise UnknownRelation(msg)
        if not refs:
            return {}
        return await self.graph.related(
            RelatedQuery(
                tenant=scope.tenant,
                user_id=user,
                refs=tuple(dict.fromkeys(refs)),
                relation=relation,
                other=other,
                forward=forward,
                limit=max(1, min(limit, MAX_RELATED)),
            )
        )

    async def reconcile(self) -> ReconcileReport:
        """Bring the index in line with the graph: finish what a crash or an outage left.

        Safe to run twice and in several processes.
        """
        return await reconcile(self)

    def reconcile_in_batches(self) -> AsyncIterator[ReconcileReport]:
        """Do the same, reporting after each batch."""
        return reconcile_in_batches(self)


def open_domain(settings: Settings) -> Domain:
    """Return the domain that the settings name.

    Raises:
        DomainFileInvalid: With every fault of the file and its line.
    """
    try:
        if settings.domain.endswith((".yaml", ".yml")):
            return load_domain(Path(settings.domain))
        return shipped_domain(settings.domain)
    except DomainFault as error:
        raise DomainFileInvalid(str(error)) from error
