"""`ecphoria worker`: background work in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from typing import TYPE_CHECKING, Annotated, Any

import structlog
import typer
from rich.markup import escape

from ecphoria.cli.common import AsJson, err, moment, open_engine, out, with_settings
from ecphoria.errors import EcphoriaError
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ecphoria.engine import Engine
    from ecphoria.lifecycle.worker import RoundReport

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

log = structlog.get_logger(__name__)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(worker)


@with_settings()
def worker(
    settings: Settings,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Do one round and end, e.g. from a timer.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Do background work until Ctrl-C or SIGTERM, and tell what was done.

    It finishes what is pending in the index, erases what has expired, archives
    what nobody uses, and brings conversations that are over to long-term memory.
    `ecphoria serve` does the same; any number may run side by side.
    """
    # asked to stop, which is how it ends
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_work(settings, once=once, as_json=as_json))


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Cancel this task on SIGINT and SIGTERM, so that the stores are closed in good order."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is None:
        yield
        return
    for number in _SIGNALS:
        # Windows has none; there Ctrl-C cancels the whole
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in _SIGNALS:
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)


async def _work(settings: Settings, *, once: bool, as_json: bool) -> None:
    with _stopped_by_signals():
        async with open_engine(settings) as engine:
            name = engine.clock.token()
            if once:
                report = await engine.work_once(name)
                _tell(engine, report, as_json=as_json, always=True)
                if report.reconciled.failed:
                    raise typer.Exit(1)
                return
            err().print(f"Worker [bold]{name[:8]}[/] is at work. Stop it with Ctrl-C.")
            while True:
                await _round(engine, name, as_json=as_json)
                await asyncio.sleep(settings.reconcile_every_s)


async def _round(engine: Engine, name: str, *, as_json: bool) -> None:
    """Do one round; a failure is told, and the next round tries again."""
    try:
        report = await engine.work_once(name)
    except EcphoriaError as error:
        err().print(
            f"{_now(engine)} [bold red]error[/] [bold]{error.code}[/]: {escape(error.message)}",
            soft_wrap=True,
        )
    except Exception:
        # a bug in one round must not end all later ones
        log.exception("background work failed")
    else:
        _tell(engine, report, as_json=as_json)


def _now(engine: Engine) -> str | None:
    return moment(engine.clock.now().replace(microsecond=0))


def _tell(engine: Engine, report: RoundReport, *, as_json: bool, always: bool = False) -> None:
    ageing = report.ageing
    done: dict[str, Any] = {
        "indexed": report.reconciled.done,
        "failed": report.reconciled.failed,
        "expired": 0 if ageing is None else ageing.expired,
        "archived": 0 if ageing is None else ageing.archived,
        "sessions": report.sessions,
        "rebuilt": list(report.refreshed),
    }
    if not always and not any(done.values()):
        return
    if as_json:
        # one line a round, so that a script can read it as it comes
        typer.echo(json.dumps({"at": _now(engine), **done}))
        return
    told = [
        f"{', '.join(value) if isinstance(value, list) else f'{value:,}'} {_TOLD[name]}"
        for name, value in done.items()
        if value
    ]
    out().print(f"{_now(engine)} {escape('; '.join(told) or 'nothing to do')}", soft_wrap=True)


_TOLD = {
    "indexed": "brought up to date in the index",
    "failed": "cannot be indexed (see `ecphoria doctor`)",
    "expired": "expired and erased",
    "archived": "moved to the archive",
    "sessions": "conversations brought to long-term memory",
    "rebuilt": "built anew",
}
