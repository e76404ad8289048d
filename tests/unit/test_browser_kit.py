"""The analysts' kit: made from any domain, readable for the Browser, silent about secrets."""

from __future__ import annotations

import io
import json
import re
import socket
import zipfile
from dataclasses import fields
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from builders import AFTER_SALES, CLINIC
from ecphoria.cli.browser_kit import browser_settings, kit_app
from ecphoria.cli.main import main
from ecphoria.model import Memory
from ecphoria_schema.browser_kit import (
    GUIDE,
    MEMORY_PROPERTIES,
    QUERIES,
    ROLE,
    STYLE,
    kit_files,
    kit_guide,
    kit_parameters,
    kit_queries,
    kit_style,
    role_statements,
    sensitive_properties,
    shown_properties,
)
from ecphoria_schema.domain import parse_domain

DOMAINS = {"after_sales": AFTER_SALES, "clinic": CLINIC}
LANGUAGES = ("en", "zh")
PARAMETERS = {
    "tenant", "userId", "entityType", "entityId", "attribute", "topic", "memoryIds",
}  # fmt: skip
# what is sealed, what seals, and what is compared in their place
SECRETS = re.compile(
    r"ApiKey|DataKey|MasterKey|secret_hash|wrapped|sealed|value_hash|words_hash|token\b"
    r"|evidence|details|content_hash"
)
WRITES = re.compile(r"\b(CREATE|MERGE|SET|DELETE|REMOVE|DROP|FOREACH|LOAD)\b")


def every_query():
    return [
        pytest.param(domain, query, id=f"{name}-{query.name}")
        for name, domain in DOMAINS.items()
        for query in kit_queries(domain)
    ]


NAMES = [param.id for param in every_query()]


def test_there_are_ten_of_each_domain_and_one_more_for_each_further_path():
    for domain in DOMAINS.values():
        queries = kit_queries(domain)
        numbers = {query.title.partition(" ")[0] for query in queries}
        assert numbers == {f"{number:02}" for number in range(1, 11)}
        assert len(queries) == 9 + len(domain.paths)
        assert len({query.name for query in queries}) == len(queries)


@pytest.mark.parametrize("query", [param.values[1] for param in every_query()], ids=NAMES)
def test_a_query_is_of_one_tenant_bounded_and_reads_only(query):
    assert "$tenant" in query.body
    assert re.search(r"\nLIMIT \d{1,3}$", query.body)
    assert set(query.parameters) <= PARAMETERS
    assert WRITES.search(query.body) is None
    assert ";" not in query.body, "more than one statement, and the Browser draws nothing"
    assert "__" not in query.text
    assert not SECRETS.search(query.body)


@pytest.mark.parametrize(("domain", "query"), every_query())
def test_a_query_names_nothing_sensitive(domain, query):
    properties = re.sub(r"'[^']*'", "''", query.body)
    for label in domain.entities:
        for name in sensitive_properties(domain, label):
            assert not re.search(rf"\.{name}\b", properties)
    # all that is to be known of a memory comes by name, and its words never bare
    returned = query.body.rpartition("RETURN ")[2]
    assert not re.search(r"(?:^|[ ,\[])(m|o|newer|older)(?:[ ,\]]|$)", returned)
    for text in re.findall(r"(?:\w+)\.(?:text|value|subject)\b", returned):
        assert re.search(
            rf"THEN '\[sensitive\]'\n\s+ELSE (?:substring\()?{re.escape(text)}", returned
        )


def test_a_walk_draws_types_without_secrets_and_tables_the_others():
    walk, payments, _ = (query.body for query in kit_queries(AFTER_SALES)[:3])
    assert "user_ {.id, .name, .name_zh, .city, .zip, .level, .registered_at} AS `user`" in walk
    assert "  order_ AS `order`,\n  device_ AS `device`,\n  repair_ AS `repair`" in walk
    assert "[r2, r3, r4, r5] AS relations" in walk
    assert "payment_ {.id, .name, .method, .amount, .status, .paid_at} AS `payment`" in payments
    caps = re.findall(r"LIMIT (\d+)", walk)
    assert [int(cap) for cap in caps[:-1]] == [
        hop.cap for hop in AFTER_SALES.walks["after_sales"].hops
    ]


