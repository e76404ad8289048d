"""Which memories and entities a caller gets to see: where stored ones become shown ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from ecphoria.governance.access import readable_privacy
from ecphoria.governance.reveal import shown_entities, shown_memories
from ecphoria.model import Entity, Memory, Scope
from ecphoria.parts import EngineParts

Key = TypeVar("Key", bound=Hashable)


def visible(scope: Scope, user: str, memories: Iterable[Memory]) -> tuple[Memory, ...]:
    """Return those that are the user's own or shared, and that the scope may read.

    Args:
        scope: Who asks; `user` was checked against it.
        user: For whom.
        memories: As stored.
    """
    allowed = readable_privacy(scope)
    return tuple(
        memory
        for memory in memories
        if memory.user_id in {None, user} and memory.privacy in allowed
    )


async def shown(
    parts: EngineParts, scope: Scope, user: str, memories: Iterable[Memory]
) -> tuple[Memory, ...]:
    """Return those that are `visible`, as the scope may see them: in clear, or redacted."""
    return await shown_memories(parts.vault, scope, visible(scope, user, memories))


async def shown_groups(
    parts: EngineParts, scope: Scope, groups: Mapping[Key, Sequence[Entity]]
) -> dict[Key, tuple[Entity, ...]]:
    """Return entities that the user may see, group by group, as the scope may see them."""
    every = [entity for entities in groups.values() for entity in entities]
    as_shown = iter(await shown_entities(parts.vault, parts.domain, scope, every))
    return {key: tuple(next(as_shown) for _ in entities) for key, entities in groups.items()}
