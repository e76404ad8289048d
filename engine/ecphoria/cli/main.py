"""The command line: `ecphoria`."""

from __future__ import annotations

import gc
import sys
from importlib.metadata import entry_points, version
from typing import TYPE_CHECKING, Final

import typer
from rich.markup import escape

from ecphoria.cli import (
    audit,
    browser_kit,
    doctor,
    encryption,
    feedback,
    forget,
    imports,
    keys,
    memory,
    recall,
    reconcile,
    reembed,
    users,
    verify,
    worker,
)
from ecphoria.cli.common import DEBUG, AsJson, err, print_json
from ecphoria.errors import EcphoriaError
from ecphoria.logs import without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

# Packages that build on the engine add their commands here; the engine does not know them.
COMMANDS: Final = "ecphoria.commands"

HELP: Final = """\
A memory for service agents: a question goes in, a joined and trusted context comes out.

Try [bold]ecphoria demo[/bold] first. Then: [bold]import[/bold] your data, make a key with
[bold]keys create[/bold], and [bold]serve[/bold] the GraphQL API.
"""


def build_app() -> typer.Typer:
    """Return the application with every command, those of other packages included."""
    app = typer.Typer(
        name="ecphoria",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for point in sorted(entry_points(group=COMMANDS), key=lambda point: point.name):
        point.load()(app)
    imports.register(app)
    recall.register(app)
    memory.register(app)
    feedback.register(app)
    forget.register(app)
    users.register(app)
    audit.register(app)
    keys.register(app)
    encryption.register(app)
    doctor.register(app)
    reconcile.register(app)
    reembed.register(app)
    verify.register(app)
    worker.register(app)
    browser_kit.register(app)
    app.command("version")(print_version)
    return app


def print_version(*, as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"version": version("ecphoria")})
    else:
        typer.echo(f"ecphoria {version('ecphoria')}")


def main(arguments: Sequence[str]) -> int:
    """Run one command; return the exit code: 1 for errors, 2 for wrong usage, 130 for Ctrl-C."""
    failed = verify.FAILED if "verify" in arguments[:1] else 1
    try:
        build_app()(args=list(arguments), prog_name="ecphoria")
    except SystemExit as end:  # typer's way to end, usage errors included
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except EcphoriaError as error:
        if DEBUG in arguments:
            err().print_exception(word_wrap=True)
        show_error(error)
        return failed
    except Exception as error:  # the last resort: a sentence, no traceback
        if DEBUG in arguments:
            raise
        name = type(error).__name__
        _print_error("INTERNAL_ERROR", f"{name}: {error}", "Run it again with --debug; report it.")
        return failed
    return 0


def show_error(error: EcphoriaError) -> None:
    """Print code, sentence and what to do."""
    where = ".".join(str(part) for part in error.path)
    _print_error(error.code, f"{where}: {error.message}" if where else error.message, error.remedy)


def _print_error(code: str, message: str, remedy: str) -> None:
    console = err()
    text = escape(without_secrets(message))
    console.print(f"[bold red]error[/] [bold]{code}[/]: {text}", soft_wrap=True)
    console.print(f"  [dim]→[/] {escape(remedy)}", soft_wrap=True)


def run() -> None:
    """Run the command line of this process."""
    code = main(sys.argv[1:])
    # the process ends: looking for garbage in all that was imported would take a fifth of a second
    gc.freeze()
    sys.exit(code)
