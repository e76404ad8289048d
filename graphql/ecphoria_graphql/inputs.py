"""Inputs, and how they become the engine's."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import strawberry
from strawberry.scalars import JSON

from ecphoria.errors import InvalidInput, InvalidScope
from ecphoria.lifecycle.forget import ForgetRule
from ecphoria.model import (
    EntityInput,
    EntityRef,
    FactInput,
    MemoryInput,
    RecallRequest,
    RelationInput,
)
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.enums import MemoryKind, PrivacyLevel, TextLanguage, plain
from ecphoria_graphql.fields import list_of

_DEFAULTS = RecallRequest(question="", user_id="")


# --- recall --------------------------------------------------------------------------------


@strawberry.input(name="RecallInput", description="A question and what to fix beforehand.")
class RecallData:
    """Input of a recall."""

    question: str = strawberry.field(description="The question, in Chinese or English.")
    user_id: strawberry.ID = strawberry.field(
        description="Whose memories to recall: exactly one user."
    )
    as_of: datetime | None = strawberry.field(
        default=None, description="The moment the answer must be true for; now when not given."
    )
    known_at: datetime | None = strawberry.field(
        default=None,
        description="Only what was known then, as it stood then; what is known now when not given.",
    )
    session_id: strawberry.ID | None = strawberry.field(
        default=None,
        description="The session that the question is part of: its turns are looked at first.",
    )
    kinds: list[MemoryKind] | None = strawberry.field(
        default=None, description="Kinds to ask; those the question calls for when not given."
    )
    topics: list[str] | None = strawberry.field(
        default=None, description="Topics, as the domain names them; as understood when not given."
    )
    limit: int = strawberry.field(default=_DEFAULTS.limit, description="How many memories at most.")
    entity_limit: int = strawberry.field(
        default=_DEFAULTS.entity_limit, description="How many entities at most."
    )
    min_importance: float = strawberry.field(
        default=_DEFAULTS.min_importance, description="Leave out memories below, 0 to 1."
    )
    time_zone: str | None = strawberry.field(
        default=None,
        description='IANA name of the time zone in which the question says "yesterday", e.g. '
        "`Asia/Shanghai`; that of the settings when not given.",
    )
    since: datetime | None = strawberry.field(
        default=None,
        description="What happened from then on is asked for; as understood from the question "
        "when neither this nor `until` is given.",
    )
    until: datetime | None = strawberry.field(
        default=None, description="What happened before then is asked for."
    )
    explain: bool = strawberry.field(
        default=_DEFAULTS.explain,
        description="Tell in `trace { considered }` of each memory that was looked at why it is,"
        " or is not, in the answer.",
    )

    def request(self) -> RecallRequest:
        """Return it as the engine takes it."""
        return RecallRequest(
            question=self.question,
            user_id=self.user_id,
            as_of=self.as_of,
            known_at=self.known_at,
            session_id=self.session_id,
            kinds=None if self.kinds is None else tuple(plain(kind) for kind in self.kinds),
            topics=None if self.topics is None else tuple(self.topics),
            limit=self.limit,
            entity_limit=self.entity_limit,
            min_importance=self.min_importance,
            time_zone=self.time_zone,
            since=self.since,
            until=self.until,
            explain=self.explain,
        )


# --- entities and relations ----------------------------------------------------------------


class RefData:
    """Input that names an entity."""

    type: enum.Enum
    id: strawberry.ID

    def ref(self) -> EntityRef:
        """Return it as the engine takes it."""
        return EntityRef(self.type.value, self.id)


class EntityData(RefData):
    """Input of an entity."""

    properties: JSON | None
    observed_at: datetime | None

    def entity(self, fields: Mapping[str, Mapping[str, str]]) -> EntityInput:
        """Return it as the engine takes it.

        Args:
            fields: Entity type -> GraphQL field -> property. A property may be given under
                either name, as the domain or as the schema writes it.

        Raises:
            InvalidInput: When the properties are no object, or one stands under both names.
        """
        given: object = {} if self.properties is None else self.properties
        if not isinstance(given, dict):
            msg = f"properties must be an object, not {type(given).__name__}"
            raise InvalidInput(msg, path=("props",))
        names = fields[self.type.value]
        props: dict[str, object] = {}
        for key, value in given.items():
            name = names.get(key, key)
            if name in props:
                msg = f"the property {name!r} stands twice"
                raise InvalidInput(msg, path=("props", key))
            props[name] = value
        return EntityInput(self.type.value, self.id, props, self.observed_at)


class RelationData:
    """Input of a relation."""

    type: enum.Enum
    from_: RefData
    to: RefData

    def relation(self) -> RelationInput:
        """Return it as the engine takes it."""
        return RelationInput(self.type.value, self.from_.ref(), self.to.ref())


class UpsertData:
    """Input of an entity upsert."""

    entities: list[EntityData]
    relations: list[RelationData]


# --- whose it is ---------------------------------------------------------------------------

USER_ID = "Whose it is; leave it out only together with `shared: true`."
SHARED = "Knowledge that every user of the tenant shares; then without `userId`."


def owner(user_id: str | None, *, shared: bool) -> str | None:
    """Return whose a memory is; None = shared.

    Raises:
        InvalidScope: When it is neither one user's nor shared, or both. Shared knowledge is never
            the default: a forgotten user must not publish a memory.
    """
    if shared == (user_id is not None):
        msg = (
            "a memory is one user's or shared: give either `userId` or `shared: true`,"
            f" not {'both' if shared else 'neither'}"
        )
        raise InvalidScope(msg, path=("user_id",))
    return user_id


# --- memories ------------------------------------------------------------------------------


@strawberry.input
class _MemoryFields:
    """The fields of a memory that are the same in every domain."""

    text: str | None = strawberry.field(
        default=None, description="What to remember; may be left out where `facts` say everything."
    )
    user_id: strawberry.ID | None = strawberry.field(default=None, description=USER_ID)
    shared: bool = strawberry.field(default=False, description=SHARED)
    id: strawberry.ID | None = strawberry.field(
        default=None, description="An id of your own; made from the content when not given."
    )
    kind: MemoryKind = strawberry.field(
        default=MemoryKind.EPISODIC, description="What kind of memory it is."
    )
    topic: str | None = strawberry.field(
        default=None, description="Topic, as the domain names it; found in the text if not given."
    )
    source: str | None = strawberry.field(
        default=None, description="Source, as the domain names it; its default when not given."
    )
    lang: TextLanguage | None = strawberry.field(
        default=None, description="Language of the text; found out when not given."
    )
    importance: float | None = strawberry.field(
        default=None, description="0 to 1; the kind's own when not given."
    )
    privacy: PrivacyLevel = strawberry.field(
        default=PrivacyLevel.INTERNAL, description="Who may read it."
    )
    occurred_at: datetime | None = strawberry.field(
        default=None, description="When it happened; now when not given."
    )
    valid_from: datetime | None = strawberry.field(
        default=None, description="From when on it is true; when it happened if not given."
    )
    valid_until: datetime | None = strawberry.field(
        default=None, description="Until when it is true; open when not given."
    )
    expires_at: datetime | None = strawberry.field(
        default=None, description="When to drop it; by the kind's policy when not given."
    )
    session_id: strawberry.ID | None = strawberry.field(
        default=None, description="The session it comes from."
    )
    agent_id: strawberry.ID | None = strawberry.field(
        default=None, description="The agent that writes it."
    )
    supersedes: strawberry.ID | None = strawberry.field(
        default=None, description="Id of the memory whose place it takes."
    )


class FactData:
    """Input of a fact."""

    entity: RefData
    attribute: str
    value: str
    subject: str | None
    text: str | None

    def fact(self) -> FactInput:
        """Return it as the engine takes it."""
        return FactInput(self.entity.ref(), self.attribute, self.value, self.subject, self.text)


class MemoryData(_MemoryFields):
    """Input of a memory."""

    about: list[RefData]
    facts: list[FactData]

    def memory(self) -> MemoryInput:
        """Return it as the engine takes it.

        Raises:
            InvalidScope: When it names neither a user nor shared knowledge, or both.
        """
        return MemoryInput(
            text=self.text or "",
            user_id=owner(self.user_id, shared=self.shared),
            id=self.id,
            kind=plain(self.kind),
            topic=self.topic,
            source=self.source,
            lang=None if self.lang is None else plain(self.lang),
            importance=self.importance,
            privacy=plain(self.privacy),
            occurred_at=self.occurred_at,
            valid_from=self.valid_from,
            valid_until=self.valid_until,
            expires_at=self.expires_at,
            session_id=self.session_id,
            agent_id=self.agent_id,
            about=tuple(ref.ref() for ref in self.about),
            supersedes=self.supersedes,
            facts=tuple(fact.fact() for fact in self.facts),
        )


class BatchData:
    """Input of several memories."""

    items: list[MemoryData]


# --- forgetting ----------------------------------------------------------------------------


@strawberry.input(
    name="ForgetRuleInput",
    description=(
        "Which memories are to go: those that meet every criterion given. One of `olderThanDays`,"
        " `importanceBelow` and `confidenceBelow` must be given."
    ),
)
class RuleData:
    """Input of a rule."""

    user_id: strawberry.ID | None = strawberry.field(
        default=None,
        description="Of this user only; leave it out only together with `everyUser: true`.",
    )
    every_user: bool = strawberry.field(
        default=False,
        description="Of every user of the tenant, and shared knowledge; then without `userId`.",
    )
    older_than_days: float | None = strawberry.field(
        default=None, description="That happened longer ago than this many days."
    )
    importance_below: float | None = strawberry.field(
        default=None, description="Less important than this, 0 to 1."
    )
    confidence_below: float | None = strawberry.field(
        default=None, description="Whose overall confidence now is below this, 0 to 1."
    )
    kinds: list[MemoryKind] | None = strawberry.field(
        default=None, description="Of these kinds; of all when not given."
    )

    def rule(self) -> ForgetRule:
        """Return it as the engine takes it.

        Raises:
            InvalidScope: When it names neither a user nor every user, or both. Every user is never
                the default: a forgotten user must not erase everybody's memories.
        """
        if self.every_user == (self.user_id is not None):
            msg = (
                "a rule is for one user or for all: give either `userId` or `everyUser: true`,"
                f" not {'both' if self.every_user else 'neither'}"
            )
            raise InvalidScope(msg, path=("user_id",))
        return ForgetRule(
            user_id=self.user_id,
            older_than_days=self.older_than_days,
            importance_below=self.importance_below,
            confidence_below=self.confidence_below,
            kinds=None if self.kinds is None else tuple(plain(kind) for kind in self.kinds),
        )


# --- the domain's own ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputTypes:
    """The inputs of one domain; those that name its types."""

    ref: type[RefData]
    memory: type[MemoryData]
    batch: type[BatchData]
    upsert: type[UpsertData]


def _input(name: str, base: type[Any], description: str, **fields: tuple[object, Any]) -> type[Any]:
    """Make an input type: ``field=(type, strawberry.field(...))``."""
    made = type(
        name,
        (base,),
        {
            "__annotations__": {key: type_ for key, (type_, _) in fields.items()},
            **{key: field for key, (_, field) in fields.items()},
        },
    )
    return strawberry.input(made, name=name, description=description)


def attributes_of(entities: EntityTypes) -> str:
    """Return a sentence that lists the attributes of a domain."""
    names = ", ".join(f"`{name}`" for name in entities.domain.attributes)
    return f"One of: {names}." if names else "This domain has none."


def build_input_types(entities: EntityTypes) -> InputTypes:
    """Make the inputs of a domain: they name its entity and relation types."""
    entity_type = strawberry.field(description="Its type, as the domain names it.")
    own_id = strawberry.field(description="The caller's own id; unique in its type.")
    ref = _input(
        "EntityRefInput",
        RefData,
        "Names an entity by type and the caller's own id.",
        type=(entities.entity_type, entity_type),
        id=(strawberry.ID, own_id),
    )
    entity = _input(
        "EntityInput",
        EntityData,
        "An entity to create or to update.",
        type=(entities.entity_type, strawberry.field(description="Its type.")),
        id=(strawberry.ID, strawberry.field(description="The caller's own id.")),
        properties=(
            JSON | None,
            strawberry.field(
                default=None,
                description=(
                    "Its properties, an object; names as in the domain file or as in the schema."
                    " Those left out stay as they are."
                ),
            ),
        ),
        observed_at=(
            datetime | None,
            strawberry.field(
                default=None,
                description=(
                    "When the properties were true; now when not given. Older news never"
                    " overwrites newer."
                ),
            ),
        ),
    )
    relation = _input(
        "RelationInput",
        RelationData,
        "A relation to create; its ends exist or come in the same call.",
        type=(entities.relation_type, strawberry.field(description="Its type.")),
        from_=(ref, strawberry.field(name="from", description="Where it starts.")),
        to=(ref, strawberry.field(description="Where it ends.")),
    )
    fact = _input(
        "FactInput",
        FactData,
        "What a text says, where the caller knows it: an entity's attribute has a value.",
        entity=(
            ref,
            strawberry.field(description="Whose attribute; it need not be in the graph yet."),
        ),
        attribute=(str, strawberry.field(description=f"The attribute. {attributes_of(entities)}")),
        value=(
            str,
            strawberry.field(
                description="Its value: one of the attribute's own words, where it has a list."
            ),
        ),
        subject=(
            str | None,
            strawberry.field(
                default=None,
                description=(
                    "What it is about, for an attribute that is kept by subject, e.g. the thing"
                    " liked."
                ),
            ),
        ),
        text=(
            str | None,
            strawberry.field(
                default=None, description="The sentence to keep; made from the rest if not given."
            ),
        ),
    )
    memory = _input(
        "MemoryInput",
        MemoryData,
        "A memory to keep.",
        about=(
            list_of(ref),
            strawberry.field(
                default_factory=list,
                description=(
                    "Entities it is about; those that the text names by id or name are linked on"
                    " top."
                ),
            ),
        ),
        facts=(
            list_of(fact),
            strawberry.field(
                default_factory=list,
                description=(
                    "What the text says, where you know it; read from the text when not given. Each"
                    " becomes a memory of its own."
                ),
            ),
        ),
    )
    return InputTypes(
        ref=ref,
        memory=memory,
        batch=_input(
            "RememberBatchInput",
            BatchData,
            "Memories to keep.",
            items=(
                list_of(memory),
                strawberry.field(description="The memories; a bad one does not harm the others."),
            ),
        ),
        upsert=_input(
            "UpsertEntitiesInput",
            UpsertData,
            "Entities and relations to write in one transaction.",
            entities=(
                list_of(entity),
                strawberry.field(default_factory=list, description="The entities."),
            ),
            relations=(
                list_of(relation),
                strawberry.field(default_factory=list, description="The relations."),
            ),
        ),
    )
