"""What analysts load into Neo4j Browser, made from the domain: queries, a style sheet, a guide.

Templates stand in ``browser/``. No query returns what the domain calls sensitive, nor a node that
holds such a thing, nor anything of keys: of types with sensitive properties and of memories come
named columns only.
"""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from ecphoria_schema.domain import Domain, Language

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from ecphoria_schema.walk import Hop, Walk
    from ecphoria_schema.words import Title

STYLE = "style.grass"
GUIDE = "guide.html"
QUERIES = "queries.zip"
ROLE = "analyst_role.cypher"
ROLE_NAME = "ecphoria_analyst"

# Of memories: enough to work with, and nothing that is sealed or that seals.
MEMORY_PROPERTIES = (
    "access_count",
    "agent_id",
    "archive_at",
    "attribute",
    "claim",
    "claim_number",
    "doubt",
    "ended_at",
    "expires_at",
    "fact_type",
    "freshness",
    "freshness_at",
    "id",
    "importance",
    "index_state",
    "intent",
    "invalidated_at",
    "key",
    "kind",
    "lang",
    "last_accessed_at",
    "name",
    "occurred_at",
    "privacy",
    "recorded_at",
    "reinforced",
    "reliability",
    "session_id",
    "source_id",
    "status",
    "subject",
    "tags",
    "tenant",
    "text",
    "tier",
    "topic",
    "urgency",
    "user_id",
    "valid_from",
    "valid_until",
    "value",
)
_SOURCE_PROPERTIES = (
    "declared",
    "disabled",
    "id",
    "key",
    "name",
    "recorded_at",
    "reliability",
    "tenant",
)
_MENTION_PROPERTIES = ("entity", "key", "memory", "tenant")
_ENTITY_PROPERTIES = ("id", "key", "name", "observed_at", "owner_key", "recorded_at", "tenant")
_MEMORY_RELATIONS = {
    "ABOUT": ("attribute", "certainty", "how"),
    "FROM_SOURCE": (),
    "SUPERSEDES": ("at", "by", "how"),
    "CONFLICTS_WITH": ("at", "how"),
    "POSSIBLE_UPDATE_OF": (),
}
_TEXT_CHARS = 120

_PLACEHOLDER = re.compile(r"__([A-Z]+)__")
_PARAMETER = re.compile(r"\$([a-zA-Z]+)")
_HEADER = re.compile(r"// (en|zh): (.*)")


