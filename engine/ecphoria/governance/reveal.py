"""Show what is stored to a scope: in clear where its roles may read what is sensitive.

The one place where sealed memories, properties and turns become visible. Only what is returned is
unsealed, the keys of all of it in one round trip; what holds nothing sealed costs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import structlog

from ecphoria.governance.access import MASK, readable_privacy
from ecphoria.governance.data_keys import DataKeys, KeyOwner
from ecphoria.governance.sealing import (
    owner_of,
    unsealed_memory,
    unsealed_property,
    without_seal,
)
from ecphoria.model import Entity, Memory, PropertyValue, Scope
from ecphoria.sealed import is_sealed
from ecphoria_schema.domain import Domain

log = structlog.get_logger(__name__)


def reads_sensitive(scope: Scope) -> bool:
    """Whether a scope's roles may read what is sensitive."""
    return "sensitive" in readable_privacy(scope)


async def shown_memories(
    keys: DataKeys, scope: Scope, memories: Sequence[Memory]
) -> tuple[Memory, ...]:
    """Return memories as a scope may see them: in clear, or redacted.

    What cannot be unsealed, because its key was destroyed or it was tampered with, stays redacted.

    Raises:
        StoreUnavailable: When the graph does not answer for the keys.
    """
    found: Mapping[KeyOwner, bytes] = {}
    if reads_sensitive(scope):
        owners = _owners(memories)
        found = await keys.to_read(owners)
        keys.tell_read(scope, (owner for owner in owners if owner in found))
    return tuple(_shown_memory(memory, found) for memory in memories)


def _owners(memories: Iterable[Memory]) -> list[KeyOwner]:
    return [
        owner
        for memory in memories
        if memory.sealed is not None
        and (owner := owner_of(memory.sealed, memory.tenant)) is not None
    ]


def _shown_memory(memory: Memory, keys: Mapping[KeyOwner, bytes]) -> Memory:
    owner = None if memory.sealed is None else owner_of(memory.sealed, memory.tenant)
    key = None if owner is None else keys.get(owner)
    if key is None:
        return without_seal(memory)
    clear = unsealed_memory(memory, key)
    if clear is None:
        log.error("a sealed memory was refused: it is not what was sealed here", memory=memory.key)
    return without_seal(clear or memory)


async def shown_entities(
    keys: DataKeys, domain: Domain, scope: Scope, entities: Sequence[Entity]
) -> tuple[Entity, ...]:
    """Return entities as a scope may see them; strings that it may not read become a mask.

    Raises:
        StoreUnavailable: When the graph does not answer for the keys.
    """
    allowed = readable_privacy(scope)
    sealed = [
        (entity, value)
        for entity in entities
        for value in entity.props.values()
        if isinstance(value, str) and is_sealed(value)
    ]
    found: Mapping[KeyOwner, bytes] = {}
    if sealed and "sensitive" in allowed:
        tenants = ((entity.key.split("|", 1)[0], value) for entity, value in sealed)
        owners = [
            owner for tenant, value in tenants if (owner := owner_of(value, tenant)) is not None
        ]
        found = await keys.to_read(owners)
        keys.tell_read(scope, (owner for owner in owners if owner in found))
    return tuple(_shown_entity(entity, domain, allowed, found) for entity in entities)


def _shown_entity(
    entity: Entity, domain: Domain, allowed: frozenset[str], keys: Mapping[KeyOwner, bytes]
) -> Entity:
    declared = domain.entities[entity.type].properties
    props: dict[str, PropertyValue] = {}
    for name, value in entity.props.items():
        shown: PropertyValue | None = value
        if declared[name].privacy not in allowed:
            shown = None
        elif isinstance(value, str) and is_sealed(value):
            shown = _shown_property(entity, name, value, keys)
        if shown is not None:
            props[name] = shown
        elif declared[name].type == "string":
            props[name] = MASK
    return replace(entity, props=props)


def _shown_property(
    entity: Entity, name: str, value: str, keys: Mapping[KeyOwner, bytes]
) -> PropertyValue | None:
    owner = owner_of(value, entity.key.split("|", 1)[0])
    key = None if owner is None else keys.get(owner)
    if key is None:
        return None
    clear = unsealed_property(key, entity.key, name, value)
    if clear is None:
        log.error(
            "a sealed property was refused: it is not what was sealed here",
            entity=entity.key,
            property=name,
        )
    return clear
