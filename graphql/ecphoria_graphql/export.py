"""The schema as text."""

from ecphoria_graphql.schema import build_schema
from ecphoria_schema.domain import Domain


def export_sdl(domain: Domain) -> str:
    """Return the schema of a domain in GraphQL's schema language.

    Raises:
        DomainFileInvalid: When two of its names come out as the same GraphQL name.
    """
    return build_schema(domain).as_str().strip() + "\n"
