"""What the value of an attribute is, was, and was thought to be."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import strawberry

from ecphoria.lifecycle.history import AttributeHistory
from ecphoria.model import Memory
from ecphoria_graphql.fields import list_of, typed_field
from ecphoria_graphql.memory_types import MemoryTypes


class HistoryNode:
    """The values of an attribute, together with the user they were asked for."""

    record: AttributeHistory
    user_id: str


@dataclass(frozen=True, slots=True)
class HistoryTypes:
    """The history type of one domain."""

    history: type[HistoryNode]

    def node(self, record: AttributeHistory, user_id: str) -> HistoryNode:
        """Return a history as its GraphQL type."""
        node = self.history()
        node.record, node.user_id = record, user_id
        return node


def build_history_types(memories: MemoryTypes) -> HistoryTypes:
    """Make the history type of a domain: it holds the domain's memories."""

    def nodes(found: Iterable[Memory], user_id: str) -> Any:  # noqa: ANN401 - typed by the domain
        return [memories.node(memory, user_id) for memory in found]

    def current(root: HistoryNode) -> Any:  # noqa: ANN401 - typed by the domain
        return nodes(root.record.current, root.user_id)

    def conflicting(root: HistoryNode) -> Any:  # noqa: ANN401 - typed by the domain
        return nodes(root.record.conflicting, root.user_id)

    def entries(root: HistoryNode) -> Any:  # noqa: ANN401 - typed by the domain
        return nodes(root.record.entries, root.user_id)

    many = list_of(memories.memory)
    made = type(
        "AttributeHistory",
        (HistoryNode,),
        {
            "__annotations__": {},
            "current": typed_field(
                current,
                many,
                (
                    "The memories that give the value which holds at `asOf`; several when it was"
                    " said again, none when nothing is known for then."
                ),
            ),
            "conflicting": typed_field(
                conflicting,
                many,
                (
                    "Memories that give another value for then, from a less reliable source. Find"
                    " out which is right, then `correct` or `retract` the other."
                ),
            ),
            "entries": typed_field(
                entries,
                many,
                (
                    "All that was known by `knownAt`, the oldest value first, each with `status`,"
                    " `validFrom` and `validUntil` as they stood then."
                ),
            ),
        },
    )
    description = "The values of one attribute of one entity in the course of time."
    return HistoryTypes(strawberry.type(made, name="AttributeHistory", description=description))
