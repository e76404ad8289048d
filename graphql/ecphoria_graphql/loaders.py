"""Loaders: many look-ups of one level become one round trip. Made anew for every request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from strawberry.dataloader import DataLoader

from ecphoria_graphql.error_codes import too_complex
from ecphoria_graphql.limits import MAX_ENTITIES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ecphoria.engine import Engine
    from ecphoria.model import Entity, EntityRef, Link, Memory, Page, Scope
    from ecphoria.stores.ports import Lineage

_BATCH = 500

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class RelatedFrom:
    """Which relation to follow, for whom; entities that ask for the same share a round trip.

    Attributes:
        start: Type of the entities to start from.
        forward: In the relation's own direction.
    """

    user_id: str
    start: str
    relation: str
    other: str
    forward: bool
    limit: int


@dataclass(frozen=True, slots=True)
class PageFrom:
    """Which page of a relation to read, for whom; entities that ask for the same share it.

    Attributes:
        start: Type of the entities to start from.
        others: Types at the other end.
        forward: In the relation's own direction.
        after: Cursor; one that was handed out is of one entity's list.
    """

    user_id: str
    start: str
    relation: str
    others: tuple[str, ...]
    forward: bool
    first: int
    after: str | None


class Loaders:
    """The loaders of one request: bound to its scope, so never to be shared."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        """Begin with nothing loaded.

        Args:
            engine: Whose verbs to call.
            scope: For whom; every call passes it on.
        """
        self._engine = engine
        self._scope = scope
        self._related: dict[RelatedFrom, DataLoader[EntityRef, tuple[Entity, ...]]] = {}
        self._pages: dict[PageFrom, DataLoader[EntityRef, Page[Entity]]] = {}
        self._entities: dict[str, DataLoader[EntityRef, Entity | None]] = {}
        self._memories: dict[str, DataLoader[str, Memory | None]] = {}
        self._links: dict[str, DataLoader[str, tuple[Link, ...]]] = {}
        self._lineage: dict[str, DataLoader[str, tuple[Lineage, ...]]] = {}
        self._loaded = 0

    def related(self, query: RelatedFrom, ref: EntityRef) -> Awaitable[tuple[Entity, ...]]:
        """Return the entities at the other end of a relation of one entity."""
        loader = self._related.get(query)
        if loader is None:

            async def load(refs: list[EntityRef]) -> Sequence[tuple[Entity, ...]]:
                found = await self._engine.related(
                    self._scope,
                    query.user_id,
                    refs,
                    query.relation,
                    query.other,
                    forward=query.forward,
                    limit=query.limit,
                )
                self.count(sum(len(entities) for entities in found.values()))
                return [found.get(ref, ()) for ref in refs]

            loader = self._related[query] = DataLoader(load, max_batch_size=_BATCH)
        return loader.load(ref)

    def page(self, query: PageFrom, ref: EntityRef) -> Awaitable[Page[Entity]]:
        """Return a page of the entities at the other end of a relation of one entity."""
        loader = self._pages.get(query)
        if loader is None:

            async def load(refs: list[EntityRef]) -> Sequence[Page[Entity]]:
                found = await self._engine.related_pages(
                    self._scope,
                    query.user_id,
                    refs,
                    query.relation,
                    query.others,
                    forward=query.forward,
                    first=query.first,
                    after=query.after,
                )
                self.count(sum(len(page.items) for page in found.values()))
                return [found[ref] for ref in refs]

            loader = self._pages[query] = DataLoader(load, max_batch_size=_BATCH)
        return loader.load(ref)

    def entity(self, user_id: str, ref: EntityRef) -> Awaitable[Entity | None]:
        """Return an entity that the user may see, or None."""
        return self._loader(self._entities, user_id, self._engine.entities, None).load(ref)

    def memory(self, user_id: str, id_: str) -> Awaitable[Memory | None]:
        """Return a memory that the user may see, or None."""
        return self._loader(self._memories, user_id, self._engine.memories, None).load(id_)

    def links(self, user_id: str, id_: str) -> Awaitable[tuple[Link, ...]]:
        """Return what a memory that the user may see is about."""
        return self._loader(self._links, user_id, self._engine.links, (), len).load(id_)

    def lineage(self, user_id: str, id_: str) -> Awaitable[tuple[Lineage, ...]]:
        """Return how a memory that the user may see stands to others."""
        return self._loader(self._lineage, user_id, self._engine.lineage, (), len).load(id_)

    def _loader(
        self,
        loaders: dict[str, DataLoader[K, V]],
        user_id: str,
        fetch: Callable[[Scope, str, Sequence[K]], Awaitable[Mapping[K, V]]],
        missing: V,
        size: Callable[[V], int] = lambda _: 1,
    ) -> DataLoader[K, V]:
        loader = loaders.get(user_id)
        if loader is None:

            async def load(keys: list[K]) -> Sequence[V]:
                found = await fetch(self._scope, user_id, keys)
                self.count(sum(size(value) for value in found.values()))
                return [found.get(key, missing) for key in keys]

            loader = loaders[user_id] = DataLoader(load, max_batch_size=_BATCH)
        return loader

    def count(self, loaded: int) -> None:
        """Count what the operation has loaded.

        Raises:
            GraphQLError: When that is more than one operation may.
        """
        self._loaded += loaded
        if self._loaded > MAX_ENTITIES:
            msg = f"the operation loads too many things: {MAX_ENTITIES} are allowed"
            raise too_complex(msg)
