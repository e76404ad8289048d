"""Schema changes of the graph: numbered files for ecphoria's own labels, one plan per domain."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

from ecphoria_schema.domain import Domain

# Must exist before anything can be recorded as applied.
BOOTSTRAP = (
    "CREATE CONSTRAINT schema_version_key IF NOT EXISTS "
    "FOR (n:SchemaVersion) REQUIRE n.key IS UNIQUE"
)


@dataclass(frozen=True, slots=True)
class Migration:
    """A change of the graph schema.

    Attributes:
        version: Sorts by age; recorded in the graph once applied.
        name: What it is about.
        statements: Idempotent schema statements, run one by one.
    """

    version: str
    name: str
    statements: tuple[str, ...]

    @property
    def checksum(self) -> str:
        """Fingerprint of the statements; a recorded one must never change."""
        return hashlib.sha256("\n".join(self.statements).encode()).hexdigest()[:16]


def shipped_migrations() -> tuple[Migration, ...]:
    """Return ecphoria's own migrations, oldest first."""
    folder = resources.files("ecphoria_schema") / "migrations"
    files = sorted(
        (item for item in folder.iterdir() if item.name.endswith(".cypher")),
        key=lambda item: item.name,
    )
    return tuple(
        Migration(
            version=item.name.split("_", 1)[0],
            name=item.name.removesuffix(".cypher").split("_", 1)[1],
            statements=tuple(
                statement.strip()
                for statement in item.read_text("utf-8").split(";")
                if statement.strip()
            ),
        )
        for item in files
    )


def domain_migration(domain: Domain) -> Migration:
    """Return the constraints and indexes of a domain's entity types.

    Its version holds a fingerprint: a changed domain file is a new migration, not an altered one.
    """
    statements: list[str] = []
    for label, entity in sorted(domain.entities.items()):
        low = label.lower()
        statements.append(
            f"CREATE CONSTRAINT {low}_key IF NOT EXISTS FOR (n:{label}) REQUIRE n.key IS UNIQUE"
        )
        statements.append(f"CREATE INDEX {low}_tenant IF NOT EXISTS FOR (n:{label}) ON (n.tenant)")
        if label in domain.owned_types:
            statements.append(
                f"CREATE INDEX {low}_owner_key IF NOT EXISTS FOR (n:{label}) ON (n.owner_key)"
            )
        # one that reads as the analysts' search does: by the readable name
        if entity.recognise:
            statements.append(f"CREATE INDEX {low}_name IF NOT EXISTS FOR (n:{label}) ON (n.name)")
    plan = Migration("", f"domain {domain.name}", tuple(statements))
    return Migration(f"domain:{domain.name}:{plan.checksum}", plan.name, plan.statements)
