"""Connections: long lists, page by page, as Relay has them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import strawberry

from ecphoria.model import Page
from ecphoria.reading.paging import MAX_FIRST
from ecphoria_graphql.fields import list_of, typed_field

First = Annotated[int, strawberry.argument(description=f"How many at most, 1 to {MAX_FIRST}.")]
After = Annotated[
    str | None,
    strawberry.argument(
        description=(
            "Only what comes after this cursor of the same list. A cursor of another list, filter"
            " or user is refused with the code INVALID_CURSOR."
        )
    ),
]


@strawberry.type(name="PageInfo", description="Where a page stands in its list.")
class PageInfoNode:
    """Where a page stands."""

    has_next_page: bool = strawberry.field(description="Whether there is more after this page.")
    has_previous_page: bool = strawberry.field(description="Whether the list begins before it.")
    start_cursor: str | None = strawberry.field(
        description="Cursor of its first item; null when it has none."
    )
    end_cursor: str | None = strawberry.field(
        description="Cursor of its last item: send it as `after` for the next page."
    )


@dataclass(frozen=True, slots=True)
class Listed:
    """A page in an answer.

    Attributes:
        nodes: The items as their GraphQL types, one a cursor.
        after: The cursor that was sent.
        count: Counts the whole list, for the connections that tell how long it is.
    """

    page: Page[Any]
    nodes: Sequence[object]
    after: str | None
    count: Callable[[], Awaitable[int]] | None = None


class EdgeNode:
    """An item and where it stands."""

    item: object
    at: str


class ConnectionNode:
    """A page as a connection."""

    listed: Listed


def connection_type(
    name: str, item: object, what: str, *, counted: bool = False
) -> type[ConnectionNode]:
    """Make a connection type and its edge type.

    Args:
        name: Of the connection, without the ending.
        item: Type of the items; it may get its fields later.
        what: What it is a list of, for the descriptions, e.g. ``memories``.
        counted: Whether it tells how long the whole list is.
    """

    def node(root: EdgeNode) -> Any:  # noqa: ANN401 - typed when the schema is made
        return root.item

    def cursor(root: EdgeNode) -> str:
        return root.at

    made_edge = type(
        f"{name}Edge",
        (EdgeNode,),
        {
            "__annotations__": {},
            "node": typed_field(node, item, "The item."),
            "cursor": typed_field(cursor, str, "Where it stands in the list; opaque."),
        },
    )
    edge = strawberry.type(
        made_edge, name=f"{name}Edge", description="An item, and where it stands in its list."
    )

    def edges(root: ConnectionNode) -> Any:  # noqa: ANN401 - as above
        found = []
        for each, at in zip(root.listed.nodes, root.listed.page.cursors, strict=True):
            one = edge()
            one.item, one.at = each, at
            found.append(one)
        return found

    def page_info(root: ConnectionNode) -> PageInfoNode:
        cursors = root.listed.page.cursors
        return PageInfoNode(
            has_next_page=root.listed.page.has_next,
            has_previous_page=root.listed.after is not None,
            start_cursor=cursors[0] if cursors else None,
            end_cursor=cursors[-1] if cursors else None,
        )

    async def total_count(root: ConnectionNode) -> int:
        if root.listed.count is None:
            raise NotImplementedError
        return await root.listed.count()

    fields = {
        "edges": typed_field(edges, list_of(edge), "The items of the page, in order."),
        "page_info": typed_field(page_info, PageInfoNode, "Where the page stands in the list."),
    }
    if counted:
        fields["total_count"] = typed_field(
            total_count,
            int,
            "How many the whole list has; counted only when it is asked for.",
        )
    made = type(f"{name}Connection", (ConnectionNode,), {"__annotations__": {}, **fields})
    return strawberry.type(made, name=f"{name}Connection", description=f"A page of {what}.")


def connected(kind: type[ConnectionNode], listed: Listed) -> ConnectionNode:
    """Return a page as its connection type."""
    node = kind()
    node.listed = listed
    return node
