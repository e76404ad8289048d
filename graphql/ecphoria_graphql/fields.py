"""Fields whose type is known only when a schema is made, and described ones."""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, cast

import strawberry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from strawberry.types.field import StrawberryField


def described(description: str) -> Callable[[Callable[..., object]], StrawberryField]:
    """Return a decorator that makes a resolver a field with a description."""

    def decorate(resolver: Callable[..., object]) -> StrawberryField:
        made: StrawberryField = strawberry.field(resolver, description=description)
        return made

    return decorate


def typed_field(
    resolver: Callable[..., object],
    type_: object,
    description: str,
    name: str | None = None,
    directives: Sequence[object] = (),
) -> StrawberryField:
    """Return a field of a type that the resolver's annotation cannot name."""
    made: object = strawberry.field(
        resolver=resolver,
        name=name,
        graphql_type=type_,
        description=description,
        directives=directives,
    )
    return cast("StrawberryField", made)


def list_of(type_: object) -> object:
    """Return the type of a list of a type that is known at run time only."""
    return GenericAlias(list, (type_,))
