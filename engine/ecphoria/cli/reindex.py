"""`ecphoria reindex`: build the vector index anew from the graph, e.g. for another model."""

from __future__ import annotations

import asyncio

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ecphoria.cli.common import AsJson, err, open_engine, out, print_json, with_settings
from ecphoria.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reindex)


@with_settings()
def reindex(settings: Settings, *, as_json: AsJson = False) -> None:
    """Drop the vector index and build it anew from the graph.

    Needed after a change of the embedding model. Interrupted, `ecphoria reconcile` goes on with
    it. Until it is done, recall misses what is not indexed yet: stop `ecphoria serve` before.
    """
    done, left = asyncio.run(_rebuilt(settings))
    if as_json:
        print_json({"done": done, "left": left})
    else:
        out().print(f"{done:,} memories indexed" + (f", {left:,} could not be." if left else "."))
    if left:
        raise typer.Exit(1)


async def _rebuilt(settings: Settings) -> tuple[int, int]:
    columns = (
        TextColumn("Indexing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    async with open_engine(settings, rebuild_index=True) as engine:
        with Progress(*columns, console=err()) as progress:
            task = progress.add_task("", total=await engine.graph.count_pending())
            done = failed = 0
            async for report in engine.reconcile_in_batches():
                done, failed = done + report.done, failed + report.failed
                progress.update(task, completed=done + failed)
        return done, failed
