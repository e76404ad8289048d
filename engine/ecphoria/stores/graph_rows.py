"""Translate between frozen data and the property maps of graph nodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from neo4j.time import Date, DateTime

from ecphoria.language.folding import fold
from ecphoria.language.sameness import content
from ecphoria.model import (
    ApiKey,
    Entity,
    EntityRef,
    EveryUser,
    IndexState,
    Memory,
    PropertyValue,
    Role,
    SourceInfo,
    Standing,
    Status,
    entity_key,
    memory_key,
)
from ecphoria.sealed import is_sealed, same_value
from ecphoria.stores.ports import EntityRow
from ecphoria_schema.domain import Domain
from ecphoria_schema.queries import MEMORY_TIMES

Props = dict[str, Any]

# What ecphoria adds to an entity's own properties.
_OWN = frozenset(
    {"key", "id", "tenant", "user_id", "owner_key", "recorded_at", "observed_at", "observed"}
)
_MAX_CAPTION = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MEMORY_FIELDS = frozenset(item.name for item in fields(Memory)) - {"about", "supersedes"}
_NOT_STORED = frozenset({"about", "supersedes", "details", "past"})


def native(value: object) -> Any:  # noqa: ANN401 - a property may be of any type
    """Return a driver's value as Python's own: UTC datetimes, dates, tuples."""
    if isinstance(value, DateTime):
        moment = value.to_native()
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if isinstance(value, Date):
        return value.to_native()
    if isinstance(value, list):
        return tuple(native(item) for item in value)
    return value


def milliseconds(time: datetime) -> int:
    """Return the milliseconds since 1970, rounded down."""
    return (time - _EPOCH) // _MILLISECOND


def moment(value: object) -> Any:  # noqa: ANN401 - what a node lacks is None
    """Return a time that was read as such, or as milliseconds since 1970."""
    return _EPOCH + value * _MILLISECOND if isinstance(value, int) else native(value)


def native_props(props: Mapping[str, object]) -> Props:
    """Return a node's properties as Python's own values, without nulls."""
    return {name: native(value) for name, value in props.items() if value is not None}


def split_key(key: str) -> tuple[str, EntityRef]:
    """Return tenant and reference of a graph key."""
    tenant, type_, id_ = key.split("|", 2)
    return tenant, EntityRef(type_, id_)


def memory_props(memory: Memory) -> Props:
    """Return the properties of a memory's node."""
    props: Props = {}
    for item in fields(memory):
        value = getattr(memory, item.name)
        if item.name in _NOT_STORED or value is None:
            continue
        props[item.name] = list(value) if isinstance(value, tuple) else value
    props["name"] = memory_caption(memory)
    if memory.supersedes is not None:
        props["supersedes_key"] = memory_key(memory.tenant, memory.supersedes)
    if memory.details:
        props["details"] = json.dumps(dict(memory.details), ensure_ascii=False)
    if memory.past:
        props["past"] = past_text(memory.past)
    props["said_key"] = said_key(memory.tenant, memory.user_id, memory.kind, memory.content_hash)
    props["words_key"] = words_key(memory)
    if memory.session_id is not None and memory.user_id is not None:
        props["session_key"] = session_key(memory.tenant, memory.user_id, memory.session_id)
    return props


def memory_caption(memory: Memory) -> str:
    """Return the short readable name of a memory."""
    # the Browser breaks captions at blanks only
    return (memory.fact_type or memory.topic or memory.kind).replace("_", " ")


def memory_row(memory: Memory) -> Props:
    """Return what creates a memory's node: key, properties, and times in milliseconds."""
    props = memory_props(memory)
    times = {name: milliseconds(props.pop(name)) for name in MEMORY_TIMES if name in props}
    return {"key": memory.key, "props": props, "times": times}


def said_key(tenant: str, user_id: str | None, kind: str, content_hash: str) -> str:
    """Return what memories have in common that came from the same text of one user."""
    return "|".join((tenant, kind, content_hash, "" if user_id is None else f"={user_id}"))


def words_key(memory: Memory) -> str:
    """Return what memories have in common that say the same to one user, as far as words tell."""
    words = " ".join(content(memory.text)) or fold(memory.text)
    digest = memory.words_hash or hashlib.sha256(words.encode()).hexdigest()[:32]
    return said_key(memory.tenant, memory.user_id, memory.kind, digest)


def session_key(tenant: str, user_id: str, session_id: str) -> str:
    """Return what memories of one session of one user have in common."""
    # the length keeps the two ids apart, whatever they hold
    return f"{tenant}|{len(user_id)}|{user_id}|{session_id}"


def past_text(past: Sequence[Standing]) -> str:
    """Return earlier standings as the JSON that is kept in one property."""
    return json.dumps(
        [
            [
                item.until.isoformat(),
                item.status,
                None if item.valid_until is None else item.valid_until.isoformat(),
            ]
            for item in past
        ]
    )


def _past_from(text: str) -> tuple[Standing, ...]:
    return tuple(
        Standing(
            datetime.fromisoformat(until),
            Status(status),
            None if valid_until is None else datetime.fromisoformat(valid_until),
        )
        for until, status, valid_until in json.loads(text)
    )


