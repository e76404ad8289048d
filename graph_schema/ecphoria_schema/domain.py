"""The domain file: typed model and loader.

One YAML file declares a business. From it come graph constraints, validation of entities,
expansion paths, recognition of entities in text, privacy levels, topics, sources, life cycle
and the GraphQL types. `load_domain` reports every fault with its line.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from ecphoria_schema.walk import Hop, Walk, WalkError, parse_walk

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

# A file with more values than this is a mistake, or an alias that multiplies itself.
MAX_VALUES = 100_000
_TAGS = {
    kind: f"tag:yaml.org,2002:{kind}"
    for kind in ("str", "int", "float", "bool", "null", "map", "seq")
}
_SCALAR_TAGS = frozenset(_TAGS[kind] for kind in ("str", "int", "float", "bool", "null"))


class DomainFault(ValueError):
    """One or more faults of a domain file.

    Attributes:
        faults: One sentence each, as ``file:line: what is wrong``.

    """

    def __init__(self, faults: list[str]) -> None:
        """Keep the faults; the message is all of them, one a line."""
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _type_name(value: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]{0,49}", value):
        msg = f"{value!r} is no type name: a capital letter, then letters and digits, 50 at most"
        raise ValueError(msg)
    return value


def _relation_name(value: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,49}", value):
        msg = f"{value!r} is no relation name: capitals, digits and _, 50 at most"
        raise ValueError(msg)
    return value


def _field_name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,49}", value):
        msg = f"{value!r} is no field name: lower case letters, digits and _, 50 at most"
        raise ValueError(msg)
    return value


def _regex(value: str) -> str:
    try:
        re.compile(value)
        # it becomes part of a larger one, where flags for the whole are refused
        re.compile(f"(?:{value})")
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"{value!r} is no regular expression: {error}"
        raise ValueError(msg) from error
    return value


def _word(value: str) -> str:
    if not value.strip().rstrip("*"):
        msg = f"{value!r} is no word: it would match everywhere"
        raise ValueError(msg)
    return value


def _placeholders(template: str) -> list[str] | None:
    """Return the names in braces; nothing when the template has more than plain ``{name}``."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return None
    if any(name is not None and (spec or conversion) for _, name, spec, conversion in parts):
        return None
    return [name for _, name, _, _ in parts if name is not None]


TypeName = Annotated[str, AfterValidator(_type_name)]
RelationName = Annotated[str, AfterValidator(_relation_name)]
FieldName = Annotated[str, AfterValidator(_field_name)]
Regex = Annotated[str, AfterValidator(_regex)]
Word = Annotated[str, AfterValidator(_word)]
Words = Annotated[tuple[Word, ...], Field(strict=False)]


class Title(_Model):
    """A name for people, in both languages."""

    en: str = Field(min_length=1)
    zh: str = Field(min_length=1)


class Vocabulary(_Model):
    """Words in both languages; English ones match whole words, a trailing ``*`` any ending."""

    en: Words = ()
    zh: Words = ()


class Property(_Model):
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


class IdPattern(_Model):
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
            names = _placeholders(form)
            if names is None or not names or not numbers.issuperset(names):
                msg = f"form {form!r} does not fit the {groups} group(s) of the pattern"
                raise ValueError(msg)
        return self


class EntityType(_Model):
    """A type of thing: graph label, GraphQL type, and how to recognise it in text."""

    title: Title
    caption: str = Field(min_length=1)
    properties: dict[FieldName, Property]
    id_patterns: Annotated[tuple[IdPattern, ...], Field(strict=False)] = ()
    recognise: Annotated[tuple[FieldName, ...], Field(strict=False)] = ()


class Relation(_Model):
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


class Path_(_Model):  # noqa: N801 - `Path` is pathlib's here
    """A named expansion path, written as a walk from the root."""

    walk: str


class Topic(_Model):
    """What a memory or a question is about.

    Attributes:
        entities: Types that hold the answer in the graph.
        path: The expansion path to walk; the first path of the file without it.

    """

    title: Title
    keywords: Vocabulary
    entities: Annotated[tuple[TypeName, ...], Field(strict=False)] = ()
    path: FieldName | None = None


class TopicRule(_Model):
    """An override: the topic is set when one of `any` is there and none of `none`."""

    topic: FieldName
    any: Annotated[Words, Field(min_length=1)]
    none: Words = ()


class Attribute(_Model):
    """A single-valued attribute: a new value takes the place of the old one."""

    entity: TypeName
    title: Title
    property: FieldName | None = None


class SourceType(_Model):
    """Where memories come from, and how far to trust it, 0..1."""

    title: Title
    reliability: float = Field(ge=0, le=1)


class KindPolicy(_Model):
    """How a kind of memory lives.

    Attributes:
        half_life_days: After this many days timeliness is half (days).
        expires_after_days: Dropped after this many days; never without it (days).
        importance: Importance where the caller gives none, 0..1.

    """

    half_life_days: float = Field(gt=0)
    expires_after_days: float | None = Field(default=None, gt=0)
    importance: float = Field(default=0.5, ge=0, le=1)


class Cues(_Model):
    """Words that tell what a question wants, whatever the business."""

    smalltalk: Vocabulary = Vocabulary()
    history: Vocabulary = Vocabulary()
    procedure: Vocabulary = Vocabulary()


