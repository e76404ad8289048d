"""Cypher for looking around, made from a domain; and the order of what contradicts itself."""

from __future__ import annotations

import random
import re

import pytest

from builders import AFTER_SALES, CLINIC, day, memory
from ecphoria.model import SourceInfo
from ecphoria.reading.conflicts import conflict_of, groups_of
from ecphoria.stores.ports import InConflict
from ecphoria_schema.reading import Step, counts_query, entities_query, neighbours_query, steps

DOMAINS = pytest.mark.parametrize("domain", [AFTER_SALES, CLINIC], ids=lambda domain: domain.name)


@DOMAINS
def test_every_relation_is_a_step_both_ways(domain):
    found = steps(domain)
    assert len(set(found)) == len(found)
    for relation in domain.relations:
        for end in relation.to:
            assert Step(relation.type, relation.from_, end, forward=True) in found
            assert Step(relation.type, end, relation.from_, forward=False) in found


@DOMAINS
def test_a_step_leads_to_nothing_owned_but_by_its_owner(domain):
    branches = neighbours_query(domain).split("\nUNION ALL\n")
    assert len(branches) == len(steps(domain))
    for number, (step, branch) in enumerate(zip(steps(domain), branches, strict=True)):
        assert f"$p.s{number} " in branch
        assert f"$p.c{number} " in branch
        if step.end in domain.owned_types:
            assert "$p.owner" in branch
        else:
            # what is shared may be connected to everybody's
            assert "LIMIT $p.scan" in branch


@DOMAINS
def test_values_are_parameters(domain):
    texts = (
        neighbours_query(domain),
        entities_query(domain),
        counts_query(domain, of_user=True),
        counts_query(domain, of_user=False),
    )
    ours = {"Memory", "Pending", "forgotten", *domain.entities}
    for text in texts:
        assert set(re.findall(r"'([^']*)'", text)) <= ours
        assert '"' not in text


@DOMAINS
def test_of_a_user_only_what_users_own_is_counted(domain):
    counted = set(re.findall(r"'(\w+)' AS what", counts_query(domain, of_user=True)))
    assert counted == {"Memory", "Pending", *domain.owned_types}
    everything = set(re.findall(r"'(\w+)' AS what", counts_query(domain, of_user=False)))
    assert everything == {"Memory", "Pending", *domain.entities}


def test_of_a_conflict_the_more_reliable_comes_first_then_the_newer():
    said = [
        memory("old", reliability=0.4, valid_from=day(-9), attribute="order.status"),
        memory("crm", reliability=0.9, valid_from=day(-8), attribute="order.status"),
        memory("new", reliability=0.4, valid_from=day(-1), attribute="order.status"),
    ]
    conflict = conflict_of(said, {})
    assert [one.id for one in conflict.memories] == ["crm", "new", "old"]
    assert conflict.attribute == "order.status"


def test_of_a_conflict_the_order_goes_by_what_feedback_has_left_of_the_trust():
    said = [
        memory("shaken", source_id="crm", reliability=0.95, valid_from=day(-1)),
        memory("doubted", source_id="erp", reliability=0.9, doubt=0.1, valid_from=day(-1)),
        memory("sound", source_id="erp", reliability=0.9, valid_from=day(-9)),
    ]
    sources = {
        "crm": SourceInfo("crm", "CRM", 0.85, declared=0.95),
        "erp": SourceInfo("erp", "ERP", 0.9),
    }
    found = conflict_of(said, sources).memories
    assert [one.id for one in found] == ["sound", "shaken", "doubted"]


def test_what_is_connected_is_one_group_in_whatever_order_it_comes():
    at = {name: InConflict(name, None, day(number)) for number, name in enumerate("abcdef")}
    # f and e, then b with two that contradict it
    pairs = [(at["f"], at["e"]), (at["b"], at["d"]), (at["c"], at["a"]), (at["d"], at["c"])]
    for seed in range(20):
        random.Random(seed).shuffle(pairs)  # noqa: S311 - no secret
        groups = [[one.id for one in group] for group in groups_of(pairs)]
        assert groups == [["e", "f"], ["a", "b", "c", "d"]]


def test_who_joins_a_group_later_does_not_move_it():
    one, two, late = (InConflict(name, None, day(number)) for name, number in
                      (("z", 1), ("m", 2), ("a", 3)))  # fmt: skip
    assert groups_of([(two, one)])[0][0] == groups_of([(two, one), (late, two)])[0][0] == one
