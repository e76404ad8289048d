"""Schema changes: numbered, idempotent, and a changed domain is a new one."""

from __future__ import annotations

import re

import pytest

from builders import AFTER_SALES, CLINIC
from ecphoria_schema.migration import Migration, domain_migration, shipped_migrations

STATEMENT = re.compile(
    r"CREATE (CONSTRAINT|INDEX) \w+ IF NOT EXISTS FOR \(n:\w+\) "
    r"(REQUIRE n\.\w+ IS UNIQUE|ON \(n\.\w+\))"
)
# A graph out there has these applied: add new ones, never edit old ones.
SHIPPED = {
    "0001": "d1b82cee34dc9676",
    "0002": "5bfec89f18c69c32",
    "0003": "e59df24bc9561f34",
    "0004": "aa63164ebb4d312d",
    "0005": "4854ff5608c6df33",
    "0006": "974041482614feff",
    "0007": "beb04a6e260bf083",
}
EVERY = [*shipped_migrations(), domain_migration(AFTER_SALES), domain_migration(CLINIC)]


@pytest.mark.parametrize("migration", EVERY, ids=lambda migration: migration.version)
def test_statements_may_run_twice(migration):
    assert migration.statements
    for statement in migration.statements:
        assert STATEMENT.fullmatch(statement), statement


@pytest.mark.parametrize("domain", [AFTER_SALES, CLINIC])
def test_names_of_constraints_are_unique(domain):
    statements = [
        statement
        for migration in (*shipped_migrations(), domain_migration(domain))
        for statement in migration.statements
    ]
    names = [statement.split()[2] for statement in statements]
    assert len(set(names)) == len(names)


def test_what_was_shipped_never_changes():
    assert {item.version: item.checksum for item in shipped_migrations()} == SHIPPED


def test_versions_are_unique_and_in_order():
    versions = [migration.version for migration in shipped_migrations()]
    assert versions == sorted(set(versions))
    assert all(re.fullmatch(r"\d{4}", version) for version in versions)


def test_a_checksum_tells_any_change():
    one = Migration("0001", "a", ("x", "y"))
    assert one.checksum == Migration("0002", "b", ("x", "y")).checksum
    assert one.checksum != Migration("0001", "a", ("y", "x")).checksum


def test_every_type_has_a_unique_key_and_owned_ones_an_owner_index():
    text = "\n".join(domain_migration(AFTER_SALES).statements)
    for label in AFTER_SALES.entities:
        assert f"FOR (n:{label}) REQUIRE n.key IS UNIQUE" in text
        owned = label in AFTER_SALES.owned_types
        assert (f"FOR (n:{label}) ON (n.owner_key)" in text) is owned


def test_a_changed_domain_is_a_new_migration():
    fewer = AFTER_SALES.model_copy(
        update={"entities": {"User": AFTER_SALES.entities["User"]}, "relations": ()}
    )
    assert domain_migration(fewer).version != domain_migration(AFTER_SALES).version
    assert domain_migration(AFTER_SALES).version == domain_migration(AFTER_SALES).version
