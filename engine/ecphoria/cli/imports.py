"""`ecphoria import`: load files of the exchange format."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from ecphoria.bulk_import import STDIN, import_files, sources
from ecphoria.cli.common import (
    AsJson,
    Tenant,
    cli_scope,
    err,
    open_engine,
    out,
    print_json,
    with_settings,
)
from ecphoria.errors import InvalidInput
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

    from rich.console import Console

    from ecphoria.bulk_import import BadLine
    from ecphoria.bulk_import import Progress as Event
    from ecphoria.engine import Engine
    from ecphoria.model import Scope

SHOWN_BAD: Final = 20


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_)


@with_settings()
def import_(
    settings: Settings,
    paths: Annotated[
        list[str],
        typer.Argument(help="Directories, JSONL files, or - for standard input.", metavar="PATH…"),
    ],
    tenant: Tenant,
    errors: Annotated[
        Path | None, typer.Option("--errors", help="Write all bad lines to this file.")
    ] = None,
    *,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, not where an import was interrupted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Load entities, relations and memories from JSON lines.

    Bad lines are reported and left out. If it is interrupted, run the same command again: it
    goes on where it stopped.
    """
    scope = cli_scope(tenant)
    files = sources(paths)

    async def run() -> tuple[Event | None, list[BadLine], int]:
        async with open_engine(settings) as engine:
            return await load(engine, scope, files, restart=restart, sink=sink)

    with _errors_file(errors) as sink:
        event, first_bad, bad = asyncio.run(run())
    if as_json:
        print_json(_view(event, first_bad, bad))
    else:
        _show(event, first_bad, bad, errors)
    if bad:
        raise typer.Exit(1)


@contextlib.contextmanager
def _errors_file(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror or error}"
        raise InvalidInput(msg) from error
    with file:
        yield file


async def load(
    engine: Engine,
    scope: Scope,
    files: Sequence[str],
    *,
    restart: bool = False,
    sink: TextIO | None = None,
) -> tuple[Event | None, list[BadLine], int]:
    """Import with a progress bar on standard error.

    Args:
        engine: Where to write.
        scope: For whom.
        files: As `sources` returns them.
        restart: Begin anew.
        sink: Where to write every bad line as JSON.

    Returns:
        The last event, the first bad lines and how many there are.
    """
    console = err()
    if STDIN in files:
        console.print("[dim]Standard input cannot be resumed if it is interrupted.[/]")
    first: list[BadLine] = []
    bad = 0
    last: Event | None = None
    with _bar(console, known=STDIN not in files) as bar:
        task = bar.add_task("", total=None, lines="0")
        async for event in import_files(engine, scope, files, restart=restart):
            last = event
            if event.resumed_at is not None:
                name = escape(Path(event.file).name)
                bar.console.print(f"{name}: going on at line {event.resumed_at:,}")
            for each in event.bad:
                bad += 1
                if len(first) < SHOWN_BAD:
                    first.append(each)
                if sink is not None:
                    sink.write(json.dumps(asdict(each), ensure_ascii=False) + "\n")
            bar.update(
                task,
                description=escape(Path(event.file).name),
                completed=event.lines if event.total is None else event.done,
                total=event.total,
                lines=f"{event.lines:,}",
            )
    return last, first, bad


def _bar(console: Console, *, known: bool) -> Progress:
    columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}")]
    columns += [BarColumn(), TaskProgressColumn()] if known else [MofNCompleteColumn()]
    columns.append(TextColumn("{task.fields[lines]} lines"))
    if known:
        columns.append(TimeRemainingColumn())
    return Progress(*columns, console=console, transient=not sys.stderr.isatty())


def _view(event: Event | None, first_bad: list[BadLine], bad: int) -> dict[str, Any]:
    return {
        "lines": 0 if event is None else event.lines,
        "tally": {} if event is None else event.tally,
        "unindexed": 0 if event is None else event.unindexed,
        "bad": bad,
        "firstBad": [asdict(each) for each in first_bad],
    }


def _show(event: Event | None, first_bad: list[BadLine], bad: int, errors: Path | None) -> None:
    console = out()
    for shape, outcomes in ({} if event is None else event.tally).items():
        if outcomes:
            said = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()))
            console.print(f"[bold]{_PLURAL[shape]}[/]: {said}")
    if event is not None and event.unindexed:
        console.print(
            f"{event.unindexed:,} memories are kept, but vector search finds them only after "
            "[bold]ecphoria reconcile[/]."
        )
    if not bad:
        return
    console = err()
    console.print(f"[bold red]{bad:,} bad lines[/] were left out:")
    for each in first_bad:
        console.print(
            f"  {escape(Path(each.file).name)}:{each.line} [bold]{escape(each.code)}[/] "
            f"{escape(each.reason)}",
            soft_wrap=True,
        )
    if errors is not None:
        console.print(f"All of them are in {escape(str(errors))}.", soft_wrap=True)
    elif bad > len(first_bad):
        more = bad - len(first_bad)
        console.print(f"… and {more:,} more; --errors FILE writes all of them.")


_PLURAL: Final = {"entity": "entities", "relation": "relations", "memory": "memories"}
