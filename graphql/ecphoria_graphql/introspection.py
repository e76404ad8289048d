"""Who may read the schema over the API: roles that the settings name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from graphql import FieldNode, GraphQLError, ValidationRule
from strawberry.extensions import SchemaExtension
from strawberry.types import ExecutionResult

from ecphoria.errors import Forbidden

_HINT = re.compile(r" Did you mean .*\?$", re.DOTALL)


class _NoIntrospection(ValidationRule):
    """Refuses ``__schema`` and ``__type``; ``__typename`` is for everyone."""

    def enter_field(self, node: FieldNode, *_: Any) -> None:  # noqa: ANN401 - a visitor's signature
        if node.name.value in {"__schema", "__type"}:
            msg = "this key's role may not read the schema"
            self.report_error(GraphQLError(msg, node, original_error=Forbidden(msg)))


class IntrospectionByRole(SchemaExtension):
    """Refuses introspection to other roles, and keeps names of the schema out of their errors."""

    def on_operation(self) -> Iterator[None]:
        """Add a rule for who may not."""
        context = self.execution_context.context
        self._may = bool(context.scope.roles & context.engine.settings.introspecting)
        if not self._may:
            self.execution_context.validation_rules += (_NoIntrospection,)
        yield
        self._hide(self.execution_context.result)

    def on_stream_result(self, result: object) -> Iterator[None]:
        """Do the same for one result of several."""
        self._hide(result)
        yield

    def _hide(self, result: object) -> None:
        if self._may or not isinstance(result, ExecutionResult) or not result.errors:
            return
        for error in result.errors:
            # "Did you mean …" tells the schema piece by piece
            error.message = _HINT.sub("", error.message)
