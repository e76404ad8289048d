"""`ecphoria user`: forget a user in every store, prove it, let him come back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ecphoria.cli.common import (
    AsJson,
    Tenant,
    cli_scope,
    err,
    moment,
    open_engine,
    out,
    print_json,
    with_settings,
)
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ecphoria.lifecycle.forget_user import ForgetCheck, ForgetReceipt

User = Annotated[str, typer.Argument(help="The caller's own id of the user.", metavar="USER")]
LEFT = 3
"""Exit code when something of a forgotten user is left, or he was never forgotten."""


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        help="Forget a user in every store, prove it, or let him come back.",
        no_args_is_help=True,
    )
    group.command("forget")(forget)
    group.command("verify-forgotten")(verify_forgotten)
    group.command("allow")(allow)
    app.add_typer(group, name="user")


@with_settings()
def forget(
    settings: Settings,
    user: User,
    tenant: Tenant,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why, in a sentence.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Forget a user: memories, own entities, conversations, index rows and his data key.

    It cannot be undone. Interrupted, run it again, or let a worker finish it: from the first
    moment on nobody sees anything of him.
    """
    if not yes:
        typer.confirm(f"Forget {user!r} of tenant {tenant!r} for good?", abort=True, err=True)

    async def act() -> ForgetReceipt | None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        receipt = None
        async with open_engine(settings) as engine:
            with Progress(*columns, console=err()) as bar:
                task = bar.add_task("Removing", total=None)
                steps = engine.forget_user_in_batches(cli_scope(tenant), user, reason)
                async for step in steps:
                    bar.update(task, completed=step.removed, total=step.total)
                    receipt = step.receipt
        return receipt

    receipt = asyncio.run(act())
    if receipt is None:
        return
    if as_json:
        print_json(_receipt(receipt))
        return
    _counts(receipt.counts)
    said = f"Forgotten; receipt [bold]{escape(receipt.id)}[/] of {moment(receipt.at)}."
    err().print(said, soft_wrap=True)


@with_settings()
def verify_forgotten(
    settings: Settings, user: User, tenant: Tenant, *, as_json: AsJson = False
) -> None:
    """Search every store for what is left of a user; exit code 3 when anything is.

    Conversations that a server keeps without Redis are in that server's own memory: ask there.
    """

    async def act() -> ForgetCheck:
        async with open_engine(settings) as engine:
            return await engine.verify_forgotten(cli_scope(tenant), user)

    found = asyncio.run(act())
    if as_json:
        receipt = None if found.receipt is None else _receipt(found.receipt)
        print_json({"clean": found.clean, "left": dict(found.left), "receipt": receipt})
    elif found.clean:
        out().print("[green]CLEAN[/]: nothing of him is left.")
        if found.receipt is None:
            err().print("There is no receipt either: he was not forgotten here.")
        else:
            at = moment(found.receipt.at)
            said = f"Forgotten {at}; receipt [bold]{escape(found.receipt.id)}[/]."
            err().print(said, soft_wrap=True)
    else:
        out().print("[red]LEFT[/]:")
        _counts(found.left)
    if not found.clean:
        raise typer.Exit(LEFT)


@with_settings()
def allow(settings: Settings, user: User, tenant: Tenant, *, as_json: AsJson = False) -> None:
    """Let a forgotten user come back: what is written from now on is kept again."""

    async def act() -> bool:
        async with open_engine(settings) as engine:
            return await engine.allow_forgotten(cli_scope(tenant), user)

    allowed = asyncio.run(act())
    if as_json:
        print_json({"allowed": allowed})
    else:
        out().print("Allowed again." if allowed else "He was not forgotten.")


def _receipt(receipt: ForgetReceipt) -> dict[str, Any]:
    return {
        "id": receipt.id,
        "at": moment(receipt.at),
        "by": receipt.by,
        "reason": receipt.reason,
        "removed": dict(receipt.counts),
        "finishedAt": moment(receipt.finished_at),
        "allowedAgainAt": moment(receipt.allowed_again_at),
    }


def _counts(counts: Mapping[str, int]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, number in sorted(counts.items()):
        table.add_row(escape(name), f"{number:,}")
    out().print(table)