class Domain(_Model):
    """A business, as its domain file declares it."""

    version: Literal[1]
    name: FieldName
    title: Title
    root: TypeName
    entities: Annotated[dict[TypeName, EntityType], Field(min_length=1)]
    relations: Annotated[tuple[Relation, ...], Field(strict=False)]
    paths: Annotated[dict[FieldName, Path_], Field(min_length=1)]
    topics: dict[FieldName, Topic] = {}
    topic_rules: Annotated[tuple[TopicRule, ...], Field(strict=False)] = ()
    attributes: dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$")], Attribute
    ] = {}
    sources: Annotated[dict[FieldName, SourceType], Field(min_length=1)]
    default_source: FieldName
    kinds: dict[Kind, KindPolicy]
    cues: Cues = Cues()

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
        """Return the path that the first topic with one of its own names, or the default."""
        for topic in topics:
            declared = self.topics.get(topic)
            if declared is not None and declared.path is not None:
                return declared.path
        return self.default_path


@dataclass(frozen=True, slots=True)
class _Fault:
    path: tuple[str | int, ...]
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
    names = _placeholders(entity.caption)
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
    if domain.root not in domain.entities:
        faults.append(_Fault(("root",), f"unknown entity type {domain.root!r}"))
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
        if topic.path is not None and topic.path not in domain.paths:
            faults.append(_Fault((*here, "path"), f"unknown path {topic.path!r}"))
    faults.extend(
        _Fault(("topic_rules", index, "topic"), f"unknown topic {rule.topic!r}")
        for index, rule in enumerate(domain.topic_rules)
        if rule.topic not in domain.topics
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
    if domain.default_source not in domain.sources:
        faults.append(_Fault(("default_source",), f"unknown source {domain.default_source!r}"))
    faults.extend(
        _Fault(("kinds",), f"the policy of {kind!r} is missing")
        for kind in KINDS
        if kind not in domain.kinds
    )
    return faults


def _faults(domain: Domain) -> list[_Fault]:
    return [
        *_entity_faults(domain),
        *_relation_faults(domain),
        *_path_faults(domain),
        *_reference_faults(domain),
    ]


_Place: TypeAlias = tuple[str | int, ...]
_Lines: TypeAlias = dict[_Place, int]


class _Reader:
    """Turns YAML nodes into plain values, and notes the line of each."""

    def __init__(self) -> None:
        self.lines: _Lines = {}
        self.faults: list[tuple[int, str]] = []
        self._loader = yaml.SafeLoader("")
        self._values = 0

    def read(self, node: yaml.Node, place: _Place = ()) -> Any:  # noqa: ANN401 - YAML is any
        line = node.start_mark.line + 1
        self.lines.setdefault(place, line)
        self._values += 1
        if self._values > MAX_VALUES:
            if self._values == MAX_VALUES + 1:
                self.faults.append((line, f"more than {MAX_VALUES} values: check the aliases"))
            return None
        if isinstance(node, yaml.MappingNode) and node.tag == _TAGS["map"]:
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAGS["seq"]:
            return [self.read(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, place: _Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.faults.append((line, "a key must be a word"))
                continue
            key = key_node.value
            if key_node.tag != _TAGS["str"]:
                self.faults.append((line, f"a key must be a word, not {key!r} (put it in quotes)"))
                continue
            if key in result:
                self.faults.append((line, f"{key!r} stands twice"))
                continue
            self.lines[*place, key] = line
            result[key] = self.read(value_node, (*place, key))
        return result

    def _scalar(self, node: yaml.Node, line: int) -> Any:  # noqa: ANN401 - YAML is any
        if not isinstance(node, yaml.ScalarNode) or node.tag not in _SCALAR_TAGS:
            kind = node.tag.rpartition(":")[2]
            self.faults.append((line, f"a {kind} is of no use here (put texts in quotes)"))
            return None
        try:
            return self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError, AttributeError, OverflowError):
            self.faults.append((line, f"{node.value[:50]!r} cannot be read as its type"))
            return None


def _line(lines: _Lines, path: tuple[str | int, ...]) -> int:
    # pydantic's places may go deeper than the file's (e.g. a union's branch): walk up
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _error_line(error: yaml.YAMLError, text: str) -> int:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return error.problem_mark.line + 1
    if isinstance(error, yaml.reader.ReaderError):
        return text.count("\n", 0, error.position) + 1
    return 1


def _said(error: yaml.YAMLError) -> str:
    problem = error.problem if isinstance(error, yaml.MarkedYAMLError) else None
    return problem or str(error).partition("\n")[0]


def parse_domain(text: str, file: str = "domain.yaml") -> Domain:
    """Read a domain from YAML text.

    Args:
        text: The file's content.
        file: Its name, for messages.

    Raises:
        DomainFault: With every fault found, each with its line.

    """
    reader = _Reader()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if not isinstance(node, yaml.MappingNode):
            raise DomainFault([f"{file}:1: the file must be a mapping with `version`, `name`, …"])
        data = reader.read(node)
    except yaml.YAMLError as error:
        raise DomainFault(
            [f"{file}:{_error_line(error, text)}: not YAML: {_said(error)}"]
        ) from error
    except RecursionError as error:
        raise DomainFault([f"{file}:1: nested too deeply, or an alias holds itself"]) from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, DomainFault):
            raise
        # PyYAML lets some of its own through, e.g. for "\\UFFFFFFFF"
        raise DomainFault([f"{file}:1: not YAML: {error}"]) from error
    if reader.faults:
        raise DomainFault([f"{file}:{line}: {message}" for line, message in reader.faults])
    lines = reader.lines
    try:
        domain = Domain.model_validate(data)
    except ValidationError as error:
        raise DomainFault(
            [
                f"{file}:{_line(lines, item['loc'])}: "
                f"{'.'.join(str(part) for part in item['loc']) or 'file'}: "
                f"{item['msg'].removeprefix('Value error, ')}"
                for item in error.errors()
            ]
        ) from error
    if found := _faults(domain):
        raise DomainFault(
            [
                f"{file}:{_line(lines, fault.path)}: "
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
