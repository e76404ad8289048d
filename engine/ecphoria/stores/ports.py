"""The two ports behind which stores live. Adapters translate, they decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from ecphoria.model import (
    ApiKey,
    AuditEntry,
    CompletionTask,
    Edge,
    EmbeddingSpec,
    Entity,
    EntityRef,
    Feedback,
    IndexState,
    Link,
    Memory,
    NamedEntity,
    PropertyValue,
    SourceInfo,
    Stats,
    Status,
    TaskStatus,
    Topics,
    Vector,
    Verdict,
)
from ecphoria.trust import TrustBounds
from ecphoria_schema.domain import Kind, KindPolicy
from ecphoria_schema.reading import Step


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What answered: product and version, e.g. ``Neo4j/5.26.18``."""

    product: str
    version: str


# --- graph ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EntityRow:
    """A validated entity to write.

    Attributes:
        props: Properties in store form; None removes nothing, absent ones stay.
        observed_at: When the properties were true.
    """

    ref: EntityRef
    props: Mapping[str, PropertyValue]
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class RelationRow:
    """A validated relation to write."""

    type: str
    from_: EntityRef
    to: EntityRef


@dataclass(frozen=True, slots=True)
class EntityWrite:
    """Outcome of an entity write: per entity, and how many relations were new."""

    outcomes: tuple[Literal["CREATED", "UPDATED", "UNCHANGED"], ...]
    relations_created: int


@dataclass(frozen=True, slots=True)
class Mention:
    """An id in a memory's text that belongs to no entity of its scope yet.

    Attributes:
        text: As written.
        entity: The entity it would be; several mentions of one text are alternatives.
    """

    text: str
    entity: EntityRef
    certainty: float


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to write, with everything it is connected to.

    Attributes:
        links: Entities that `visible_entities` has found.
        mentions: Ids that wait for their entity.
        resembles: Keys of near-equal memories with other numbers, names or dates.
        first: Key of the first memory of the same text: without it this one is not kept either.
        how: Why it replaces `memory.supersedes`: on its writer's word, or by hand.
        reason: Why, in words.
        by: Who said so.
    """

    memory: Memory
    links: tuple[Link, ...] = ()
    mentions: tuple[Mention, ...] = ()
    resembles: tuple[str, ...] = ()
    first: str | None = None
    how: Literal["stated", "hand"] = "stated"
    reason: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Reinforcement:
    """That a memory was said again.

    Attributes:
        text: The same in better words, if they are.
        times: How often.
    """

    key: str
    text: str | None = None
    times: int = 1


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """Outcome of one memory write.

    CONFLICT: the id is taken by a memory with other content or of another user; `conflict` is
    the sentence that says which. FORGOTTEN: the id belonged to a memory that was forgotten.

    Attributes:
        index_state: Of a DUPLICATE, whether the index has what is kept.
        supersedes: Keys of the memories whose validity it ended.
        superseded_by: Key of the newer memory that ended its own.
        conflicts_with: Keys of the more reliable memories it contradicts.
    """

    key: str
    outcome: Literal["CREATED", "DUPLICATE", "CONFLICT", "FORGOTTEN"]
    conflict: str = ""
    index_state: IndexState = IndexState.PENDING
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    conflicts_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoriesWritten:
    """Outcome of one `write_memories`.

    Attributes:
        writes: One a memory, in order.
        pending: What must be indexed now.
        missed: Keys that were to be reinforced, but are not current any more.
    """

    writes: tuple[MemoryWrite, ...]
    pending: tuple[PendingMemory, ...]
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changed:
    """A memory that a life-cycle step has changed."""

    key: str
    tenant: str
    id: str
    user_id: str | None


@dataclass(frozen=True, slots=True)
class Lineage:
    """A relation between two memories, seen from one of them.

    Attributes:
        type: SUPERSEDES, CONFLICTS_WITH or POSSIBLE_UPDATE_OF.
        outgoing: Whether it leads from the memory asked for to the other.
        how: ``attribute`` (by the rules), ``stated`` (by the writer), ``hand``.
    """

    type: str
    outgoing: bool
    other: str
    how: str | None
    reason: str | None
    by: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Uses:
    """How often memories were used since the last count, and when last."""

    count: int
    last: datetime


@dataclass(frozen=True, slots=True)
class PendingMemory:
    """A memory whose index row must be made again.

    Attributes:
        token: What `mark_indexed` must present; a later change of the memory changes it.
        memory: None when the row is to be deleted.
    """

    key: str
    token: str
    memory: Memory | None


@dataclass(frozen=True, slots=True)
class MemoryState:
    """A memory as the graph has it now.

    Attributes:
        memory: None when there is none, or it was forgotten.
        pending: Whether its index row is known to be behind.
    """

    key: str
    memory: Memory | None
    pending: bool


@dataclass(frozen=True, slots=True)
class DataKeyRow:
    """A data key as stored.

    Attributes:
        wrapped: Under the master key `master_id`; None = destroyed.
    """

    key: str
    tenant: str
    user_id: str | None
    wrapped: str | None
    master_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ForgottenUser:
    """A user of whom nothing is kept any more, without his id in clear.

    Attributes:
        key: Graph key: tenant and a keyed hash of the user's id. What is hidden belongs to it.
        user_id: Only until all of his is removed.
        receipt: Id of the receipt.
        by: Who asked for it.
        counts: What was removed so far, by what it was.
        lifted_at: When the user was allowed again; None = nothing of him is taken.
    """

    key: str
    tenant: str
    user_id: str | None
    receipt: str
    at: datetime
    by: str
    reason: str
    counts: Mapping[str, int] = field(default_factory=dict)
    finished_at: datetime | None = None
    lifted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RemovedNodes:
    """What one batch removed: memories by id, and how many entities."""

    memories: tuple[str, ...]
    entities: int


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which entries of the audit log to read, the newest first.

    Attributes:
        users: Hashes of one user's id; None = of everybody.
        before: Id of the entry that the page comes after; empty = from the newest on.
    """

    tenant: str
    limit: int
    before: str = ""
    users: tuple[str, ...] | None = None
    principal: str | None = None
    operation: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """A call with an idempotency key, as it is on record.

    Attributes:
        key: Of the record: a hash of the caller and the idempotency key.
        request: A keyed hash of what was asked for.
        begun_at: When the first attempt was made.
        users: Whose data it is about.
        attempts: How many tries were made to act; more than one where the first left no answer.
        holder: Token of the attempt that acts, or acted last.
        answer: What the caller got, sealed; None as long as there is none.
    """

    key: str
    tenant: str
    request: str
    begun_at: datetime
    users: tuple[str, ...] = ()
    attempts: int = 1
    holder: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class FeedbackRules:
    """By what feedback acts.

    Attributes:
        per_day: So many a key may give in 24 hours.
        bounds: How far it lowers trust.
        policies: How memories of each kind fade.
        outline: Text of a memory of which nothing else is kept, under other topics.
    """

    per_day: int
    bounds: TrustBounds
    policies: Mapping[Kind, KindPolicy]
    outline: Callable[[Memory, Topics], str]


