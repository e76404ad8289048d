"""What the commands share: options, output, the scope, the open engine."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.table import Column

from ecphoria.logs import Level, configure_logging
from ecphoria.model import EveryUser, Role, Scope
from ecphoria.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ecphoria.engine import Engine

P = ParamSpec("P")
R = TypeVar("R")

# Read by `main` straight from the arguments, since an error may come before they are parsed.
DEBUG: Final = "--debug"

Tenant = Annotated[
    str,
    typer.Option(
        "--tenant", "-t", envvar="ECPHORIA_TENANT", help="Tenant to act for.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]

_DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Where embedded stores and import progress live.",
        show_default="ECPHORIA_DATA_DIR, or the platform's place",
        rich_help_panel="Common options",
    ),
]
_LogLevel = Annotated[
    Level | None,
    typer.Option(
        "--log-level",
        help="Least severe level that is logged.",
        show_default="ECPHORIA_LOG_LEVEL, or warning",
        rich_help_panel="Common options",
    ),
]
_Debug = Annotated[
    bool,
    typer.Option(DEBUG, help="Show tracebacks.", rich_help_panel="Common options"),
]


def with_settings(
    *, quiet: bool = True
) -> Callable[[Callable[Concatenate[Settings, P], R]], Callable[..., R]]:
    """Give a command the common options; it gets the settings they make as first argument.

    Args:
        quiet: Log warnings and worse only, unless the user says otherwise.
    """

    def decorate(command: Callable[Concatenate[Settings, P], R]) -> Callable[..., R]:
        @functools.wraps(command)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            kwargs.pop("debug")
            settings = load_settings(
                data_dir=kwargs.pop("data_dir"), log_level=kwargs.pop("log_level")
            )
            said = quiet and "log_level" not in settings.model_fields_set
            configure_logging("warning" if said else settings.log_level, as_json=settings.log_json)
            return command(settings, *args, **kwargs)

        common = {"data_dir": _DataDir, "log_level": _LogLevel, "debug": _Debug}
        signature = inspect.signature(command, eval_str=True)
        _, *own = signature.parameters.values()
        extra = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if name == "debug" else None,
                annotation=annotation,
            )
            for name, annotation in common.items()
        ]
        # Typer reads the command's options from these two.
        vars(wrapper)["__signature__"] = signature.replace(parameters=[*own, *extra])
        wrapper.__annotations__ = {
            **{parameter.name: parameter.annotation for parameter in (*own, *extra)},
            "return": signature.return_annotation,
        }
        del vars(wrapper)["__wrapped__"]
        return wrapper

    return decorate


def out() -> Console:
    """Return the console for results: what a script would read."""
    return Console(highlight=False, soft_wrap=False)


def err() -> Console:
    """Return the console for everything else: progress, hints, errors."""
    return Console(stderr=True, highlight=False)


def id_column(title: str = "id") -> Column:
    """Return a table's column of ids: to be copied, so never cut while another can be."""
    return Column(title, no_wrap=True)


def print_json(value: object) -> None:
    """Print JSON to standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def cli_scope(tenant: str) -> Scope:
    """Return the scope of the command line: everything within one named tenant.

    Whoever can run commands on this machine has the stores' files or credentials anyway.
    """
    return Scope(tenant, "cli", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)


@contextlib.asynccontextmanager
async def open_engine(settings: Settings, *, any_model: bool = False) -> AsyncIterator[Engine]:
    """Open the engine, telling whoever watches while embedded stores start."""
    # Here and not above: the drivers take seconds to import, and `--help` needs none of them.
    from ecphoria.engine import Engine  # noqa: PLC0415

    async with contextlib.AsyncExitStack() as stack:
        what = "Starting the embedded stores …" if settings.embedded else "Connecting …"
        with err().status(what):
            engine = await stack.enter_async_context(Engine.open(settings, any_model=any_model))
        yield engine


def moment(value: Any) -> str | None:  # noqa: ANN401 - a datetime or nothing
    """Return a time as in the exchange format."""
    return None if value is None else value.isoformat().replace("+00:00", "Z")