def memory_from(props: Mapping[str, object], about: Sequence[str]) -> Memory:
    """Return the memory that a node holds; its times may be milliseconds since 1970."""
    supersedes = cast("str | None", props.get("supersedes_key"))
    values: Props = {
        name: moment(value) if name in MEMORY_TIMES else native(value)
        for name, value in props.items()
        if name in _MEMORY_FIELDS and value is not None
    }
    values["status"] = Status(values["status"])
    values["index_state"] = IndexState(values["index_state"])
    for name in ("importance", "reliability", "freshness", "doubt"):
        if name in values:
            # a store may give back 1.0 as 1
            values[name] = float(values[name])
    values["details"] = json.loads(values.get("details") or "{}")
    values["past"] = _past_from(values.get("past") or "[]")
    empty: Props = dict.fromkeys(("user_id", "topic", "valid_until", "expires_at"))
    return Memory(
        **(empty | values),
        supersedes=split_key(supersedes)[1].id if supersedes else None,
        about=tuple(sorted(key for key in about if key)),
    )


def source_key(tenant: str, source_id: str) -> str:
    """Return the graph key of a source."""
    return entity_key(tenant, EntityRef("Source", source_id))


def caption(domain: Domain, ref: EntityRef, props: Mapping[str, object]) -> str:
    """Return the short readable name of an entity, as its type's caption says."""
    shown = {name: str(value) for name, value in props.items() if value is not None}
    template = domain.entities[ref.type].caption
    try:
        text = template.format(**shown | {"id": ref.id}).strip()
    except KeyError:
        text = ""
    text = text or f"{ref.type} {ref.id}"
    return text if len(text) <= _MAX_CAPTION else text[: _MAX_CAPTION - 1] + "…"


def entity_from(domain: Domain, props: Mapping[str, object]) -> Entity:
    """Return the entity that a node holds; ecphoria's own times may be milliseconds since 1970."""
    values = native_props(props)
    _, ref = split_key(values["key"])
    declared = domain.entities[ref.type].properties
    own: dict[str, PropertyValue] = {}
    for name, value in values.items():
        if name in declared:
            # a store may give back 5.0 as 5
            number = declared[name].type == "float" and not is_sealed(value)
            own[name] = float(value) if number else value
    return Entity(
        key=values["key"],
        type=ref.type,
        id=ref.id,
        name=caption(domain, ref, own),
        props=own,
        user_id=values.get("user_id"),
        observed_at=moment(values.get("observed_at")),
        recorded_at=moment(values.get("recorded_at")),
    )


def merged_props(domain: Domain, row: EntityRow, stored: Mapping[str, object]) -> Props | None:
    """Return what must be set so that every property has its newest value; None = nothing.

    Each property keeps the time at which its value was observed: `observed_at` is the newest of
    them, and `observed` (JSON) lists those that are older. So news that arrive out of order
    change only what they are newest about.
    """
    old = native_props(stored)
    newest = cast("datetime | None", old.get("observed_at"))
    older: dict[str, str] = json.loads(old.get("observed") or "{}")
    declared = domain.entities[row.ref.type].properties

    def seen(name: str) -> datetime | None:
        if name not in old:
            return None
        return datetime.fromisoformat(older[name]) if name in older else newest

    values = {name: old[name] for name in declared if name in old}
    if values.get("name") == caption(domain, row.ref, {}):
        # the caption of one that has no name yet, not a value that anybody gave
        del values["name"]
    times = {name: seen(name) for name in values}
    for name, value in row.props.items():
        before = times.get(name)
        # equal times: the later call wins, as it does for a correction in the same second
        if before is None or row.observed_at >= before:
            # the same value sealed anew is no news
            values[name] = values[name] if same_value(values.get(name), value) else value
            times[name] = row.observed_at
    latest = max(time for time in (*times.values(), row.observed_at, newest) if time is not None)
    behind = {
        name: time.isoformat()
        for name, time in sorted(times.items())
        if time is not None and time != latest
    }
    result: Props = {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    result["observed_at"] = latest
    # null removes the property
    result["observed"] = json.dumps(behind) if behind else None
    if "name" not in declared or not values.get("name"):
        result["name"] = caption(domain, row.ref, values)
    changed = {name: value for name, value in result.items() if native(value) != old.get(name)}
    return changed or None


def key_props(key: ApiKey) -> Props:
    """Return the properties of an API key's node."""
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "secret_hash": key.secret_hash,
        "roles": sorted(key.roles),
        "every_user": isinstance(key.users, EveryUser),
        "users": [] if isinstance(key.users, EveryUser) else sorted(key.users),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "previous_hash": key.previous_hash,
        "previous_until": key.previous_until,
    }


def key_from(props: Mapping[str, object]) -> ApiKey:
    """Return the API key that a node holds."""
    values = native_props(props)
    return ApiKey(
        id=values["id"],
        tenant=values["tenant"],
        name=values["name"],
        secret_hash=values["secret_hash"],
        roles=frozenset(Role(role) for role in values["roles"]),
        users=EveryUser.OF_TENANT if values["every_user"] else frozenset(values["users"]),
        created_at=values["created_at"],
        expires_at=values.get("expires_at"),
        revoked_at=values.get("revoked_at"),
        previous_hash=values.get("previous_hash"),
        previous_until=values.get("previous_until"),
    )


def source_from(props: Mapping[str, object]) -> SourceInfo:
    """Return the source that a node holds."""
    values = native_props(props)
    return SourceInfo(
        values["id"],
        values["name"],
        float(values["reliability"]),
        disabled=bool(values.get("disabled", False)),
        declared=None if values.get("declared") is None else float(values["declared"]),
    )
