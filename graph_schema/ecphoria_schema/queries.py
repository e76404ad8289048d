"""Named Cypher queries, one a file in ``cypher/``, loaded as package data."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
_PLACEHOLDER = re.compile(r"__([A-Z]+)__")


@cache
def _text(name: str) -> str:
    return (resources.files("ecphoria_schema") / "cypher" / f"{name}.cypher").read_text("utf-8")


def query(name: str, **identifiers: str | tuple[str, ...]) -> str:
    """Return a named query.

    Values are always parameters of the query. Labels and relation types cannot be parameters in
    Cypher, so they fill ``__PLACEHOLDERS__``; several are joined by ``|``.

    Raises:
        KeyError: When a placeholder is not given.
        ValueError: When an identifier is not one.
    """

    def fill(match: re.Match[str]) -> str:
        given = identifiers[match[1].lower()]
        parts = (given,) if isinstance(given, str) else given
        for part in parts:
            if not _IDENTIFIER.fullmatch(part):
                msg = f"{part!r} is no identifier"
                raise ValueError(msg)
        return "|".join(parts)

    return _PLACEHOLDER.sub(fill, _text(name))
