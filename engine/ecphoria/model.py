"""Frozen data types that cross layers. They hold values; verbs live elsewhere."""

from __future__ import annotations

import enum
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, Literal, TypeAlias, TypeVar

from ecphoria.errors import Forbidden, InvalidInput, InvalidScope, InvalidTime, TextTooLong
from ecphoria_schema.domain import Kind, Language, Privacy

PropertyValue: TypeAlias = str | int | float | bool | datetime | tuple[str, ...]

MAX_ID_CHARS = 256

_TENANT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


class Role(enum.StrEnum):
    """What a principal may do; governance/access.py has the table."""

    AGENT = "agent"
    ANALYST = "analyst"
    OPERATOR = "operator"
    ADMIN = "admin"


class Status(enum.StrEnum):
    """Where a memory stands in its life."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DISABLED = "disabled"
    FORGOTTEN = "forgotten"


class IndexState(enum.StrEnum):
    """Whether the vector index holds what the graph holds."""

    PENDING = "pending"
    INDEXED = "indexed"
    STALE = "stale"
    DELETING = "deleting"


class ReceiptStatus(enum.StrEnum):
    """What became of one item of a write."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"
    DUPLICATE = "DUPLICATE"
    SUPERSEDED = "SUPERSEDED"
    HISTORICAL = "HISTORICAL"
    CONFLICT = "CONFLICT"
    RETRACTED = "RETRACTED"
    UNCHANGED = "UNCHANGED"
    REJECTED = "REJECTED"


class Action(enum.StrEnum):
    """What the caller should do with a recall."""

    ANSWER = "ANSWER"
    FALLBACK = "FALLBACK"
    SKIP = "SKIP"


class EveryUser(enum.Enum):
    """The explicit permission to name any user of the tenant (one at a time)."""

    OF_TENANT = "every user of the tenant"


def checked_id(value: object, what: str) -> str:
    """Return an id unchanged when it is one.

    Args:
        value: The candidate.
        what: What it is the id of, for the message, e.g. ``"user id"``.

    Raises:
        InvalidInput: When it is no string, blank, padded, or holds control characters.
        TextTooLong: When it is longer than `MAX_ID_CHARS` characters.
    """
    if not isinstance(value, str):
        msg = f"the {what} must be a string, not {type(value).__name__}"
        raise InvalidInput(msg)
    if len(value) > MAX_ID_CHARS:
        msg = f"the {what} has {len(value)} characters; {MAX_ID_CHARS} are allowed"
        raise TextTooLong(msg)
    if not value or value != value.strip():
        msg = f"the {what} is empty or padded with blanks: {value!r}"
        raise InvalidInput(msg)
    if any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in value):
        msg = f"the {what} holds control characters: {value!r}"
        raise InvalidInput(msg)
    return value


def utc(value: datetime, what: str = "time") -> datetime:
    """Return a moment in UTC, cut to milliseconds (the stores' common resolution).

    Raises:
        InvalidTime: When it has no time zone.
    """
    if value.tzinfo is None or value.utcoffset() is None:
        msg = f"the {what} {value.isoformat()} has no time zone"
        raise InvalidTime(msg)
    try:
        moment = value.astimezone(UTC)
    except OverflowError as error:
        msg = f"the {what} {value.isoformat()} is out of range"
        raise InvalidTime(msg) from error
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def parse_time(value: object, what: str = "time") -> datetime:
    """Read ISO 8601 with a zone, e.g. ``2025-06-15T08:00:00Z``, into UTC.

    Raises:
        InvalidTime: When it cannot be read or has no time zone.
    """
    if isinstance(value, datetime):
        return utc(value, what)
    if not isinstance(value, str):
        msg = f"the {what} must be an ISO 8601 string, not {type(value).__name__}"
        raise InvalidTime(msg)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        msg = f"the {what} {value[:60]!r} is not ISO 8601"
        raise InvalidTime(msg) from error
    return utc(moment, what)