def test_a_second_domain_gives_its_own_kit():
    treatment = kit_queries(CLINIC)[0]
    assert treatment.title == "01 patient → visit → (prescription, doctor)"
    assert "patient_ {.id, .name, .birth_date} AS `patient`" in treatment.body
    assert kit_queries(CLINIC, "zh")[0].title == "01 患者 → 就诊 → (处方, 医生)"
    everything = b"".join(kit_files(CLINIC, "t", "p-1", "neo4j").values()).decode("latin-1")
    assert not re.search(r"\b(Order|Device|Warranty|customer)\b", everything)


def test_the_languages_differ_in_words_alone():
    for domain in DOMAINS.values():
        english, chinese = (kit_queries(domain, language) for language in LANGUAGES)
        for one, other in zip(english, chinese, strict=True):
            assert (one.name, one.body) == (other.name, other.body)
            assert one.title != other.title
            assert re.search(r"[一-鿿]", other.title)
            assert re.search(r"[一-鿿]", other.about)
            assert not re.search(r"[一-鿿]", one.title + one.about)


def test_the_browser_takes_the_first_line_for_a_title():
    for query in kit_queries(AFTER_SALES):
        first, second, third, *_ = query.text.splitlines()
        assert first == f"// {query.title}"
        assert second == f"// {query.about}"
        assert third == "// " + ", ".join(f"${name}" for name in query.parameters)


def test_words_of_the_domain_cannot_leave_their_comment_or_tag():
    text = (
        'version: 1\nname: odd\ntitle: {en: "<b>A & B</b>", zh: 怪}\nroot: Thing\n'
        "entities:\n  Thing:\n"
        '    title: {en: "thing\\nMATCH (n) DETACH DELETE n //", zh: 物}\n'
        "    caption: '{id}'\n    properties: {}\n  Match:\n"
        "    title: {en: match, zh: 配}\n    caption: '{id}'\n    properties: {}\n"
        "relations:\n  - {type: SET, from: Thing, to: Match, cardinality: one_to_many,\n"
        "     forward: matches, backward: thing}\n"
        "paths: {all: {walk: Thing-SET->Match}}\n"
        "sources: {crm: {title: {en: crm, zh: 系统}, reliability: 1}}\ndefault_source: crm\n"
        "kinds: {episodic: {half_life_days: 1}, semantic: {half_life_days: 1},"
        " procedural: {half_life_days: 1}}\n"
    )
    domain = parse_domain(text)
    for query in kit_queries(domain):
        assert not any(line.startswith("MATCH (n) DETACH") for line in query.text.splitlines())
    assert "<b>" not in kit_guide(domain, "t", "u")
    # nothing is owned here: there is no way to walk
    assert "WITH e, [e.name] AS way" in kit_queries(domain)[-1].body


# --- parameters ----------------------------------------------------------------------------


def test_the_parameters_are_those_that_the_queries_need():
    needed = {name for query in kit_queries(AFTER_SALES) for name in query.parameters}
    body = kit_parameters(AFTER_SALES, "demo", "u-1").body
    assert set(re.findall(r"(\w+): ", body)) == needed == PARAMETERS


@given(st.text(max_size=30))
def test_a_value_stays_within_its_quotes(value):
    body = kit_parameters(AFTER_SALES, "demo", value).body
    literal = r"'(?:[^'\\\n]|\\.)*'"
    shape = re.fullmatch(
        rf":params {{tenant: 'demo', userId: ({literal}), entityType: 'User', "
        rf"entityId: {literal}, attribute: null, topic: null, memoryIds: null}}",
        body,
        re.DOTALL,
    )
    assert shape is not None
    unescaped = re.sub(
        r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], shape[1][1:-1]
    )
    assert unescaped == value


# --- style ---------------------------------------------------------------------------------


