"""What a run found, as tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from benchmarks import raw_writes, recall_overhead


def plain_table(title: str, *columns: str) -> Table:
    """Return an empty table: names on the left, figures on the right."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(columns[0])
    for column in columns[1:]:
        table.add_column(column, justify="right")
    return table


def recall_table(name: str, found: Mapping[str, Any]) -> Table:
    """Return the table of recall on a store set."""
    table = plain_table(
        f"Recall, {name}, {found['questions']} questions",
        "",
        "p50 ms",
        "p95 ms",
        "ratio p50",
        "ratio p95",
    )
    for row, times in found["times"].items():
        ratio = found["ratios"].get(row)
        table.add_row(
            row,
            f"{times['p50_ms']:.1f}",
            f"{times['p95_ms']:.1f}",
            f"{ratio['p50']:.2f}" if ratio else "",
            f"{ratio['of_p95']:.2f}" if ratio else "",
            style="bold" if ratio else None,
            end_section=row in {recall_overhead.RAW, recall_overhead.GRAPHQL},
        )
    return table


def stages_table(name: str, found: Mapping[str, Any]) -> Table:
    """Return the table of the engine's own stages."""
    table = plain_table(f"Engine.recall, {name}", "", "p50 ms", "p95 ms")
    for row, times in found["stages"].items():
        table.add_row(row, f"{times['p50_ms']:.1f}", f"{times['p95_ms']:.1f}")
    return table


def writing_table(name: str, way: str, found: Mapping[str, Any]) -> Table:
    """Return the table of writing in some way on a store set."""
    written = found["written"]
    table = plain_table(
        f"{way}, {name}, {found['rounds']} x {written['memories']:,} memories, "
        f"{written['links']:,} links, {written['claims']:,} claims",
        "",
        "seconds",
        "rows/s",
        "ratio p50",
        "ratio of totals",
    )
    for row, seconds in found["seconds"].items():
        rate = found["rows_per_s"].get(row)
        table.add_row(
            row,
            f"{seconds:.2f}",
            f"{rate:,.0f}" if rate else "",
            f"{found['ratio']['p50']:.2f}" if row == way else "",
            f"{found['ratio']['of_totals']:.2f}" if row == way else "",
            style="bold" if row == way else None,
            end_section=row == raw_writes.RAW,
        )
    return table
