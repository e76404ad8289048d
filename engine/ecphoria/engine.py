"""The engine: the verbs, nothing else. Each verb's first argument is the scope."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from ecphoria.access_log import AccessLog
from ecphoria.audit_log import AuditLog
from ecphoria.changes import ChangeFeed
from ecphoria.chat.summarize import ChatSummarizer
from ecphoria.clock import Clock
from ecphoria.embedding.open import open_embedder
from ecphoria.errors import (
    DomainFileInvalid,
    Forbidden,
    InternalError,
    NotFound,
    UnknownRelation,
    UnknownType,
)
from ecphoria.extraction.open import open_chat, open_extractor
from ecphoria.governance.access import Operation, check_access
from ecphoria.governance.data_keys import DataKeys, EncryptionStatus, RotationProgress
from ecphoria.governance.key_ring import open_key_ring
from ecphoria.governance.pseudonyms import Pseudonyms
from ecphoria.governance.reveal import shown_entities
from ecphoria.language.lexicon import Lexicon
from ecphoria.lifecycle.ageing import AgeingReport, age
from ecphoria.lifecycle.feedback import (
    complete_task,
    completion_tasks,
    give_feedback,
    list_feedback,
    undo_feedback,
)
from ecphoria.lifecycle.forget import ForgetReport, ForgetRule, forget, forget_by_rule
from ecphoria.lifecycle.forget_user import (
    ForgetCheck,
    ForgetProgress,
    ForgetReceipt,
    allow_forgotten,
    forget_user,
    verify_forgotten,
)
from ecphoria.lifecycle.history import AttributeHistory, attribute_history
from ecphoria.lifecycle.keyed_calls import Attempt, KeyedRequest, by_hand, once
from ecphoria.lifecycle.reconcile import ReconcileReport, reconcile, reconcile_in_batches
from ecphoria.lifecycle.reembed import (
    ReembedProgress,
    ReembedStatus,
    drop_old,
    reembed,
    reembed_status,
)
from ecphoria.lifecycle.verify import VerifyProgress, verify
from ecphoria.lifecycle.worker import RoundReport, work_for_ever, work_once
from ecphoria.model import (
    AuditEntry,
    AuditFilter,
    AuditOutcome,
    CompletionTask,
    Conflict,
    Entity,
    EntityGraph,
    EntityInput,
    EntityReceipts,
    EntityRef,
    Feedback,
    FeedbackFilter,
    FeedbackInput,
    FeedbackReceipt,
    Link,
    Memory,
    MemoryChange,
    MemoryFilter,
    MemoryInput,
    Page,
    Principal,
    RecallRequest,
    RecallResult,
    Receipt,
    RelationInput,
    Scope,
    SessionContext,
    SourceInfo,
    Speaker,
    Stats,
    TaskStatus,
    checked_id,
)
from ecphoria.parts import EngineParts
from ecphoria.reading import listing, overview
from ecphoria.reading.audit import audit_log
from ecphoria.reading.conflicts import conflicts
from ecphoria.reading.entity_graph import entity_graph
from ecphoria.reading.paging import DEFAULT_FIRST
from ecphoria.reading.visible import shown
from ecphoria.recall.pipeline import recall
from ecphoria.recall.query_cache import QueryCache
from ecphoria.recall.topic_sense import TopicSense
from ecphoria.remember.by_hand import correct, retract, supersede
from ecphoria.remember.entities import upsert_entities
from ecphoria.remember.pipeline import remember
from ecphoria.reranking.open import open_reranker
from ecphoria.session.flush import SessionFlush, end_session, flush_before_end
from ecphoria.session.sealed_store import SealedSessions
from ecphoria.session.summary import ExtractiveSummarizer
from ecphoria.session.turns import remember_turn, session_context
from ecphoria.settings import Settings
from ecphoria.stores.open import open_stores
from ecphoria.stores.open_sessions import open_sessions
from ecphoria.stores.ports import ExpandQuery, Generation, Lineage, RelatedQuery, ServerInfo
from ecphoria_schema.domain import Domain, DomainFault, load_domain, shipped_domain

MAX_RELATED = 200

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Health:
    """What answered a ping: the stores and the embedding model."""

    graph: ServerInfo
    vectors: ServerInfo
    sessions: ServerInfo
    model: str


@dataclass(frozen=True, slots=True)
class Engine(EngineParts):
    """A memory engine over one graph store and one vector index.

    Open one with `Engine.open`; it is safe for concurrent use in one event loop.
    """

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, settings: Settings, *, clock: Clock | None = None, any_model: bool = False
    ) -> AsyncIterator[Engine]:
        """Start or connect to the stores, migrate the graph, prepare the index.

        Args:
            settings: Which stores, model and domain.
            clock: Where time comes from.
            any_model: Open it, whatever model the vector index was made with; until `reembed`
                has changed it over, memories are kept, but neither indexed nor searched for.

        Raises:
            DomainFileInvalid: With every fault of the domain file.
            StoreError: When a store cannot be started, reached, or does not fit the settings.
            ModelUnavailable: When the embedding model or the reranker cannot be loaded.
            EncryptionKeyWrong: When the graph holds what was encrypted under a master key that is
                not set, or is set to other bytes.
        """
        domain = open_domain(settings)
        async with contextlib.AsyncExitStack() as stack:
            embedder = await open_embedder(settings)
            stack.push_async_callback(embedder.close)
            reranker = await open_reranker(settings)
            if reranker is not None:
                stack.push_async_callback(reranker.close)
            graph, index = await stack.enter_async_context(open_stores(settings, domain))
            await graph.migrate()
            clock = clock or Clock()
            vault = DataKeys(graph, open_key_ring(settings), clock)
            await vault.check()
            if not any_model:
                await index.prepare(embedder.spec)
            lexicon = Lexicon(domain)
            chat = open_chat(settings, clock)
            if chat is not None:
                stack.push_async_callback(chat.close)
            extractor = await stack.enter_async_context(
                open_extractor(settings, domain, lexicon, chat)
            )
            access = AccessLog(graph, domain, clock)
            await stack.enter_async_context(access.running())
            pseudonyms = Pseudonyms(vault)
            audit = AuditLog(graph, pseudonyms, clock)
            await stack.enter_async_context(audit.running())
            vault.watch_reads(audit.note_read)
            sessions = await stack.enter_async_context(open_sessions(settings))
            sealed_sessions = SealedSessions(sessions, vault, domain)
            queries = QueryCache(settings.query_cache_size)
            engine = cls(
                graph=graph,
                index=index,
                embedder=embedder,
                domain=domain,
                lexicon=lexicon,
                settings=settings,
                clock=clock,
                extractor=extractor,
                access=access,
                changes=ChangeFeed(told=queries.drop),
                sessions=sealed_sessions,
                summarizer=ChatSummarizer(chat) if chat else ExtractiveSummarizer(lexicon),
                queries=queries,
                topic_sense=TopicSense(domain),
                reranker=reranker,
                vault=vault,
                pseudonyms=pseudonyms,
                audit=audit,
            )
            stack.push_async_callback(flush_before_end, engine)
            yield engine

    async def health(self) -> Health:
        """Ping the stores.

        Raises:
            StoreUnavailable: When one does not answer.
        """
        return Health(
            await self.graph.ping(),
            await self.index.ping(),
            await self.sessions.ping(),
            self.embedder.spec.model,
        )

    async def warm_up(self) -> None:
        """Load the models and let the graph store plan every expansion.

        A graph store takes seconds to plan a text that it has never seen (measured: 2 to 6 s on
        Neo4j), which the first question would pay for.

        Raises:
            StoreUnavailable: When the graph does not answer.
            EmbeddingFailed: When the embedding model fails.
            RerankingFailed: When the reranker fails.
        """
        await asyncio.to_thread(self.lexicon.spelling.warm_up)
        await self.topic_sense.load(self.embedder)
        if self.reranker is not None:
            await self.reranker.scores("warm up", ["warm up"])
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

    async def once(
        self,
        scope: Scope,
        request: KeyedRequest,
        act: Callable[[Attempt], Awaitable[_T]],
        answer: type[_T],
        keep: Callable[[_T], _T | None],
    ) -> _T:
        """Act once for an idempotency key; return the first answer to who asks again.

        For `idempotency_hours`, by tenant and principal. After a crash between the write and its
        record nothing is written twice; the status may then say DUPLICATE for CREATED.

        Args:
            scope: For whom.
            request: The key, and what is asked for.
            act: Does it; what happens "now" happens at `Attempt.since`.
            answer: The type that `act` returns, made of dataclasses and plain values.
            keep: What of an answer is kept for who asks again; None when nothing was written, so
                that the call may be mended and sent with the same key.

        Raises:
            IdempotencyKeyReused: When the key came before with another request.
            IdempotencyKeyInUse: When a call with the key is under way.
            StoreUnavailable: When the graph does not answer.
        """
        return await once(self, scope, request, act, answer, keep)

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
        async with self.audit.doing(scope, "upsertEntities") as deed:
            check_access(scope, Operation.UPSERT_ENTITIES)
            deed.count = len(entities) + len(relations)
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
        receipts = await remember(self, scope, items)
        for item, receipt in zip(items, receipts, strict=True):
            if receipt.code == Forbidden.code:
                self.audit.note(
                    scope,
                    "remember",
                    item.user_id,
                    outcome=AuditOutcome.REFUSED,
                    code=receipt.code,
                )
        return receipts

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
        found = await self.graph.memories(
            scope.tenant, [checked_id(item, "memory id") for item in ids]
        )
        return {memory.id: memory for memory in await shown(self, scope, user, found)}

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
        found = await self.graph.visible_entities(scope.tenant, user, refs)
        shown = await shown_entities(self.vault, self.domain, scope, found)
        return {entity.ref: entity for entity in shown}

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
        found = await self.graph.related(
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
        every = [entity for entities in found.values() for entity in entities]
        shown = iter(await shown_entities(self.vault, self.domain, scope, every))
        return {start: tuple(next(shown) for _ in ends) for start, ends in found.items()}

    # --- looking around --------------------------------------------------------------------

    async def list_memories(
        self,
        scope: Scope,
        user_id: str,
        filter_: MemoryFilter | None = None,
        *,
        first: int = DEFAULT_FIRST,
        after: str | None = None,
    ) -> Page[Memory]:
        """Return a page of a user's memories, newest first.

        Pages stay whole while others write: none is there twice, and none that was there when the
        first page was read is lost. What has expired is left out.

        Args:
            scope: For whom.
            user_id: Whose memories.
            filter_: Which of them; active ones of his own if None.
            first: Memories a page.
            after: Cursor of the memory that the page comes after.

        Raises:
            InvalidInput: For a bad filter or size; `path` names it.
            InvalidCursor: When the cursor is damaged, or of another list.
        """
        check_access(scope, Operation.READ)
        wanted = filter_ or MemoryFilter()
        return await listing.list_memories(self, scope, user_id, wanted, first, after)

    async def count_memories(
        self, scope: Scope, user_id: str, filter_: MemoryFilter | None = None
    ) -> int:
        """Return how many memories the list has in all its pages. Errors as for `list_memories`."""
        check_access(scope, Operation.READ)
        return await listing.count_memories(self, scope, user_id, filter_ or MemoryFilter())

    async def list_entities(
        self,
        scope: Scope,
        user_id: str,
        type_: str,
        *,
        first: int = DEFAULT_FIRST,
        after: str | None = None,
    ) -> Page[Entity]:
        """Return a page of a user's own entities of a type, or of the shared ones, by id.

        Raises:
            UnknownType: When the domain has no such type.
            InvalidCursor: When the cursor is damaged, or of another list.
        """
        check_access(scope, Operation.READ)
        return await listing.list_entities(self, scope, user_id, type_, first, after)

    async def count_entities(self, scope: Scope, user_id: str, type_: str) -> int:
        """Return how many entities the list has in all its pages."""
        check_access(scope, Operation.READ)
        return await listing.count_entities(self, scope, user_id, type_)

    async def related_pages(
        self,
        scope: Scope,
        user_id: str,
        refs: Sequence[EntityRef],
        relation: str,
        others: Sequence[str],
        *,
        forward: bool = True,
        first: int = DEFAULT_FIRST,
        after: str | None = None,
    ) -> Mapping[EntityRef, Page[Entity]]:
        """Return, for each entity, a page of what `related` does: by type, then by id.

        All of `refs` must have one type; with a cursor there is one of them.

        Raises:
            UnknownRelation: When the domain has no such relation between the types.
            InvalidCursor: When the cursor is damaged, or of another list.
        """
        check_access(scope, Operation.READ)
        return await listing.related_pages(
            self, scope, user_id, refs, relation, others, forward=forward, first=first, after=after
        )

    async def conflicts(
        self,
        scope: Scope,
        user_id: str,
        *,
        topic: str | None = None,
        first: int = DEFAULT_FIRST,
        after: str | None = None,
    ) -> Page[Conflict]:
        """Return a page of what contradicts itself now in what is known about a user.

        Raises:
            InvalidCursor: When the cursor is damaged, or of another list.
        """
        check_access(scope, Operation.READ)
        return await conflicts(self, scope, user_id, topic, first, after)

    async def entity_graph(
        self,
        scope: Scope,
        user_id: str,
        ref: EntityRef,
        *,
        path: str | None = None,
        depth: int | None = None,
    ) -> EntityGraph:
        """Return what is connected to an entity, of what the user may see.

        Args:
            scope: For whom.
            user_id: For which user.
            ref: Where to begin.
            path: Down this expansion path of the domain, with its caps; every way if None.
            depth: How many steps, 4 at most; 2, or the whole path, if None.

        Raises:
            NotFound: When there is no such entity that the user may see.
            InvalidInput: When there is no such path, or it does not lead through the type.
        """
        check_access(scope, Operation.READ)
        return await entity_graph(self, scope, user_id, ref, path, depth)

    async def sources(self, scope: Scope) -> tuple[SourceInfo, ...]:
        """Return the sources of memories, by id, and how far they are trusted."""
        check_access(scope, Operation.READ)
        return await overview.sources(self, scope)

    async def stats(self, scope: Scope, user_id: str) -> Stats:
        """Count what there is of a user: his own memories and entities."""
        check_access(scope, Operation.READ)
        return await self.graph.stats(scope.tenant, scope.user(user_id))

    async def tenant_stats(self, scope: Scope) -> Stats:
        """Count what there is of all users, and what they share. For operators."""
        check_access(scope, Operation.OPERATE)
        return await self.graph.stats(scope.tenant, None)

    async def me(self, scope: Scope) -> Principal:
        """Return who the scope stands for, and what it may do. Every role may ask."""
        check_access(scope, Operation.KNOW_ONESELF)
        return await overview.me(self, scope)

    # --- putting right ---------------------------------------------------------------------

    async def supersede(
        self,
        scope: Scope,
        memory_id: str,
        new: MemoryInput,
        reason: str,
        *,
        attempt: Attempt | None = None,
    ) -> Receipt:
        """Put a new memory in an old one's place, from its own `valid_from` on.

        The old one stays, with its end, the reason and the author; `new.user_id` says whose it is.
        With an `attempt` (see `once`), what an earlier one has done is no error.

        Raises:
            NotFound: When there is no such memory of that user.
            NotCurrent: When it was replaced or taken back before.
            LessReliable: When the new source is less reliable and the scope may not overrule.
            Forbidden: When the scope's roles or users do not allow it.
        """
        async with self.audit.doing(scope, "supersede", new.user_id):
            check_access(scope, Operation.CHANGE)
            done = supersede(self, scope, memory_id, new, reason)
            return await by_hand(self, scope, memory_id, attempt, done)

    async def correct(
        self,
        scope: Scope,
        memory_id: str,
        new: MemoryInput,
        reason: str,
        *,
        attempt: Attempt | None = None,
    ) -> Receipt:
        """Put a memory in the place of one that was wrong all along: from the same time on.

        Errors as for `supersede`.
        """
        async with self.audit.doing(scope, "correct", new.user_id):
            check_access(scope, Operation.CHANGE)
            done = correct(self, scope, memory_id, new, reason)
            return await by_hand(self, scope, memory_id, attempt, done)

    async def retract(
        self,
        scope: Scope,
        user_id: str | None,
        memory_id: str,
        reason: str,
        *,
        attempt: Attempt | None = None,
    ) -> Receipt:
        """Take a memory back: it was never true. What it had replaced holds again.

        It is not shown any more, except to who asks what was known before (`known_at`). Errors as
        for `supersede`.
        """
        async with self.audit.doing(scope, "retract", user_id):
            check_access(scope, Operation.CHANGE)
            done = retract(self, scope, user_id, memory_id, reason)
            return await by_hand(self, scope, memory_id, attempt, done)

    # --- feedback --------------------------------------------------------------------------

    async def feedback(self, scope: Scope, item: FeedbackInput) -> FeedbackReceipt:
        """Say of a memory that it is over, misfiled, incomplete, wrong or helpful; that acts.

        EXPIRED ends it, WRONG_TOPIC tags it anew, MISSING_INFO opens a completion task, WRONG
        lowers how far it and its source are believed, within the bounds of the settings, HELPFUL
        counts as a use. Said again by the same key it is a DUPLICATE, and changes nothing.

        Raises:
            NotFound: When there is no such memory of that user, or the scope may not read it.
            NotCurrent: When it was replaced or taken back before.
            InvalidInput: When a part does not fit the verdict; `path` names it.
            LessReliable: When it is to end or to be re-tagged, its source is more reliable than
                the default one, and the scope may not overrule.
            FeedbackLimit: When the key has given as much in 24 hours as it may.
            Forbidden: When the scope's roles or users do not allow it.
        """
        async with self.audit.doing(scope, "feedback", item.user_id):
            check_access(scope, Operation.FEEDBACK)
            return await give_feedback(self, scope, item)

    async def undo_feedback(
        self, scope: Scope, user_id: str | None, feedback_id: str
    ) -> FeedbackReceipt:
        """Take feedback back: all is as it would be without it; the record stays.

        Args:
            scope: For whom.
            user_id: Whose memory it is about; None = a shared one.
            feedback_id: Of the record. One that was taken back before is UNCHANGED.

        Raises:
            NotFound: When there is no such feedback on that user's memories.
            Forbidden: When another key gave it, and the scope is no operator's or admin's.
        """
        async with self.audit.doing(scope, "undoFeedback", user_id):
            check_access(scope, Operation.FEEDBACK)
            return await undo_feedback(self, scope, user_id, feedback_id)

    async def list_feedback(
        self,
        scope: Scope,
        user_id: str | None,
        filter_: FeedbackFilter | None = None,
        *,
        first: int = DEFAULT_FIRST,
        after: str | None = None,
    ) -> Page[Feedback]:
        """Return a page of feedback on a user's memories, or on shared ones, the newest first.

        Raises:
            InvalidInput: For a bad filter or size; `path` names it.
            InvalidCursor: When the cursor is damaged, or of another list.
            Forbidden: When the scope's roles or users do not allow it.
        """
        check_access(scope, Operation.READ_FEEDBACK)
        return await list_feedback(self, scope, user_id, filter_ or FeedbackFilter(), first, after)

    async def completion_tasks(
        self,
        scope: Scope,
        user_id: str | None,
        *,
        status: TaskStatus | None = None,
        first: int = DEFAULT_FIRST,
        after: str | None = None,
    ) -> Page[CompletionTask]:
        """Return a page of what is missing in a user's, or in shared, memories, the newest first.

        A task is done once somebody says so, or its memory is replaced or taken back.

        Raises:
            InvalidCursor: When the cursor is damaged, or of another list.
            Forbidden: When the scope's roles or users do not allow it.
        """
        check_access(scope, Operation.READ_FEEDBACK)
        return await completion_tasks(self, scope, user_id, status, first, after)

    async def complete_task(
        self, scope: Scope, user_id: str | None, task_id: str, memory_id: str | None = None
    ) -> CompletionTask:
        """Note that what was missing is there; done again it changes nothing.

        Args:
            scope: For whom.
            user_id: Whose memory is incomplete; None = a shared one.
            task_id: Of the task.
            memory_id: The memory that has what was missing, if there is one.

        Raises:
            NotFound: When there is no such task, or memory, of that user.
            Forbidden: When the scope's roles or users do not allow it.
        """
        async with self.audit.doing(scope, "completeTask", user_id):
            check_access(scope, Operation.FEEDBACK)
            return await complete_task(self, scope, user_id, task_id, memory_id)

    # --- forgetting ------------------------------------------------------------------------

    async def forget(
        self, scope: Scope, user_id: str, ids: Sequence[str], reason: str
    ) -> ForgetReport:
        """Erase a user's own memories for good; what is left is the id, so none comes back.

        With the id of a text goes all that was cut from it.

        Raises:
            Forbidden: When the scope's roles or users do not allow it.
        """
        async with self.audit.doing(scope, "forget", user_id) as deed:
            check_access(scope, Operation.FORGET)
            report = await forget(self, scope, user_id, ids, reason)
            deed.count = report.forgotten
            return report

    async def forget_by_rule(
        self, scope: Scope, rule: ForgetRule, *, dry_run: bool = True
    ) -> ForgetReport:
        """Erase what a rule meets, or (by default) only tell what would go and why.

        Raises:
            InvalidInput: When the rule has no criterion, or one out of range.
            Forbidden: When the scope's roles or users do not allow it.
        """
        operation = "forgetByRule (dry run)" if dry_run else "forgetByRule"
        async with self.audit.doing(scope, operation, rule.user_id) as deed:
            check_access(scope, Operation.FORGET)
            report = await forget_by_rule(self, scope, rule, dry_run=dry_run)
            deed.count = len(report.items)
            return report

    async def forget_user(self, scope: Scope, user_id: str, reason: str) -> ForgetReceipt:
        """Forget a user: all that is his, in every store, so that nothing of him comes back.

        His memories, entities, conversations, index rows and his data key go; what is shared, and
        what is others', stays. From the first moment on no reader finds any of it. Interrupted,
        the worker, or the same call, finishes the removal.

        Raises:
            InvalidInput: When there is no reason.
            Forbidden: When the scope's roles or users do not allow it.
            StoreUnavailable: When a store does not answer.
        """
        receipt: ForgetReceipt | None = None
        async for progress in self.forget_user_in_batches(scope, user_id, reason):
            receipt = progress.receipt
        if receipt is None:
            msg = "a user was not forgotten"
            raise InternalError(msg)
        return receipt

    async def forget_user_in_batches(
        self, scope: Scope, user_id: str, reason: str
    ) -> AsyncIterator[ForgetProgress]:
        """Do the same, reporting after each batch; the last report has the receipt."""
        async with self.audit.doing(scope, "forgetUser", user_id) as deed:
            check_access(scope, Operation.FORGET)
            async for progress in forget_user(self, scope, user_id, reason):
                deed.count = progress.removed
                yield progress

    async def verify_forgotten(self, scope: Scope, user_id: str) -> ForgetCheck:
        """Search every store for what is left of a user.

        Raises:
            Forbidden: When the scope's roles or users do not allow it.
            StoreUnavailable: When a store does not answer: then nothing is said.
        """
        async with self.audit.doing(scope, "verifyForgotten", user_id):
            check_access(scope, Operation.FORGET)
            return await verify_forgotten(self, scope, user_id)

    async def allow_forgotten(self, scope: Scope, user_id: str) -> bool:
        """Let a forgotten user come back: what is written from now on is kept again.

        What was forgotten stays so. False when he was not forgotten.

        Raises:
            Forbidden: When the scope's roles or users do not allow it.
            StoreUnavailable: When a store does not answer.
        """
        async with self.audit.doing(scope, "allowForgotten", user_id):
            check_access(scope, Operation.FORGET)
            return await allow_forgotten(self, scope, user_id)

    async def audit_log(
        self,
        scope: Scope,
        filter_: AuditFilter | None = None,
        *,
        first: int = DEFAULT_FIRST,
        after: str | None = None,
    ) -> Page[AuditEntry]:
        """Return a page of who did what to whose data, the newest first.

        Raises:
            InvalidInput: For a bad filter or size; `path` names it.
            InvalidCursor: When the cursor is damaged, or of another list.
            Forbidden: When the scope's roles do not allow it.
        """
        check_access(scope, Operation.AUDIT)
        return await audit_log(self, scope, filter_ or AuditFilter(), first, after)

    async def attribute_history(
        self,
        scope: Scope,
        user_id: str,
        entity: EntityRef,
        attribute: str,
        *,
        subject: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> AttributeHistory:
        """Return the current value of an attribute, what contradicts it, and all before it.

        Args:
            scope: For whom.
            user_id: Whose memories.
            entity: Whose attribute; it need not be in the graph yet.
            attribute: One of the domain's, e.g. ``order.status``.
            subject: Of a keyed attribute.
            as_of: The moment the value must hold at; now if None.
            known_at: Only what was known then, as it stood then; now if None.

        Raises:
            UnknownProperty: When the domain has no such attribute.
        """
        check_access(scope, Operation.READ)
        return await attribute_history(
            self,
            scope,
            user_id,
            entity,
            attribute,
            subject=subject,
            as_of=as_of,
            known_at=known_at,
        )

    async def links(
        self, scope: Scope, user_id: str, ids: Sequence[str]
    ) -> Mapping[str, tuple[Link, ...]]:
        """Return what a user's own and shared memories are about, and how that was found."""
        seen = await self.memories(scope, user_id, ids)
        return await self.graph.links(scope.tenant, list(seen)) if seen else {}

    async def lineage(
        self, scope: Scope, user_id: str, ids: Sequence[str]
    ) -> Mapping[str, tuple[Lineage, ...]]:
        """Return what a user's memories replaced, contradict or may update, and the other way."""
        seen = await self.memories(scope, user_id, ids)
        return await self.graph.lineage(scope.tenant, list(seen)) if seen else {}

    async def remember_turn(
        self,
        scope: Scope,
        user_id: str,
        session_id: str,
        speaker: Speaker,
        text: str,
        *,
        said_at: datetime | None = None,
        turn_id: str | None = None,
    ) -> SessionContext:
        """Keep one message of a conversation; return what is now kept of it.

        It becomes long-term memory when the session ends, or when nothing has been said for
        `session_ttl_s`. Without Redis it is in this process only, until then.

        Args:
            scope: For whom.
            user_id: Whose conversation it is.
            session_id: The caller's own id of the conversation.
            speaker: ``customer`` or ``service``.
            text: What was said.
            said_at: When; now if None.
            turn_id: The caller's own id: sent again, it is the same turn.

        Raises:
            InvalidInput: When the text, an id, the speaker or the time is no good.
            StoreUnavailable: When the session store does not answer.
        """
        return await remember_turn(
            self, scope, user_id, session_id, speaker, text, said_at=said_at, turn_id=turn_id
        )

    async def session(self, scope: Scope, user_id: str, session_id: str) -> SessionContext:
        """Return what is kept of a conversation; one that is unknown or over is empty.

        Raises:
            StoreUnavailable: When the session store does not answer.
        """
        return await session_context(self, scope, user_id, session_id)

    async def end_session(self, scope: Scope, user_id: str, session_id: str) -> SessionFlush:
        """Bring a conversation to long-term memory now.

        Raises:
            StoreUnavailable: When a store does not answer; what was not written is still kept.
        """
        return await end_session(self, scope, user_id, session_id)

    def listen(self, scope: Scope, user_id: str) -> AsyncIterator[MemoryChange]:
        """Yield what happens to a user's own and shared memories in this process, from now on.

        Raises:
            InvalidScope: When the user is missing, empty or ``*``.
            Forbidden: When the scope's roles or users do not allow it.
        """
        check_access(scope, Operation.READ)
        return self.changes.listen(scope.tenant, scope.user(user_id))

    async def reconcile(self) -> ReconcileReport:
        """Bring the index in line with the graph: finish what a crash or an outage left.

        Safe to run twice and in several processes.
        """
        return await reconcile(self)

    def verify(
        self, *, repair: bool = False, tenant: str | None = None
    ) -> AsyncIterator[VerifyProgress]:
        """Compare graph and index in full, reporting after each page; the last report is whole.

        Args:
            repair: Mend what differs.
            tenant: Of this tenant only; None = of all.

        Raises:
            StoreUnavailable: When a store does not answer; what was mended stays mended.
        """
        return verify(self, repair=repair, tenant=tenant)

    def reembed(
        self, *, force: bool = False, rollback: bool = False
    ) -> AsyncIterator[ReembedProgress]:
        """Change the index over to this engine's model while the old one serves.

        Open the engine with `any_model`. On servers other processes go on meanwhile, and are
        restarted with the new settings afterwards. Interrupted, the same call goes on.

        Args:
            force: Build it anew although it is of this model.
            rollback: Go back to what served before.

        Raises:
            ReembedInProgress: When another run is under way.
            NotFound: When there is nothing to go back to.
            EmbeddingMismatch: When what there is to go back to is of another model.
            EmbeddingFailed: When the model fails on too many memories; nothing was switched.
            StoreUnavailable: When a store does not answer.
        """
        return reembed(self, force=force, rollback=rollback)

    async def drop_old_indexes(self, *, unfinished: bool = False) -> tuple[Generation, ...]:
        """Drop what `reembed` has kept to go back to; return it.

        Args:
            unfinished: Also what an interrupted `reembed` has begun to fill.

        Raises:
            ReembedInProgress: When a run is under way.
        """
        return await drop_old(self, unfinished=unfinished)

    async def reembed_status(self) -> ReembedStatus:
        """Return which generations of the index there are, and whether `reembed` runs."""
        return await reembed_status(self)

    def reconcile_in_batches(self) -> AsyncIterator[ReconcileReport]:
        """Do the same, reporting after each batch."""
        return reconcile_in_batches(self)

    async def encryption_status(self) -> EncryptionStatus:
        """Return which master keys are in use, and for how many data keys."""
        return await self.vault.status()

    def rotate_master_key(self) -> AsyncIterator[RotationProgress]:
        """Wrap every data key by the current master key, reporting after each page.

        Interrupted, the same call goes on with what is left.

        Raises:
            EncryptionKeyMissing: When no master key is set.
        """
        return self.vault.rotate()

    async def age(self) -> AgeingReport:
        """Drop what has expired and archive what nobody uses. Safe in several processes."""
        return await age(self)

    async def work_once(self, worker: str) -> RoundReport:
        """Do one round of all background work, as the worker of that name."""
        return await work_once(self, worker)

    async def work_for_ever(self, worker: str) -> None:
        """Do background work until cancelled; failures are logged."""
        await work_for_ever(self, worker)


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