def rules(text):
    """Read a style sheet as strictly as the Browser does: rules and quoted captions, no more."""
    found = {}
    rest = re.sub(
        r"([a-z]+(?:\.\w+)?) \{\n((?:  [a-z-]+: [^;{}\n]+;\n|  caption: \"[^\"\n:]+\";\n)+)\}\n",
        lambda match: (
            found.__setitem__(
                match[1], dict(line.strip(" ;").split(": ") for line in match[2].splitlines())
            )
            or ""
        ),
        text,
    )
    assert rest == "", f"no rule: {rest[:80]!r}"
    return found


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_the_style_gives_every_type_a_colour_and_a_caption(domain):
    found = rules(kit_style(domain))
    labels = [f"node.{label}" for label in (*domain.entities, "Memory", "Source")]
    colours = [found[label]["color"] for label in labels]
    assert len(set(colours)) == len(colours)
    assert all(re.fullmatch(r"#[0-9A-F]{6}", colour) for colour in colours)
    assert all(found[label]["caption"].startswith('"{') for label in labels)
    assert found["node.Memory"]["caption"] == '"{kind} {name}"'
    sizes = {label: int(found[f"node.{label}"]["diameter"][:-2]) for label in domain.entities}
    assert max(sizes, key=sizes.__getitem__) == domain.root
    assert not {"node.ApiKey", "node.DataKey", "node.MasterKey"} & found.keys()


