"""Patterns of a domain file: what may run away on some text is not let in."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, CLINIC
from ecphoria_schema.fact_rules import StatementRule
from ecphoria_schema.patterns import MAX_REPEAT, unbounded


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("a*", "without end"),
        ("a+", "without end"),
        (".*x", "without end"),
        ("[a-z]+?", "without end"),
        ("a++", "without end"),
        (r"\d{3,}", "without end"),
        (f"a{{1,{MAX_REPEAT + 1}}}", "too often"),
        ("a{200}", "too often"),
        ("(?:a{1,9}){1,9}", "repeats a group"),
        ("(a|b){2,3}", "repeats a group"),
        ("(?:a){2}", "repeats a group"),
        (".{1,80}.{1,80}", "ways"),
        ("(?:.{1,80}|b).{1,80}", "ways"),
        ("a?" * 17, "17 optional parts"),
        (r"(a)\1", "refers back"),
        (r"(?P<x>a)(?P=x)", "of no use here"),
        ("(?>a)", "of no use here"),
        ("(?#why)a", "of no use here"),
        (r"(a)(?(1)b|c)", "of no use here"),
        ("[*+]*", "without end"),
        (r"\**", "without end"),
        ("[]a]*", "without end"),
        (r"[^\]]*", "without end"),
    ],
)
def test_what_may_run_away_is_named(pattern, fault):
    re.compile(pattern)
    assert fault in unbounded(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "order",
        "[*+?{}]",
        r"\*\+\?\{2,\}",
        "[]*]",
        r"[^\]*]",
        "a{,5}",
        "a{1,80}",
        "a{}b{x}",
        "(?:one|two)?",
        "(?P<slot>.{1,80}?)x",
        r"(?<![0-9a-z])(?i:rep)-?[0-9a-z]{4,20}(?!\d)",
        r"\d{6,20}+ .{1,80}+ .{1,80}",
        "(?:a{1,80}|b{1,80}|c)",
        "(?=a)(?!b)(?<=c)(?<!d)e",
    ],
)
def test_what_has_a_bound_is_let_in(pattern):
    re.compile(pattern)
    assert unbounded(pattern) is None


@given(st.text(alphabet=r"ab.\d[]()|?*+{},:=!<>P19^$-", max_size=25))
def test_any_pattern_is_judged(pattern):
    try:
        with warnings.catch_warnings():
            # sets within sets, perhaps, in some later Python
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(pattern)
    except (re.error, OverflowError):
        return
    fault = unbounded(pattern)
    assert fault is None or fault


@pytest.mark.parametrize("domain", [AFTER_SALES, CLINIC], ids=["after_sales", "clinic"])
def test_the_patterns_in_use_finish_on_hostile_texts(domain):
    # there is no time limit: a pattern that runs away does not come back at all
    units = ["a", "1", " ", "我", "i love ", "my address is 1", "我的地址是1号", "单号", "order 1"]
    patterns = [pattern for slot in domain.slots.values() for pattern in slot.all]
    for rule in domain.facts.values():
        if isinstance(rule, StatementRule):
            patterns += rule.says.all
    assert patterns
    for pattern in patterns:
        compiled = re.compile(pattern, re.IGNORECASE)
        for unit in units:
            text = unit * (100_000 // len(unit))
            compiled.search(text)
            compiled.fullmatch(text)
