"""Who may do what: roles by operation and by privacy level, as one table."""

from __future__ import annotations

import enum

from ecphoria.errors import Forbidden
from ecphoria.model import Role, Scope
from ecphoria_schema.domain import Privacy


class Operation(enum.StrEnum):
    """A verb of the engine that a role may or may not use."""

    RECALL = "recall"
    READ = "read"
    REMEMBER = "remember"
    REMEMBER_SHARED = "remember shared knowledge"
    UPSERT_ENTITIES = "upsertEntities"
    CHANGE = "supersede, correct and retract"
    FEEDBACK = "feedback"
    READ_FEEDBACK = "feedback records and tasks"
    FORGET = "forget"
    AUDIT = "audit log"
    SESSION = "sessions"
    OPERATE = "maintenance"
    KNOW_ONESELF = "me"


ALLOWED: dict[Operation, frozenset[Role]] = {
    Operation.RECALL: frozenset({Role.AGENT, Role.ANALYST, Role.ADMIN}),
    Operation.READ: frozenset({Role.AGENT, Role.ANALYST, Role.ADMIN}),
    Operation.REMEMBER: frozenset({Role.AGENT, Role.OPERATOR, Role.ADMIN}),
    Operation.REMEMBER_SHARED: frozenset({Role.OPERATOR, Role.ADMIN}),
    Operation.UPSERT_ENTITIES: frozenset({Role.OPERATOR, Role.ADMIN}),
    Operation.CHANGE: frozenset({Role.AGENT, Role.OPERATOR, Role.ADMIN}),
    Operation.FEEDBACK: frozenset({Role.AGENT, Role.OPERATOR, Role.ADMIN}),
    Operation.READ_FEEDBACK: frozenset(Role),
    Operation.FORGET: frozenset({Role.OPERATOR, Role.ADMIN}),
    Operation.AUDIT: frozenset({Role.ADMIN}),
    Operation.SESSION: frozenset({Role.AGENT, Role.ADMIN}),
    Operation.OPERATE: frozenset({Role.OPERATOR, Role.ADMIN}),
    Operation.KNOW_ONESELF: frozenset(Role),
}

READABLE: dict[Role, frozenset[Privacy]] = {
    Role.AGENT: frozenset({"public", "internal"}),
    Role.ANALYST: frozenset({"public", "internal"}),
    Role.OPERATOR: frozenset({"public"}),
    Role.ADMIN: frozenset({"public", "internal", "sensitive"}),
}

MASK = "•••"


def check_access(scope: Scope, operation: Operation) -> None:
    """Return when one of the scope's roles may do it.

    Raises:
        Forbidden: Naming the roles that may.
    """
    if not scope.roles & ALLOWED[operation]:
        roles = ", ".join(sorted(ALLOWED[operation]))
        msg = f"{operation} needs one of the roles {roles}"
        raise Forbidden(msg)


def readable_privacy(scope: Scope) -> frozenset[Privacy]:
    """Return the privacy levels that the scope's roles may read."""
    return frozenset().union(*(READABLE[role] for role in scope.roles))


def overrules_sources(scope: Scope) -> bool:
    """Whether a scope may replace what a more reliable source says."""
    return bool(scope.roles & {Role.OPERATOR, Role.ADMIN})
