"""`ecphoria forget`: erase memories for good, after a look at what would go."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ecphoria.cli.common import (
    AsJson,
    Tenant,
    cli_scope,
    err,
    id_column,
    open_engine,
    out,
    print_json,
    with_settings,
)
from ecphoria.cli.memory_view import shortened
from ecphoria.settings import Settings
from ecphoria_schema.domain import KINDS, Kind

if TYPE_CHECKING:
    from ecphoria.engine import Engine
    from ecphoria.lifecycle.forget import ForgetReport, Forgettable
    from ecphoria.model import Scope

SHOWN: Final = 20
_DAYS: Final = {"h": 1 / 24, "d": 1.0, "w": 7.0, "y": 365.0}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([hdwy])")


def _age(text: str) -> float:
    """Read an age such as ``180d``; return days."""
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        msg = f"{text!r} is no age: write e.g. 36h, 180d, 26w or 2y"
        raise typer.BadParameter(msg)
    return float(found[1]) * _DAYS[found[2]]


def _kind(text: str) -> Kind:
    for kind in KINDS:
        if text.lower() == kind:
            return kind
    msg = f"{text!r} is none of {', '.join(KINDS)}"
    raise typer.BadParameter(msg)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(forget)


@with_settings()
def forget(  # noqa: PLR0913, PLR0917 - an option each
    settings: Settings,
    tenant: Tenant,
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of a user's memories; or say which by a rule.", metavar="ID"),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="User whose memories are to go.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", "-r", help="Why, in a sentence; needed with ids.")
    ] = None,
    older_than: Annotated[
        float | None,
        typer.Option(
            parser=_age, metavar="AGE", help="Rule: happened longer ago, e.g. 180d, 26w, 2y."
        ),
    ] = None,
    importance_below: Annotated[
        float | None, typer.Option(min=0, max=1, help="Rule: less important than this.")
    ] = None,
    confidence_below: Annotated[
        float | None, typer.Option(min=0, max=1, help="Rule: overall confidence below this.")
    ] = None,
    kind: Annotated[
        list[Any] | None,
        typer.Option(
            parser=_kind, metavar="|".join(KINDS), help="Rule: of this kind; may be repeated."
        ),
    ] = None,
    *,
    every_user: Annotated[
        bool, typer.Option("--every-user", help="Rule: of every user, and shared knowledge.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes/--dry-run", help="Erase it, or only show what would go.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Erase memories for good: by id, or those that meet every criterion of a rule.

    Without --yes nothing is erased: what would go is listed, with the reason.
    """
    dry_run = not yes
    criteria = (older_than, importance_below, confidence_below)
    ruled = any(each is not None for each in criteria) or bool(kind) or every_user
    if ids:
        _check_ids(user, reason, ruled=ruled, dry_run=dry_run)
    elif all(each is None for each in criteria):
        msg = "name ids, or a rule: --older-than, --importance-below or --confidence-below"
        raise typer.BadParameter(msg)
    elif every_user == (user is not None):
        msg = "say whose memories with --user, or --every-user"
        raise typer.BadParameter(msg, param_hint="--user")
    scope = cli_scope(tenant)

    async def act() -> ForgetReport:
        # here and not above: it takes the stores' drivers along, and `--help` needs none of them
        from ecphoria.lifecycle.forget import ForgetRule  # noqa: PLC0415

        async with open_engine(settings) as engine:
            with err().status("Looking …" if dry_run else "Forgetting …"):
                if ids:
                    return await _by_id(engine, scope, user or "", ids, reason, dry_run=dry_run)
                rule = ForgetRule(
                    user, older_than, importance_below, confidence_below, tuple(kind or ()) or None
                )
                return await engine.forget_by_rule(scope, rule, dry_run=dry_run)

    report = asyncio.run(act())
    if as_json:
        print_json(_view(report, dry_run=dry_run))
    else:
        _show(report, dry_run=dry_run)
    if report.unknown:
        raise typer.Exit(1)


def _check_ids(user: str | None, reason: str | None, *, ruled: bool, dry_run: bool) -> None:
    if ruled:
        msg = "name either ids or a rule"
        raise typer.BadParameter(msg)
    if user is None:
        msg = "say whose memories with --user"
        raise typer.BadParameter(msg, param_hint="--user")
    if reason is None and not dry_run:
        msg = "say why"
        raise typer.BadParameter(msg, param_hint="--reason")


async def _by_id(
    engine: Engine, scope: Scope, user: str, ids: list[str], reason: str | None, *, dry_run: bool
) -> ForgetReport:
    from ecphoria.lifecycle.forget import ForgetReport, Forgettable  # noqa: PLC0415 - as above

    if not dry_run:
        return await engine.forget(scope, user, ids, reason or "")
    found = await engine.memories(scope, user, ids)
    wanted = dict.fromkeys(ids)
    # shared knowledge is shown to a user, but is not the user's own
    own = [found[id_] for id_ in wanted if id_ in found and found[id_].user_id == user]
    there = {memory.id for memory in own}
    return ForgetReport(
        tuple(
            Forgettable(each.id, each.user_id, each.kind, each.text, reason or "named by id")
            for each in own
        ),
        0,
        tuple(id_ for id_ in wanted if id_ not in there),
    )


def _view(report: ForgetReport, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dryRun": dry_run,
        "found": len(report.items),
        "forgotten": report.forgotten,
        "items": [_item(item) for item in report.items],
        "unknown": list(report.unknown),
    }


def _item(item: Forgettable) -> dict[str, Any]:
    return {
        "id": item.id,
        "userId": item.user_id,
        "kind": item.kind.upper(),
        "text": item.text,
        "reason": item.reason,
    }


def _show(report: ForgetReport, *, dry_run: bool) -> None:
    console = out()
    if report.items:
        table = Table(id_column(), "user", "kind", "why", "text", box=None, pad_edge=False)
        for item in report.items[:SHOWN]:
            cells = (item.id, item.user_id or "shared", item.kind, item.reason)
            table.add_row(*(Text(cell) for cell in cells), Text(shortened(item.text), style="dim"))
        console.print(table)
    more = len(report.items) - SHOWN
    if more > 0:
        console.print(f"… and {more:,} more; --json lists all of them.")
    for id_ in report.unknown:
        err().print(f"[yellow]{escape(id_)}[/] is not there, or not this user's own.")
    if dry_run and report.items:
        err().print(
            f"[bold]{_memories(len(report.items))} would go.[/] Nothing is erased yet: say --yes."
        )
    elif dry_run:
        err().print("Nothing would go.")
    else:
        err().print(f"[bold]{_memories(report.forgotten)} erased for good.[/]")


def _memories(count: int) -> str:
    return f"{count:,} {'memory' if count == 1 else 'memories'}"
