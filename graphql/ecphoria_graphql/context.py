"""The context of one request: who asks, whom to ask, and the request's own loaders."""

from typing import TypeAlias

import strawberry
from strawberry.fastapi import BaseContext

from ecphoria.engine import Engine
from ecphoria.governance.access import readable_privacy
from ecphoria.model import Scope
from ecphoria_graphql.loaders import Loaders


class Context(BaseContext):
    """What resolvers get; made by the authentication layer, one a request.

    Attributes:
        readable: Privacy levels that the scope may read.
    """

    def __init__(self, engine: Engine, scope: Scope) -> None:
        """Begin a request of an authenticated scope."""
        super().__init__()
        self.engine = engine
        self.scope = scope
        self.loaders = Loaders(engine, scope)
        self.readable = readable_privacy(scope)


Info: TypeAlias = strawberry.Info[Context, None]
