"""Named Cypher queries, one a file in ``cypher/``, loaded as package data."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

# A memory's times travel as milliseconds, both ways: the driver takes 0.1 ms for a datetime, a
# memory has up to twelve, and a question brings some hundred memories. That was two thirds of the
# time of an expansion, and as much of what it took to create nodes.
MEMORY_TIMES = (
    "occurred_at",
    "valid_from",
    "valid_until",
    "expires_at",
    "recorded_at",
    "invalidated_at",
    "last_accessed_at",
    "stated_until",
    "fixed_until",
    "freshness_at",
    "archive_at",
    "ended_at",
)

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
_PLACEHOLDER = re.compile(r"__([A-Z]+)__")


def node_map(variable: str, times: tuple[str, ...], *more: str) -> str:
    """Return the Cypher of a node's properties as one flat map, times in milliseconds.

    Flat, since ArcadeDB loses such a map within another one.

    Args:
        variable: What stands for the node.
        times: Names of its properties that are times.
        more: Further entries, `name: expression`.
    """
    moments = (f"{name}: {variable}.{name}.epochMillis" for name in times)
    return f"{variable} {{{', '.join(('.*', *moments, *more))}}}"


def _moment(value: str) -> str:
    # both stores fail on a null within the map
    return f"CASE WHEN {value} IS NULL THEN null ELSE datetime({{epochMillis: {value}}}) END"


_TIMES = ", ".join(f"{name}: {_moment(f'row.times.{name}')}" for name in MEMORY_TIMES)
# A memory that a list shows. Put after a `CALL`: Neo4j would begin with the index of one of these
# properties, which has every tenant's memories, instead of with the user.
_LISTED = (
    "m.tenant = $p.tenant AND m.privacy IN $p.privacy AND m.status IN $p.statuses "
    "AND m.kind IN $p.kinds "
    "AND (m.expires_at IS NULL OR m.expires_at > $p.now) "
    "AND m.occurred_at >= $p.since AND m.occurred_at < $p.until "
    "AND (size($p.sources) = 0 OR m.source_id IN $p.sources) "
    "AND (size($p.topics) = 0 OR m.topic IN $p.topics "
    "OR any(topic IN m.tags WHERE topic IN $p.topics)) "
    "AND ($p.any_time OR (m.valid_from <= $p.valid_at "
    "AND (m.valid_until IS NULL OR m.valid_until > $p.valid_at))) "
    "AND ($p.any_entity OR $p.entity IN [(m)-[:ABOUT]->(about) | about.key])"
)


def _holds(variable: str) -> str:
    """Return what is true of a user's memory that is current at `$p.t` and may be shown."""
    return (
        f"{variable}.tenant = $p.tenant AND {variable}.user_id = $p.user "
        f"AND {variable}.privacy IN $p.privacy AND {variable}.status = 'active' "
        f"AND {variable}.valid_from <= $p.t "
        f"AND ({variable}.valid_until IS NULL OR {variable}.valid_until > $p.t) "
        f"AND ({variable}.expires_at IS NULL OR {variable}.expires_at > $p.t)"
    )


_FRAGMENTS = {
    "MEMORY": node_map("m", MEMORY_TIMES),
    "TIMES": f"{{{_TIMES}}}",
    "LISTED": _LISTED,
    "HOLDS": _holds("m"),
    "OTHERHOLDS": _holds("o"),
}


@cache
def _text(name: str) -> str:
    return (resources.files("ecphoria_schema") / "cypher" / f"{name}.cypher").read_text("utf-8")


def query(name: str, **identifiers: str | tuple[str, ...]) -> str:
    """Return a named query.

    Values are always parameters of the query. Labels and relation types cannot be parameters in
    Cypher, so they fill ``__PLACEHOLDERS__``; several are joined by ``|``. ``__MEMORY__`` stands
    for the properties of the node ``m`` with its times in milliseconds, ``__TIMES__`` for such
    times in ``row.times`` as what is to be stored. ``__LISTED__`` is what is true of a memory ``m``
    that a list shows, ``__HOLDS__`` and ``__OTHERHOLDS__`` of ``m`` and ``o`` that are current.

    Raises:
        KeyError: When a placeholder is not given.
        ValueError: When an identifier is not one.
    """

    def fill(match: re.Match[str]) -> str:
        if match[1] in _FRAGMENTS:
            return _FRAGMENTS[match[1]]
        given = identifiers[match[1].lower()]
        parts = (given,) if isinstance(given, str) else given
        for part in parts:
            if not _IDENTIFIER.fullmatch(part):
                msg = f"{part!r} is no identifier"
                raise ValueError(msg)
        return "|".join(parts)

    return _PLACEHOLDER.sub(fill, _text(name))