@dataclass(frozen=True, slots=True)
class Scope:
    """For whom a verb acts. Built by the authentication layer, never by a query.

    Attributes:
        tenant: Letters, digits and ``. _ -``; 64 at most.
        principal: Who acts: a key's id, or the command line's user.
        roles: At least one.
        users: The users whose data may be named, or `EveryUser.OF_TENANT`.
    """

    tenant: str
    principal: str
    roles: frozenset[Role]
    users: frozenset[str] | EveryUser

    def __post_init__(self) -> None:
        """Fail closed: anything missing, empty or ``*`` is an error, never "all"."""
        if not isinstance(self.tenant, str) or not _TENANT.fullmatch(self.tenant):
            msg = f"the tenant {str(self.tenant)[:80]!r} is missing or malformed"
            raise InvalidScope(msg)
        if not isinstance(self.principal, str) or not self.principal.strip():
            msg = "the scope names no principal"
            raise InvalidScope(msg)
        if (
            not isinstance(self.roles, frozenset)
            or not self.roles
            or not all(isinstance(role, Role) for role in self.roles)
        ):
            msg = "the scope has no role"
            raise InvalidScope(msg)
        if isinstance(self.users, EveryUser):
            return
        if not isinstance(self.users, frozenset) or not self.users:
            msg = "the scope names no user"
            raise InvalidScope(msg)
        for user in self.users:
            checked_user(user)

    def user(self, user_id: object) -> str:
        """Return the user id when this scope may name it.

        Raises:
            InvalidScope: When it is missing, empty, ``*`` or malformed.
            Forbidden: When it is not among the scope's users.
        """
        checked = checked_user(user_id)
        if not isinstance(self.users, EveryUser) and checked not in self.users:
            msg = "this key may not name that user"
            raise Forbidden(msg)
        return checked


def checked_user(value: object) -> str:
    """Return a user id unchanged when it is one.

    Raises:
        InvalidScope: When it is missing, empty, ``*`` or malformed.
    """
    try:
        checked = checked_id(value, "user id")
    except InvalidInput as error:
        raise InvalidScope(error.message) from error
    if checked in {"*", "%"}:
        msg = f"{checked!r} is no user id: name exactly one user"
        raise InvalidScope(msg)
    return checked


@dataclass(frozen=True, slots=True, order=True)
class EntityRef:
    """An entity by type and the caller's own id."""

    type: str
    id: str


def entity_key(tenant: str, ref: EntityRef) -> str:
    """Return the graph key of an entity: ``tenant|Type|id``; tenants and types hold no bar."""
    return f"{tenant}|{ref.type}|{ref.id}"


def memory_key(tenant: str, memory_id: str) -> str:
    """Return the graph key of a memory: ``tenant|Memory|id``."""
    return f"{tenant}|Memory|{memory_id}"


