"""First stage of a write: clean and validate one item, or say what is wrong with it."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from ecphoria.embedding.text import clean
from ecphoria.errors import (
    EcphoriaError,
    Forbidden,
    InvalidInput,
    InvalidTime,
    TextEmpty,
    TextTooLong,
    UnknownProperty,
    UnknownRelation,
    UnknownType,
)
from ecphoria.governance.access import Operation, check_access
from ecphoria.language.folding import fold
from ecphoria.model import (
    MAX_ID_CHARS,
    EntityInput,
    EntityRef,
    EveryUser,
    FactInput,
    MemoryInput,
    PropertyValue,
    RelationInput,
    Scope,
    checked_id,
    parse_time,
    utc,
)
from ecphoria.stores.ports import EntityRow, RelationRow
from ecphoria_schema.domain import KINDS, Attribute, Domain, Property

MAX_PROPERTY_CHARS = 10_000
MAX_LIST_ITEMS = 100
MAX_ABOUT = 50
MAX_FACTS = 50
MAX_TOPIC_CHARS = 64
MAX_QUOTED = 80
MAX_REASON_CHARS = 1_000

_PRIVACY = ("public", "internal", "sensitive")


@dataclass(frozen=True, slots=True)
class CleanMemory:
    """A memory whose every field is checked; times are UTC."""

    item: MemoryInput
    occurred_at: datetime
    valid_from: datetime


def _quoted(value: object) -> str:
    # what was sent may be megabytes; a message is one sentence
    try:
        shown = repr(value)
    except ValueError:  # Python refuses to write a number of more than 4300 digits
        return "a number without end"
    return shown if len(shown) <= MAX_QUOTED else shown[:MAX_QUOTED] + "…"


def _enum(value: object, allowed: tuple[str, ...], what: str) -> None:
    if value not in allowed:
        msg = f"the {what} {_quoted(value)} is none of {', '.join(allowed)}"
        raise InvalidInput(msg, path=(what,))


def _optional_time(value: datetime | None, field: str) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_time(value, field)
    except InvalidTime as error:
        raise error.at(field) from error


def _checked(value: object, what: str, field: str) -> str:
    try:
        return checked_id(value, what)
    except EcphoriaError as error:
        raise error.at(field) from error


def _user(item: MemoryInput, scope: Scope) -> str | None:
    try:
        if item.user_id is None:
            check_access(scope, Operation.REMEMBER_SHARED)
            if not isinstance(scope.users, EveryUser):
                msg = "shared knowledge is written by keys for every user of the tenant"
                raise Forbidden(msg)
            return None
        return scope.user(item.user_id)
    except EcphoriaError as error:
        raise error.at("user_id") from error


def _check_choices(item: MemoryInput, source: str, domain: Domain) -> None:
    _enum(item.kind, KINDS, "kind")
    _enum(item.privacy, _PRIVACY, "privacy")
    if item.lang is not None:
        _enum(item.lang, ("en", "zh"), "lang")
    _enum(source, tuple(domain.sources), "source")


def _check_ids(item: MemoryInput) -> None:
    for field, value, what in (
        ("id", item.id, "memory id"),
        ("session_id", item.session_id, "session id"),
        ("agent_id", item.agent_id, "agent id"),
        ("supersedes", item.supersedes, "id of the superseded memory"),
        ("topic", item.topic, "topic"),
    ):
        if value is not None:
            _checked(value, what, field)
    if item.topic is not None and len(item.topic) > MAX_TOPIC_CHARS:
        msg = f"the topic has {len(item.topic)} characters; {MAX_TOPIC_CHARS} are allowed"
        raise TextTooLong(msg, path=("topic",))
    if item.supersedes is not None and item.supersedes == item.id:
        msg = "a memory cannot supersede itself"
        raise InvalidInput(msg, path=("supersedes",))


def clean_memory(
    item: MemoryInput, *, scope: Scope, domain: Domain, now: datetime, max_chars: int
) -> CleanMemory:
    """Return the item cleaned; the first fault is raised with its `path`.

    Raises:
        InvalidInput: For a field of the wrong type, form or range.
        InvalidScope: When the user is empty, ``*`` or malformed.
        Forbidden: When the scope may not name the user.
        UnknownType: When `about` names a type the domain lacks.
    """
    if not isinstance(item.text, str):
        msg = f"the text must be a string, not {type(item.text).__name__}"
        raise InvalidInput(msg, path=("text",))
    if len(item.text) > max_chars:
        msg = f"the text has {len(item.text)} characters; {max_chars} are allowed"
        raise TextTooLong(msg, path=("text",))
    facts = _facts(item, domain, max_chars)
    try:
        # facts alone say everything; anything else needs a text
        text = "" if facts and not item.text.strip() else clean(item.text)
    except EcphoriaError as error:
        raise error.at("text") from error
    user_id = _user(item, scope)
    source = item.source if item.source is not None else domain.default_source
    _check_choices(item, source, domain)
    _check_ids(item)
    importance = _importance(item.importance)
    occurred_at = _optional_time(item.occurred_at, "occurred_at") or utc(now)
    valid_from = _optional_time(item.valid_from, "valid_from") or occurred_at
    valid_until = _optional_time(item.valid_until, "valid_until")
    expires_at = _optional_time(item.expires_at, "expires_at")
    if valid_until is not None and valid_until <= valid_from:
        msg = f"valid_until {valid_until.isoformat()} is not after valid_from"
        raise InvalidTime(msg, path=("valid_until",))
    return CleanMemory(
        replace(
            item,
            text=text,
            user_id=user_id,
            source=source,
            importance=importance,
            valid_until=valid_until,
            expires_at=expires_at,
            about=_about(item, domain),
            facts=facts,
        ),
        occurred_at,
        valid_from,
    )


def _importance(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        msg = f"the importance {_quoted(value)} is no number from 0 to 1"
        raise InvalidInput(msg, path=("importance",))
    return float(value)


def _about(item: MemoryInput, domain: Domain) -> tuple[EntityRef, ...]:
    if not isinstance(item.about, list | tuple):
        msg = f"`about` must be a list, not {type(item.about).__name__}"
        raise InvalidInput(msg, path=("about",))
    if len(item.about) > MAX_ABOUT:
        msg = f"a memory may be about {MAX_ABOUT} entities, not {len(item.about)}"
        raise InvalidInput(msg, path=("about",))
    for index, ref in enumerate(item.about):
        try:
            check_ref(ref, domain)
        except EcphoriaError as error:
            raise error.at("about", index) from error
    return tuple(dict.fromkeys(item.about))


def _facts(item: MemoryInput, domain: Domain, max_chars: int) -> tuple[FactInput, ...]:
    if not isinstance(item.facts, list | tuple):
        msg = f"`facts` must be a list, not {type(item.facts).__name__}"
        raise InvalidInput(msg, path=("facts",))
    if len(item.facts) > MAX_FACTS:
        msg = f"a text may have {MAX_FACTS} facts, not {len(item.facts)}"
        raise InvalidInput(msg, path=("facts",))
    facts: list[FactInput] = []
    for index, fact in enumerate(item.facts):
        try:
            facts.append(_fact(fact, domain, max_chars))
        except EcphoriaError as error:
            raise error.at("facts", index) from error
    return tuple(facts)


def _fact(fact: FactInput, domain: Domain, max_chars: int) -> FactInput:
    check_ref(fact.entity, domain)
    declared = domain.attributes.get(fact.attribute)
    if declared is None:
        msg = (
            f"the domain {domain.name} has no attribute {_quoted(fact.attribute)}; "
            f"it has {', '.join(domain.attributes) or 'none'}"
        )
        raise UnknownProperty(msg, path=("attribute",))
    if fact.entity.type != declared.entity:
        msg = f"{fact.attribute} is of {declared.entity}, not of {fact.entity.type}"
        raise InvalidInput(msg, path=("entity",))
    given = _text_of(fact.value, "value", MAX_PROPERTY_CHARS)
    value = _canonical_value(given, declared)
    if value is None:
        msg = f"{fact.attribute} {_quoted(given)} is none of {', '.join(declared.values)}"
        raise InvalidInput(msg, path=("value",))
    if declared.keyed != (fact.subject is not None):
        needs = "needs a subject" if declared.keyed else "has no subject"
        msg = f"{fact.attribute} {needs}"
        raise InvalidInput(msg, path=("subject",))
    return replace(
        fact,
        value=value,
        subject=None if fact.subject is None else checked_subject(fact.subject),
        text=None if fact.text is None else _text_of(fact.text, "text", max_chars),
    )


def _canonical_value(given: str, declared: Attribute) -> str | None:
    """Return the value that the domain knows by this word; None when it knows none."""
    if not declared.values:
        return given
    folded = fold(given)
    return next(
        (
            value
            for value, words in declared.values.items()
            if folded in {fold(word) for word in (value, *words.en, *words.zh)}
        ),
        None,
    )


def _text_of(value: object, name: str, max_chars: int) -> str:
    try:
        return _string(value, name, max_chars)
    except EcphoriaError as error:
        raise error.at(name) from error


def checked_subject(subject: object) -> str:
    """Return what an attribute that is kept by subject is about, in the form that is kept.

    Raises:
        InvalidInput: When it is no text, or nothing visible is in it.
        TextTooLong: When it is longer than `MAX_ID_CHARS` characters.
    """
    return _text_of(subject, "subject", MAX_ID_CHARS)


def check_ref(ref: EntityRef, domain: Domain) -> None:
    """Return when type and id of a reference are possible.

    Raises:
        UnknownType: When the domain lacks the type.
        InvalidInput: When the id is none.
    """
    if not isinstance(ref, EntityRef):
        msg = f"an entity is named by type and id, not by {_quoted(ref)}"
        raise InvalidInput(msg)
    if not isinstance(ref.type, str) or ref.type not in domain.entities:
        msg = f"the domain {domain.name} has no entity type {_quoted(ref.type)}"
        raise UnknownType(msg, path=("type",))
    _checked(ref.id, f"{ref.type} id", "id")


def checked_reason(reason: object) -> str:
    """Return a reason that was given for something, in the form that texts are kept in.

    Raises:
        InvalidInput: When it is no text, empty, or longer than `MAX_REASON_CHARS`.
    """
    msg = f"say why, in 1 to {MAX_REASON_CHARS} characters"
    if not isinstance(reason, str) or len(reason) > MAX_REASON_CHARS:
        raise InvalidInput(msg, path=("reason",))
    try:
        return clean(reason)
    except TextEmpty as error:
        raise InvalidInput(msg, path=("reason",)) from error


def content_hash(text: str, facts: Sequence[FactInput] = (), key: bytes | None = None) -> str:
    """Return the fingerprint by which equal contents are known, 32 hex digits.

    Args:
        text: Of an item.
        facts: That came with it.
        key: Of contents that hold something hidden: without it nobody can guess them.
    """
    normal = unicodedata.normalize("NFC", text)
    said = [" ".join(normal.split())]
    said += [
        json.dumps(
            [fact.entity.type, fact.entity.id, fact.attribute, fact.value, fact.subject, fact.text],
            ensure_ascii=False,
        )
        for fact in facts
    ]
    joined = "\n".join(said).encode()
    if key is None:
        return hashlib.sha256(joined).hexdigest()[:32]
    return hmac.new(key, b"content:" + joined, hashlib.sha256).hexdigest()[:32]


# --- entities ------------------------------------------------------------------------------


def clean_entity(item: EntityInput, domain: Domain, now: datetime) -> EntityRow:
    """Return an entity checked against the domain.

    Raises:
        UnknownType: When the domain lacks the type.
        UnknownProperty: When the type lacks a property.
        InvalidInput: When a value has the wrong type, form or range.
    """
    check_ref(EntityRef(item.type, item.id), domain)
    if not isinstance(item.props, Mapping):
        msg = f"the properties must be an object, not {type(item.props).__name__}"
        raise InvalidInput(msg, path=("props",))
    declared = domain.entities[item.type].properties
    props: dict[str, PropertyValue] = {}
    for name, value in item.props.items():
        if name not in declared:
            msg = f"{item.type} has no property {_quoted(name)}"
            raise UnknownProperty(msg, path=("props", name))
        if value is None:
            continue
        try:
            props[name] = _property(value, declared[name], name)
        except EcphoriaError as error:
            raise error.at("props", name) from error
    observed = _optional_time(item.observed_at, "observed_at")
    return EntityRow(EntityRef(item.type, item.id), props, observed or utc(now))


def missing_required(row: EntityRow, domain: Domain) -> tuple[str, ...]:
    """Return required properties that a new entity lacks."""
    declared = domain.entities[row.ref.type].properties
    return tuple(name for name, item in declared.items() if item.required and name not in row.props)


def _string(value: object, name: str, max_chars: int = MAX_PROPERTY_CHARS) -> str:
    if not isinstance(value, str):
        msg = f"{name} must be a string, not {type(value).__name__}"
        raise InvalidInput(msg)
    if len(value) > max_chars:
        msg = f"{name} has {len(value)} characters; {max_chars} are allowed"
        raise TextTooLong(msg)
    return clean(value)


def _property(value: object, declared: Property, name: str) -> PropertyValue:
    kind = declared.type
    if kind == "string":
        text = _string(value, name)
        if declared.values and text not in declared.values:
            msg = f"{name} {_quoted(text)} is none of {', '.join(declared.values)}"
            raise InvalidInput(msg)
        return text
    if kind == "string_list":
        if not isinstance(value, list | tuple) or len(value) > MAX_LIST_ITEMS:
            msg = f"{name} must be a list of at most {MAX_LIST_ITEMS} strings"
            raise InvalidInput(msg)
        return tuple(_string(item, name) for item in value)
    if kind == "boolean":
        if not isinstance(value, bool):
            msg = f"{name} must be true or false, not {_quoted(value)}"
            raise InvalidInput(msg)
        return value
    if kind in {"integer", "float"}:
        return _number(value, kind, name)
    if kind == "date":
        return _date(value, name)
    return parse_time(value, name)


def _number(value: object, kind: str, name: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        msg = f"{name} must be a finite number, not {_quoted(value)}"
        raise InvalidInput(msg)
    if kind == "float":
        return float(value)
    if value != int(value) or not -(2**63) <= value < 2**63:
        msg = f"{name} must be a whole number of 64 bits, not {_quoted(value)}"
        raise InvalidInput(msg)
    return int(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _date(value: object, name: str) -> datetime:
    # kept as midnight UTC: one temporal type in both stores
    if isinstance(value, date) and not isinstance(value, datetime):
        day = value
    else:
        if not isinstance(value, str):
            msg = f"the {name} must be a date, not {type(value).__name__}"
            raise InvalidTime(msg)
        try:
            day = date.fromisoformat(value)
        except ValueError as error:
            msg = f"the {name} {value[:60]!r} is no ISO 8601 date"
            raise InvalidTime(msg) from error
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def clean_relation(item: RelationInput, domain: Domain) -> RelationRow:
    """Return a relation checked against the domain.

    Raises:
        UnknownType: When the domain lacks a type.
        UnknownRelation: When the domain lacks the relation between the two types.
    """
    for side, ref in (("from", item.from_), ("to", item.to)):
        try:
            check_ref(ref, domain)
        except EcphoriaError as error:
            raise error.at(side) from error
    if domain.relation(item.type, item.from_.type, item.to.type) is None:
        msg = f"the domain {domain.name} has no {item.from_.type}-{item.type!s:.80}->{item.to.type}"
        raise UnknownRelation(msg, path=("type",))
    return RelationRow(item.type, item.from_, item.to)
