"""Cypher made from the domain for looking around: counts, entities by key, and neighbours.

As in `expansion`: constant texts, values in one map, identifiers from a validated domain.
"""

from __future__ import annotations

from dataclasses import dataclass

from ecphoria_schema.domain import Domain
from ecphoria_schema.expansion import ENTITY_TIMES
from ecphoria_schema.queries import node_map

_ENTITY = node_map("y", ENTITY_TIMES)


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """One relation between two types, followed in one direction.

    Attributes:
        start: Type it starts at; for a backward step the relation's own end.
        end: Type it leads to.
    """

    relation: str
    start: str
    end: str
    forward: bool


def steps(domain: Domain) -> tuple[Step, ...]:
    """Return every step that a domain allows, those in the relations' own direction first."""
    forward = [
        Step(relation.type, relation.from_, end, forward=True)
        for relation in domain.relations
        for end in relation.to
    ]
    backward = [Step(step.relation, step.end, step.start, forward=False) for step in forward]
    return (*forward, *backward)


def _order(domain: Domain, step: Step) -> str:
    by = domain.newest_by.get(step.end)
    return f"y.{by} IS NULL, y.{by} DESC, y.key" if by else "y.key"


def _ends(domain: Domain, step: Step) -> str:
    """Return the Cypher that leads from the key `k` to what a user may see as `y`."""
    owned = domain.owned_types
    arrow = f"-[:{step.relation}]->" if step.forward else f"<-[:{step.relation}]-"
    if step.end in owned and step.start not in owned:
        # from the user's own: he has few, what is shared may be connected to everybody's
        back = f"<-[:{step.relation}]-" if step.forward else f"-[:{step.relation}]->"
        return (
            f"UNWIND [$p.owner] AS owner MATCH (y:{step.end} {{owner_key: owner}}){back}"
            f"(x:{step.start} {{key: k}}) WITH y"
        )
    match = f"MATCH (x:{step.start} {{key: k}}){arrow}(y:{step.end})"
    if step.end in owned:
        return f"{match} WHERE y.owner_key = $p.owner WITH y"
    return f"{match} WITH y LIMIT $p.scan"


def neighbours_query(domain: Domain) -> str:
    """Return the Cypher that takes any number of steps from any number of entities.

    Parameter: the map ``p`` of ``owner, scan``, and for the step with the number n in `steps`
    ``s<n>``, the keys to start from, and ``c<n>``, how many ends to keep of each start. Columns:
    ``step, start, entity``.
    """
    return "\nUNION ALL\n".join(
        f"UNWIND $p.s{number} AS k CALL (k) {{ {_ends(domain, step)} "
        f"ORDER BY {_order(domain, step)} LIMIT $p.c{number} RETURN y }} "
        f"RETURN {number} AS step, k AS start, {_ENTITY} AS entity"
        for number, step in enumerate(steps(domain))
    )


def counts_query(domain: Domain, *, of_user: bool) -> str:
    """Return the Cypher that counts what there is, of one user or of a whole tenant.

    Parameters: ``tenant``; of one user also ``user, owner``, else ``prefix`` of the tenant's keys.
    Columns: ``what`` (``Memory``, ``Pending`` or an entity type), ``kind, status, tier, count``.
    """
    if of_user:
        # the user first, then the rest: a tenant has many more
        memories = "MATCH (m:Memory {user_id: $user}) WITH m WHERE m.tenant = $tenant"
        pending = f"{memories} MATCH (n:Pending {{key: m.key}})"
    else:
        memories = "MATCH (m:Memory {tenant: $tenant}) WITH m WHERE true"
        pending = "MATCH (n:Pending) WHERE n.key STARTS WITH $prefix"
    nothing = "null AS kind, null AS status, null AS tier, count(n) AS count"
    parts = [
        (
            f"{memories} AND m.status <> 'forgotten' RETURN 'Memory' AS what, m.kind AS kind, "
            "m.status AS status, m.tier AS tier, count(m) AS count"
        ),
        f"{pending} RETURN 'Pending' AS what, {nothing}",
    ]
    for label in domain.entities:
        if not of_user:
            start = f"MATCH (n:{label} {{tenant: $tenant}})"
        elif label in domain.owned_types:
            start = f"MATCH (n:{label} {{owner_key: $owner}})"
        else:
            continue
        parts.append(f"{start} RETURN '{label}' AS what, {nothing}")
    return "\nUNION ALL\n".join(parts)


def entities_query(domain: Domain) -> str:
    """Return the Cypher that reads entities of any types by their keys.

    Parameter: the map ``p`` of ``keys_<Type>`` for every entity type. Column: ``props``.
    """
    return "\nUNION ALL\n".join(
        f"UNWIND $p.keys_{label} AS k MATCH (n:{label} {{key: k}}) RETURN properties(n) AS props"
        for label in domain.entities
    )