def test_text_can_be_read_on_every_colour():
    def luminance(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for selector, values in rules(kit_style(AFTER_SALES)).items():
        if selector.startswith("node."):
            one, other = sorted(
                luminance(values[name]) for name in ("color", "text-color-internal")
            )
            assert (other + 0.05) / (one + 0.05) >= 3, selector


# --- guide ---------------------------------------------------------------------------------


class Guide(HTMLParser):
    """Slides with their runnable commands; fails where tags do not match."""

    def __init__(self):
        super().__init__()
        self.open, self.titles, self.commands, self.tags = [], [], [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "pre":
            assert dict(attrs)["class"].split()[-2:] == ["code", "runnable"]
            self.commands.append("")
        if tag == "h3":
            self.titles.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "pre" in self.open:
            self.commands[-1] += data
        elif "h3" in self.open:
            self.titles[-1] += data


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_the_guide_has_a_slide_a_query(domain, language):
    guide = Guide()
    guide.feed(kit_guide(domain, "demo", "u-<1>", language))
    assert guide.open == []
    # the Browser drops scripts and styles
    assert guide.tags <= {
        "article", "carousel", "slide", "div", "h3", "p", "code", "figure", "pre",
    }  # fmt: skip
    queries = kit_queries(domain, language)
    parameters = kit_parameters(domain, "demo", "u-<1>", language)
    assert guide.titles[1:] == [query.title for query in queries]
    assert guide.commands == [query.body for query in (parameters, *queries)]


# --- role ----------------------------------------------------------------------------------


def test_the_role_may_read_what_is_named_and_nothing_else():
    statements = role_statements(AFTER_SALES, "de'mo", "neo4j")
    text = "\n".join(statements)
    assert not SECRETS.search(text)
    assert "*" not in text
    assert not re.search(r"\b(WRITE|SET|CREATE|DELETE|MERGE|ALL)\b", text.partition("\n")[2])
    granted = dict(re.findall(r"GRANT MATCH \{(.*?)\} ON GRAPH `neo4j` FOR \(n:(\w+)\)", text))
    assert set(granted.values()) == {
        *AFTER_SALES.entities, "Memory", "Source", "Mention",
    }  # fmt: skip
    for names, label in granted.items():
        if label in AFTER_SALES.entities:
            hidden = sensitive_properties(AFTER_SALES, label)
            assert set(names.split(", ")) >= set(shown_properties(AFTER_SALES, label))
            assert hidden.isdisjoint(names.split(", "))
    assert text.count("WHERE n.tenant = 'de\\'mo'") == len(granted)


def test_the_role_knows_the_properties_of_memories():
    ours = {field.name for field in fields(Memory)} | {"name"}
    assert set(MEMORY_PROPERTIES) <= ours
    # a new property is shown or not, but not by chance
    assert ours - set(MEMORY_PROPERTIES) == {
        "about", "content_hash", "details", "embedding_model", "evidence", "fixed_until", "past",
        "sealed", "stated_until", "supersedes", "value_hash", "words_hash",
    }  # fmt: skip


# --- files and command ---------------------------------------------------------------------


def test_the_same_domain_gives_the_same_files():
    made = kit_files(AFTER_SALES, "demo", "u-1", "neo4j", "zh")
    assert made == kit_files(AFTER_SALES, "demo", "u-1", "neo4j", "zh")
    assert {STYLE, GUIDE, ROLE, QUERIES} <= made.keys()
    with zipfile.ZipFile(io.BytesIO(made[QUERIES])) as archive:
        packed = {
            name.removeprefix("ecphoria after_sales/"): archive.read(name)
            for name in archive.namelist()
        }
    single = {
        name.removeprefix("queries/"): content
        for name, content in made.items()
        if name.startswith("queries/")
    }
    assert packed == single
    assert set(single) == {
        "00_parameters.cypher",
        *(f"{query.name}.cypher" for query in kit_queries(AFTER_SALES)),
    }


def run(capsys, *arguments):
    code = main(["browser-kit", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_writes_the_kit_and_says_how_to_load_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ECPHORIA_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "a" / "kit"
    code, out, err = run(capsys, "-t", "demo", "-u", "u-7", "--out", folder)
    assert code == 0, err
    assert out.replace("\n", "").count("style.grass") == 1
    assert "browser.post_connect_cmd=config useReadTransactions: true; style http://" in err
    expected = kit_files(AFTER_SALES, "demo", "u-7", "neo4j")
    written = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    assert written == expected
    assert not (tmp_path / "data").exists(), "no store is needed"


def test_the_command_takes_another_domain_and_language(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ECPHORIA_DOMAIN", "tests/domains/clinic.yaml")
    arguments = ("-t", "t", "-o", tmp_path, "--language", "zh", "--url", "https://kit.example/c/")
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["settings"] == browser_settings("https://kit.example/c")
    assert told["settings"]["browser.remote_content_hostname_whitelist"] == "kit.example"
    assert str(tmp_path / "queries" / "01_treatment.cypher") in told["files"]
    assert (tmp_path / GUIDE).read_bytes() == kit_files(CLINIC, "t", "u-1", "neo4j", "zh")[GUIDE]


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("-t", "*"), 1, "INVALID_SCOPE"),
        (("-t", "t", "-u", ""), 1, "INVALID_SCOPE"),
        (("-t", "t", "--url", "ftp://x/"), 1, "INVALID_INPUT"),
        (("-t", "t", "--url", "http://x/; clear"), 1, "INVALID_INPUT"),
        (("-t", "t", "--language", "fr"), 2, "Usage"),
        ((), 2, "Usage"),
    ],
)
def test_wrong_arguments_write_nothing(more, code, said, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("ECPHORIA_TENANT", raising=False)
    found, _, err = run(capsys, "-o", tmp_path / "kit", *more)
    assert found == code
    assert said in err
    assert not (tmp_path / "kit").exists()


def test_a_folder_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "kit").write_text("")
    code, _, err = run(capsys, "-t", "t", "-o", tmp_path / "kit")
    assert code == 1
    assert "INVALID_INPUT" in err
    assert "cannot write to" in err


def test_a_taken_port_is_refused_before_anything_is_written(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run(capsys, "-t", "t", "-o", tmp_path / "kit", "--serve", port)
    assert code == 1
    assert "PORT_IN_USE" in err
    assert not (tmp_path / "kit").exists()


def test_pages_of_other_origins_may_load_the_kit_and_nothing_else():
    files = kit_files(AFTER_SALES, "demo", "u-1", "neo4j")
    client = TestClient(kit_app(files))
    asked = {
        "Origin": "http://neo4j.example:7474",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "cache-control,x-requested-with",
    }
    before = client.options(f"/{GUIDE}", headers=asked)
    assert before.status_code == 200
    assert before.headers["access-control-allow-origin"] == "*"
    page = client.get(f"/{GUIDE}", headers={"Origin": asked["Origin"]})
    assert page.content == files[GUIDE]
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["access-control-allow-origin"] == "*"
    for name in ("", "nothing", "..%2f..%2fetc%2fpasswd", "queries", "//etc/passwd"):
        assert client.get(f"/{name}").status_code == 404
    assert client.post(f"/{GUIDE}").status_code == 405
