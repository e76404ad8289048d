"""`ecphoria encryption`: master keys, and what they wrap."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ecphoria.cli.common import AsJson, err, id_column, open_engine, out, print_json, with_settings
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from ecphoria.governance.data_keys import EncryptionStatus


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        help="See and rotate the keys that sensitive values are encrypted under.",
        no_args_is_help=True,
    )
    group.command("status")(status)
    group.command("rotate")(rotate)
    app.add_typer(group, name="encryption")


@with_settings()
def status(settings: Settings, *, as_json: AsJson = False) -> None:
    """Show which master keys are in use, and for how many data keys; never a key."""

    async def read() -> EncryptionStatus:
        async with open_engine(settings) as engine:
            return await engine.encryption_status()

    _print(asyncio.run(read()), as_json=as_json)


@with_settings()
def rotate(
    settings: Settings,
    *,
    new_key: Annotated[
        bool,
        typer.Option("--new-key", help="Make a new master key first; of embedded stores only."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Wrap every data key by the current master key; interrupted, it goes on when called again.

    What is encrypted stays as it is: only the keys to it are wrapped anew. The old master key can
    be taken away when nothing is wrapped by it any more.
    """
    if new_key:
        # not above: the cipher takes a while to import, and `--help` needs none
        from ecphoria.governance.key_ring import add_own_key  # noqa: PLC0415

        made = add_own_key(settings)
        err().print(f"Made the master key [bold]{escape(made)}[/].")

    async def run() -> EncryptionStatus:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        async with open_engine(settings) as engine:
            with Progress(*columns, console=err()) as bar:
                task = bar.add_task("Wrapping data keys", total=None)
                async for progress in engine.rotate_master_key():
                    bar.update(task, completed=progress.done, total=progress.total)
            return await engine.encryption_status()

    _print(asyncio.run(run()), as_json=as_json)


def _print(found: EncryptionStatus, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "current": found.current,
                "dataKeys": dict(found.wrapped),
                "destroyed": found.destroyed,
            }
        )
        return
    if found.current is None:
        err().print(
            "No master key is set: nothing sensitive can be kept. Set ECPHORIA_MASTER_KEYS or "
            "ECPHORIA_MASTER_KEY_FILE.",
            soft_wrap=True,
        )
        return
    table = Table(id_column("master key"), "data keys", "", box=None, pad_edge=False)
    for id_ in dict.fromkeys([found.current, *sorted(found.wrapped)]):
        note = "current" if id_ == found.current else "run `ecphoria encryption rotate`"
        table.add_row(escape(id_), f"{found.wrapped.get(id_, 0):,}", note)
    out().print(table)
    if found.destroyed:
        out().print(f"{found.destroyed:,} data keys of forgotten users were destroyed.")
