"""Walks the schema: one operation for every place of it that a client may fill.

What is added to the schema is walked from then on, without anybody naming it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLUnionType,
    get_named_type,
    is_leaf_type,
    is_required_argument,
    is_required_input_field,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOTS = ("query", "mutation", "subscription")
# Objects that are looked into; the others would only repeat what these show.
_FOLLOWED = {
    "edges", "node", "memory", "memories", "current", "error", "receipts", "items", "turns",
    "entities", "relations", "from", "to", "links", "entity", "receipt", "left", "session",
}  # fmt: skip
_DEPTH = 4


@dataclass(frozen=True)
class Place:
    """Where a string goes.

    Attributes:
        root: One of `ROOTS`.
        field: The top-level field.
        path: The argument, and the input fields below it.
        type: Name of the scalar or enum.
        input: The input field that it is, or the argument; the same input stands in several.
    """

    root: str
    field: str
    path: tuple[str, ...]
    type: str
    input: str

    def __str__(self) -> str:
        return f"{self.root}.{self.field}({'.'.join(self.path)}: {self.type})"


def places(schema: Any, types: frozenset[str]) -> Iterator[Place]:
    """Yield every place of a scalar or enum that is one of the types."""
    for root, field, arguments in top_level(schema):
        for name, argument in arguments.items():
            for path, leaf, input_ in _below(argument.type, (name,), f"{root}.{field}.{name}"):
                if leaf in types:
                    yield Place(root, field, path, leaf, input_)


def top_level(schema: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield every top-level field: its root, its name, its arguments."""
    for root in ROOTS:
        for name, field in getattr(schema, f"{root}_type").fields.items():
            yield root, name, field.args


def strings(schema: Any) -> frozenset[str]:
    """Return the names of all types that are sent as strings, or may hold some."""
    leaves = {name for name, type_ in schema.type_map.items() if is_leaf_type(type_)}
    return frozenset(leaves - {"Int", "Float", "Boolean", "Long"})


def _below(
    type_: Any, path: tuple[str, ...], input_: str, seen: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    named = get_named_type(type_)
    if not isinstance(named, GraphQLInputObjectType):
        yield path, named.name, input_
    elif named.name not in seen:
        for name, field in named.fields.items():
            of = f"{named.name}.{name}"
            yield from _below(field.type, (*path, name), of, (*seen, named.name))


@dataclass(frozen=True)
class Together:
    """Values that go into one list, an item each."""

    values: list[Any]


Default = dict[str, Any]
"""What stands where nothing else is said, by the name of the argument or input field."""


def operation(
    schema: Any,
    place: Place,
    values: list[Any],
    default: Callable[[Place, int], Default],
) -> tuple[str, dict[str, Any]]:
    """Return one operation with a top-level field for each value, and its variables.

    Args:
        schema: The schema.
        place: Where the values go.
        values: One a field.
        default: Tells what stands in the other places of each.
    """
    field = getattr(schema, f"{place.root}_type").fields[place.field]
    declared, asked, variables = [], [], {}
    shown = selection(field.type)
    for number, value in enumerate(values):
        used = []
        given = default(place, number)
        for name, argument in field.args.items():
            path = place.path if place.path[0] == name else ()
            wanted = is_required_argument(argument) or name in given.get("also", ())
            if not path and not wanted:
                continue
            variable = f"{name}{number}"
            declared.append(f"${variable}: {argument.type}")
            used.append(f"{name}: ${variable}")
            variables[variable] = _value(argument.type, name, path, value, given)
        inner = f"({', '.join(used)})" if used else ""
        asked.append(f"a{number}: {place.field}{inner}{shown}")
    head = f"({', '.join(declared)})" if declared else ""
    return f"{place.root}{head} {{ {' '.join(asked)} }}", variables


def _value(type_: Any, name: str, path: tuple[str, ...], value: Any, given: Default) -> Any:
    """Return a value of a type, with `value` at the end of the path where there is one."""
    if isinstance(type_, GraphQLNonNull):
        return _value(type_.of_type, name, path, value, given)
    if isinstance(type_, GraphQLList):
        each = value.values if isinstance(value, Together) else [value]
        return [_value(type_.of_type, name, path, one, given) for one in each]
    if isinstance(type_, GraphQLInputObjectType):
        made = {}
        for key, field in type_.fields.items():
            below = path[1:] if path[1:2] == (key,) else ()
            if below or is_required_input_field(field) or key in given.get("also", ()):
                made[key] = _value(field.type, key, below, value, given)
        return made
    if path:
        return value
    if isinstance(type_, GraphQLEnumType):
        # the same name may be of two enums
        wanted = given.get(name)
        return wanted if wanted in type_.values else next(iter(type_.values))
    return given.get(name, _ANY[type_.name])


_ANY: dict[str, Any] = {
    "String": "x", "ID": "x", "Int": 1, "Float": 0.5, "Boolean": False, "JSON": {},
    "DateTime": "2025-06-15T08:00:00Z",
}  # fmt: skip


def selection(type_: Any, depth: int = _DEPTH) -> str:
    """Return what to ask of a field: all that is plain, and what is worth a look below."""
    named = get_named_type(type_)
    if is_leaf_type(named):
        return ""
    parts = ["__typename"]
    if isinstance(named, GraphQLUnionType):
        parts += [f"... on {each.name} {_common(each, named)}" for each in named.types]
    elif isinstance(named, GraphQLObjectType | GraphQLInterfaceType):
        for name, field in named.fields.items():
            if any(is_required_argument(argument) for argument in field.args.values()):
                continue
            if is_leaf_type(get_named_type(field.type)):
                parts.append(name)
            elif depth > 1 and name in _FOLLOWED:
                parts.append(name + selection(field.type, depth - 1))
    return f" {{ {' '.join(parts)} }}"


def _common(member: GraphQLObjectType, union: GraphQLUnionType) -> str:
    # fields of one name and two types cannot be asked for together
    shown = ["__typename"]
    for name, field in member.fields.items():
        others = {str(each.fields[name].type) for each in union.types if name in each.fields}
        if is_leaf_type(get_named_type(field.type)) and len(others) == 1:
            shown.append(name)
    return f"{{ {' '.join(shown)} }}"
