"""Third stage of a write: connect memories to entities, within each memory's own scope."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ecphoria.errors import EcphoriaError, MissingEntity
from ecphoria.language.lexicon import Lexicon
from ecphoria.model import EntityRef, Memory, NamedEntity, entity_key
from ecphoria.parts import EngineParts
from ecphoria_schema.domain import Domain

# A name that fits more of a user's entities than this says nothing about which one is meant.
MAX_MEANT = 3


@dataclass(frozen=True, slots=True)
class Linked:
    """A memory with its links, or the error that rejects it."""

    memory: Memory
    refs: tuple[EntityRef, ...] = ()
    error: EcphoriaError | None = None


def wanted_refs(
    memory: Memory,
    explicit: Sequence[EntityRef],
    lexicon: Lexicon,
    names: Sequence[NamedEntity],
    domain: Domain,
) -> tuple[EntityRef, ...]:
    """Return the entities a memory may be about: explicit ones, then ids and names in its text.

    Where the caller says what a memory is about, names in the text do not add to it: they are
    less certain than his word. Ids do.
    """
    refs = dict.fromkeys(explicit)
    for mention in lexicon.id_mentions(memory.text):
        refs.update(dict.fromkeys(mention.candidates))
    if not explicit:
        for name in lexicon.name_mentions(memory.text, names):
            meant = [ref for ref in name.refs if ref.type != domain.root]
            own = [ref for ref in meant if ref.type in domain.owned_types]
            clear = meant if len(own) <= MAX_MEANT else [ref for ref in meant if ref not in own]
            refs.update(dict.fromkeys(clear))
    return tuple(refs)


async def link(
    parts: EngineParts,
    tenant: str,
    memories: Sequence[tuple[Memory, tuple[EntityRef, ...]]],
) -> tuple[Linked, ...]:
    """Return memories with `about` filled; explicit links that are not visible are errors."""
    graph = parts.graph
    by_user: dict[str | None, list[int]] = defaultdict(list)
    for place, (memory, _) in enumerate(memories):
        by_user[memory.user_id].append(place)
    users = list(by_user)
    # names are read from a text only where the caller does not say what it is about
    silent = {memory.user_id for memory, explicit in memories if not explicit}
    asked = [user for user in users if user in silent]
    found = await asyncio.gather(*(graph.names(tenant, user) for user in asked))
    names_of = dict(zip(asked, found, strict=True))
    wanted: dict[int, tuple[EntityRef, ...]] = {}
    for user in users:
        names = names_of.get(user, ())
        for place in by_user[user]:
            memory, explicit = memories[place]
            wanted[place] = wanted_refs(memory, explicit, parts.lexicon, names, parts.domain)
    visible = await asyncio.gather(
        *(
            graph.visible_entities(
                tenant, user, [ref for place in by_user[user] for ref in wanted[place]]
            )
            for user in users
        )
    )
    seen = {
        user: frozenset(entity.ref for entity in entities)
        for user, entities in zip(users, visible, strict=True)
    }
    return tuple(
        _linked(memory, explicit, wanted[place], seen, tenant)
        for place, (memory, explicit) in enumerate(memories)
    )


def _linked(
    memory: Memory,
    explicit: tuple[EntityRef, ...],
    wanted: tuple[EntityRef, ...],
    seen: Mapping[str | None, frozenset[EntityRef]],
    tenant: str,
) -> Linked:
    known = seen[memory.user_id]
    for index, ref in enumerate(explicit):
        if ref not in known:
            msg = f"there is no {ref.type} {ref.id!r} in the scope of this memory"
            return Linked(memory, error=MissingEntity(msg, path=("about", index)))
    refs = tuple(ref for ref in wanted if ref in known)
    keys = tuple(sorted(entity_key(tenant, ref) for ref in refs))
    return Linked(replace(memory, about=keys), refs)
