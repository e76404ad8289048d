"""The two ports behind which stores live. Adapters translate, they decide nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from ecphoria.model import (
    ApiKey,
    Edge,
    EmbeddingSpec,
    Entity,
    EntityRef,
    Memory,
    NamedEntity,
    PropertyValue,
    SourceInfo,
    Vector,
)
from ecphoria_schema.domain import Kind


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
class MemoryWrite:
    """Outcome of one memory write.

    CONFLICT: the id is taken by a memory with other content or of another user; `conflict` is
    the sentence that says which.
    """

    key: str
    outcome: Literal["CREATED", "DUPLICATE", "CONFLICT"]
    conflict: str = ""


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
class ExpandQuery:
    """What to expand from and how far.

    Attributes:
        seeds: Graph keys of seed memories.
        anchors: How many of the first seeds lend their entities as starting points.
        mentions: Entities named in the question, as candidate refs (they may not exist).
        from_root: Walk down from the user itself.
        include_history: Return seeds that are no longer current, too.
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
        self, tenant: str, entities: Sequence[EntityRow], relations: Sequence[RelationRow]
    ) -> EntityWrite:
        """Write entities and relations in one transaction, or nothing.

        Raises:
            MissingEntity: When a relation's end does not exist; its path names the relation.
            CardinalityViolated: When a relation would break the domain's cardinality.
        """
        ...

    async def write_memories(
        self, memories: Sequence[Memory], token: str
    ) -> tuple[MemoryWrite, ...]:
        """Write memories with their links in one transaction; each is marked pending.

        `Memory.about` holds keys that `visible_entities` has found. An existing id with the same
        content and user is a DUPLICATE, with others a CONFLICT; neither changes the graph. What
        a new memory supersedes is closed and marked pending, too.

        Args:
            memories: What to keep, each with a key of its own.
            token: Unique to this call; `mark_indexed` must present it.
        """
        ...

    async def visible_entities(
        self, tenant: str, user_id: str | None, refs: Sequence[EntityRef]
    ) -> tuple[Entity, ...]:
        """Return those of the entities that exist and are the user's own or shared."""
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

    async def expand(self, query: ExpandQuery) -> Expansion:
        """Walk from seeds and mentions along the path, in one round trip."""
        ...

    async def memories(self, tenant: str, ids: Sequence[str]) -> tuple[Memory, ...]:
        """Return memories by the caller's ids, whatever their status; unknown ones are left out."""
        ...

    async def related(self, query: RelatedQuery) -> Mapping[EntityRef, tuple[Entity, ...]]:
        """Return, for each entity, the user's own or shared entities at a relation's other end."""
        ...

    async def pending(self, limit: int, after: str = "") -> tuple[PendingMemory, ...]:
        """Return memories whose index row is not up to date, by key, beginning after a key."""
        ...

    async def pending_of(self, token: str) -> tuple[PendingMemory, ...]:
        """Return what one `write_memories` call left to be indexed."""
        ...

    async def mark_indexed(self, done: Mapping[str, str], model: str) -> frozenset[str]:
        """Mark rows as indexed (key -> token); return keys whose token was still current."""
        ...

    async def requeue(self, keys: Sequence[str], token: str) -> None:
        """Mark memories as pending again, under a new token."""
        ...

    async def requeue_all(self, token: str) -> int:
        """Mark every memory of every tenant as pending; return how many there are."""
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

    async def api_key(self, key_id: str) -> ApiKey | None:
        """Return an API key."""
        ...

    async def api_keys(self, tenant: str) -> tuple[ApiKey, ...]:
        """Return a tenant's API keys, oldest first."""
        ...

    async def counts(self, tenant: str) -> Mapping[str, int]:
        """Return how many nodes there are of each label, and ``pending`` rows."""
        ...


# --- vectors -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VectorRow:
    """A memory as the vector index holds it: filter fields and one vector, no text."""

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
    vector: Vector


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """What may come back at all; applied inside the search.

    Attributes:
        user_id: The user; shared knowledge comes on top.
        as_of: Only what is valid and not expired then; None = also what no longer is.
        privacy: Allowed levels; at least one.
    """

    tenant: str
    user_id: str
    as_of: datetime | None
    privacy: tuple[str, ...]
    tiers: tuple[str, ...] = ("hot",)
    topics: tuple[str, ...] = ()
    min_importance: float = 0.0


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A seed: graph key and cosine similarity, -1..1 (higher is nearer)."""

    key: str
    similarity: float


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What a collection was made for."""

    collection: str
    spec: EmbeddingSpec
    rows: int = field(default=0)


class VectorIndex(Protocol):
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

    async def upsert(self, rows: Sequence[VectorRow]) -> None:
        """Write rows, each to its kind's collection; the last of equal keys wins.

        Raises:
            InvalidVector: When a vector does not fit, before anything is written.
        """
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete rows by graph key, from all kinds."""
        ...

    async def search(
        self, kind: Kind, vector: Vector, filter_: VectorFilter, limit: int
    ) -> tuple[VectorHit, ...]:
        """Return the nearest rows, nearest first, ties by key."""
        ...

    async def existing(self, keys: Sequence[str]) -> frozenset[str]:
        """Return which of the graph keys have a row, read with strong consistency."""
        ...

    async def count(self, tenant: str | None = None) -> int:
        """Return how many rows there are, read with strong consistency."""
        ...

    async def info(self) -> Mapping[Kind, IndexInfo]:
        """Return what each kind's collection was made for."""
        ...

    async def drop(self) -> None:
        """Drop all collections and aliases; the graph can make them again."""
        ...
