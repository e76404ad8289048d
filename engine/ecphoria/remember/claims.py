"""Which memories compete: those that give the value of one attribute of one entity."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from ecphoria.language.folding import fold
from ecphoria.model import EntityRef, Link, Memory
from ecphoria.stores.ports import Mention
from ecphoria_schema.domain import Domain

# A link that is less certain than this does not say whose attribute it is.
MIN_CERTAINTY = 0.6


def canonical(ref: EntityRef, domain: Domain) -> EntityRef:
    """Return one spelling for all the forms that an id may have in text and in the graph."""
    for pattern in domain.entities[ref.type].id_patterns:
        match = re.fullmatch(pattern.regex, ref.id)
        if match is not None:
            groups = match.groups() or (match.group(),)
            return EntityRef(ref.type, pattern.forms[0].format(*groups))
    return ref


def claim_key(
    tenant: str, user_id: str | None, attribute: str, entity: EntityRef, subject: str | None
) -> str:
    """Return the key of what memories compete for."""
    parts = (
        "shared" if user_id is None else f"={user_id}",
        attribute,
        entity.type,
        entity.id,
        " ".join(fold(subject or "").split()),
    )
    # lengths keep the parts apart, whatever they hold
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return f"{tenant}|Claim|{hashlib.sha256(joined.encode()).hexdigest()[:32]}"


def entity_of(
    memory: Memory,
    links: Sequence[Link],
    mentions: Sequence[Mention],
    domain: Domain,
) -> EntityRef | None:
    """Return whose attribute a memory gives the value of; None when that is not clear."""
    type_ = domain.attributes[memory.attribute].entity if memory.attribute else None
    if type_ is None:
        return None
    if type_ == domain.root:
        return None if memory.user_id is None else EntityRef(type_, memory.user_id)
    linked = {
        canonical(link.entity, domain)
        for link in links
        if link.entity.type == type_ and link.certainty >= MIN_CERTAINTY
    }
    named = {
        canonical(mention.entity, domain)
        for mention in mentions
        if mention.entity.type == type_ and not linked
    }
    meant = linked or named
    return meant.pop() if len(meant) == 1 else None


def claim_of(
    memory: Memory,
    links: Sequence[Link],
    mentions: Sequence[Mention],
    domain: Domain,
) -> str | None:
    """Return the claim that a memory is a value of; None for one that competes with none."""
    entity = entity_of(memory, links, mentions, domain)
    if entity is None or memory.attribute is None or memory.value is None:
        return None
    return claim_key(memory.tenant, memory.user_id, memory.attribute, entity, memory.subject)