@dataclass(frozen=True, slots=True)
class NewFeedback:
    """Feedback to keep, and the task that it opens; what it finds is filled in by the store."""

    feedback: Feedback
    task: CompletionTask | None = None


@dataclass(frozen=True, slots=True)
class FeedbackWritten:
    """Outcome of giving feedback, or of taking it back.

    Attributes:
        outcome: GONE: the memory is not there any more, or not current.
        feedback: As kept; None when GONE.
        pending: What must be indexed now.
    """

    outcome: Literal["GIVEN", "DUPLICATE", "GONE", "UNDONE", "UNCHANGED"]
    feedback: Feedback | None
    pending: tuple[PendingMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedbackQuery:
    """Which feedback to read.

    Attributes:
        user_id: On his memories; None = on shared ones.
        before: Id of the one that the page comes after; empty = from the newest on.
    """

    tenant: str
    user_id: str | None
    limit: int
    before: str = ""
    memory_id: str | None = None
    verdict: Verdict | None = None
    standing: bool | None = None


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which completion tasks to read; as for `FeedbackQuery`."""

    tenant: str
    user_id: str | None
    limit: int
    before: str = ""
    status: TaskStatus | None = None


@dataclass(frozen=True, slots=True)
class RelatedQuery:
    """Which relation to follow from which entities of one type, for which user.

    Attributes:
        forward: In the relation's own direction.
        limit: Most entities for each start.
    """

    tenant: str
    user_id: str
    refs: tuple[EntityRef, ...]
    relation: str
    other: str
    forward: bool
    limit: int


@dataclass(frozen=True, slots=True)
class RelatedPageQuery:
    """Which part of a relation's ends to read, for which user, from which entities of one type.

    Attributes:
        forward: In the relation's own direction.
        after: Graph key; ends follow it in order of their keys.
        limit: Most entities for each start.
    """

    tenant: str
    user_id: str
    refs: tuple[EntityRef, ...]
    relation: str
    other: str
    forward: bool
    after: str
    limit: int


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which of a user's memories to list, newest first.

    Attributes:
        now: What has expired by then is left out.
        since: The earliest moment at which they happened.
        until: They happened before this moment.
        entity: Graph key of what they are about; None = of anything.
        shared: Also what the tenant shares.
    """

    tenant: str
    user_id: str
    privacy: tuple[str, ...]
    now: datetime
    since: datetime
    until: datetime
    kinds: tuple[Kind, ...]
    statuses: tuple[Status, ...]
    topics: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    entity: str | None = None
    valid_at: datetime | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class ConflictQuery:
    """Whose contradicting memories to read.

    Attributes:
        at: They contradict each other at this moment.
    """

    tenant: str
    user_id: str
    privacy: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class InConflict:
    """A memory that contradicts another: what tells where it belongs.

    Attributes:
        recorded_at: Never changes, unlike what the memory contradicts.
    """

    id: str
    topic: str | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class StepStarts:
    """From where to take a step.

    Attributes:
        keys: Graph keys of entities that the user may see.
        cap: Most ends for each start.
    """

    keys: tuple[str, ...]
    cap: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What one step from an entity leads to."""

    step: Step
    start: str
    entity: Entity


@dataclass(frozen=True, slots=True)
class ExpandQuery:
    """What to expand from and how far.

    Attributes:
        seeds: Graph keys of seed memories.
        anchors: How many of the first seeds lend their entities as starting points.
        mentions: Entities named in the question, as candidate refs (they may not exist).
        from_root: Walk down from the user itself.
        newest: Types of which the user's newest are starting points, too.
        include_history: Return what is no longer current, and what is in the archive, too.
        include_retracted: Return what was taken back, too.
    """

    tenant: str
    user_id: str
    path: str
    seeds: tuple[str, ...]
    anchors: int
    mentions: tuple[EntityRef, ...]
    from_root: bool
    as_of: datetime
    privacy: tuple[str, ...]
    memories_per_entity: int
    scan_cap: int
    include_history: bool = False
    include_retracted: bool = False
    newest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expansion:
    """What one expansion brought.

    Attributes:
        seeds: Authoritative rows of the seeds that may be shown, `about` filled.
        others: Other current memories about the entities reached, `about` filled.
        entities: Entities reached, the user itself included.
        edges: Relations among them.
        mentioned: Which of the mentions exist and are visible.
        hidden: How many mentions exist but belong to another user.
        scanned_out: Whether a scan cap may have hidden memories.
    """

    seeds: tuple[Memory, ...] = ()
    others: tuple[Memory, ...] = ()
    entities: tuple[Entity, ...] = ()
    edges: tuple[Edge, ...] = ()
    mentioned: tuple[EntityRef, ...] = ()
    sources: tuple[SourceInfo, ...] = ()
    hidden: int = 0
    scanned_out: bool = False


# So many memories right before one in its session are its context. When one comes in between, or
# is forgotten, the rows of as many after it are made again.
CONTEXT_MEMORIES = 2


class GraphStore(Protocol):
    """The record: entities, memories and all that connects them."""

    async def ping(self) -> ServerInfo:
        """Answer a trivial query.

        Raises:
            StoreUnavailable: When nothing answers.
            StoreAuthenticationFailed: When it refuses the credentials.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...

    async def migrate(self) -> tuple[str, ...]:
        """Bring constraints, indexes and sources up to date; return what was applied.

        Raises:
            MigrationFailed: When a change fails or a recorded one was altered.
        """
        ...

    async def upsert_entities(
        self,
        tenant: str,
        entities: Sequence[EntityRow],
        relations: Sequence[RelationRow],
        unless: Sequence[str] = (),
    ) -> EntityWrite:
        """Write entities and relations in one transaction, or nothing.

        Args:
            tenant: Whose.
            entities: The entities.
            relations: Between these or others.
            unless: Keys of the tombstones of the users whose they are.

        Raises:
            UserForgotten: When a tombstone is in force.
            MissingEntity: When a relation's end does not exist; its path names the relation.
            CardinalityViolated: When a relation would break the domain's cardinality.
        """
        ...

    async def write_memories(
        self,
        new: Sequence[NewMemory],
        token: str,
        now: datetime,
        reinforced: Sequence[Reinforcement] = (),
        unless: Sequence[str] = (),
    ) -> MemoriesWritten:
        """Write memories with all that connects them, in one transaction; each is marked pending.

        An existing id with the same content and user is a DUPLICATE, and reinforced; with others
        it is a CONFLICT. What gives the value of the same attribute is put in order
        (`timeline.places`) in the same transaction, whoever else writes at the same time.

        Args:
            new: What to keep, each with a key of its own.
            token: Unique to this call; `mark_indexed` must present it.
            now: When this is recorded; at the earliest when the last one of the same attribute
                was, so that what was known when has one order, whatever clocks say.
            reinforced: Memories that were said again under another id.
            unless: Keys of the tombstones of the users whose they are.

        Raises:
            UserForgotten: When a tombstone is in force: nothing was written.
        """
        ...

    async def retract(
        self, tenant: str, memory_id: str, token: str, now: datetime, *, reason: str, by: str
    ) -> tuple[PendingMemory, ...]:
        """Take a memory back: it was never true. What it had replaced holds again.

        Returns:
            What must be indexed now; nothing when there is no such memory, or it is not current.
        """
        ...

    async def forget(
        self, keys: Sequence[str], token: str, now: datetime, reason: str
    ) -> tuple[Changed, ...]:
        """Erase memories for good, in one transaction; return those that were there.

        What is left is the key, so that a repeated write does not bring them back. What they had
        ended stays ended. Their rows in the index are marked pending, to be deleted.
        """
        ...

    async def expired(self, now: datetime, limit: int) -> tuple[str, ...]:
        """Return keys of memories that are to be dropped by now."""
        ...

    async def archive(self, now: datetime, limit: int, token: str) -> tuple[Changed, ...]:
        """Move memories to the archive whose time has come, and mark them pending."""
        ...

    async def record_access(
        self, uses: Mapping[str, Uses], token: str, policies: Mapping[Kind, KindPolicy]
    ) -> None:
        """Count uses, refresh what was used, and bring it back from the archive."""
        ...

    async def scan_memories(
        self, after: str, limit: int, tenant: str | None = None
    ) -> tuple[Memory, ...]:
        """Return memories of a tenant, or of all, by key after a key; forgotten ones left out."""
        ...

    async def said(self, memories: Sequence[Memory]) -> Mapping[str, tuple[Memory, ...]]:
        """Return, for each memory's key, current ones that say the same in the same words."""
        ...

    async def of_same_text(self, memories: Sequence[Memory]) -> tuple[Memory, ...]:
        """Return all memories that came from the same words as one of these; no forgotten ones."""
        ...

    async def claimed(self, claim: str) -> tuple[Memory, ...]:
        """Return all memories of a claim that are not forgotten."""
        ...

    async def links(self, tenant: str, ids: Sequence[str]) -> Mapping[str, tuple[Link, ...]]:
        """Return, for each memory id, what it is about, how certainly, and how that was found."""
        ...

    async def lineage(self, tenant: str, ids: Sequence[str]) -> Mapping[str, tuple[Lineage, ...]]:
        """Return, for each memory id, what it replaced, contradicts or may update, and back."""
        ...

    async def said_before(self, memories: Sequence[Memory]) -> Mapping[str, tuple[str, ...]]:
        """Return, for each memory's key, the texts of its context, the latest first.

        That is what the same user said, or was told, right before it in the same session; none of
        a stricter privacy than its own. A memory without a session has none.
        """
        ...

    async def session_entities(
        self, tenant: str, user_id: str, session_id: str, limit: int
    ) -> tuple[EntityRef, ...]:
        """Return the entities that the last memories of a session are about, latest first."""
        ...

    async def visible_entities(
        self, tenant: str, user_id: str | None, refs: Sequence[EntityRef]
    ) -> tuple[Entity, ...]:
        """Return those of the entities that exist and are the user's own or shared."""
        ...

    async def visible_refs(
        self, tenant: str, wanted: Mapping[str | None, Sequence[EntityRef]]
    ) -> Mapping[str | None, frozenset[EntityRef]]:
        """Return, for each user, which of his wanted entities exist and are his own or shared."""
        ...

    async def existing_entities(
        self, tenant: str, refs: Sequence[EntityRef]
    ) -> frozenset[EntityRef]:
        """Return which of the entities exist in the tenant, whoever owns them."""
        ...

    async def names(self, tenant: str, user_id: str | None) -> tuple[NamedEntity, ...]:
        """Return the names by which a user's entities, and what they are, may be called.

        Without a user: the names of the tenant's shared entities.
        """
        ...

    async def names_of(
        self, tenant: str, user_ids: Sequence[str | None]
    ) -> Mapping[str | None, tuple[NamedEntity, ...]]:
        """Return the same for many users at once."""
        ...

    async def ids_ending(
        self, tenant: str, user_id: str, type_: str, ends: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the ids of a user's own entities of a type with one of the ends; the first 100."""
        ...

    async def expand(self, query: ExpandQuery) -> Expansion:
        """Walk from seeds and mentions along the path, in one round trip."""
        ...

    async def memories(self, tenant: str, ids: Sequence[str]) -> tuple[Memory, ...]:
        """Return memories by the caller's ids, whatever their status; unknown ones are left out."""
        ...

    async def related(self, query: RelatedQuery) -> Mapping[EntityRef, tuple[Entity, ...]]:
        """Return, for each entity, the user's own or shared entities at a relation's other end."""
        ...

    async def list_memories(
        self, query: ListQuery, after: tuple[datetime, str] | None, limit: int
    ) -> tuple[Memory, ...]:
        """Return memories, the newest first, ties by key from the last on, in one round trip.

        Args:
            query: Which.
            after: When the last one of the page before happened, and its key.
            limit: How many at most.
        """
        ...

    async def count_listed(self, query: ListQuery) -> int:
        """Return how many memories `list_memories` would return without a limit."""
        ...

    async def list_entities(
        self, tenant: str, user_id: str, type_: str, after: str, limit: int
    ) -> tuple[Entity, ...]:
        """Return the user's own, or the tenant's shared, entities of a type, by key after a key."""
        ...

    async def count_entities(self, tenant: str, user_id: str, type_: str) -> int:
        """Return how many entities `list_entities` would return without a limit."""
        ...

    async def related_page(self, query: RelatedPageQuery) -> Mapping[EntityRef, tuple[Entity, ...]]:
        """Return a part of what `related` does, in order of keys; no scan cap leaves any out."""
        ...

    async def conflicts(self, query: ConflictQuery) -> tuple[tuple[InConflict, InConflict], ...]:
        """Return each two current memories of a user that contradict each other."""
        ...

    async def neighbours(
        self, tenant: str, user_id: str, starts: Mapping[Step, StepStarts]
    ) -> tuple[Neighbour, ...]:
        """Take steps from entities to what the user may see, in one round trip."""
        ...

    async def stats(self, tenant: str, user_id: str | None) -> Stats:
        """Count what there is, of a user or of the whole tenant, in one round trip."""
        ...

    async def lease_pending(
        self, worker: str, limit: int, now: datetime, until: datetime, after: str = ""
    ) -> tuple[PendingMemory, ...]:
        """Take memories whose index row is not up to date, by key, beginning after a key.

        Until the lease ends no other worker gets them, unless they change meanwhile.
        """
        ...

    async def take_lease(self, name: str, worker: str, now: datetime, until: datetime) -> bool:
        """Take or renew a lease on a task; False when another worker has it."""
        ...

    async def mark_indexed(self, done: Mapping[str, str], model: str) -> frozenset[str]:
        """Mark rows as indexed (key -> token); return keys whose token was still current."""
        ...

    async def requeue(self, keys: Sequence[str], token: str) -> None:
        """Mark memories as pending again, under a new token."""
        ...

    async def states(self, keys: Sequence[str]) -> tuple[MemoryState, ...]:
        """Return, for each graph key, the memory and whether it is pending."""
        ...

    async def kinds(self, keys: Sequence[str]) -> Mapping[str, Kind]:
        """Return the kinds of the memories that there are, without the forgotten, by graph key."""
        ...

    async def count_pending(self) -> int:
        """Return how many memories of all tenants are pending."""
        ...

    async def sources(self, tenant: str) -> tuple[SourceInfo, ...]:
        """Return the tenant's sources."""
        ...

    async def save_api_key(self, key: ApiKey) -> None:
        """Create or replace an API key."""
        ...

    async def rotate_api_key(self, key: ApiKey, expected_hash: str) -> bool:
        """Give a key the secrets and the end of `key`, if its secret is still the expected one.

        Returns:
            False when it has another secret by now, was revoked, or is gone: nothing was written.
        """
        ...

    async def api_key(self, key_id: str) -> ApiKey | None:
        """Return an API key."""
        ...

    async def api_keys(self, tenant: str) -> tuple[ApiKey, ...]:
        """Return a tenant's API keys, oldest first."""
        ...

    async def counts(self, tenant: str) -> Mapping[str, int]:
        """Return how many nodes there are of each label, and ``pending`` rows."""
        ...

    async def owners(
        self, tenant: str, refs: Sequence[EntityRef]
    ) -> Mapping[EntityRef, str | None]:
        """Return the users that entities belong to; those that are not there are left out."""
        ...

    async def data_keys(self, keys: Sequence[str]) -> tuple[DataKeyRow, ...]:
        """Return the data keys that there are, destroyed ones too."""
        ...

    async def make_data_keys(
        self, rows: Sequence[DataKeyRow], master_id: str, check: str
    ) -> tuple[DataKeyRow, ...]:
        """Keep data keys where there are none; return what is there then: the first wins.

        Args:
            rows: The new ones, all wrapped by one master key.
            master_id: The id of that one; it is noted as in use.
            check: What tells later whether somebody has that master key.
        """
        ...

    async def master_keys(self) -> Mapping[str, str]:
        """Return the ids of the master keys in use, each with what it can be checked by."""
        ...

    async def count_data_keys(self) -> Mapping[str, int]:
        """Return how many data keys each master key wraps; those destroyed under ``""``."""
        ...

    async def data_keys_not_under(
        self, master_id: str, after: str, limit: int
    ) -> tuple[DataKeyRow, ...]:
        """Return data keys that another master key wraps, by key after a key."""
        ...

    async def rewrap_data_keys(
        self, rows: Sequence[tuple[DataKeyRow, str]], master_id: str, check: str
    ) -> int:
        """Keep data keys as wrapped anew, where they still are as read; return how many were."""
        ...

    async def drop_unused_master_keys(self, current: str) -> None:
        """Forget which master keys were in use, but for those that are, and the current one."""
        ...

    async def destroy_data_key(self, row: DataKeyRow) -> bool:
        """Destroy a data key, leaving a mark that none may take its place.

        Args:
            row: Whose; `created_at` is the present moment.

        Returns:
            Whether there was one.
        """
        ...

    async def drop_destroyed_key(self, key: str) -> None:
        """Take the mark of a destroyed data key away."""
        ...

    async def forgotten_users(self, keys: Sequence[str]) -> Mapping[str, ForgottenUser]:
        """Return the tombstones that there are, by key; also those that do not count any more."""
        ...

    async def hide_user(self, user: ForgottenUser, token: str) -> int:
        """Leave a tombstone and hide all that is the user's, in one transaction.

        From then on no reader finds it. Done again, it hides what came meanwhile, and a tombstone
        that is in force keeps its receipt.

        Returns:
            How many memories and entities were hidden now.
        """
        ...

    async def remove_hidden(self, key: str, limit: int, token: str, now: datetime) -> RemovedNodes:
        """Remove some of what is hidden under a tombstone, and count it there.

        Memories come first, then entities; when there is nothing more, nothing is removed.
        """
        ...

    async def count_removed(self, key: str, counts: Mapping[str, int], now: datetime) -> None:
        """Add what was removed elsewhere to a tombstone's counts."""
        ...

    async def finish_forgetting(self, key: str, now: datetime) -> ForgottenUser:
        """Note that all is removed, and drop the user's id; return the tombstone."""
        ...

    async def unfinished_forgetting(
        self, before: datetime, limit: int
    ) -> tuple[ForgottenUser, ...]:
        """Return users whose removal began, and went on last, before a moment."""
        ...

    async def allow_forgotten(self, keys: Sequence[str], now: datetime, by: str) -> bool:
        """Put a tombstone out of force, if all is removed; tell whether one was in force."""
        ...

    async def traces_of_user(
        self, tenant: str, user_id: str, keys: Sequence[str], data_key: str
    ) -> Mapping[str, int]:
        """Count what the graph has of a user, hidden things under these tombstones included."""
        ...

    async def give_feedback(
        self,
        new: NewFeedback,
        token: str,
        now: datetime,
        rules: FeedbackRules,
    ) -> FeedbackWritten:
        """Keep feedback on a current memory and do what it says, in one transaction.

        Where the same key's same verdict on the memory stands already, nothing is changed. What
        is changed is worked out from all feedback that stands, so that its order does not count.

        Raises:
            FeedbackLimit: When the key has given as much as it may.
        """
        ...

    async def undo_feedback(
        self,
        tenant: str,
        feedback_id: str,
        token: str,
        now: datetime,
        by: str,
        rules: FeedbackRules,
    ) -> FeedbackWritten:
        """Take feedback back: all is as it would be without it. Outcome UNCHANGED if it was."""
        ...

    async def feedback(self, tenant: str, feedback_id: str) -> Feedback | None:
        """Return a feedback record; None as well when its memory was forgotten."""
        ...

    async def list_feedback(self, query: FeedbackQuery) -> tuple[Feedback, ...]:
        """Return feedback on a user's, or on shared, memories, the newest first."""
        ...

    async def completion_task(self, tenant: str, task_id: str) -> CompletionTask | None:
        """Return a completion task."""
        ...

    async def completion_tasks(self, query: TaskQuery) -> tuple[CompletionTask, ...]:
        """Return completion tasks of a user, or of what is shared, the newest first."""
        ...

    async def complete_task(
        self, tenant: str, task_id: str, now: datetime, by: str, memory_id: str | None
    ) -> bool:
        """Note that a task is done; False when that was noted before."""
        ...

    async def claim_call(
        self, call: KeyedCall, token: str, *, until: datetime, oldest: datetime
    ) -> KeyedCall:
        """Put a call on record, or find it there; return what is on record now.

        It is the caller's to act when `holder` is its token: nobody else acts until `until`. One
        that has no answer when its time is over is handed to the next who asks with the same
        request.

        Args:
            call: What to put there; `begun_at` is now.
            token: Of this attempt.
            until: When the caller is taken to be dead.
            oldest: A call that began at that time or before counts as none.
        """
        ...

    async def finish_call(self, key: str, token: str, answer: str) -> None:
        """Keep the answer of the attempt that holds a call; another's is left alone."""
        ...

    async def release_call(self, key: str, token: str) -> None:
        """Let the next one try, with the time of the first attempt."""
        ...

    async def drop_call(self, key: str, token: str) -> None:
        """Remove a call that did nothing, unless another attempt holds it."""
        ...

    async def drop_calls_before(self, oldest: datetime, limit: int) -> int:
        """Remove calls that began at a time or before; return how many."""
        ...

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Add entries to the audit log; one that is there already stays as it is."""
        ...

    async def audit_entries(self, query: AuditQuery) -> tuple[AuditEntry, ...]:
        """Return entries of the audit log, the newest first."""
        ...


# --- vectors -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowFields:
    """What the vector index holds of a memory beside its vector: filter fields, no text.

    Attributes:
        hash: Of the text that was embedded: 32 hex digits.
    """

    key: str
    tenant: str
    user_id: str | None
    kind: Kind
    topic: str | None
    source_id: str
    privacy: str
    importance: float
    valid_from: datetime
    valid_until: datetime | None
    expires_at: datetime | None
    status: str
    tier: str
    lang: str
    hash: str


@dataclass(frozen=True, slots=True)
class VectorRow(RowFields):
    """A row to write.

    Attributes:
        terms: Of its text, as often as they stand in it; each of letters and digits alone.
        context: Of what was said right before it.
    """

    vector: Vector
    terms: tuple[str, ...] = ()
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexedRow(RowFields):
    """A row as found; `kind` is that of its collection, `id` its primary key."""

    id: str


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """What may come back at all; applied inside the search.

    Attributes:
        user_id: The user; shared knowledge comes on top.
        as_of: Only what is valid and not expired then; None = also what no longer is.
        privacy: Allowed levels; at least one.
        statuses: A superseded memory was true once, and its closed validity keeps it out of
            today's answers; a disabled one is asked for only by what was known earlier.
    """

    tenant: str
    user_id: str
    as_of: datetime | None
    privacy: tuple[str, ...]
    tiers: tuple[str, ...] = ("hot",)
    topics: tuple[str, ...] = ()
    min_importance: float = 0.0
    statuses: tuple[str, ...] = ("active", "superseded")


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A seed: graph key and cosine similarity, -1..1 (higher is nearer)."""

    key: str
    similarity: float


@dataclass(frozen=True, slots=True)
class TermHit:
    """A seed found by its terms.

    Attributes:
        score: The store's own, above 0 (higher is nearer); stores count what is rare differently.
        terms: Of its text.
        context: Of what was said right before it.
    """

    key: str
    score: float
    terms: tuple[str, ...]
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What a collection was made for, and whether its rows are also found by their terms."""

    collection: str
    spec: EmbeddingSpec
    rows: int = field(default=0)
    lexical: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class Generation:
    """A set of collections, one a kind, that were made together for one model.

    Attributes:
        name: What the collections' names end with.
        number: In which order generations were made, from 1; 0 = by an earlier version.
        spec: None when it cannot be used: its rows have the fields of another version.
        kinds: Kinds that have a collection; not all of them after a crash.
        serving: Kinds that are searched and written here.
        filling: Not known to be complete.
        replaces: Name of the generation that served before this one; empty = none.
        outdated: Its rows are not found by their terms, though the store could have it so by now.
    """

    name: str
    number: int
    spec: EmbeddingSpec | None
    kinds: frozenset[Kind]
    serving: frozenset[Kind]
    filling: bool
    replaces: str
    outdated: bool = False


class VectorRows(Protocol):
    """Rows of the vector index, one collection a kind."""

    async def upsert(self, rows: Sequence[VectorRow]) -> None:
        """Write rows, each to its kind's collection; the last of equal keys wins.

        Raises:
            InvalidVector: When a vector does not fit, before anything is written; its path
                names the row.
            EmbeddingMismatch: When the index belongs to another model by now.
        """
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete rows by graph key, from all kinds."""
        ...

    async def existing(self, keys: Sequence[str]) -> frozenset[str]:
        """Return which of the graph keys have a row, read with strong consistency."""
        ...

    async def rows(
        self, kind: Kind, after: str, limit: int, tenant: str | None = None
    ) -> tuple[IndexedRow, ...]:
        """Return rows in order of their ids, beginning after an id, with strong consistency.

        Fewer than `limit` do not mean the end, none do.
        """
        ...

    async def rows_of(self, kind: Kind, keys: Sequence[str]) -> Mapping[str, IndexedRow]:
        """Return the rows of graph keys, read with strong consistency; missing ones are left out.

        At most a few thousand keys: they go out in one request.
        """
        ...

    async def count(self, tenant: str | None = None) -> int:
        """Return how many rows there are, read with strong consistency."""
        ...

    async def count_user(self, tenant: str, user_id: str) -> int:
        """Return how many rows a user has, read with strong consistency.

        Rows of the index include those in collections that do not serve.
        """
        ...

    async def delete_user(self, tenant: str, user_id: str) -> int:
        """Delete all rows of a user; return how many there were."""
        ...


class VectorIndex(VectorRows, Protocol):
    """The derived index: one collection a kind, behind an alias."""

    async def ping(self) -> ServerInfo:
        """Answer a trivial call.

        Raises:
            StoreUnavailable: When nothing answers.
            StoreAuthenticationFailed: When it refuses the credentials.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...

    async def prepare(self, spec: EmbeddingSpec) -> None:
        """Make what is missing and load it; safe when several processes do so at once.

        Raises:
            EmbeddingMismatch: When a collection was made for another model, version or dimension.
        """
        ...

    async def search(
        self, kind: Kind, vector: Vector, filter_: VectorFilter, limit: int
    ) -> tuple[VectorHit, ...]:
        """Return the nearest rows, nearest first, ties by key.

        Raises:
            EmbeddingMismatch: When the index belongs to another model by now.
        """
        ...

    async def search_terms(
        self, kind: Kind, terms: Sequence[str], filter_: VectorFilter, limit: int
    ) -> tuple[TermHit, ...] | None:
        """Return the rows that have one of the terms, the best by BM25 first, ties by key.

        The filter is the same as that of `search`, inside the search too.

        Returns:
            None where rows are not found by their terms: the store cannot, or the kind's
            collection was made before. Nothing for no terms.
        """
        ...

    async def info(self) -> Mapping[Kind, IndexInfo]:
        """Return what each kind's collection was made for."""
        ...

    async def drop(self) -> None:
        """Drop all collections and aliases; the graph can make them again."""
        ...

    async def refresh(self) -> tuple[str, ...]:
        """Have the store rebuild its search index where rows grew or shrank by 30 %.

        One step a call, and nothing to wait for: a store that builds in the background is asked
        again by the next call.

        Returns:
            Names of the collections that were taken a step further.
        """
        ...

    async def generations(self) -> tuple[Generation, ...]:
        """Return all sets of collections, the oldest first."""
        ...

    async def make_generation(self, spec: EmbeddingSpec, number: int) -> Generation:
        """Make a set of empty collections that nobody searches yet, or complete a half-made one."""
        ...

    async def at(self, generation: Generation) -> VectorRows:
        """Return a generation's rows, loaded, whether it serves or not.

        Raises:
            EmbeddingMismatch: When its rows have the fields of another version.
        """
        ...

    async def serve(self, generation: Generation) -> None:
        """Have a generation searched and written from now on; what served stays as it is.

        Kinds are switched one after another. Interrupted, the same call goes on. Until `finish`
        the generation is not known to be complete.
        """
        ...

    async def finish(self, generation: Generation) -> None:
        """Mark a generation as complete, and take what it replaced out of memory."""
        ...

    async def drop_generation(self, generation: Generation) -> None:
        """Drop a generation's collections.

        Raises:
            StoreError: When it serves.
        """
        ...
