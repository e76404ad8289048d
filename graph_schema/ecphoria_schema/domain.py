"""The domain file: typed model and loader.

One YAML file declares a business. From it come graph constraints, validation of entities,
expansion paths, recognition of entities in text, privacy levels, topics, sources, life cycle
and the GraphQL types. `load_domain` reports every fault with its line.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import Field, PlainValidator, ValidationError, field_validator, model_validator

from ecphoria_schema.fact_rules import (
    BUILT_IN,
    GUARDS,
    ExchangeRule,
    FactRule,
    Slot,
    StatementRule,
    template_names,
)
from ecphoria_schema.walk import Hop, Walk, WalkError, parse_walk
from ecphoria_schema.words import (
    BoundedRegex,
    FieldName,
    Model,
    Regex,
    RelationName,
    Title,
    TypeName,
    Vocabulary,
    Words,
    placeholders,
)
from ecphoria_schema.yaml_reader import Lines, Place, YamlFault, line_of, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

Language: TypeAlias = Literal["en", "zh"]
PropertyType: TypeAlias = Literal[
    "string", "integer", "float", "boolean", "datetime", "date", "string_list"
]
Privacy: TypeAlias = Literal["public", "internal", "sensitive"]
Kind: TypeAlias = Literal["episodic", "semantic", "procedural"]
Cardinality: TypeAlias = Literal["one_to_one", "one_to_many", "many_to_one", "many_to_many"]

KINDS: tuple[Kind, ...] = ("episodic", "semantic", "procedural")

# Labels and properties that the engine itself uses in the graph.
RESERVED_LABELS = frozenset(
    {"Memory", "Source", "Turn", "Pending", "SchemaVersion", "VectorIndex", "ApiKey", "Entity"}
    | {"Claim", "Mention", "Lease", "Reembedding", "Session", "DataKey", "MasterKey"}
)
# Types that GraphQL itself or Relay brings along.
RESERVED_TYPES = frozenset(
    {"Query", "Mutation", "Subscription", "String", "Int", "Float", "Boolean", "ID"}
    | {"Date", "DateTime", "JSON", "Node", "PageInfo"}
)
RESERVED_PROPERTIES = frozenset(
    {"key", "id", "tenant", "user_id", "owner_key", "type"}
    | {"recorded_at", "observed_at", "observed"}
)
# Names that every entity already has in GraphQL.
RESERVED_FIELDS = frozenset({"id", "type", "name", "confidence"})


class DomainFault(ValueError):
    """One or more faults of a domain file.

    Attributes:
        faults: One sentence each, as ``file:line: what is wrong``.

    """

    def __init__(self, faults: list[str]) -> None:
        """Keep the faults; the message is all of them, one a line."""
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class Property(Model):
    """A property of an entity type."""

    type: PropertyType
    privacy: Privacy = "public"
    required: bool = False
    values: Words = ()

    @model_validator(mode="after")
    def _values_are_of_strings(self) -> Self:
        if self.values and self.type != "string":
            msg = f"`values` is for strings, not for {self.type}"
            raise ValueError(msg)
        return self


class IdPattern(Model):
    """How an id looks in text, and the forms under which it may be stored.

    Attributes:
        regex: What to find; its groups fill the forms.
        forms: Candidate ids; ``{0}`` is the first group (or the whole match without groups).

    """

    regex: Regex
    forms: Words = ("{0}",)

    @model_validator(mode="after")
    def _pattern_finds_something(self) -> Self:
        if re.compile(self.regex).match("") is not None:
            msg = f"{self.regex!r} matches the empty text, so it would match everywhere"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _forms_have_groups(self) -> Self:
        groups = max(re.compile(self.regex).groups, 1)
        numbers = {str(number) for number in range(groups)}
        for form in self.forms:
            names = placeholders(form)
            if names is None or not names or not numbers.issuperset(names):
                msg = f"form {form!r} does not fit the {groups} group(s) of the pattern"
                raise ValueError(msg)
        return self


class EntityType(Model):
    """A type of thing: graph label, GraphQL type, and how to recognise it in text.

    Attributes:
        pronouns: Words that mean the one of this type that was named last.
        described_by: Properties that a question may describe instead of naming the thing: the
            fault of the repair that is meant.

    """

    title: Title
    caption: str = Field(min_length=1)
    properties: dict[FieldName, Property]
    id_patterns: Annotated[tuple[IdPattern, ...], Field(strict=False)] = ()
    recognise: Annotated[tuple[FieldName, ...], Field(strict=False)] = ()
    described_by: Annotated[tuple[FieldName, ...], Field(strict=False)] = ()
    pronouns: Vocabulary = Vocabulary()


class Relation(Model):
    """A relation between entity types.

    Attributes:
        type: Relation type in the graph.
        from_: Type it starts at.
        to: Types it may end at.
        cardinality: Read from left to right: one_to_many = the end has one start.
        owns: The end belongs to whoever owns the start.
        forward: GraphQL field on the start type.
        backward: GraphQL field on the end types.
        newest_by: Property of the end; the highest come first where a cap cuts.

    """

    type: RelationName
    from_: TypeName = Field(alias="from")
    to: Annotated[tuple[TypeName, ...], Field(strict=False, min_length=1)]
    cardinality: Cardinality
    owns: bool = False
    forward: FieldName
    backward: FieldName
    newest_by: FieldName | None = None

    @field_validator("to", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _owned_has_one_owner(self) -> Self:
        if self.owns and self.cardinality not in {"one_to_many", "one_to_one"}:
            msg = f"{self.type} owns its end, so its cardinality must be one_to_many or one_to_one"
            raise ValueError(msg)
        return self

    @property
    def end_has_one_start(self) -> bool:
        """Whether an end may have one start at most."""
        return self.cardinality in {"one_to_one", "one_to_many"}

    @property
    def start_has_one_end(self) -> bool:
        """Whether a start may have one end at most."""
        return self.cardinality in {"one_to_one", "many_to_one"}


class Path_(Model):  # noqa: N801 - `Path` is pathlib's here
    """A named expansion path, written as a walk from the root."""

    walk: str


class Topic(Model):
    """What a memory or a question is about.

    Attributes:
        entities: Types whose records are the answer: that there is one answers the question.
        properties: Properties that are the answer, as ``Type.property``: the record alone is not.
        path: The expansion path to walk; the first path of the file without it.

    """

    title: Title
    keywords: Vocabulary
    entities: Annotated[tuple[TypeName, ...], Field(strict=False)] = ()
    properties: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*\.[a-z][a-z0-9_]*$")], ...],
        Field(strict=False),
    ] = ()
    path: FieldName | None = None


class TopicRule(Model):
    """An override: the topic is set when one of `any` is there, one of `also`, none of `none`."""

    topic: FieldName
    any: Annotated[Words, Field(min_length=1)]
    also: Words = ()
    none: Words = ()


class Intent(Model):
    """What somebody wants by saying something."""

    title: Title
    keywords: Vocabulary


class IntentRule(Model):
    """An override: the intent is set when one of `any` is there, one of `also`, none of `none`."""

    intent: FieldName
    any: Annotated[Words, Field(min_length=1)]
    also: Words = ()
    none: Words = ()


class Urgency(Model):
    """Words that tell that something is pressing, or can wait."""

    high: Vocabulary = Vocabulary()
    low: Vocabulary = Vocabulary()


class Speakers(Model):
    """Words that mark who speaks in a dialogue, before a colon."""

    customer: Vocabulary = Vocabulary()
    service: Vocabulary = Vocabulary()


class Attribute(Model):
    """A single-valued attribute: a new value takes the place of the old one.

    Attributes:
        values: The values it may have, each with the words for it, its name first; any text
            without.
        keyed: Whether it has a value of its own for each subject.

    """

    entity: TypeName
    title: Title
    property: FieldName | None = None
    values: dict[FieldName, Vocabulary] = Field(default_factory=dict)
    keyed: bool = False


class Redaction(Model):
    """Something that identifies a person, beside what is known everywhere.

    Attributes:
        regex: What to find in a text.
        placeholder: What stands in its place.

    """

    regex: BoundedRegex
    placeholder: Title

    @model_validator(mode="after")
    def _placeholder_stays(self) -> Self:
        for shown in (self.placeholder.en, self.placeholder.zh):
            if re.search(self.regex, shown) is not None:
                msg = f"{self.regex!r} finds its own placeholder {shown!r}"
                raise ValueError(msg)
        return self


class SourceType(Model):
    """Where memories come from, and how far to trust it, 0..1.

    Attributes:
        customer_says: It holds what the customer himself said.

    """

    title: Title
    reliability: float = Field(ge=0, le=1)
    customer_says: bool = False


class Decay(Model):
    """How a memory fades, and when it moves to the archive.

    Attributes:
        per_day: What is left of its freshness after a day, 0..1.
        on_use: What its freshness gains when it is used, 0..1.
        archive_below: It is archived when its freshness is below, 0..1.
        archive_unused_days: It is archived when it was not used for so many days (days).

    """

    per_day: float = Field(gt=0, lt=1)
    on_use: float = Field(ge=0, le=1)
    archive_below: float = Field(gt=0, lt=1)
    archive_unused_days: float = Field(gt=0)


def _lifetime(value: object) -> object:
    if value is None:
        return None
    pair = isinstance(value, list | tuple)
    days = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(days) != 1 + pair or any(
        isinstance(day, bool) or not isinstance(day, int | float) for day in days
    ):
        msg = "must be a number of days, or [least, most]"
        raise ValueError(msg)
    if not all(0 < day < math.inf for day in days) or days[0] > days[-1]:
        msg = "must be days greater than 0, the least first"
        raise ValueError(msg)
    return tuple(map(float, days)) if pair else float(days[0])


class KindPolicy(Model):
    """How a kind of memory lives.

    Attributes:
        half_life_days: After this many days timeliness is half (days).
        expires_after_days: Dropped after this many days; never without it (days). Of a pair the
            first is for importance 0, the second for importance 1.
        importance: Importance where the caller gives none, 0..1.
        importance_floor: No memory of the kind is less important, 0..1.
        decay: How it fades and when it is archived; never without it.

    """

    half_life_days: float = Field(gt=0)
    expires_after_days: Annotated[float | tuple[float, float] | None, PlainValidator(_lifetime)] = (
        None
    )
    importance: float = Field(default=0.5, ge=0, le=1)
    importance_floor: float = Field(default=0.0, ge=0, le=1)
    decay: Decay | None = None

    @model_validator(mode="after")
    def _floor_is_below(self) -> Self:
        if self.importance < self.importance_floor:
            msg = f"importance {self.importance:g} is below its floor {self.importance_floor:g}"
            raise ValueError(msg)
        return self

    def lifetime_days(self, importance: float) -> float | None:
        """Return after how many days a memory is dropped; None = never.

        Args:
            importance: Of the memory, 0..1; the floor of the kind counts if it is higher.

        """
        if not isinstance(self.expires_after_days, tuple):
            return self.expires_after_days
        least, most = self.expires_after_days
        weight = min(1.0, max(importance, self.importance_floor))
        return least + (most - least) * weight


class Cues(Model):
    """Words that tell how something is meant, whatever the business.

    Attributes:
        smalltalk: What says nothing.
        history: Asks for what used to be.
        procedure: Asks how something is done.
        question: The sentence asks and states nothing.
        hypothetical: It is not so, or not yet.
        conditional: Of those, what makes all that is said with it depend on something.
        negation: It is not so.
        hearsay: Somebody else said it.
        third_person: It is about somebody else.
        another: Another thing is meant than the one named last.
        own: The things of whoever asks are spoken of.
        own_words: What whoever asks has said is asked for.

    """

    smalltalk: Vocabulary = Vocabulary()
    history: Vocabulary = Vocabulary()
    procedure: Vocabulary = Vocabulary()
    question: Vocabulary = Vocabulary()
    hypothetical: Vocabulary = Vocabulary()
    conditional: Vocabulary = Vocabulary()
    negation: Vocabulary = Vocabulary()
    hearsay: Vocabulary = Vocabulary()
    third_person: Vocabulary = Vocabulary()
    another: Vocabulary = Vocabulary()
    own: Vocabulary = Vocabulary()
    own_words: Vocabulary = Vocabulary()


class Domain(Model):
    """A business, as its domain file declares it."""

    version: Literal[1]
    name: FieldName
    title: Title
    root: TypeName
    entities: Annotated[dict[TypeName, EntityType], Field(min_length=1)]
    relations: Annotated[tuple[Relation, ...], Field(strict=False)]
    paths: Annotated[dict[FieldName, Path_], Field(min_length=1)]
    topics: dict[FieldName, Topic] = Field(default_factory=dict)
    topic_rules: Annotated[tuple[TopicRule, ...], Field(strict=False)] = ()
    intents: dict[FieldName, Intent] = Field(default_factory=dict)
    intent_rules: Annotated[tuple[IntentRule, ...], Field(strict=False)] = ()
    urgency: Urgency = Urgency()
    speakers: Speakers = Speakers()
    attributes: dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$")], Attribute
    ] = Field(default_factory=dict)
    slots: dict[FieldName, Slot] = Field(default_factory=dict)
    facts: dict[FieldName, FactRule] = Field(default_factory=dict)
    sources: Annotated[dict[FieldName, SourceType], Field(min_length=1)]
    default_source: FieldName
    kinds: dict[Kind, KindPolicy]
    cues: Cues = Cues()
    synonyms: Annotated[tuple[Vocabulary, ...], Field(strict=False)] = ()
    redaction: dict[FieldName, Redaction] = Field(default_factory=dict)

    @cached_property
    def walks(self) -> dict[str, Walk]:
        """Expansion paths, parsed."""
        return {name: parse_walk(path.walk) for name, path in self.paths.items()}

    @property
    def default_path(self) -> str:
        """Name of the first path of the file."""
        return next(iter(self.paths))

    @cached_property
    def owned_types(self) -> frozenset[str]:
        """Types whose entities belong to one root entity: the root and what hangs below it."""
        owned = {self.root}
        owning = [relation for relation in self.relations if relation.owns]
        while (
            more := {end for relation in owning if relation.from_ in owned for end in relation.to}
            - owned
        ):
            owned |= more
        return frozenset(owned)

    @cached_property
    def newest_by(self) -> dict[str, str]:
        """Property that tells how new an owned entity is, by its type."""
        return {
            end: relation.newest_by
            for relation in self.relations
            if relation.owns and relation.newest_by
            for end in relation.to
        }

    def hides(self, attribute: str) -> bool:
        """Whether the values of an attribute are sensitive: its property is."""
        declared = self.attributes[attribute]
        if declared.property is None:
            return False
        return self.entities[declared.entity].properties[declared.property].privacy == "sensitive"

    def relation(self, type_: str, from_: str, to: str) -> Relation | None:
        """Return the relation of that type between the two types, if declared."""
        return next(
            (
                relation
                for relation in self.relations
                if relation.type == type_ and relation.from_ == from_ and to in relation.to
            ),
            None,
        )

    def walk_for(self, topics: tuple[str, ...]) -> str:
        """Return the path of the first topic whose answer is in the graph, or the default."""
        for topic in topics:
            declared = self.topics.get(topic)
            if declared is None:
                continue
            if declared.path is not None:
                return declared.path
            if declared.entities or declared.properties:
                break
        return self.default_path


# Fewer words than that are no synonyms.
_LEAST_SYNONYMS = 2


@dataclass(frozen=True, slots=True)
class _Fault:
    path: Place
    message: str


def _graphql_name(field: str) -> str:
    """Return the field as GraphQL spells it; there ``line_1`` and ``line1`` are one."""
    first, *rest = field.split("_")
    return first + "".join(part.capitalize() if part else "_" for part in rest)


def _relation_faults(domain: Domain) -> list[_Fault]:
    faults: list[_Fault] = []
    fields: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[str, str, str]] = set()
    for index, relation in enumerate(domain.relations):
        here = ("relations", index)
        if relation.from_ not in domain.entities:
            faults.append(_Fault((*here, "from"), f"unknown entity type {relation.from_!r}"))
            continue
        for end in relation.to:
            if end not in domain.entities:
                faults.append(_Fault((*here, "to"), f"unknown entity type {end!r}"))
                continue
            triple = (relation.type, relation.from_, end)
            if triple in seen:
                faults.append(_Fault(here, f"{relation.from_}-{relation.type}->{end} stands twice"))
            seen.add(triple)
            fields[end, _graphql_name(relation.backward)] += 1
            if relation.newest_by and relation.newest_by not in domain.entities[end].properties:
                faults.append(
                    _Fault((*here, "newest_by"), f"{end} has no property {relation.newest_by!r}")
                )
        fields[relation.from_, _graphql_name(relation.forward)] += 1
        ends = [(end, relation.backward) for end in relation.to if end in domain.entities]
        for type_, field in dict.fromkeys([(relation.from_, relation.forward), *ends]):
            properties = {_graphql_name(name) for name in domain.entities[type_].properties}
            name = _graphql_name(field)
            if name in properties | RESERVED_FIELDS or fields[type_, name] > 1:
                faults.append(_Fault(here, f"{type_} already has a field {field!r}"))
    return faults


def _property_faults(label: str, entity: EntityType) -> list[_Fault]:
    faults: list[_Fault] = []
    seen: dict[str, str] = {}
    for name, declared in entity.properties.items():
        here = ("entities", label, "properties", name)
        if name in RESERVED_PROPERTIES or name in RESERVED_FIELDS - {"name"}:
            faults.append(_Fault(here, f"{name!r} is ecphoria's own property"))
        # the caption is stored and returned as `name`
        if name == "name" and (declared.type != "string" or entity.caption != "{name}"):
            faults.append(
                _Fault(here, "`name` holds the caption: it must be a string, the caption {name}")
            )
        other = seen.setdefault(_graphql_name(name), name)
        if other != name:
            faults.append(_Fault(here, f"{other!r} and {name!r} are one name in GraphQL"))
    return faults


def _caption_faults(label: str, entity: EntityType) -> list[_Fault]:
    here = ("entities", label, "caption")
    names = placeholders(entity.caption)
    if names is None:
        return [_Fault(here, f"{entity.caption!r} may have plain {{property}} in braces only")]
    faults: list[_Fault] = []
    for name in names:
        declared = entity.properties.get(name)
        if declared is None and name != "id":
            faults.append(_Fault(here, f"{label} has no property {name!r}"))
        elif declared is not None and declared.privacy != "public":
            faults.append(_Fault(here, f"{name!r} is {declared.privacy}: captions are public"))
    return faults


def _entity_faults(domain: Domain) -> list[_Fault]:
    faults: list[_Fault] = []
    for label, entity in domain.entities.items():
        here = ("entities", label)
        if label in RESERVED_LABELS:
            faults.append(_Fault(here, f"{label!r} is ecphoria's own label"))
        if label in RESERVED_TYPES:
            faults.append(_Fault(here, f"{label!r} is a type of GraphQL itself"))
        faults.extend(_property_faults(label, entity))
        faults.extend(_caption_faults(label, entity))
        for name in entity.recognise:
            declared = entity.properties.get(name)
            if declared is None:
                faults.append(_Fault((*here, "recognise"), f"{label} has no property {name!r}"))
            elif declared.type not in {"string", "string_list"}:
                faults.append(
                    _Fault((*here, "recognise"), f"{name!r} is no text, it is {declared.type}")
                )
            elif declared.privacy == "sensitive":
                faults.append(
                    _Fault((*here, "recognise"), f"{name!r} is sensitive: it is stored encrypted")
                )
        faults.extend(_description_faults(label, entity))
    if domain.root not in domain.entities:
        faults.append(_Fault(("root",), f"unknown entity type {domain.root!r}"))
    return faults


def _description_faults(label: str, entity: EntityType) -> list[_Fault]:
    here = ("entities", label, "described_by")
    faults: list[_Fault] = []
    for name in entity.described_by:
        declared = entity.properties.get(name)
        if declared is None:
            faults.append(_Fault(here, f"{label} has no property {name!r}"))
        elif declared.type != "string" or declared.privacy == "sensitive":
            faults.append(_Fault(here, f"{name!r} must be a string that is not sensitive"))
    return faults


def _hop_faults(domain: Domain, here: tuple[str | int, ...], hop: Hop) -> list[_Fault]:
    faults = [
        _Fault(here, f"unknown entity type {type_!r}")
        for type_ in (hop.start, hop.end)
        if type_ not in domain.entities
    ]
    if not faults and domain.relation(hop.relation, hop.start, hop.end) is None:
        faults.append(
            _Fault(here, f"no relation {hop.start}-{hop.relation}->{hop.end} is declared")
        )
    return faults


def _path_faults(domain: Domain) -> list[_Fault]:
    faults: list[_Fault] = []
    for name, path in domain.paths.items():
        here = ("paths", name, "walk")
        try:
            walk = parse_walk(path.walk)
        except WalkError as error:
            faults.append(_Fault(here, str(error)))
            continue
        if walk.root != domain.root:
            faults.append(_Fault(here, f"starts at {walk.root}, but the root is {domain.root}"))
        for hop in walk.hops:
            faults.extend(_hop_faults(domain, here, hop))
    return faults


def _reference_faults(domain: Domain) -> list[_Fault]:
    faults: list[_Fault] = []
    for name, topic in domain.topics.items():
        here = ("topics", name)
        faults.extend(
            _Fault((*here, "entities"), f"unknown entity type {type_!r}")
            for type_ in topic.entities
            if type_ not in domain.entities
        )
        for place in topic.properties:
            type_, _, held = place.partition(".")
            if type_ not in domain.entities or held not in domain.entities[type_].properties:
                faults.append(_Fault((*here, "properties"), f"unknown property {place!r}"))
        if topic.path is not None and topic.path not in domain.paths:
            faults.append(_Fault((*here, "path"), f"unknown path {topic.path!r}"))
    faults.extend(
        _Fault(("topic_rules", index, "topic"), f"unknown topic {rule.topic!r}")
        for index, rule in enumerate(domain.topic_rules)
        if rule.topic not in domain.topics
    )
    faults.extend(
        _Fault(("intent_rules", index, "intent"), f"unknown intent {intent_rule.intent!r}")
        for index, intent_rule in enumerate(domain.intent_rules)
        if intent_rule.intent not in domain.intents
    )
    for name, attribute in domain.attributes.items():
        here = ("attributes", name)
        entity = domain.entities.get(attribute.entity)
        if entity is None:
            faults.append(_Fault((*here, "entity"), f"unknown entity type {attribute.entity!r}"))
        elif attribute.property is not None and attribute.property not in entity.properties:
            faults.append(
                _Fault(
                    (*here, "property"),
                    f"{attribute.entity} has no property {attribute.property!r}",
                )
            )
        faults.extend(_value_faults(here, attribute))
    if domain.default_source not in domain.sources:
        faults.append(_Fault(("default_source",), f"unknown source {domain.default_source!r}"))
    faults.extend(
        _Fault(("kinds",), f"the policy of {kind!r} is missing")
        for kind in KINDS
        if kind not in domain.kinds
    )
    return faults


def _value_faults(here: Place, attribute: Attribute) -> list[_Fault]:
    faults: list[_Fault] = []
    seen: dict[str, str] = {}
    for value, words in attribute.values.items():
        if not (words.en and words.zh):
            faults.append(
                _Fault((*here, "values", value), "a word in each language is needed: it is shown")
            )
        for word in words.all:
            other = seen.setdefault(word.casefold(), value)
            if other != value:
                faults.append(_Fault((*here, "values", value), f"{word!r} already means {other!r}"))
    return faults


def _speaker_faults(domain: Domain) -> list[_Fault]:
    customer = {word.casefold() for word in domain.speakers.customer.all}
    return [
        _Fault(("speakers", "service"), f"{word!r} already marks the customer")
        for word in domain.speakers.service.all
        if word.casefold() in customer
    ]


def _slot_faults(domain: Domain) -> list[_Fault]:
    return [
        _Fault(("slots", name), f"{name!r} is ecphoria's own name in templates")
        for name in domain.slots
        if name in BUILT_IN
    ]


def _value_place_faults(domain: Domain, here: Place, rule: FactRule) -> list[_Fault]:
    """Check where a rule takes the value of its attribute from."""
    if rule.attribute is None:
        return []
    attribute = domain.attributes.get(rule.attribute)
    if attribute is None:
        return [_Fault((*here, "attribute"), f"unknown attribute {rule.attribute!r}")]
    faults: list[_Fault] = []
    if rule.value is None and not attribute.values:
        faults.append(
            _Fault(here, f"{rule.attribute} has no `values`: say which slot holds its `value`")
        )
    if attribute.keyed and rule.subject is None:
        faults.append(_Fault(here, f"{rule.attribute} is keyed: say which slot is its `subject`"))
    if not attribute.keyed and rule.subject is not None:
        faults.append(
            _Fault((*here, "subject"), f"{rule.attribute} is not keyed: it has no subject")
        )
    return faults


def _exchange_faults(domain: Domain, here: Place, rule: ExchangeRule) -> list[_Fault]:
    known = {*domain.slots, *domain.entities}
    faults = [
        _Fault((*here, key), f"unknown slot {slot!r}")
        for key, slot in (("value", rule.value), ("subject", rule.subject))
        if slot is not None and slot not in domain.slots
    ]
    faults.extend(
        _Fault((*here, "needs"), f"unknown slot or entity type {name!r}")
        for name in rule.needs
        if name not in known | {"value"}
    )
    for language, template in (("en", rule.text.en), ("zh", rule.text.zh)):
        faults.extend(
            _Fault((*here, "text", language), f"unknown name {name!r} in braces")
            for name in template_names(template) or ()
            if name not in known | BUILT_IN
        )
    return faults


def _guard_faults(domain: Domain) -> list[_Fault]:
    # without them "I do not live there" would say where somebody lives
    return [
        _Fault(("facts",), f"facts of the type `statement` need words in cues.{guard}.{language}")
        for guard in GUARDS
        for language, words in (
            ("en", getattr(domain.cues, guard).en),
            ("zh", getattr(domain.cues, guard).zh),
        )
        if not words
    ]


def _fact_faults(domain: Domain) -> list[_Fault]:
    faults: list[_Fault] = []
    for name, rule in domain.facts.items():
        here = ("facts", name)
        faults.extend(_value_place_faults(domain, here, rule))
        if rule.topic is not None and rule.topic not in domain.topics:
            faults.append(_Fault((*here, "topic"), f"unknown topic {rule.topic!r}"))
        if rule.intent is not None and rule.intent not in domain.intents:
            faults.append(_Fault((*here, "intent"), f"unknown intent {rule.intent!r}"))
        if isinstance(rule, ExchangeRule):
            faults.extend(_exchange_faults(domain, here, rule))
    if any(isinstance(rule, StatementRule) for rule in domain.facts.values()):
        faults.extend(_guard_faults(domain))
    return faults


def _synonym_faults(domain: Domain) -> list[_Fault]:
    found: list[_Fault] = []
    seen: dict[str, int] = {}
    for number, group in enumerate(domain.synonyms):
        here = ("synonyms", number)
        if len(group.all) < _LEAST_SYNONYMS:
            found.append(_Fault(here, "needs two words or more for the same thing"))
        for word in group.all:
            before = seen.setdefault(word.casefold(), number)
            if before != number:
                found.append(_Fault(here, f"{word!r} stands in another group, too"))
    return found


def _faults(domain: Domain) -> list[_Fault]:
    return [
        *_entity_faults(domain),
        *_relation_faults(domain),
        *_path_faults(domain),
        *_reference_faults(domain),
        *_speaker_faults(domain),
        *_slot_faults(domain),
        *_fact_faults(domain),
        *_synonym_faults(domain),
    ]


def _place(lines: Lines, location: Place) -> Place:
    """Return pydantic's place as the file has it: without the branch of a union taken."""
    place: Place = ()
    for number, part in enumerate(location):
        # what is missing is named, but stands nowhere
        if (*place, part) in lines or number == len(location) - 1:
            place = (*place, part)
    return place


