"""What lies around the entities that a question names: distances, paths, membership."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence

from ecphoria.model import Edge, Entity, EntityRef
from ecphoria_schema.domain import Domain


class Neighbourhood:
    """The entities of an expansion, seen from those that the question names.

    From a named entity one looks up to its owners and down along the relations, never sideways:
    the other devices of the same order are not what was asked for. Only a named entity with
    nothing below it (a repair) also brings what hangs on its parent (the device's warranty).
    """

    def __init__(
        self,
        entities: Sequence[Entity],
        edges: Sequence[Edge],
        mentioned: Collection[EntityRef],
        *,
        domain: Domain,
        lost: bool = False,
        named: Collection[EntityRef] = (),
    ) -> None:
        """Take the outcome of an expansion.

        Args:
            entities: What was reached.
            edges: Relations among them.
            domain: Says which relations own their ends.
            mentioned: Entities that the question names and that exist for this user.
            lost: The question names an id that does not exist for this user.
            named: Of the mentioned, those that are named by an id or a whole name.
        """
        self.entities = {entity.key: entity for entity in entities}
        self.edges = [
            edge
            for edge in edges
            if edge.from_key in self.entities and edge.to_key in self.entities
        ]
        self.lost = lost
        self.named = frozenset(named)
        self._domain = domain
        self._below: dict[str, list[Edge]] = defaultdict(list)
        self._above: dict[str, list[Edge]] = defaultdict(list)
        owning = {relation.type for relation in domain.relations if relation.owns}
        for edge in self.edges:
            self._below[edge.from_key].append(edge)
            if edge.type in owning:
                self._above[edge.to_key].append(edge)
        self.mentions = frozenset(
            entity.key for entity in entities if entity.ref in frozenset(mentioned)
        )
        self._distance = self._distances(self.mentions)

    def around(self, mentioned: Iterable[EntityRef]) -> Neighbourhood:
        """Return the same entities, seen from others of them."""
        return Neighbourhood(
            tuple(self.entities.values()),
            self.edges,
            tuple(mentioned),
            domain=self._domain,
            lost=self.lost,
            named=self.named,
        )

    @property
    def roots(self) -> frozenset[str]:
        """Keys of the owners among the entities."""
        return frozenset(
            key for key, entity in self.entities.items() if entity.type == self._domain.root
        )

    @property
    def has_mentions(self) -> bool:
        """Whether the question names something of the user's that exists."""
        return bool(self.mentions)

    def distance(self, keys: Iterable[str]) -> int | None:
        """Return hops from the nearest named entity to the nearest of the keys; None = apart."""
        # the user himself is near to everything: being about him is no match
        return min((self._distance[key] for key in keys if key in self._distance), default=None)

    def reach(self, anchors: Iterable[str]) -> dict[str, int]:
        """Return what is up or down from anchors, with hops."""
        return self._distances(frozenset(anchors), keep_root=True)

    def above(self, key: str) -> frozenset[str]:
        """Return an entity and its owners, up to but without the user himself."""
        found: set[str] = set()
        waiting = [key]
        while waiting:
            current = waiting.pop()
            entity = self.entities.get(current)
            if entity is None or current in found or entity.type == self._domain.root:
                continue
            found.add(current)
            waiting.extend(edge.from_key for edge in self._above[current])
        return frozenset(found)

    def below(self, keys: Iterable[str]) -> frozenset[str]:
        """Return entities and what hangs below them."""
        found: set[str] = set()
        waiting = list(keys)
        while waiting:
            current = waiting.pop()
            if current not in found and current in self.entities:
                found.add(current)
                waiting.extend(edge.to_key for edge in self._below[current])
        return frozenset(found)

    def specific(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return keys of single things (owned by a user, not the user himself)."""
        return tuple(
            key
            for key in keys
            if key.split("|", 2)[1] in self._domain.owned_types - {self._domain.root}
        )

    def _distances(self, anchors: frozenset[str], *, keep_root: bool = False) -> dict[str, int]:
        hops: dict[str, int] = {}
        starts: dict[str, int] = dict.fromkeys((a for a in anchors if a in self.entities), 0)
        for anchor in list(starts):
            up = deque([(anchor, 0)])
            while up:
                key, far = up.popleft()
                if far < hops.get(key, far + 1):
                    hops[key] = far
                    up.extend((edge.from_key, far + 1) for edge in self._above[key])
            if not self._below[anchor]:
                for edge in self._above[anchor]:
                    # not the user himself: all that he has would hang on him
                    if self.entities[edge.from_key].type != self._domain.root:
                        starts[edge.from_key] = min(1, starts.get(edge.from_key, 1))
        down = deque(starts.items())
        done: dict[str, int] = {}
        while down:
            key, far = down.popleft()
            if far < done.get(key, far + 1):
                done[key] = far
                hops[key] = min(far, hops.get(key, far))
                down.extend((edge.to_key, far + 1) for edge in self._below[key])
        if keep_root:
            return hops
        return {
            key: far
            for key, far in hops.items()
            if self.entities[key].type != self._domain.root or key in anchors
        }

    def path_of(self, keys: Iterable[str]) -> str:
        """Return the path from the owner to the nearest of the keys, readable."""
        near = sorted((far, key) for key in keys if (far := self._distance.get(key)) is not None)
        return f"about {self.path_to(near[0][1])}" if near else ""

    def path_to(self, key: str) -> str:
        """Return how an entity is reached from its owner, e.g. ``User 张伟 -PLACED-> Order …``."""
        steps: list[str] = []
        seen: set[str] = set()
        current = key
        while current not in seen:
            seen.add(current)
            entity = self.entities.get(current)
            if entity is None:
                break
            steps.append(f"{entity.type} {entity.name}")
            edge = next(iter(self._above[current]), None) or next(
                (edge for edge in self.edges if edge.to_key == current), None
            )
            if edge is None or edge.from_key in seen:
                break
            steps.append(f"-{edge.type}->")
            current = edge.from_key
        return " ".join(reversed(steps))
