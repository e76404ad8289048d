"""What an operation may cost: objects by the sizes of its lists, multiplied down the tree.

An object costs 1. A list counts as many as its `limit` or `first` says, else as many as a list has
when nothing is said; a list below one inside an input (`recall(input: {limit})`) as many as that.
Texts, numbers and lists of them cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    get_named_type,
    value_from_ast_untyped,
)
from strawberry.extensions import SchemaExtension

from ecphoria_graphql.error_codes import too_complex

DEFAULT_SIZE = 20
MAX_SIZE = 1_000
"""A greater size counts as this one: whoever resolves the field refuses it."""

_SIZES = ("first", "last", "limit")
_INNER_SIZES = (*_SIZES, "entityLimit")


@dataclass(slots=True)
class Cost:
    """Adds up one operation.

    Attributes:
        variables: As the request gives them.
        fragments: Of its document.
    """

    schema: GraphQLSchema
    variables: Mapping[str, Any]
    fragments: Mapping[str, FragmentDefinitionNode]
    _known: dict[tuple[str, int], int] = field(default_factory=dict)

    def of(self, operation: OperationDefinitionNode) -> int:
        """Return the cost of a valid operation."""
        root = self.schema.get_root_type(operation.operation)
        given = dict(self.variables)
        for node in operation.variable_definitions or ():
            if node.default_value is not None:
                given.setdefault(
                    node.variable.name.value, value_from_ast_untyped(node.default_value)
                )
        self.variables = given
        return self._selections(operation.selection_set, root, DEFAULT_SIZE)

    def _selections(self, nodes: SelectionSetNode | None, parent: object, size: int) -> int:
        """Return the cost of what is selected of one object.

        Args:
            nodes: What is selected.
            parent: Its type.
            size: Of lists right below that say nothing.
        """
        total = 0
        for node in nodes.selections if nodes is not None else ():
            if isinstance(node, FieldNode):
                total += self._field(node, parent, size)
            elif isinstance(node, InlineFragmentNode):
                condition = node.type_condition
                type_ = parent if condition is None else self._type(condition.name.value)
                total += self._selections(node.selection_set, type_, size)
            elif isinstance(node, FragmentSpreadNode):
                total += self._fragment(node.name.value, size)
        return total

    def _type(self, name: str) -> object:
        return self.schema.type_map.get(name)

    def _fragment(self, name: str, size: int) -> int:
        found = self._known.get((name, size))
        if found is None:
            node = self.fragments[name]
            type_ = self._type(node.type_condition.name.value)
            found = self._known[name, size] = self._selections(node.selection_set, type_, size)
        return found

    def _field(self, node: FieldNode, parent: object, size: int) -> int:
        if node.selection_set is None or not isinstance(
            parent, GraphQLObjectType | GraphQLInterfaceType
        ):
            return 0
        definition = parent.fields.get(node.name.value)
        if definition is None:
            # introspection
            return 0
        arguments = self._arguments(node, definition)
        own = _size_in(arguments, _SIZES)
        inner = [_size_in(value, _INNER_SIZES) for value in arguments.values()]
        below = max([DEFAULT_SIZE, *(found for found in inner if found is not None)])
        if own is not None and not _is_list(definition.type):
            # a connection: its edges and nodes are the list
            below = own
        times = 1
        if _is_list(definition.type):
            times = size if own is None else own
        return times * (
            1 + self._selections(node.selection_set, get_named_type(definition.type), below)
        )

    def _arguments(self, node: FieldNode, definition: GraphQLField) -> dict[str, Any]:
        found: dict[str, Any] = {
            name: argument.default_value
            for name, argument in definition.args.items()
            if isinstance(argument.default_value, int)
        }
        for argument in node.arguments or ():
            value = argument.value
            found[argument.name.value] = (
                self.variables.get(value.name.value)
                if isinstance(value, VariableNode)
                else value_from_ast_untyped(value, dict(self.variables))
            )
        return found


def _size_in(value: object, names: tuple[str, ...]) -> int | None:
    """Return the greatest size that an input gives, within bounds; None when it gives none."""
    given = value if isinstance(value, Mapping) else {}
    found = [
        min(MAX_SIZE, max(1, given[name]))
        for name in names
        if isinstance(given.get(name), int) and not isinstance(given.get(name), bool)
    ]
    return max(found, default=None)


def _is_list(type_: object) -> bool:
    while isinstance(type_, GraphQLNonNull):
        type_ = type_.of_type
    return isinstance(type_, GraphQLList)


class CostLimit(SchemaExtension):
    """Refuses an operation that asks for too much before anything is run."""

    def on_execute(self) -> Iterator[None]:
        """Add up the operation.

        Raises:
            GraphQLError: When it goes over the limit; the message has both figures.
        """
        execution = self.execution_context
        document = execution.graphql_document
        allowed = execution.context.engine.settings.max_operation_cost
        definitions = document.definitions if document is not None else ()
        cost = Cost(
            execution.schema._schema,  # noqa: SLF001 - Strawberry has no other way to it
            execution.variables or {},
            {
                node.name.value: node
                for node in definitions
                if isinstance(node, FragmentDefinitionNode)
            },
        )
        for node in definitions:
            if isinstance(node, OperationDefinitionNode) and (
                execution.operation_name is None
                or (node.name is not None and node.name.value == execution.operation_name)
            ):
                found = cost.of(node)
                if found > allowed:
                    msg = (
                        f"the operation may bring {found} objects; {allowed} are allowed: ask for"
                        " shorter lists (`limit`, `first`) or fewer levels"
                    )
                    raise too_complex(msg)
        yield
