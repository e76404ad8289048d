"""Who may do what: the tables are complete, and what they say is pinned."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from builders import scope
from ecphoria.errors import Forbidden
from ecphoria.governance.access import (
    ALLOWED,
    READABLE,
    Operation,
    check_access,
    overrules_sources,
    readable_privacy,
)
from ecphoria.model import Role
from ecphoria_schema.domain import Privacy

# rows: operation; columns: roles that may
MAY = {
    Operation.RECALL: "agent analyst admin",
    Operation.READ: "agent analyst admin",
    Operation.REMEMBER: "agent operator admin",
    Operation.REMEMBER_SHARED: "operator admin",
    Operation.UPSERT_ENTITIES: "operator admin",
    Operation.CHANGE: "agent operator admin",
    Operation.FEEDBACK: "agent operator admin",
    Operation.READ_FEEDBACK: "agent analyst operator admin",
    Operation.FORGET: "operator admin",
    Operation.SESSION: "agent admin",
    Operation.OPERATE: "operator admin",
    Operation.AUDIT: "admin",
    Operation.KNOW_ONESELF: "agent analyst operator admin",
}


def test_every_operation_and_role_is_in_the_tables():
    assert set(ALLOWED) == set(MAY) == set(Operation)
    assert set(READABLE) == set(Role)
    assert set().union(*READABLE.values()) == set(get_args(Privacy))


@pytest.mark.parametrize(("operation", "role"), list(itertools.product(Operation, Role)))
def test_the_table(operation, role):
    if role in MAY[operation].split():
        check_access(scope(role), operation)
    else:
        with pytest.raises(Forbidden) as caught:
            check_access(scope(role), operation)
        assert "admin" in caught.value.message
        assert operation in caught.value.message


def test_several_roles_add_up():
    both = scope(Role.ANALYST, Role.OPERATOR)
    check_access(both, Operation.RECALL)
    check_access(both, Operation.UPSERT_ENTITIES)
    assert readable_privacy(both) == {"public", "internal"}


@pytest.mark.parametrize("role", Role)
def test_whoever_may_forget_may_overrule_a_source(role):
    assert overrules_sources(scope(role)) is (role.value in MAY[Operation.FORGET].split())


@pytest.mark.parametrize("role", Role)
def test_only_an_admin_reads_what_is_sensitive(role):
    assert ("sensitive" in readable_privacy(scope(role))) is (role is Role.ADMIN)
    assert "public" in readable_privacy(scope(role))
