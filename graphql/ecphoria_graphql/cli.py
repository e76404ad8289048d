"""Commands that need the API: `serve`, `demo` and `schema`.

Registered in the entry-point group ``ecphoria.commands``, since the engine's own command line
must not know the API.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from ecphoria.cli.common import err, with_settings
from ecphoria.errors import InvalidInput
from ecphoria.settings import Settings

SDL: Final = Path("graphql/schema.graphql")
OPERATIONS: Final = Path("graphql/operations")
MANIFEST: Final = Path("graphql/ecphoria_graphql/operations.json")
RELEASED: Final = Path("graphql/released.graphql")
ACCEPTED: Final = Path("graphql/accepted_changes.txt")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(demo)
    app.command()(serve)
    group = typer.Typer(help="The GraphQL schema that the domain file makes.", no_args_is_help=True)
    group.command("export")(export)
    group.command("documents")(documents)
    group.command("compare")(compare)
    app.add_typer(group, name="schema")


@with_settings()
def demo(settings: Settings) -> None:
    """Load a sample shop and ask it three questions over HTTP.

    It has stores of its own in the folder `demo` of the data directory, whatever else is set.
    """
    from ecphoria_graphql.demo import run_demo  # noqa: PLC0415 - imports the web framework

    if not asyncio.run(run_demo(settings)):
        raise typer.Exit(1)


@with_settings(quiet=False)
def serve(
    settings: Settings,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port to listen on; 0 = any free one.", show_default="8000"
        ),
    ] = None,
) -> None:
    """Serve the GraphQL API until Ctrl-C."""
    from ecphoria_graphql.app import GRAPHQL_PATH  # noqa: PLC0415 - as above
    from ecphoria_graphql.server import serve as run_server  # noqa: PLC0415 - as above

    def announce(url: str) -> None:
        err().print(f"Serving [bold]{url}{GRAPHQL_PATH}[/], with GraphiQL. Stop with Ctrl-C.")

    run_server(settings, host, port, announce=announce)


@with_settings()
def export(
    settings: Settings,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file.", show_default="standard output"),
    ] = None,
    *,
    check: Annotated[
        bool,
        typer.Option("--check", help=f"Only compare with the file ({SDL}); exit 1 when stale."),
    ] = False,
) -> None:
    """Print the GraphQL schema of the domain file."""
    from ecphoria.engine import open_domain  # noqa: PLC0415 - as above
    from ecphoria_graphql.export import export_sdl  # noqa: PLC0415 - as above

    sdl = export_sdl(open_domain(settings))
    _put(sdl, output, SDL if check else None, "schema export")


@with_settings()
def documents(
    _settings: Settings,
    folder: Annotated[
        Path, typer.Argument(help="Folder of operations, one a file `*.graphql`.")
    ] = OPERATIONS,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file.", show_default="standard output"),
    ] = None,
    *,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help=f"Only compare with the file ({MANIFEST}); exit 1 when stale."
        ),
    ] = False,
) -> None:
    """Print the manifest of trusted documents: each operation of a folder by its hash."""
    from ecphoria_graphql.documents import manifest  # noqa: PLC0415 - as above

    _put(manifest(folder), output, MANIFEST if check else None, "schema documents")


@with_settings()
def compare(
    settings: Settings,
    released: Annotated[
        Path, typer.Argument(help="The schema that clients were made for.")
    ] = RELEASED,
    *,
    accepted: Annotated[
        Path, typer.Option("--accepted", help="File with the changes that are meant, one a line.")
    ] = ACCEPTED,
) -> None:
    """Tell what of the schema would break clients of a released one; exit 1 when anything does."""
    from ecphoria.engine import open_domain  # noqa: PLC0415 - as above
    from ecphoria_graphql.compatibility import breaking_changes, read_accepted  # noqa: PLC0415
    from ecphoria_graphql.export import export_sdl  # noqa: PLC0415 - as above

    try:
        old = released.read_text(encoding="utf-8")
        meant = read_accepted(accepted.read_text(encoding="utf-8")) if accepted.is_file() else ()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read {released} or {accepted}: {error}"
        raise InvalidInput(msg) from error
    found = breaking_changes(old, export_sdl(open_domain(settings)))
    broken = [change for change in found if change not in meant]
    gone = [change for change in meant if change not in found]
    for change in broken:
        err().print(f"[bold red]breaks clients[/]: {escape(change)}", soft_wrap=True)
    for change in gone:
        err().print(f"[bold red]accepted, but there is none[/]: {escape(change)}", soft_wrap=True)
    if broken or gone:
        err().print(f"If it is meant, put the line into {accepted}; take out what is no more.")
        raise typer.Exit(1)
    err().print(f"Nothing breaks clients of {released}.")


def _put(text: str, output: Path | None, checked: Path | None, command: str) -> None:
    """Write or print a text, or compare it with the file that should hold it."""
    try:
        if checked is not None:
            file = output or checked
            if not file.is_file() or file.read_text(encoding="utf-8") != text:
                err().print(
                    f"[bold red]{file} is stale[/]: run `ecphoria {command} --output {file}`."
                )
                raise typer.Exit(1)
            err().print(f"{file} is up to date.")
        elif output is not None:
            output.write_text(text, encoding="utf-8")
        else:
            typer.echo(text, nl=False)
    except OSError as error:
        msg = f"cannot read or write {error.filename}: {error.strerror or error}"
        raise InvalidInput(msg) from error