def parse_domain(text: str, file: str = "domain.yaml") -> Domain:
    """Read a domain from YAML text.

    Args:
        text: The file's content.
        file: Its name, for messages.

    Raises:
        DomainFault: With every fault found, each with its line.

    """
    try:
        data, lines = read_yaml(text)
    except YamlFault as error:
        raise DomainFault(
            [f"{file}:{line}: {message}" for line, message in error.faults]
        ) from error
    try:
        domain = Domain.model_validate(data)
    except ValidationError as error:
        raise DomainFault(
            [
                f"{file}:{line_of(lines, place)}: "
                f"{'.'.join(str(part) for part in place) or 'file'}: "
                f"{item['msg'].removeprefix('Value error, ')}"
                for item in error.errors()
                for place in [_place(lines, item["loc"])]
            ]
        ) from error
    if found := _faults(domain):
        raise DomainFault(
            [
                f"{file}:{line_of(lines, fault.path)}: "
                f"{'.'.join(str(part) for part in fault.path)}: {fault.message}"
                for fault in found
            ]
        )
    return domain


def load_domain(file: Path) -> Domain:
    """Read a domain file.

    Raises:
        DomainFault: With every fault found, each with its line; also when the file cannot be read.

    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DomainFault([f"{file}:1: cannot be read: {error}"]) from error
    return parse_domain(text, file.name)


def shipped_domain(name: str = "after_sales") -> Domain:
    """Return a domain that comes with ecphoria.

    Raises:
        DomainFault: When there is none of that name.

    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise DomainFault([f"{name}.yaml:1: no such domain comes with ecphoria"])
    resource = resources.files("ecphoria_schema") / "domains" / f"{name}.yaml"
    if not resource.is_file():
        raise DomainFault([f"{name}.yaml:1: no such domain comes with ecphoria"])
    return parse_domain(resource.read_text(encoding="utf-8"), f"{name}.yaml")
