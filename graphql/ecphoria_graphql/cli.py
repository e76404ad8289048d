"""Commands that need the API: `serve`, `demo` and `schema`.

Registered in the entry-point group ``ecphoria.commands``, since the engine's own command line
must not know the API.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Final

import typer

from ecphoria.cli.common import err, with_settings
from ecphoria.errors import InvalidInput
from ecphoria.settings import Settings

SDL: Final = Path("graphql/schema.graphql")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(demo)
    app.command()(serve)
    group = typer.Typer(help="The GraphQL schema that the domain file makes.", no_args_is_help=True)
    group.command("export")(export)
    # A group of one command would otherwise lose its name.
    group.callback()(lambda: None)
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
    try:
        if check:
            file = output or SDL
            if not file.is_file() or file.read_text(encoding="utf-8") != sdl:
                err().print(
                    f"[bold red]{file} is stale[/]: run `ecphoria schema export --output {file}`."
                )
                raise typer.Exit(1)
            err().print(f"{file} is up to date.")
        elif output is not None:
            output.write_text(sdl, encoding="utf-8")
        else:
            typer.echo(sdl, nl=False)
    except OSError as error:
        msg = f"cannot read or write {error.filename}: {error.strerror or error}"
        raise InvalidInput(msg) from error
