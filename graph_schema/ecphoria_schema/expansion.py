"""Cypher made from the domain: one constant text per expansion path, values as parameters.

Constant texts let the stores plan once. All values travel in one map, `$p`: Neo4j plans anew for
every size class of a list parameter (seconds for a text like this), but not for a map. Labels and
relation types come from a validated domain file, so they are identifiers; nothing else is put
into the text.
"""

from __future__ import annotations

from ecphoria_schema.domain import Domain
from ecphoria_schema.queries import MEMORY_TIMES, node_map
from ecphoria_schema.walk import Hop

# May be shown: the user's own or shared, of an allowed privacy, known to be true at $p.t.
_VISIBLE = (
    "m.tenant = $p.tenant AND (m.user_id = $p.user OR m.user_id IS NULL) "
    "AND m.privacy IN $p.privacy AND m.status IN $p.statuses "
    "AND m.valid_from <= $p.t AND (m.expires_at IS NULL OR m.expires_at > $p.t) "
    "AND ($p.history OR (m.tier = 'hot' AND (m.valid_until IS NULL OR m.valid_until > $p.t)))"
)
# What ecphoria itself adds to entities.
ENTITY_TIMES = ("observed_at", "recorded_at")
_MEMORY = node_map("m", MEMORY_TIMES, "about: [(m)-[:ABOUT]->(a) | a.key]")
_ENTITY = node_map("x", ENTITY_TIMES)
_MAX_PARENTS = 2
# So many of a user's entities may be meant by the name of a shared one.
_MAX_HOLDERS = 20
# So many of a user's own things of a type are looked at when none is named.
_MAX_NEWEST = 30


def _visible_entity(domain: Domain, variable: str) -> str:
    shared = sorted(set(domain.entities) - domain.owned_types)
    tests = [f"{variable}.owner_key = $p.owner", *(f"{variable}:{label}" for label in shared)]
    return f"({' OR '.join(tests)})"


def _parents(domain: Domain, hop: Hop) -> bool:
    relation = domain.relation(hop.relation, hop.start, hop.end)
    return relation is not None and relation.owns


def _own_only(domain: Domain, hop: Hop) -> str:
    # an owning relation hands the owner on; any other may lead to what is another user's
    if hop.end in domain.owned_types and not _parents(domain, hop):
        return "WHERE y.owner_key = $p.owner "
    return ""


def _newest_first(domain: Domain, hop: Hop) -> str:
    relation = domain.relation(hop.relation, hop.start, hop.end)
    by = relation.newest_by if relation is not None else None
    return f"y.{by} IS NULL, y.{by} DESC, y.key" if by else "y.key"


