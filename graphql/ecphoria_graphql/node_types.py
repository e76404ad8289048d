"""What can be found again by a global id."""

from __future__ import annotations

import strawberry

from ecphoria_graphql.fields import described
from ecphoria_graphql.node_ids import NodeRef, node_id

NODE_ID = (
    "A global id of it: opaque, and good for `node` only. It holds for whom it was asked for; `id`"
    " is the caller's own."
)


@strawberry.interface(name="Node", description="What `node` finds again by its global id.")
class Node:
    """A thing with a global id; its type says which."""

    def node_ref(self) -> NodeRef:
        """Return what its global id stands for."""
        raise NotImplementedError

    @described(NODE_ID)
    def node_id(self) -> strawberry.ID:
        """Return its global id."""
        return node_id(self.node_ref())
