"""`ecphoria doctor --quality`: how well the model and the domain file fit, as figures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ecphoria.cli.common import err, out, print_json
from ecphoria.quality.checks import LANGUAGES, Measure, Verdict, examine

if TYPE_CHECKING:
    from ecphoria.settings import Settings
    from ecphoria_schema.domain import Language

_STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.WARN: "yellow",
    Verdict.FAIL: "bold red",
    Verdict.SKIP: "dim",
}
# Of the misses of a figure so many are shown to people.
_SHOWN_MISSES: Final = 5


def run_quality(
    settings: Settings, *, checklist: Path | None, language: str | None, as_json: bool
) -> None:
    """Take the figures and print them; exit with 1 when one fails.

    Args:
        settings: Which model and domain.
        checklist: A file; None = the one that comes with ecphoria.
        language: ``en`` or ``zh``; None = both.
        as_json: For scripts.

    Raises:
        typer.BadParameter: When there is no such language.
        InvalidInput: When the checklist breaks a rule.
        ModelUnavailable: When the model cannot be loaded.
    """
    chosen: tuple[Language, ...] = tuple(each for each in LANGUAGES if language in {None, each})
    if not chosen:
        msg = f"{language!r} is none of {', '.join(LANGUAGES)}"
        raise typer.BadParameter(msg, param_hint="--language")
    with err().status("Asking the checklist …"):
        what, measures = asyncio.run(_measures(settings, checklist, chosen))
    if as_json:
        print_json([_json(each) for each in measures])
    else:
        out().print(Text(f"{what}\n", style="dim"), _table(measures), sep="\n")
    if any(each.verdict is Verdict.FAIL for each in measures):
        raise typer.Exit(1)


async def _measures(
    settings: Settings, checklist: Path | None, languages: tuple[Language, ...]
) -> tuple[str, tuple[Measure, ...]]:
    """Return what was measured, and the figures."""
    # Here and not above: they import drivers and models, and `--help` needs none of them.
    from ecphoria.clock import Clock  # noqa: PLC0415
    from ecphoria.embedding.open import open_embedder  # noqa: PLC0415
    from ecphoria.engine import open_domain  # noqa: PLC0415
    from ecphoria.extraction.open import open_chat, open_extractor  # noqa: PLC0415
    from ecphoria.language.lexicon import Lexicon  # noqa: PLC0415
    from ecphoria.quality.checklist import load_checklist  # noqa: PLC0415

    asked = load_checklist(checklist)
    domain = open_domain(settings)
    embedder = await open_embedder(settings)
    chat = open_chat(settings, Clock())
    try:
        async with open_extractor(settings, domain, Lexicon(domain), chat) as extractor:
            found = await examine(asked, embedder, domain, settings, extractor, languages)
            return f"model {embedder.spec.model}, domain {domain.name}", found
    finally:
        if chat is not None:
            await chat.close()
        await embedder.close()


def _json(measure: Measure) -> dict[str, object]:
    return {
        "check": measure.name,
        "value": measure.value,
        "passFrom": measure.limits.good,
        "warnFrom": measure.limits.fair,
        "verdict": measure.verdict.value,
        "detail": measure.detail,
        "advice": measure.advice,
        "misses": list(measure.misses),
    }


def _table(measures: tuple[Measure, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("wanted", justify="right", no_wrap=True)
    table.add_column("", ratio=1)
    for each in measures:
        said = Text(each.detail)
        if each.advice:
            said.append("\n→ ", style="dim").append(each.advice)
        for miss in each.misses[:_SHOWN_MISSES] if each.advice else ():
            said.append(f"\n  {miss}", style="dim")
        if each.advice and len(each.misses) > _SHOWN_MISSES:
            more = len(each.misses) - _SHOWN_MISSES
            said.append(f"\n  and {more} more; --json has all", style="dim")
        table.add_row(
            f"[{_STYLES[each.verdict]}]{each.verdict}[/]",
            escape(each.name),
            "" if each.value is None else f"{each.value:.2f}",
            f"≥ {each.limits.good:.2f}",
            said,
        )
    return table