def expansion_query(domain: Domain, path: str) -> str:
    """Return the Cypher that expands along a path, in one round trip.

    From each anchor (an entity of a seed, or named in the question) it walks up to the owner and
    down the path, every hop capped. An anchor at the end of the path (a repair) also brings its
    siblings (the same device's warranties). Then it collects other current memories about what
    was reached.

    Parameter: the map ``p`` of ``tenant, user, owner, t, history, statuses, privacy, seeds,
    anchors, from_root, cap, scan``, ``mentions_<Type>`` for every entity type, and
    ``newest_<Type>`` for every one with a time, to start at the newest of an owner's. Columns:
    ``seeds, others, entities, edges, named, hidden, full, sources``.
    """
    walk = domain.walks[path]
    visible = _visible_entity(domain, "e")
    types = sorted(domain.entities)
    all_named = " + ".join(f"named_{label}" for label in types)
    all_newest = " + ".join(["[]", *(f"newest_{label}" for label in sorted(domain.newest_by))])
    lines = [
        (
            "CALL () { UNWIND $p.seeds AS k MATCH (m:Memory {key: k}) "
            f"WHERE {_VISIBLE} RETURN collect({_MEMORY}) AS seeds }}"
        ),
        (
            "CALL () { UNWIND $p.anchors AS k MATCH (m:Memory {key: k})-[:ABOUT]->(e) "
            f"WHERE {_VISIBLE} AND {visible} RETURN collect(DISTINCT e) AS about }}"
        ),
        *(
            f"CALL () {{ UNWIND $p.mentions_{label} AS k MATCH (e:{label} {{key: k}}) "
            f"RETURN collect(DISTINCT e) AS named_{label} }}"
            for label in types
        ),
        *(
            f"CALL () {{ UNWIND $p.newest_{label} AS k MATCH (e:{label} {{owner_key: k}}) WITH e "
            f"ORDER BY e.{by} IS NULL, e.{by} DESC, e.key LIMIT {_MAX_NEWEST} "
            f"RETURN collect(e) AS newest_{label} }}"
            for label, by in sorted(domain.newest_by.items())
        ),
        f"CALL () {{ MATCH (u:{walk.root} {{key: $p.owner}}) RETURN collect(u) AS root }}",
        (
            "CALL () { MATCH (s:Source) WHERE s.tenant = $p.tenant "
            "RETURN collect(properties(s)) AS sources }"
        ),
        f"WITH seeds, about, root, sources, {all_newest} AS newest, {all_named} AS found",
        (
            "WITH seeds, about, root, sources, newest, "
            f"[e IN found WHERE {visible}] AS named, "
            f"size([e IN found WHERE NOT {visible}]) AS hidden"
        ),
        "WITH seeds, root, sources, named, hidden, about + named + newest AS anchors",
    ]
    # first visits only: a second visit of a type is reached by walking, never started from
    at = {
        hop.end_step: f"[e IN anchors WHERE e:{hop.end}]"
        for hop in walk.hops
        if hop.end_step == hop.end
    }
    owning = [hop for hop in walk.hops if _parents(domain, hop)]
    lift = {step: [text] for step, text in at.items()}
    siblings: dict[str, list[str]] = {}
    reached: list[str] = ["root", "anchors"]
    edges: list[str] = []
    for number, hop in reversed(list(enumerate(walk.hops))):
        if hop not in owning:
            continue
        start = " + ".join(lift.get(hop.end_step, ["[]"]))
        up, up_edges = f"up{number}", f"ue{number}"
        lines.append(f"WITH *, {start} AS lift{number}")
        lines.append(
            f"CALL (lift{number}) {{ UNWIND lift{number} AS x WITH DISTINCT x CALL (x) {{ "
            f"MATCH (p:{hop.start})-[:{hop.relation}]->(x) RETURN p LIMIT {_MAX_PARENTS} }} "
            f"RETURN collect(DISTINCT p) AS {up}, "
            f"collect([p.key, '{hop.relation}', x.key]) AS {up_edges} }}"
        )
        lift.setdefault(hop.start_step, []).append(up)
        if not any(other.start_step == hop.end_step for other in owning):
            siblings.setdefault(hop.start_step, []).append(up)
        reached.append(up)
        edges.append(up_edges)
    down: dict[str, str] = {walk.root: "CASE WHEN $p.from_root THEN root ELSE [] END"}
    for number, hop in enumerate(walk.hops):
        parts = [
            text
            for text in (
                down.get(hop.start_step),
                at.get(hop.start_step),
                *(siblings.get(hop.start_step, []) if hop.start_step != walk.root else ()),
            )
            if text is not None
        ]
        ends, end_edges = f"down{number}", f"de{number}"
        lines.append(f"WITH *, {' + '.join(parts) or '[]'} AS from{number}")
        lines.append(
            f"CALL (from{number}) {{ UNWIND from{number} AS x WITH DISTINCT x CALL (x) {{ "
            f"MATCH (x)-[:{hop.relation}]->(y:{hop.end}) {_own_only(domain, hop)}RETURN y "
            f"ORDER BY {_newest_first(domain, hop)} LIMIT {hop.cap} }} "
            f"RETURN collect(DISTINCT y) AS {ends}, "
            f"collect([x.key, '{hop.relation}', y.key]) AS {end_edges} }}"
        )
        down[hop.end_step] = ends
        reached.append(ends)
        edges.append(end_edges)
    lines += [
        (
            f"WITH seeds, sources, named, hidden, {' + '.join(edges)} AS edges, "
            f"{' + '.join(reached)} AS found"
        ),
        "CALL (found) { UNWIND found AS x WITH DISTINCT x RETURN collect(x) AS entities }",
        (
            "CALL (entities) { UNWIND entities AS x "
            "CALL (x) { MATCH (x)<-[:ABOUT]-(m:Memory) WITH m LIMIT $p.scan "
            "RETURN collect(m) AS scanned } "
            "CALL (scanned) { UNWIND scanned AS m WITH m "
            f"WHERE {_VISIBLE} AND NOT m.key IN $p.seeds "
            "WITH m ORDER BY m.importance DESC, m.key LIMIT $p.cap "
            f"RETURN collect({_MEMORY}) AS kept }} "
            "RETURN collect(kept) AS others, "
            "collect(CASE WHEN size(scanned) >= $p.scan THEN x.key END) AS full }"
        ),
        (
            f"RETURN seeds, others, [x IN entities | {_ENTITY}] AS entities, edges, "
            "[x IN named | x.key] AS named, hidden, full, sources"
        ),
    ]
    return "\n".join(lines)


def names_query(domain: Domain, *, shared_only: bool = False) -> str:
    """Return the Cypher that lists the names by which a user's entities may be called.

    His own entities, and the shared ones that they are directly connected to (the product that
    his device is an instance of). With `shared_only`, shared entities of the whole tenant: for
    knowledge that belongs to no user.

    Parameters: ``owner, tenant, limit``. Columns: ``key, props`` (recognisable ones only) and
    ``holders``, the user's own entities through which a shared one is reached: who says the
    product's name means his device.
    """
    parts: list[str] = []
    first = "WITH n ORDER BY n.key LIMIT $limit"
    for label, entity in domain.entities.items():
        if not entity.recognise:
            continue
        fields = ", ".join(f".{name}" for name in entity.recognise)
        row = f"RETURN n.key AS key, n {{{fields}}} AS props"
        back = f"{row}, [] AS holders"
        if label in domain.owned_types:
            if not shared_only:
                parts.append(f"MATCH (n:{label} {{owner_key: $owner}}) {first} {back}")
        elif shared_only:
            parts.append(f"MATCH (n:{label}) WHERE n.tenant = $tenant {first} {back}")
        else:
            parts.extend(
                f"MATCH (o:{relation.from_} {{owner_key: $owner}})-[:{relation.type}]->(n:{label}) "
                f"WITH n, collect(o.key)[..{_MAX_HOLDERS}] AS holders ORDER BY n.key LIMIT $limit "
                f"{row}, holders"
                for relation in domain.relations
                if label in relation.to and relation.from_ in domain.owned_types
            )
    return "\nUNION ALL\n".join(parts) or "UNWIND [] AS key RETURN key, {} AS props, [] AS holders"


def names_of_query(domain: Domain) -> str:
    """Return the Cypher that lists the same names for many users at once.

    Parameter: the map ``p`` of ``owners`` and ``limit``. Columns: as of `names_query`, and
    ``owner``, whose they are.
    """
    names = names_query(domain).replace("$owner", "owner").replace("$limit", "$p.limit")
    return (
        f"UNWIND $p.owners AS owner\nCALL (owner) {{\n{names}\n}}\n"
        "RETURN owner, key, props, holders"
    )
