"""The audit log, page by page."""

from __future__ import annotations

from ecphoria.errors import EcphoriaError
from ecphoria.model import AuditEntry, AuditFilter, Page, Scope, checked_id, parse_time
from ecphoria.parts import EngineParts
from ecphoria.reading.paging import checked_first, page_of, place_of
from ecphoria.stores.ports import AuditQuery


async def audit_log(
    parts: EngineParts, scope: Scope, filter_: AuditFilter, first: int, after: str | None
) -> Page[AuditEntry]:
    """Return a page of the audit log; see `Engine.audit_log`."""
    users: tuple[str, ...] | None = None
    try:
        if filter_.user_id is not None:
            user = scope.user(filter_.user_id)
            users = (await parts.pseudonyms.of(scope.tenant, [user]))[user]
        if filter_.principal is not None:
            _check("principal", filter_.principal)
        if filter_.operation is not None:
            _check("operation", filter_.operation)
        since = None if filter_.since is None else parse_time(filter_.since, "since")
        until = None if filter_.until is None else parse_time(filter_.until, "until")
    except EcphoriaError as error:
        raise error.at("filter") from error
    size = checked_first(first)
    of = [
        "audit",
        scope.tenant,
        filter_.user_id,
        filter_.principal,
        filter_.operation,
        filter_.outcome,
        None if since is None else since.isoformat(),
        None if until is None else until.isoformat(),
    ]
    found = await parts.graph.audit_entries(
        AuditQuery(
            tenant=scope.tenant,
            limit=size + 1,
            before="" if after is None else str(place_of(of, after)[0]),
            users=users,
            principal=filter_.principal,
            operation=filter_.operation,
            outcome=filter_.outcome,
            since=since,
            until=until,
        )
    )
    return page_of(found, size, of, lambda entry: (entry.id,))


def _check(field: str, value: str) -> None:
    try:
        checked_id(value, field)
    except EcphoriaError as error:
        raise error.at(field) from error
