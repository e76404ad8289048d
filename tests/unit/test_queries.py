"""Named queries: placeholders take identifiers only, and every file is used."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from ecphoria.model import IndexState, LinkMethod, Status
from ecphoria_schema.queries import query

TIERS = ("hot", "archive")
FILES = {
    item.name.removesuffix(".cypher"): item.read_text("utf-8")
    for item in (resources.files("ecphoria_schema") / "cypher").iterdir()
}
OURS = {*Status, *IndexState, *LinkMethod, *TIERS, "{}", "forgotten user"}
ENGINE = Path(__file__).parents[2] / "engine" / "ecphoria"


def test_placeholders_are_filled():
    assert "MATCH (n:Order)" in query("count_label", label="Order")
    text = query("own_below", to="Order", owning=("CONTAINS", "HAS_REPAIR"))
    assert "-[:CONTAINS|HAS_REPAIR*1..8]->" in text
    assert "__" not in text


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Order) DETACH DELETE n //",
        "Order`",
        "Order|User",
        "Order\n",
        "9Order",
        "Ord er",
        "订单",
        "x" * 61,
        ("Order", "a) RETURN 1 //"),
    ],
)
def test_what_is_no_identifier_is_refused(value):
    with pytest.raises(ValueError, match="is no identifier"):
        query("count_label", label=value)


def test_a_missing_placeholder_is_an_error():
    with pytest.raises(KeyError):
        query("count_label")


def test_an_unknown_name_is_an_error():
    with pytest.raises(FileNotFoundError):
        query("no_such_query")


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_file_is_used(name):
    used = "\n".join(file.read_text("utf-8") for file in sorted(ENGINE.rglob("*.py")))
    assert f'"{name}"' in used


@pytest.mark.parametrize("name", sorted(FILES))
def test_values_are_parameters(name):
    # the only literals are words of our own, never a place for values
    assert set(re.findall(r"'([^']*)'", FILES[name])) <= OURS
    assert '"' not in FILES[name]
