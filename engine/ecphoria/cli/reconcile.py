"""`ecphoria reconcile`: finish what a crash or an outage left between the two stores."""

from __future__ import annotations

import asyncio

import typer

from ecphoria.cli.common import AsJson, err, open_engine, out, print_json, with_settings
from ecphoria.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reconcile)


@with_settings()
def reconcile(settings: Settings, *, as_json: AsJson = False) -> None:
    """Bring the vector index in line with the graph."""
    done, left = asyncio.run(_until_done(settings))
    if as_json:
        print_json({"done": done, "left": left})
    elif left:
        out().print(f"{done:,} memories done; {left:,} cannot be indexed: see `ecphoria doctor`.")
    else:
        out().print(f"{done:,} memories done, nothing left." if done else "Nothing to do.")
    if left:
        raise typer.Exit(1)


async def _until_done(settings: Settings) -> tuple[int, int]:
    """Reconcile until a round mends nothing more; return how many were done and are left."""
    done = 0
    async with open_engine(settings) as engine:
        with err().status("Reconciling …"):
            while True:
                report = await engine.reconcile()
                done += report.done
                if not report.done:
                    return done, report.failed
