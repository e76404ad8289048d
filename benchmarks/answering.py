"""What the benchmarks share that ask questions: command line, progress, stores, scorer."""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.stores import STORE_SETS, LeftOut
from ecphoria.engine import Engine
from ecphoria.governance.keys import create_key
from ecphoria.logs import configure_logging
from ecphoria.model import EveryUser, Scope
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.server import running_server

Work: TypeAlias = Callable[[argparse.Namespace, Path, Console], Coroutine[Any, Any, None]]

_HTTP_TIMEOUT_S: Final = 120.0


class BadData(Exception):
    """What is read is not what the benchmark's own program writes."""


def progress_on(console: Console) -> Progress:
    """Return bars that count."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


@contextmanager
def bar(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar; yield what moves it to so many."""
    with progress_on(console) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def positive(text: str) -> int:
    """Return a number of at least 1, for `argparse`."""
    number = int(text)
    if number < 1:
        msg = f"{number} is less than 1"
        raise argparse.ArgumentTypeError(msg)
    return number


def asking_parser(
    prog: str,
    description: str | None,
    writer: str,
    *,
    stores: str = STORE_SETS[0],
    answers: str = "--answers",
) -> argparse.ArgumentParser:
    """Return a command line for a benchmark whose answers a scorer reads.

    Args:
        prog: How it is called.
        description: What it does.
        writer: The benchmark's program that writes the data.
        stores: Store set that is used unless another is named.
        answers: The option that says where the answers go: `--answers` or `--answers-dir`.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    where = "directory" if answers.endswith("-dir") else "file"
    parser.add_argument("--data", type=Path, required=True, help=f"directory that {writer} wrote")
    parser.add_argument(answers, type=Path, required=True, help=f"{where} for the answers")
    parser.add_argument("--stores", choices=STORE_SETS, default=stores, help=f"default: {stores}")
    parser.add_argument(
        "--keep",
        type=Path,
        help="directory to keep the loaded embedded stores in; the next run uses them again",
    )
    parser.add_argument(
        "--scorer", type=Path, help="score.py of the benchmark, to be run on the answers"
    )
    return parser


def asked(parser: argparse.ArgumentParser, given: list[str], questions: str, work: Work) -> int:
    """Ask, and run the scorer if there is one; return the exit status.

    Args:
        parser: From `asking_parser`.
        given: The command line's arguments.
        questions: Name of the file of questions that the scorer reads.
        work: Asks; gets the arguments, the directory for the stores, and the console.
    """
    arguments = checked_arguments(parser, given)
    status = in_stores(arguments, work)
    if status or arguments.scorer is None:
        return status
    command = [sys.executable, arguments.scorer, arguments.data / questions, arguments.answers]
    # the reader's own scorer, on files he named
    return subprocess.run(command, check=False).returncode


def checked_arguments(parser: argparse.ArgumentParser, given: list[str]) -> argparse.Namespace:
    """Return what was given on the command line of `asking_parser`; leave on a contradiction."""
    arguments = parser.parse_args(given)
    if arguments.keep is not None and arguments.stores != "embedded":
        parser.error("--keep: only embedded stores can be kept")
    return arguments


def in_stores(arguments: argparse.Namespace, work: Work) -> int:
    """Do the work in a directory that is kept or removed; return the exit status."""
    configure_logging("warning")
    console = Console()
    with tempfile.TemporaryDirectory(
        prefix="ecphoria-bench-", ignore_cleanup_errors=True
    ) as passing:
        try:
            asyncio.run(work(arguments, arguments.keep or Path(passing), console))
        except (BadData, LeftOut) as error:
            console.print(f"[red]error[/]: {error}", highlight=False)
            return 2
    return 0


@asynccontextmanager
async def graphql_client(engine: Engine, scope: Scope) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the engine on a port of this process; yield a client with a key of the tenant."""
    secret = await tenant_key(engine, scope)
    async with (
        running_server(create_app_for(engine)) as url,
        http_client(url, secret) as client,
    ):
        yield client


async def tenant_key(engine: Engine, scope: Scope) -> str:
    """Make a key of the tenant; return its secret."""
    _, secret = await create_key(
        engine.graph,
        engine.clock,
        tenant=scope.tenant,
        name="benchmark",
        roles=scope.roles,
        users=EveryUser.OF_TENANT,
    )
    return secret


def http_client(url: str, secret: str) -> httpx.AsyncClient:
    """Return a client of a server, with a key."""
    return httpx.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {secret}"},
        timeout=_HTTP_TIMEOUT_S,
        trust_env=False,
    )
