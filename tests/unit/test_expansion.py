"""The Cypher made from a domain: constant, complete, and holding nothing but identifiers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from builders import AFTER_SALES, CLINIC
from ecphoria_schema.domain import parse_domain
from ecphoria_schema.expansion import expansion_query, names_query

BOTH = [(domain, path) for domain in (AFTER_SALES, CLINIC) for path in domain.paths]
VALUES = {"tenant", "user", "owner", "t", "history", "privacy", "seeds", "anchors", "from_root"}
VALUES |= {"statuses"}
CAPS = {"cap", "scan"}


@pytest.mark.parametrize(("domain", "path"), BOTH)
def test_every_parameter_is_used_and_no_other(domain, path):
    text = expansion_query(domain, path)
    mentions = {f"mentions_{label}" for label in domain.entities}
    newest = {f"newest_{label}" for label in domain.newest_by}
    assert set(re.findall(r"\$p\.(\w+)", text)) == VALUES | CAPS | mentions | newest
    assert set(re.findall(r"\$\w+", text)) == {"$p"}


@pytest.mark.parametrize(("domain", "path"), BOTH)
def test_one_constant_text_a_path(domain, path):
    assert expansion_query(domain, path) == expansion_query(domain, path)
    others = [expansion_query(domain, other) for other in domain.paths if other != path]
    assert expansion_query(domain, path) not in others


@pytest.mark.parametrize(("domain", "path"), BOTH)
def test_labels_and_relations_are_the_domains_and_literals_are_ours(domain, path):
    text = expansion_query(domain, path)
    bare = re.sub(r"'[^']*'", "", text)
    labels = set(re.findall(r"\(\w*:(\w+)", bare)) | set(re.findall(r"\b[exym]:(\w+)", bare))
    assert labels <= {*domain.entities, "Memory", "Source"}
    types = {relation.type for relation in domain.relations}
    assert set(re.findall(r"\[:(\w+)\]", bare)) <= types | {"ABOUT"}
    assert set(re.findall(r"'([^']*)'", text)) <= types | {"hot"}
    assert not set('`;"\\') & set(text)


@pytest.mark.parametrize(("domain", "path"), BOTH)
def test_every_hop_is_walked_with_its_cap(domain, path):
    text = expansion_query(domain, path)
    for hop in domain.walks[path].hops:
        walked = rf"MATCH \(x\)-\[:{hop.relation}\]->\(y:{hop.end}\).*?LIMIT {hop.cap} "
        assert re.search(walked, text)


@pytest.mark.parametrize(("domain", "path"), BOTH)
def test_every_memory_is_filtered_by_scope_and_time(domain, path):
    text = expansion_query(domain, path)
    # one where the seeds are read, one at their entities, one at what else is about them
    reads = len(re.findall(r"\(m:Memory", text))
    for test in (
        "m.tenant = $p.tenant",
        "(m.user_id = $p.user OR m.user_id IS NULL)",
        "m.privacy IN $p.privacy",
        "m.valid_from <= $p.t",
        "m.expires_at > $p.t",
        "m.valid_until > $p.t",
        "m.status IN $p.statuses",
        "m.tier = 'hot'",
    ):
        assert text.count(test) == reads == 3


def test_newest_first_where_the_domain_says_so():
    text = expansion_query(AFTER_SALES, "after_sales")
    assert "ORDER BY y.opened_at IS NULL, y.opened_at DESC, y.key LIMIT 5" in text
    assert "ORDER BY y.key LIMIT 1" in text


def test_only_owned_types_are_checked_for_their_owner():
    text = expansion_query(AFTER_SALES, "after_sales")
    assert "(e.owner_key = $p.owner OR e:Coupon OR e:Product)" in text
    assert "e:Order OR" not in text


def test_a_relation_that_owns_nothing_does_not_lead_to_what_is_another_users():
    file = Path(__file__).parents[2] / "graph_schema/ecphoria_schema/domains/after_sales.yaml"
    text = file.read_text("utf-8").replace(
        "User-OPENED[5]->Ticket,", "User-OPENED[5]->Ticket-CONCERNS[5]->Order,"
    )
    text = text.replace(
        "User-PLACED[5]->Order-CONTAINS[5]->Device\n\n", "User-PLACED[2]->Order\n\n"
    )
    walked = expansion_query(parse_domain(text), "tickets")
    assert "-[:CONCERNS]->(y:Order) WHERE y.owner_key = $p.owner RETURN" in walked
    assert "-[:OPENED]->(y:Ticket) RETURN" in walked


@pytest.mark.parametrize("domain", [AFTER_SALES, CLINIC])
@pytest.mark.parametrize("shared", [True, False])
def test_names_are_read_within_the_scope_and_capped(domain, shared):
    text = names_query(domain, shared_only=shared)
    parts = text.split("\nUNION ALL\n")
    for part in parts:
        assert part.count("LIMIT $limit") == 1
        assert ("n.tenant = $tenant" if shared else "owner_key: $owner") in part
    recognised = {label for label, entity in domain.entities.items() if entity.recognise}
    named = set(re.findall(r"\(n:(\w+)", text))
    assert named == (recognised - domain.owned_types if shared else recognised)


def test_sensitive_properties_are_no_names():
    text = names_query(AFTER_SALES) + names_query(AFTER_SALES, shared_only=True)
    fields = set(re.findall(r"[{ ]\.(\w+)", text))
    assert fields == {"name", "name_zh", "aliases", "model", "serial"}


def test_a_domain_that_recognises_nothing_has_a_query_that_finds_nothing():
    entities = {
        label: entity.model_copy(update={"recognise": ()})
        for label, entity in CLINIC.entities.items()
    }
    text = names_query(CLINIC.model_copy(update={"entities": entities}))
    assert text == "UNWIND [] AS key RETURN key, {} AS props, [] AS holders"
