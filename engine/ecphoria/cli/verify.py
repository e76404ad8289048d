"""`ecphoria verify`: compare the graph with the vector index in full."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ecphoria.cli.common import AsJson, err, open_engine, out, print_json, with_settings
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from ecphoria.lifecycle.verify import VerifyReport

# 1 says that graph and index differ
FAILED = 3
_STAGES = {"graph": "Comparing memories", "index": "Comparing rows"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(verify)


@with_settings()
def verify(
    settings: Settings,
    tenant: Annotated[
        str | None, typer.Option("--tenant", "-t", help="Only this tenant.", show_default="all")
    ] = None,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what differs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the graph with the vector index in full, row by row.

    Exit code 0: they are in line, or everything was mended. 1: they differ. 3: it could not be
    found out.
    """
    report = asyncio.run(_verified(settings, tenant, repair=repair))
    if as_json:
        print_json(_view(report))
    else:
        _show(report, repair=repair)
    if report.left:
        raise typer.Exit(1)


async def _verified(settings: Settings, tenant: str | None, *, repair: bool) -> VerifyReport:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    async with open_engine(settings) as engine:
        with Progress(*columns, console=err()) as bar:
            task = bar.add_task("Comparing", total=None)
            report: VerifyReport | None = None
            async for progress in engine.verify(repair=repair, tenant=tenant):
                report = progress.report
                bar.update(
                    task,
                    description=_STAGES[progress.stage],
                    completed=progress.done,
                    total=progress.total,
                )
    if report is None:  # for the type checker: there is always a last report
        raise AssertionError
    return report


def _view(report: VerifyReport) -> dict[str, Any]:
    view = asdict(report) | {"found": report.found, "left": report.left}
    view["examples"] = [
        {
            "fault": each.fault.value,
            "memoryId": each.memory_id,
            "tenant": each.tenant,
            "fields": list(each.fields),
        }
        for each in report.examples
    ]
    return {_camel(name): value for name, value in view.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _show(report: VerifyReport, *, repair: bool) -> None:
    console = out()
    if not report.found:
        console.print(f"{report.checked:,} memories checked: graph and vector index are in line.")
        return
    table = Table("fault", "rows", "what it means", box=None, header_style="bold")
    for name, count, meaning in (
        ("missing", report.missing, "kept in the graph, but not in the index"),
        ("orphaned", report.orphaned, "in the index, but not kept in the graph"),
        ("stale text", report.stale_text, "the vector was made from another text"),
        ("stale fields", report.stale_fields, "what the search filters by is out of date"),
    ):
        table.add_row(name, f"{count:,}", meaning)
    console.print(table)
    for each in report.examples:
        fields = f" ({', '.join(each.fields)})" if each.fields else ""
        console.print(
            f"  {each.fault.value}: [bold]{escape(each.memory_id)}[/] of "
            f"{escape(each.tenant)}{fields}",
            soft_wrap=True,
        )
    if report.found > len(report.examples):
        console.print(f"  … and {report.found - len(report.examples):,} more")
    console.print(_conclusion(report, repair=repair))


def _conclusion(report: VerifyReport, *, repair: bool) -> str:
    told = f"{report.checked:,} memories checked: "
    if not repair:
        return f"{told}{report.found:,} differences. Mend them with `ecphoria verify --repair`."
    if report.left:
        return (
            f"{told}{report.repaired:,} of {report.found:,} differences were mended. The rest "
            "stays queued; the log above says why."
        )
    return f"{told}all {report.found:,} differences were mended."
