"""`ecphoria browser-kit`: what analysts load into Neo4j Browser, made from the domain file."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer
from rich.markup import escape

from ecphoria.cli.common import AsJson, Tenant, cli_scope, err, print_json, with_settings
from ecphoria.errors import ConfigurationInvalid, InvalidInput, PortInUse
from ecphoria.model import checked_user
from ecphoria.settings import Settings
from ecphoria_schema.browser_kit import GUIDE, QUERIES, ROLE, STYLE, kit_files
from ecphoria_schema.domain import Language

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOST: Final = "127.0.0.1"
PORT: Final = 28080
_TYPES: Final = {".html": "text/html", ".zip": "application/zip"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(browser_kit)


@with_settings()
def browser_kit(
    settings: Settings,
    tenant: Tenant,
    folder: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write to; made when missing.")
    ],
    user: Annotated[str, typer.Option("--user", "-u", help="Whom the queries begin with.")] = "u-1",
    language: Annotated[
        Language, typer.Option(help="Of titles and explanations: en or zh.")
    ] = "en",
    url: Annotated[
        str | None,
        typer.Option(
            help="Where analysts' browsers will find the folder.",
            show_default=f"http://localhost:{PORT}, or the port of --serve",
        ),
    ] = None,
    serve: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            metavar="PORT",
            help="Also serve the folder to browsers on this machine, until Ctrl-C.",
            show_default="not",
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Write queries, style sheet and guide for Neo4j Browser, and say how to load them.

    Needs no store. Everything is made from the domain file.
    """
    # here and not above: it imports the drivers
    from ecphoria.engine import open_domain  # noqa: PLC0415

    files = kit_files(
        open_domain(settings),
        cli_scope(tenant).tenant,
        checked_user(user),
        settings.neo4j_database,
        language,
    )
    base = _checked(url or f"http://localhost:{serve or PORT}")
    conf = browser_settings(base)
    # before anything is written
    listener = None if serve is None else _listener(serve)
    _write(folder, files)
    if as_json:
        print_json({"files": [str(folder / name) for name in files], "settings": conf})
    else:
        _tell(folder, files, conf)
    if listener is not None:
        with listener:
            err().print(f"Serving [bold]{escape(base)}[/]. Stop with Ctrl-C.")
            _serve(kit_app(files), listener)


def browser_settings(base: str) -> dict[str, str]:
    """Return what to set in `neo4j.conf` so that the Browser loads the kit when it connects.

    Args:
        base: URL of the folder.
    """
    commands = (
        "config useReadTransactions: true",
        f"style {base}/{STYLE}",
        f"guide {base}/{GUIDE}",
    )
    return {
        "browser.remote_content_hostname_whitelist": urlsplit(base).hostname or "",
        "browser.post_connect_cmd": "; ".join(commands),
        "client.allow_telemetry": "false",
    }


def kit_app(files: Mapping[str, bytes]) -> Starlette:
    """Return an application that serves the files, and nothing else, to pages of any origin.

    The Browser loads from elsewhere only what allows it, and asks first.
    """
    from starlette.applications import Starlette  # noqa: PLC0415 - a web framework
    from starlette.middleware import Middleware  # noqa: PLC0415 - as above
    from starlette.middleware.cors import CORSMiddleware  # noqa: PLC0415 - as above
    from starlette.responses import Response  # noqa: PLC0415 - as above
    from starlette.routing import Route  # noqa: PLC0415 - as above

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            return Response(status_code=404)
        kind = _TYPES.get(Path(name).suffix, "text/plain")
        return Response(files[name], media_type=kind, headers={"Cache-Control": "no-cache"})

    return Starlette(
        routes=[Route("/{name:path}", answer)],
        middleware=[
            Middleware(
                CORSMiddleware, allow_origins=["*"], allow_methods=["GET"], allow_headers=["*"]
            )
        ],
    )


def _serve(app: Starlette, listener: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415 - as above

    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, server_header=False)).run(
        sockets=[listener]
    )


def _listener(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            msg = f"port {port} on {HOST} is taken by another program"
            raise PortInUse(msg) from error
        msg = f"cannot listen on {HOST} port {port}: {error.strerror}"
        raise ConfigurationInvalid(msg) from error


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or any(char.isspace() or char in ";?#" for char in url)
    ):
        msg = f"{url!r:.80} is no http:// or https:// address of a folder"
        raise InvalidInput(msg, path=("url",))
    return url.rstrip("/")


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    try:
        for name, content in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    except OSError as error:
        msg = f"cannot write to {folder}: {error.strerror or error}"
        raise InvalidInput(msg, path=("out",)) from error


def _tell(folder: Path, files: Mapping[str, bytes], conf: Mapping[str, str]) -> None:
    for name in files:
        typer.echo(folder / name)
    lines = "\n".join(f"  {name}={value}" for name, value in conf.items())
    err().print(
        f"\n[bold]For everybody[/], when the folder is served (here by [bold]--serve[/]): add to "
        f"neo4j.conf and start Neo4j again\n{escape(lines)}\n"
        f"[bold]For yourself[/], without a server: drop {STYLE} and {QUERIES} into the page of the "
        "Browser, and run\n  :config useReadTransactions: true\n"
        f"[bold]Roles[/], in an edition of Neo4j that has them: run {ROLE} in the database system.",
        soft_wrap=True,
    )