def vector_id(key: str) -> str:
    """Return the primary key of a memory's row in the vector index: 32 hex digits."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class EntityInput:
    """An entity to upsert.

    Attributes:
        observed_at: When the properties were true; older news never overwrites newer.
    """

    type: str
    id: str
    props: Mapping[str, object] = field(default_factory=dict)
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RelationInput:
    """A relation to upsert; both ends must exist or come in the same call."""

    type: str
    from_: EntityRef
    to: EntityRef


@dataclass(frozen=True, slots=True)
class FactInput:
    """What a caller knows a text to say: an entity's attribute has a value.

    Attributes:
        attribute: Name of one of the domain's attributes, e.g. ``order.status``.
        subject: What a keyed attribute is about, e.g. the thing liked; None for the others.
        text: Sentence to keep; made from the three others without it.
    """

    entity: EntityRef
    attribute: str
    value: str
    subject: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryInput:
    """A memory to keep; whatever is None is filled from the domain file or the text.

    Attributes:
        text: May be empty where `facts` say everything.
        user_id: Whose it is; None = knowledge that every user of the tenant shares.
        about: Entities it is about; linking by ids and names in the text comes on top.
        supersedes: Id of the memory that this one replaces.
        facts: What the text says, where the caller knows it; else it is read from the text.
    """

    text: str
    user_id: str | None
    id: str | None = None
    kind: Kind = "episodic"
    topic: str | None = None
    source: str | None = None
    lang: Language | None = None
    importance: float | None = None
    privacy: Privacy = "internal"
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    session_id: str | None = None
    agent_id: str | None = None
    about: tuple[EntityRef, ...] = ()
    supersedes: str | None = None
    facts: tuple[FactInput, ...] = ()


class LinkMethod(enum.StrEnum):
    """How a memory came to be about an entity."""

    GIVEN = "given"
    ID = "id"
    NAME = "name"
    PRONOUN = "pronoun"
    ARRIVED = "arrived"


@dataclass(frozen=True, slots=True)
class Link:
    """That a memory is about an entity, how that was found, and how certain it is (0..1)."""

    entity: EntityRef
    certainty: float
    how: LinkMethod


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as stored.

    Attributes:
        user_id: The root entity it belongs to; None = shared, or not yet connected.
        observed_at: When its newest property was observed.
    """

    key: str
    type: str
    id: str
    name: str
    props: Mapping[str, PropertyValue] = field(default_factory=dict)
    user_id: str | None = None
    observed_at: datetime | None = None
    recorded_at: datetime | None = None

    @property
    def ref(self) -> EntityRef:
        """Type and id."""
        return EntityRef(self.type, self.id)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a memory stood, as known until a moment: transaction time of bi-temporal data.

    Attributes:
        until: This was what was known before that moment.
        status: The status then.
        valid_until: The end of validity then.
    """

    until: datetime
    status: Status
    valid_until: datetime | None


Urgency: TypeAlias = Literal["low", "normal", "high"]


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as stored; times are UTC.

    Attributes:
        about: Keys of the entities it is about.
        tags: Topics of the domain found in the text, the strongest first.
        supersedes: Id of the memory it was said to replace.
        fact_type: The domain's fact rule that it was cut by.
        evidence: The words of the source that it rests on.
        details: What a fact rule found, by name, e.g. a tracking number.
        attribute: The single-valued attribute of an entity that it gives the `value` of.
        subject: What a keyed attribute is about, e.g. the thing liked.
        claim: Key of tenant, user, entity, attribute and subject; all memories of one claim
            compete to be its current value.
        claim_number: In which order memories of one claim were recorded, from 1.
        stated_until: `valid_until` as given by the caller.
        fixed_until: An end set by hand or by what is forgotten now; it does not move again.
        reliability: Of its source when it was written, 0..1.
        past: How it stood before, as known at earlier times, the oldest first.
        freshness: 0..1 at `freshness_at`; see `lifecycle.decay`.
        archive_at: When it moves to the archive if it is not used; None = never.
        reinforced: How often it was said again.
        sealed: What stands in the others only redacted, encrypted; None = nothing is hidden.
        value_hash: Keyed hash of a hidden `value`: values are compared by it.
        words_hash: Keyed hash of the words of a hidden text: texts are compared by it.
        ended_at: The earliest end that standing feedback gives it.
        doubt: What standing feedback takes from how far its source is believed for it, 0..1.
    """

    key: str
    id: str
    tenant: str
    user_id: str | None
    kind: Kind
    topic: str | None
    text: str
    lang: Language
    importance: float
    source_id: str
    privacy: Privacy
    occurred_at: datetime
    valid_from: datetime
    valid_until: datetime | None
    expires_at: datetime | None
    recorded_at: datetime
    status: Status
    tier: Literal["hot", "archive"]
    content_hash: str
    embedding_model: str
    index_state: IndexState
    tags: tuple[str, ...] = ()
    session_id: str | None = None
    agent_id: str | None = None
    invalidated_at: datetime | None = None
    access_count: int = 0
    last_accessed_at: datetime | None = None
    supersedes: str | None = None
    about: tuple[str, ...] = ()
    fact_type: str | None = None
    intent: str | None = None
    urgency: Urgency = "normal"
    evidence: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    attribute: str | None = None
    value: str | None = None
    subject: str | None = None
    claim: str | None = None
    claim_number: int = 0
    stated_until: datetime | None = None
    fixed_until: datetime | None = None
    reliability: float = 0.0
    past: tuple[Standing, ...] = ()
    freshness: float = 1.0
    freshness_at: datetime | None = None
    archive_at: datetime | None = None
    reinforced: int = 0
    sealed: str | None = None
    value_hash: str | None = None
    words_hash: str | None = None
    ended_at: datetime | None = None
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """A name by which a user's entities may be called in text."""

    name: str
    property: str
    refs: tuple[EntityRef, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two graph keys, in its own direction."""

    type: str
    from_key: str
    to_key: str


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source of memories and how far to trust it.

    Attributes:
        reliability: 0..1; what feedback has taken from it is taken.
        declared: As the domain says, or said when the first memory came from it; None = the same.
    """

    id: str
    name: str
    reliability: float
    disabled: bool = False
    declared: float | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one item of a write.

    Attributes:
        index: Position in the batch.
        id: Under which it is found from now on; of a DUPLICATE, the id of what is kept.
        links: Entities that it was linked to.
        indexed: Whether vector search finds it already; if not, the reconciler will see to it.
        code: Error code when REJECTED.
        reason: Sentence when REJECTED.
        path: Where in the item the fault is.
        supersedes: Ids of the memories whose validity it ended.
        superseded_by: Id of the memory that is newer than it (HISTORICAL).
        conflicts_with: Ids of more reliable memories that say otherwise.
        possible_update_of: Ids of near-equal memories with other numbers, names or dates.
        waiting_for: Ids in its text that belong to no known entity yet; linked when it comes.
        notes: What a person should know, e.g. that the chat model did not answer.
        facts: One receipt a memory, where the text was cut into several; empty otherwise.
    """

    index: int
    status: ReceiptStatus
    id: str | None = None
    links: tuple[Link, ...] = ()
    indexed: bool = False
    code: str | None = None
    reason: str | None = None
    path: tuple[str | int, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    conflicts_with: tuple[str, ...] = ()
    possible_update_of: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: tuple[Receipt, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityReceipts:
    """What became of an entity upsert: one receipt an entity, and how many relations were new."""

    entities: tuple[Receipt, ...]
    relations_created: int
    relations_unchanged: int


Vector: TypeAlias = Sequence[float]


@dataclass(frozen=True, slots=True)
class EmbeddingSpec:
    """What vectors of a model are like; locked with every collection.

    Attributes:
        model: Name of the model.
        version: Version of the weights or of the package that ships them.
        dimension: Length of a vector.
        unrelated: Cosine at which two texts have nothing to do with each other (relevance 0).
        related: Cosine at which one text answers the other (relevance 1).
    """

    model: str
    version: str
    dimension: int
    unrelated: float = 0.2
    related: float = 0.75


# --- short-term context --------------------------------------------------------------------

Speaker: TypeAlias = Literal["customer", "service"]


@dataclass(frozen=True, slots=True)
class SessionKey:
    """One conversation of one user."""

    tenant: str
    user_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    Attributes:
        number: From 1, without gaps.
        entities: Entities it names, by id or name, in the order of the text.
    """

    number: int
    speaker: Speaker
    text: str
    said_at: datetime
    entities: tuple[EntityRef, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What is kept of a conversation that is under way.

    Attributes:
        summary: Of the turns before `turns`; empty when there are none.
        turns: The last ones that fit the token budget, oldest first.
        entities: Last named entity of each type, the latest first.
        turn_count: All turns so far.
        expires_at: When it is forgotten unless something is said.
    """

    session_id: str
    summary: str
    turns: tuple[Turn, ...]
    entities: tuple[EntityRef, ...]
    turn_count: int
    expires_at: datetime | None


# --- changes -------------------------------------------------------------------------------


class ChangeKind(enum.StrEnum):
    """What happened to a memory."""

    CREATED = "CREATED"
    SUPERSEDED = "SUPERSEDED"
    RETRACTED = "RETRACTED"
    FORGOTTEN = "FORGOTTEN"
    EXPIRED = "EXPIRED"
    ARCHIVED = "ARCHIVED"


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """That something happened to a memory."""

    kind: ChangeKind
    tenant: str
    user_id: str | None
    memory_id: str
    at: datetime


# --- recall --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question and what the caller fixes beforehand.

    Attributes:
        as_of: The moment the answer must be true for; now if None.
        known_at: Only what was known then, as it stood then; now if None.
        session_id: The session the question is part of: its turns are looked at first.
        kinds: Kinds to ask; None = all that the question calls for.
        topics: Topics; None = as understood.
        limit: How many memories at most.
        entity_limit: How many entities at most.
        min_importance: Leave out memories below, 0..1.
        context_tokens: Budget of the context block.
        time_zone: IANA name of the zone in which "yesterday" is read; that of the settings if None.
        since: What happened from then on is asked for; as understood if neither it nor `until`.
        until: What happened before then is asked for.
        explain: Tell of each memory that was looked at why it is, or is not, in the answer.
    """

    question: str
    user_id: str
    as_of: datetime | None = None
    known_at: datetime | None = None
    session_id: str | None = None
    kinds: tuple[Kind, ...] | None = None
    topics: tuple[str, ...] | None = None
    limit: int = 10
    entity_limit: int = 50
    min_importance: float = 0.0
    context_tokens: int = 800
    time_zone: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    explain: bool = False


TimelinessLevel: TypeAlias = Literal["STABLE", "NORMAL", "HIGH_RISK", "EXPIRED"]


@dataclass(frozen=True, slots=True)
class ConfidencePart:
    """One part of a confidence: 0..1 and why."""

    score: float
    reason: str
    level: TimelinessLevel | None = None


@dataclass(frozen=True, slots=True)
class Confidence:
    """How far to trust a fact; ``overall = 0.40 t + 0.35 s + 0.25 c`` (project's brief)."""

    overall: float
    timeliness: ConfidencePart
    source: ConfidencePart
    consistency: ConfidencePart


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory in an answer.

    Attributes:
        relevance: How well it fits the question, 0..1.
        similarity: Cosine to the question; None when it was found by walking.
        because: Paths that explain why it is there.
        conflicts_with: Ids of memories in this answer that disagree.
    """

    memory: Memory
    relevance: float
    score: float
    similarity: float | None
    confidence: Confidence
    because: tuple[str, ...]
    conflicts_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecalledEntity:
    """An entity in an answer, with the path that led to it."""

    entity: Entity
    relevance: float
    confidence: Confidence
    because: str


@dataclass(frozen=True, slots=True)
class RecalledRelation:
    """A relation between two entities of an answer."""

    type: str
    from_: EntityRef
    to: EntityRef
    confidence: float


@dataclass(frozen=True, slots=True)
class FeatureShare:
    """What one feature of a memory adds to its rank score.

    Attributes:
        value: The feature, mostly 0..1 (see `ecphoria.recall.features`).
        weight: How it weighs, from the settings.
        share: What it adds; the shares of a memory sum to its score.
    """

    name: str
    value: float
    weight: float
    share: float


@dataclass(frozen=True, slots=True)
class ConsideredMemory:
    """A memory that a recall looked at, and what became of it; one that the asker may read.

    Attributes:
        place: In the order of the rank stage, from 1; None when it was dropped before.
        relevance: Probability that it answers, 0..1; None when it was dropped before.
        score: What the order is by; None when it was dropped before.
        similarity: Cosine to the question; None when no search by meaning has found it.
        features: What the score is made from, the largest share first.
        dropped: The rule that keeps it out of the answer; None when it is in it.
    """

    memory: Memory
    place: int | None = None
    relevance: float | None = None
    score: float | None = None
    similarity: float | None = None
    features: tuple[FeatureShare, ...] = ()
    dropped: str | None = None


@dataclass(frozen=True, slots=True)
class TraceStep:
    """What one stage did.

    Attributes:
        candidates: How many candidates it handed on.
        dropped: Rule -> how many it dropped.
        input: What came in, e.g. ``42 seeds, 1 named``.
        output: What it handed on, e.g. ``38 memories, 12 entities``.
        considered: The memories it looked at, where the request asks for them.
    """

    stage: str
    milliseconds: float
    candidates: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    input: str = ""
    output: str = ""
    considered: tuple[ConsideredMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class RecallResult:
    """A joined, structured context.

    Attributes:
        advisory: A warning in the question's language when confidence is low.
        confidence: Of the answer as a whole; None without anything to trust.
        degradations: What was not available, e.g. ``vector index unavailable``.
    """

    action: Action
    as_of: datetime
    language: Language
    topics: tuple[str, ...]
    memories: tuple[RecalledMemory, ...]
    entities: tuple[RecalledEntity, ...]
    relations: tuple[RecalledRelation, ...]
    confidence: Confidence | None
    advisory: str | None
    context: str
    degradations: tuple[str, ...]
    trace: tuple[TraceStep, ...]
    session: SessionContext | None = None


# --- lists ---------------------------------------------------------------------------------

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[_Item]):
    """A part of a list that may be long.

    Attributes:
        cursors: Where each item stands; the list goes on after it.
        has_next: Whether there is more after the last item.
    """

    items: tuple[_Item, ...]
    cursors: tuple[str, ...]
    has_next: bool


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Which of a user's memories to list; what is None or empty asks for nothing.

    Attributes:
        topics: One of them is its main topic, or stands in its text.
        entity: It is about this one.
        sources: One of them.
        statuses: Forgotten ones cannot be listed.
        occurred_since: It happened then or later.
        occurred_until: It happened before then.
        valid_at: It is true at this moment.
        include_shared: Also what every user of the tenant shares.
    """

    kinds: tuple[Kind, ...] = ()
    topics: tuple[str, ...] = ()
    entity: EntityRef | None = None
    sources: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = (Status.ACTIVE,)
    occurred_since: datetime | None = None
    occurred_until: datetime | None = None
    valid_at: datetime | None = None
    include_shared: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Current memories of a user that contradict each other, the more reliable first.

    Attributes:
        attribute: The attribute that they give different values of; None where one was said to
            replace another that is more reliable.
        subject: Of a keyed attribute.
    """

    attribute: str | None
    subject: str | None
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """What is connected to an entity.

    Attributes:
        start: Where the walk began; it is among the entities, too.
        entities: In the order in which they were reached.
        edges: Relations among them.
        truncated: Whether a cap has left something out.
    """

    start: EntityRef
    entities: tuple[Entity, ...]
    edges: tuple[Edge, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class MemoryCount:
    """How many memories there are of a kind, a status and a tier."""

    kind: Kind
    status: Status
    tier: Literal["hot", "archive"]
    count: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What there is, of one user or of a tenant.

    Attributes:
        pending: Memories that the vector index has yet to catch up with.
        entities: How many there are of each type; of a user only the types that users own.
    """

    memories: tuple[MemoryCount, ...]
    pending: int
    entities: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and what he may do.

    Attributes:
        users: The users whose data he may name, in order; None = every user of the tenant.
        readable: Privacy levels that he may read, from open to strict.
        expires_at: When his key ends; None = never, or not known.
    """

    tenant: str
    id: str
    roles: tuple[Role, ...]
    users: tuple[str, ...] | None
    readable: tuple[Privacy, ...]
    expires_at: datetime | None


# --- feedback ------------------------------------------------------------------------------


class Verdict(enum.StrEnum):
    """What somebody who used a memory says of it."""

    EXPIRED = "EXPIRED"
    WRONG_TOPIC = "WRONG_TOPIC"
    MISSING_INFO = "MISSING_INFO"
    WRONG = "WRONG"
    HELPFUL = "HELPFUL"


class FeedbackStatus(enum.StrEnum):
    """What became of feedback, or of taking it back."""

    GIVEN = "GIVEN"
    DUPLICATE = "DUPLICATE"
    UNDONE = "UNDONE"
    UNCHANGED = "UNCHANGED"


class TaskStatus(enum.StrEnum):
    """Where a completion task stands."""

    OPEN = "open"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class FeedbackInput:
    """What somebody says of a memory.

    Attributes:
        user_id: Whose memory it is; None = shared knowledge.
        note: Why, or what is missing; needed with MISSING_INFO.
        topics: With WRONG_TOPIC: the right ones, the main one first; empty = look again.
        at: With EXPIRED: when it ended, or will; now if None.
    """

    memory_id: str
    user_id: str | None
    verdict: Verdict
    note: str | None = None
    topics: tuple[str, ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Topics:
    """What a memory is about: the main topic, and all that were found in its text."""

    main: str | None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Before:
    """What feedback found, as far as it has changed it.

    Attributes:
        valid_until: Of an EXPIRED one.
        topics: Of one with a WRONG_TOPIC.
        reliability: Of the source of a WRONG one, 0..1.
        doubt: Of a WRONG one.
        use: Of a HELPFUL one: its uses, as the store keeps them.
    """

    valid_until: datetime | None = None
    topics: Topics | None = None
    reliability: float | None = None
    doubt: float | None = None
    use: Mapping[str, float | int | str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Feedback:
    """What somebody said of a memory, and what it did.

    Attributes:
        memory_id: The caller's own id of the memory.
        user_id: Whose memory it is; None = shared knowledge.
        privacy: Of the memory: who may not read that does not read the note either.
        by: Who said it: id of a key, or the command line.
        note: Redacted, as texts of memories are.
        sealed: The note in clear, encrypted; None = nothing of it is hidden.
        source_id: Source of the memory.
        ends_at: Of an EXPIRED one.
        topics: Of a WRONG_TOPIC one: what it is about since.
        task_id: Of a MISSING_INFO one.
        undone_at: When it was taken back; None = it stands.
    """

    id: str
    tenant: str
    memory_id: str
    user_id: str | None
    privacy: Privacy
    source_id: str
    verdict: Verdict
    by: str
    at: datetime
    note: str | None = None
    sealed: str | None = None
    ends_at: datetime | None = None
    topics: Topics | None = None
    task_id: str | None = None
    before: Before = field(default_factory=Before)
    undone_at: datetime | None = None
    undone_by: str | None = None


@dataclass(frozen=True, slots=True)
class CompletionTask:
    """That something is missing in a memory, until somebody adds it.

    Attributes:
        memory_id: The caller's own id of the memory.
        user_id: Whose memory it is; None = shared knowledge.
        by: Who misses it.
        note: What is missing; redacted. `sealed` as for `Feedback`.
        done_at: When somebody said that it is done; None where the memory was replaced or taken
            back, which does it too.
        completed_by: Id of the memory that has what was missing, where that is known.
    """

    id: str
    tenant: str
    memory_id: str
    user_id: str | None
    privacy: Privacy
    by: str
    at: datetime
    note: str | None = None
    sealed: str | None = None
    status: TaskStatus = TaskStatus.OPEN
    done_at: datetime | None = None
    done_by: str | None = None
    completed_by: str | None = None


@dataclass(frozen=True, slots=True)
class FeedbackReceipt:
    """What became of feedback.

    Attributes:
        feedback: The record that stands, or that was taken back.
        task: The task that it has opened.
        indexed: Whether the vector index has what changed; if not, the reconciler sees to it.
    """

    status: FeedbackStatus
    feedback: Feedback
    task: CompletionTask | None = None
    indexed: bool = True


@dataclass(frozen=True, slots=True)
class FeedbackFilter:
    """Which feedback to list; what is None asks for nothing.

    Attributes:
        standing: Only what stands, or only what was taken back.
    """

    memory_id: str | None = None
    verdict: Verdict | None = None
    standing: bool | None = None


# --- keys ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as stored: the secret only as a hash.

    Attributes:
        previous_hash: Of the secret before the last rotation, which counts until `previous_until`.
    """

    id: str
    tenant: str
    name: str
    secret_hash: str
    roles: frozenset[Role]
    users: frozenset[str] | EveryUser
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    previous_hash: str | None = None
    previous_until: datetime | None = None


# --- audit ---------------------------------------------------------------------------------


class AuditOutcome(enum.StrEnum):
    """How an operation ended that is on record."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who did what to whose data; never what the data say.

    Attributes:
        id: In order of time.
        principal: Id of the key, or the command line.
        user: Keyed hash of the user's id; None when it is about no single user.
        count: How many memories, entities or keys.
        code: Of the error, when it was refused or failed.
    """

    id: str
    tenant: str
    at: datetime
    principal: str
    roles: tuple[str, ...]
    operation: str
    user: str | None
    count: int
    outcome: AuditOutcome
    code: str | None = None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries of the audit log to read; None = any."""

    user_id: str | None = None
    principal: str | None = None
    operation: str | None = None
    outcome: AuditOutcome | None = None
    since: datetime | None = None
    until: datetime | None = None