@dataclass(frozen=True, slots=True)
class KitQuery:
    """A saved query.

    Attributes:
        name: Of its file, without the ending.
        title: One line, begins with its number.
        about: What it shows, a sentence or two.
        body: Its Cypher, without comments.
    """

    name: str
    title: str
    about: str
    body: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters it needs, sorted."""
        return tuple(sorted(set(_PARAMETER.findall(self.body))))

    @property
    def text(self) -> str:
        """Return the file: the Browser takes the first line for its title."""
        needs = ", ".join(f"${name}" for name in self.parameters)
        return f"// {self.title}\n// {self.about}\n// {needs}\n{self.body}\n"


# --- queries -------------------------------------------------------------------------------


def _folder() -> Traversable:
    return resources.files("ecphoria_schema") / "browser"


def _filled(text: str, fragments: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: fragments[match[1]], text)


def _line(text: str) -> str:
    # what has several lines would end a comment
    return " ".join(text.split())


def _said(title: Title, language: Language) -> str:
    return _line(title.zh if language == "zh" else title.en)


def _string(value: str | None) -> str:
    if value is None:
        return "null"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def sensitive_properties(domain: Domain, label: str) -> frozenset[str]:
    """Return the properties of a type that are sensitive."""
    declared = domain.entities[label].properties
    return frozenset(name for name, item in declared.items() if item.privacy == "sensitive")


def shown_properties(domain: Domain, label: str) -> tuple[str, ...]:
    """Return the properties of a type that analysts may see, caption and id first."""
    hidden = sensitive_properties(domain, label)
    names = dict.fromkeys(("id", "name", *domain.entities[label].properties))
    return tuple(name for name in names if name not in hidden)


def _holds(variable: str) -> str:
    v = variable
    return (
        f"{v}.status = 'active' AND {v}.valid_from <= datetime()\n"
        f"  AND ({v}.valid_until IS NULL OR {v}.valid_until > datetime())\n"
        f"  AND ({v}.expires_at IS NULL OR {v}.expires_at > datetime())"
    )


def _shown(domain: Domain, variable: str, what: str) -> str:
    hidden = ", ".join(_string(name) for name in domain.attributes if domain.hides(name))
    # what was written before it was sealed stands there in clear
    test = f"{variable}.privacy = 'sensitive'" + (
        f" OR {variable}.attribute IN [{hidden}]" if hidden else ""
    )
    return f"CASE WHEN {test} THEN '[sensitive]'\n    ELSE {what} END"


def _fragments(domain: Domain, language: Language) -> dict[str, str]:
    half_lives = " ".join(
        f"WHEN '{kind}' THEN {policy.half_life_days}" for kind, policy in domain.kinds.items()
    )
    owning = "|".join(sorted({relation.type for relation in domain.relations if relation.owns}))
    # no such relation leads to the root itself, nor to what is shared
    way = (
        f"OPTIONAL MATCH p = (:{domain.root})-[:{owning}*1..{len(domain.owned_types)}]->(e)\n"
        "WITH e, coalesce([x IN nodes(p) | x.name], [e.name]) AS way"
        if owning
        else "WITH e, [e.name] AS way"
    )
    return {
        "ROOT": _said(domain.entities[domain.root].title, language),
        "ENTITIES": "|".join(domain.entities),
        "HALFLIFE": f"CASE m.kind {half_lives} END",
        "WAY": way,
        "HOLDS": _holds("m"),
        "OTHERHOLDS": _holds("o"),
        "NEWERHOLDS": _holds("newer"),
        "OLDERHOLDS": _holds("older"),
        "TEXT": _shown(domain, "m", f"substring(m.text, 0, {_TEXT_CHARS})"),
        "VALUE": _shown(domain, "m", "m.value"),
        "SUBJECT": _shown(domain, "m", "m.subject"),
        "NEWERSUBJECT": _shown(domain, "newer", "newer.subject"),
        "NEWERVALUE": _shown(domain, "newer", "newer.value"),
        "OLDERVALUE": _shown(domain, "older", "older.value"),
    }


def _query(name: str, template: str, fragments: Mapping[str, str], language: Language) -> KitQuery:
    said: list[str] = []
    body: list[str] = []
    for line in template.splitlines():
        header = _HEADER.fullmatch(line)
        if header is None:
            body.append(line)
        elif header[1] == language:
            said.append(_filled(header[2], fragments))
    title, about = said
    number = name.partition("_")[0]
    return KitQuery(name, f"{number} {title}", about, _filled("\n".join(body), fragments).strip())


def kit_queries(domain: Domain, language: Language = "en") -> tuple[KitQuery, ...]:
    """Return the saved queries of a domain: one for each of its paths, and nine that all have."""
    fragments = _fragments(domain, language)
    found: list[KitQuery] = []
    for item in sorted(_folder().iterdir(), key=lambda item: item.name):
        if not item.name.endswith(".cypher"):
            continue
        name, template = item.name.removesuffix(".cypher"), item.read_text("utf-8")
        if name != "01_walk":
            found.append(_query(name, template, fragments, language))
            continue
        for path, walk in domain.walks.items():
            own = fragments | _walk_fragments(domain, path, walk, language)
            found.append(_query(f"01_{path}", template, own, language))
    return tuple(found)


def _variable(step: str) -> str:
    # a step may be called as Cypher's own words are: Order
    return f"{step[0].lower()}{step[1:]}_"


def _column(step: str) -> str:
    return f"`{_variable(step)[:-1]}`"


def _walk_title(domain: Domain, walk: Walk, step: str, type_: str, language: Language) -> str:
    title = _said(domain.entities[type_].title, language)
    below = [
        _walk_title(domain, walk, hop.end_step, hop.end, language)
        for hop in walk.hops
        if hop.start_step == step
    ]
    if not below:
        return title
    return f"{title} → {below[0] if len(below) == 1 else '(' + ', '.join(below) + ')'}"


def _hop(domain: Domain, hop: Hop, number: int, root: str) -> str:
    start, end = _variable(hop.start_step), _variable(hop.end_step)
    relation = domain.relation(hop.relation, hop.start, hop.end)
    owns = relation is not None and relation.owns
    by = relation.newest_by if relation is not None else None
    # an owning relation hands the owner on; any other may lead to what is another one's
    own = (
        f" WHERE {end}.owner_key = {root}.key" if hop.end in domain.owned_types and not owns else ""
    )
    scope = ", ".join(dict.fromkeys((start, root) if own else (start,)))
    newest = f"{end}.{by} IS NULL, {end}.{by} DESC, " if by else ""
    return (
        f"CALL ({scope}) {{\n"
        f"  OPTIONAL MATCH ({start})-[r{number}:{hop.relation}]->({end}:{hop.end}){own}\n"
        f"  RETURN r{number}, {end} ORDER BY {newest}{end}.key LIMIT {hop.cap}\n}}"
    )


def _walk_fragments(domain: Domain, path: str, walk: Walk, language: Language) -> dict[str, str]:
    root = _variable(walk.root)
    types = {walk.root: walk.root} | {hop.end_step: hop.end for hop in walk.hops}
    drawn = {step for step, type_ in types.items() if not sensitive_properties(domain, type_)}
    columns = []
    for step, type_ in types.items():
        variable = _variable(step)
        if step in drawn:
            columns.append(f"{variable} AS {_column(step)}")
        else:
            shown = ", ".join(f".{name}" for name in shown_properties(domain, type_))
            columns.append(f"{variable} {{{shown}}} AS {_column(step)}")
    relations = [
        f"r{number}"
        for number, hop in enumerate(walk.hops, 1)
        if {hop.start_step, hop.end_step} <= drawn
    ]
    if relations:
        columns.append(f"[{', '.join(relations)}] AS relations")
    return {
        "WALK": _walk_title(domain, walk, walk.root, walk.root, language),
        "PATH": path,
        "START": f"{root}:{walk.root}",
        "ROOTTYPE": walk.root,
        "HOPS": "\n".join(
            _hop(domain, hop, number, root) for number, hop in enumerate(walk.hops, 1)
        ),
        "RESULT": ",\n  ".join(columns),
    }


def kit_parameters(
    domain: Domain, tenant: str, user_id: str, language: Language = "en"
) -> KitQuery:
    """Return the command that sets every parameter of the queries, to be changed and run first."""
    values = {
        "tenant": _string(tenant),
        "userId": _string(user_id),
        "entityType": _string(domain.root),
        "entityId": _string(user_id),
        "attribute": "null",
        "topic": "null",
        "memoryIds": "null",
    }
    body = ", ".join(f"{name}: {value}" for name, value in values.items())
    title, about = (
        ("00 参数", "修改后运行一次；重新加载页面后需再次运行。")
        if language == "zh"
        else ("00 Parameters", "Change them, run this once, and again when the page was reloaded.")
    )
    return KitQuery("00_parameters", title, about, f":params {{{body}}}")


# --- style ---------------------------------------------------------------------------------

# Told apart by most eyes, and on a white and a dark page.
_PALETTE = (
    "#4C8EDA", "#FFC454", "#57C7E3", "#F16667", "#8DCC93", "#C990C0",
    "#D9C8AE", "#7B64FF", "#A4DD00", "#DA7194", "#ECB5C9", "#009CE0",
)  # fmt: skip
_MEMORY_COLOUR = "#F79767"
_SOURCE_COLOUR = "#569480"
_GREY = "#A5ABB6"
_RED = "#EB2728"
_ROOT_PX, _MEMORY_PX, _ENTITY_PX, _SMALL_PX = 80, 65, 55, 35
_DARK, _LIGHT = "#2A2C34", "#FFFFFF"
_BRIGHT = 150


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _text_on(colour: str) -> str:
    red, green, blue = _rgb(colour)
    return _DARK if (299 * red + 587 * green + 114 * blue) / 1000 > _BRIGHT else _LIGHT


def _border(colour: str) -> str:
    return "#" + "".join(f"{part * 4 // 5:02X}" for part in _rgb(colour))


def _rule(selector: str, **values: str) -> str:
    # the Browser reads no comments, and captions only in quotes
    lines = "".join(f"  {name.replace('_', '-')}: {value};\n" for name, value in values.items())
    return f"{selector} {{\n{lines}}}\n"


def _node(label: str, colour: str, pixels: int, caption: str = "{name}") -> str:
    return _rule(
        f"node.{label}",
        diameter=f"{pixels}px",
        color=colour,
        border_color=_border(colour),
        text_color_internal=_text_on(colour),
        caption=f'"{caption}"',
    )


def _relation(selector: str, colour: str, pixels: int) -> str:
    return _rule(selector, color=colour, shaft_width=f"{pixels}px", caption='"<type>"')


def kit_style(domain: Domain) -> str:
    """Return the style sheet: a colour and a caption for every type, the root largest.

    A style sheet knows labels alone, so memories have one colour and their kind in the caption.
    """
    rules = [
        _rule(
            "node",
            diameter="50px",
            color=_GREY,
            border_color=_border(_GREY),
            border_width="2px",
            text_color_internal=_LIGHT,
            font_size="10px",
        ),
        _rule(
            "relationship",
            color=_GREY,
            shaft_width="1px",
            font_size="8px",
            padding="3px",
            text_color_external="#000000",
            text_color_internal=_LIGHT,
            caption='"<type>"',
        ),
    ]
    for number, label in enumerate(domain.entities):
        colour = _PALETTE[number % len(_PALETTE)]
        rules.append(_node(label, colour, _ROOT_PX if label == domain.root else _ENTITY_PX))
    rules += [
        _node("Memory", _MEMORY_COLOUR, _MEMORY_PX, "{kind} {name}"),
        _node("Source", _SOURCE_COLOUR, _MEMORY_PX),
        _node("Pending", _GREY, _SMALL_PX, "{key}"),
        _node("Mention", _GREY, _SMALL_PX, "{entity}"),
        _relation("relationship.SUPERSEDES", _RED, 4),
        _relation("relationship.CONFLICTS_WITH", _PALETTE[3], 3),
        _relation("relationship.ABOUT", _MEMORY_COLOUR, 2),
        _relation("relationship.FROM_SOURCE", _SOURCE_COLOUR, 1),
    ]
    return "".join(rules)


# --- guide and role ------------------------------------------------------------------------


def _slide(query: KitQuery) -> str:
    needs = ", ".join(f"<code>${name}</code>" for name in query.parameters)
    return (
        '<slide class="row-fluid">\n  <div class="col-sm-12">\n'
        f"    <h3>{html.escape(query.title)}</h3>\n"
        f"    <p>{html.escape(query.about)}</p>\n"
        f"    <p>{needs}</p>\n"
        f'    <figure><pre class="pre-scrollable code runnable">{html.escape(query.body)}</pre>'
        "</figure>\n  </div>\n</slide>\n"
    )


def kit_guide(domain: Domain, tenant: str, user_id: str, language: Language = "en") -> str:
    """Return the guide: a page of HTML, a slide a query, beside the results in the Browser."""
    template = (_folder() / f"guide.{language}.html").read_text("utf-8")
    parameters = kit_parameters(domain, tenant, user_id, language)
    first = _filled(
        template,
        {
            "TITLE": html.escape(_said(domain.title, language)),
            "PARAMETERS": html.escape(parameters.body),
        },
    )
    slides = "".join(_slide(query) for query in kit_queries(domain, language))
    return (
        f'<article class="guide" lang="{language}">\n<carousel class="deck container-fluid">\n'
        f"{first}{slides}</carousel>\n</article>\n"
    )


def role_statements(domain: Domain, tenant: str, database: str) -> tuple[str, ...]:
    """Return what makes a role that reads one tenant's data and nothing sensitive.

    It needs an edition of Neo4j with roles. What is not granted is not seen: keys, leases, and
    every property that is not named. Memories that the index waits for are left out: they tell
    no tenant apart in a way that a privilege can test.
    """
    graph = f"ON GRAPH `{database}`"
    to = f"TO {ROLE_NAME}"
    granted: dict[str, tuple[str, ...]] = {
        label: tuple(sorted({*_ENTITY_PROPERTIES, *shown_properties(domain, label)}))
        for label in domain.entities
    }
    granted |= {
        "Memory": MEMORY_PROPERTIES,
        "Source": _SOURCE_PROPERTIES,
        "Mention": _MENTION_PROPERTIES,
    }
    relations = {relation.type: ("recorded_at",) for relation in domain.relations}
    links: dict[str, tuple[str, ...]] = {**relations, **_MEMORY_RELATIONS}
    return (
        f"CREATE ROLE {ROLE_NAME} IF NOT EXISTS",
        f"GRANT ACCESS ON DATABASE `{database}` {to}",
        *(
            f"GRANT MATCH {{{', '.join(names)}}} {graph} FOR (n:{label}) "
            f"WHERE n.tenant = {_string(tenant)} {to}"
            for label, names in granted.items()
        ),
        # what was written before it was sealed stands there in clear
        (
            f"DENY READ {{subject, text, value}} {graph} FOR (n:Memory) "
            f"WHERE n.privacy = 'sensitive' {to}"
        ),
        *(
            f"GRANT MATCH {{{', '.join(names)}}} {graph} RELATIONSHIPS {type_} {to}"
            if names
            else f"GRANT TRAVERSE {graph} RELATIONSHIPS {type_} {to}"
            for type_, names in links.items()
        ),
    )


# --- files ---------------------------------------------------------------------------------


def _zipped(folder: str, queries: tuple[KitQuery, ...]) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for query in queries:
            # with a time of its own it would be another file each day
            info = zipfile.ZipInfo(f"{folder}/{query.name}.cypher", (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, query.text, zipfile.ZIP_DEFLATED)
    return found.getvalue()


def kit_files(
    domain: Domain, tenant: str, user_id: str, database: str, language: Language = "en"
) -> dict[str, bytes]:
    """Return the whole kit: contents by file name, equal for equal arguments.

    Args:
        domain: What it is made from.
        tenant: Whose data it looks at.
        user_id: Root entity that its parameters begin with.
        database: Name of the graph's database.
        language: Of titles and explanations.

    """
    queries = (
        kit_parameters(domain, tenant, user_id, language),
        *kit_queries(domain, language),
    )
    role = ";\n".join(role_statements(domain, tenant, database))
    texts = {
        STYLE: kit_style(domain),
        GUIDE: kit_guide(domain, tenant, user_id, language),
        ROLE: f"{role};\n",
        **{f"queries/{query.name}.cypher": query.text for query in queries},
    }
    files = {name: text.encode() for name, text in texts.items()}
    return files | {QUERIES: _zipped(f"ecphoria {domain.name}", queries)}
