"""`ecphoria audit`: who did what to whose data."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from ecphoria.cli.common import (
    Tenant,
    cli_scope,
    err,
    id_column,
    moment,
    open_engine,
    out,
    with_settings,
)
from ecphoria.model import AuditFilter
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ecphoria.model import AuditEntry

PAGE = 200

User = Annotated[
    str | None, typer.Option("--user", "-u", help="About this user's data; forgotten ones, too.")
]
Doing = Annotated[str | None, typer.Option("--operation", help="Of this operation only.")]
By = Annotated[str | None, typer.Option("--by", help="By this key only; its id.")]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="See who did what to whose data.", no_args_is_help=True)
    group.command("list")(show)
    group.command("export")(export)
    app.add_typer(group, name="audit")


@with_settings()
def show(
    settings: Settings,
    tenant: Tenant,
    user: User = None,
    operation: Doing = None,
    by: By = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
) -> None:
    """Show the newest entries."""
    found = asyncio.run(_all(settings, tenant, AuditFilter(user, by, operation), limit))
    table = Table(
        id_column("at (UTC)"),
        "by",
        "operation",
        "user",
        "count",
        "outcome",
        box=None,
        pad_edge=False,
    )
    for entry in found:
        outcome = entry.outcome.value if entry.code is None else f"{entry.outcome}: {entry.code}"
        cells = (entry.principal, entry.operation, entry.user or "", f"{entry.count:,}", outcome)
        table.add_row(f"{entry.at:%Y-%m-%d %H:%M:%S}", *(Text(cell) for cell in cells))
    out().print(table)
    if not found:
        err().print("There is no such entry.")


@with_settings()
def export(
    settings: Settings,
    tenant: Tenant,
    user: User = None,
    operation: Doing = None,
    by: By = None,
) -> None:
    """Write all entries to standard output, the newest first, one JSON object a line."""

    async def act() -> None:
        entries = _entries(settings, tenant, AuditFilter(user, by, operation))
        async with contextlib.aclosing(entries):
            async for entry in entries:
                typer.echo(json.dumps(_view(entry), ensure_ascii=False))

    asyncio.run(act())


async def _all(
    settings: Settings, tenant: str, filter_: AuditFilter, limit: int
) -> list[AuditEntry]:
    found: list[AuditEntry] = []
    # closed here, so that the stores are closed before the event loop is
    async with contextlib.aclosing(_entries(settings, tenant, filter_)) as entries:
        async for entry in entries:
            found.append(entry)
            if len(found) == limit:
                break
    return found


async def _entries(
    settings: Settings, tenant: str, filter_: AuditFilter
) -> AsyncGenerator[AuditEntry]:
    async with open_engine(settings) as engine:
        after: str | None = None
        while True:
            page = await engine.audit_log(cli_scope(tenant), filter_, first=PAGE, after=after)
            for entry in page.items:
                yield entry
            if not page.has_next:
                return
            after = page.cursors[-1]


def _view(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": moment(entry.at),
        "principal": entry.principal,
        "roles": list(entry.roles),
        "operation": entry.operation,
        "user": entry.user,
        "count": entry.count,
        "outcome": entry.outcome.value,
        "code": entry.code,
    }
