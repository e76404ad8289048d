"""Whether a schema still serves the clients of an older one."""

from collections.abc import Sequence

from graphql import GraphQLError, build_schema, find_breaking_changes

from ecphoria.errors import InvalidInput


def breaking_changes(old: str, new: str) -> Sequence[str]:
    """Return what breaks clients of the old schema, a line a change.

    Args:
        old: In GraphQL's schema language, as clients know it.
        new: As it is now.

    Raises:
        InvalidInput: When one of them is no schema.
    """
    try:
        changes = find_breaking_changes(build_schema(old), build_schema(new))
    except (GraphQLError, TypeError) as error:
        msg = f"the schema cannot be read: {error}"
        raise InvalidInput(msg) from error
    return [f"{change.type.name}: {change.description}" for change in changes]


def read_accepted(text: str) -> Sequence[str]:
    """Return the lines of a list of accepted changes, without comments (`#`)."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
