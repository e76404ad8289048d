"""`ecphoria doctor`: what is wrong, and how to mend it."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape
from rich.table import Table

from ecphoria.cli.common import AsJson, err, out, print_json, with_settings
from ecphoria.errors import EcphoriaError, StoreLocked
from ecphoria.logs import without_secrets
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ecphoria.embedding.port import Embedder
    from ecphoria.stores.ports import GraphStore, VectorIndex
    from ecphoria_schema.domain import Domain

FREE_ENOUGH: Final = 1024**3
FREE_LEAST: Final = 200 * 1024**2
SENTENCE: Final = "张伟的 iPhone 15 was repaired last week."
EMBEDDED_PACKAGES: Final = ("arcadedb_embedded", "milvus_lite")


class Status(enum.StrEnum):
    """How a check ended."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `advice` says what to do unless it is OK."""

    check: str
    status: Status
    detail: str
    advice: str = ""


_STYLES: Final = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


@with_settings()
def doctor(
    settings: Settings,
    *,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality",
            help="Measure instead how well the embedding model and the domain file fit; no store "
            "is needed.",
        ),
    ] = False,
    checklist: Annotated[
        Path | None,
        typer.Option(help="Of --quality: a checklist of your own.", show_default="the shipped one"),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Of --quality: phrasings in en or zh alone.", show_default="both"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check this installation and say how to mend what is wrong.

    Starts or connects to the stores, and brings the graph's schema up to date as every other
    command does.
    """
    if quality:
        from ecphoria.cli.quality import run_quality  # noqa: PLC0415 - imports drivers and numpy

        run_quality(settings, checklist=checklist, language=language, as_json=as_json)
        return
    for name, given in (("--checklist", checklist), ("--language", language)):
        if given is not None:
            msg = "goes with --quality"
            raise typer.BadParameter(msg, param_hint=name)
    with err().status("Looking around …"):
        findings = asyncio.run(_examine(settings))
    if as_json:
        print_json(
            [
                {
                    "check": each.check,
                    "status": each.status.value,
                    "detail": each.detail,
                    "advice": each.advice,
                }
                for each in findings
            ]
        )
    else:
        _show(findings)
    if any(each.status is Status.FAIL for each in findings):
        raise typer.Exit(1)


def _show(findings: list[Finding]) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    for each in findings:
        advice = f"\n[dim]→[/] {escape(each.advice)}" if each.advice else ""
        mark = f"[{_STYLES[each.status]}]{each.status}[/]"
        table.add_row(mark, each.check, f"{escape(each.detail)}{advice}")
    out().print(table)


async def _examine(settings: Settings) -> list[Finding]:
    findings = [_python(), *_packages(settings), _settings(settings), *_directory(settings)]
    domain, found = _domain(settings)
    findings.append(found)
    async with contextlib.AsyncExitStack() as stack:
        embedder, found = await _embedder(settings, stack)
        findings += [found, *await _reranker(settings), _query_cache(settings)]
        if domain is None:
            return findings
        async for found in _stores(settings, domain, embedder, stack):
            findings.append(found)
    return findings


def _failed(check: str, error: EcphoriaError) -> Finding:
    message = without_secrets(f"{error.code}: {error.message}")
    return Finding(check, Status.FAIL, message, error.remedy)


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Finding("Python", Status.OK, f"{version} at {sys.executable}")


def _packages(settings: Settings) -> list[Finding]:
    if not settings.embedded:
        return []
    missing = [name for name in EMBEDDED_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        advice = "Install ecphoria again with pip, or set the URIs of servers."
        return [Finding("embedded stores", Status.FAIL, f"missing: {', '.join(missing)}", advice)]
    return [Finding("embedded stores", Status.OK, "packages are installed; no Java is needed")]


def _settings(settings: Settings) -> Finding:
    stores = (
        "embedded stores"
        if settings.neo4j_uri is None
        else f"graph {settings.neo4j_uri}, vectors {settings.milvus_uri}"
    )
    given = ", ".join(sorted(f"ECPHORIA_{name.upper()}" for name in settings.model_fields_set))
    detail = without_secrets(f"{stores}; set: {given or 'nothing'}")
    return Finding("settings", Status.OK, detail)


def _directory(settings: Settings) -> list[Finding]:
    path = settings.data_dir
    name = "data directory"
    advice = "Change its permissions, or choose another with --data-dir."
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as probe:
            probe.write(b"x")
        free = shutil.disk_usage(path).free
    except OSError as error:
        return [Finding(name, Status.FAIL, f"{path}: {error.strerror or error}", advice)]
    found = [Finding(name, Status.OK, f"{path} can be written")]
    said = f"{free / 1024**3:.1f} GiB free"
    if free < FREE_LEAST:
        found.append(Finding("free space", Status.FAIL, said, "Free some space, or move it."))
    elif free < FREE_ENOUGH:
        found.append(Finding("free space", Status.WARN, said, "Free some space before it is full."))
    else:
        found.append(Finding("free space", Status.OK, said))
    if os.name == "posix" and path.stat().st_mode & 0o077:
        found.append(
            Finding(name, Status.WARN, "other users may read it", f"Run `chmod 700 {path}`.")
        )
    return found


def _domain(settings: Settings) -> tuple[Domain | None, Finding]:
    from ecphoria.engine import open_domain  # noqa: PLC0415 - imports the drivers

    try:
        domain = open_domain(settings)
    except EcphoriaError as error:
        return None, _failed("domain file", error)
    except OSError as error:
        detail = f"{settings.domain}: {error.strerror or error}"
        return None, Finding("domain file", Status.FAIL, detail, "Correct ECPHORIA_DOMAIN.")
    detail = (
        f"{domain.name}: {len(domain.entities)} entity types, {len(domain.relations)} relations"
    )
    return domain, Finding("domain file", Status.OK, detail)


async def _embedder(
    settings: Settings, stack: contextlib.AsyncExitStack
) -> tuple[Embedder | None, Finding]:
    from ecphoria.embedding.open import open_embedder  # noqa: PLC0415 - imports models

    try:
        embedder = await open_embedder(settings)
        stack.push_async_callback(embedder.close)
        vector = await embedder.embed_query(SENTENCE)
    except EcphoriaError as error:
        return None, _failed("embedding model", error)
    spec = embedder.spec
    detail = f"{spec.model} {spec.version}: a test sentence has {len(vector)} dimensions"
    return embedder, Finding("embedding model", Status.OK, detail)


async def _reranker(settings: Settings) -> list[Finding]:
    from ecphoria.reranking.open import open_reranker  # noqa: PLC0415 - as above

    name = "reranker"
    try:
        reranker = await open_reranker(settings)
        if reranker is None:
            return []
        try:
            # the first call takes longer than any other
            await reranker.scores(SENTENCE, [SENTENCE])
            start = time.perf_counter()
            await reranker.scores(SENTENCE, [SENTENCE] * settings.reranker_top)
            took = time.perf_counter() - start
        finally:
            await reranker.close()
    except EcphoriaError as error:
        return [_failed(name, error)]
    detail = f"{reranker.name}: reads {settings.reranker_top} short texts in {took:.2f} seconds"
    if took < settings.reranker_timeout_s:
        return [Finding(name, Status.OK, detail)]
    advice = (
        "Answers will go without it: choose a smaller model, a faster device, a smaller "
        "ECPHORIA_RERANKER_TOP or a longer ECPHORIA_RERANKER_TIMEOUT_S."
    )
    return [Finding(name, Status.WARN, detail, advice)]


def _query_cache(settings: Settings) -> Finding:
    name = "query cache"
    if not settings.query_cache_size:
        return Finding(name, Status.OK, "off")
    detail = f"up to {settings.query_cache_size:,} vectors; a server's /metrics has its hit rate"
    return Finding(name, Status.OK, detail)


async def _stores(
    settings: Settings, domain: Domain, embedder: Embedder | None, stack: contextlib.AsyncExitStack
) -> AsyncIterator[Finding]:
    from ecphoria.stores.open import open_stores  # noqa: PLC0415 - imports the drivers

    try:
        graph, index = await stack.enter_async_context(open_stores(settings, domain))
    except StoreLocked as error:
        # Most often a running server: nothing is wrong, but nothing more can be seen from here.
        advice = "Ask its /readyz and /metrics, or stop it and run doctor again."
        yield Finding("lock", Status.WARN, error.message, advice)
        return
    except EcphoriaError as error:
        yield _failed("stores", error)
        return
    if settings.embedded:
        yield Finding("lock", Status.OK, "no other process uses the data directory")
    graph_found = await _graph(graph)
    index_found = await _index(index)
    yield graph_found
    yield index_found
    if graph_found.status is Status.OK:
        yield await _migrations(graph)
        yield await _pending(graph)
    if index_found.status is Status.OK and embedder is not None:
        yield await _model_lock(index, embedder)
        yield await _lexical(index)
    yield await _sessions(settings)


async def _sessions(settings: Settings) -> Finding:
    from ecphoria.stores.open_sessions import open_sessions  # noqa: PLC0415 - may import a driver

    try:
        async with open_sessions(settings) as sessions:
            info = await sessions.ping()
    except EcphoriaError as error:
        return _failed("session store", error)
    if settings.redis_url is None:
        detail = "in this process: for several replicas set ECPHORIA_REDIS_URL"
        return Finding("session store", Status.OK, detail)
    return Finding("session store", Status.OK, f"{info.product} {info.version}")


async def _graph(graph: GraphStore) -> Finding:
    try:
        info = await graph.ping()
    except EcphoriaError as error:
        return _failed("graph store", error)
    return Finding("graph store", Status.OK, f"{info.product} {info.version}")


async def _index(index: VectorIndex) -> Finding:
    try:
        info = await index.ping()
    except EcphoriaError as error:
        return _failed("vector store", error)
    return Finding("vector store", Status.OK, f"{info.product} {info.version}")


async def _migrations(graph: GraphStore) -> Finding:
    try:
        applied = await graph.migrate()
    except EcphoriaError as error:
        return _failed("migrations", error)
    return Finding(
        "migrations", Status.OK, f"applied now: {', '.join(applied)}" if applied else "up to date"
    )


async def _pending(graph: GraphStore) -> Finding:
    try:
        count = await graph.count_pending()
    except EcphoriaError as error:
        return _failed("pending rows", error)
    if not count:
        return Finding("pending rows", Status.OK, "the vector index is in line with the graph")
    detail = f"{count:,} memories are not in the vector index yet"
    return Finding("pending rows", Status.WARN, detail, "Run `ecphoria reconcile`.")


async def _model_lock(index: VectorIndex, embedder: Embedder) -> Finding:
    name = "index model"
    try:
        kinds = await index.info()
    except EcphoriaError as error:
        return _failed(name, error)
    spec = embedder.spec
    mine = (spec.model, spec.version, spec.dimension)
    for kind, info in kinds.items():
        theirs = (info.spec.model, info.spec.version, info.spec.dimension)
        if theirs != mine:
            detail = f"the {kind} index was made with {theirs}, the settings say {mine}"
            advice = "Set ECPHORIA_EMBEDDING_* back, or change over with `ecphoria reembed`."
            return Finding(name, Status.FAIL, detail, advice)
    if not kinds:
        return Finding(name, Status.OK, "no collection yet: the first command that writes makes it")
    rows = sum(info.rows for info in kinds.values())
    return Finding(name, Status.OK, f"{len(kinds)} collections, {rows:,} rows, for this model")


async def _lexical(index: VectorIndex) -> Finding:
    name = "lexical search"
    try:
        kinds = await index.info()
        generations = await index.generations() if kinds else ()
    except EcphoriaError as error:
        return _failed(name, error)
    lacking = sorted(kind for kind, info in kinds.items() if not info.lexical)
    if not lacking:
        return Finding(name, Status.OK, "memories are also found by their words")
    if any(item.outdated and item.serving for item in generations):
        detail = f"the index was made without it ({', '.join(lacking)})"
        return Finding(name, Status.WARN, detail, "Run `ecphoria reembed`.")
    detail = "this vector store has none: memories are found by meaning alone"
    return Finding(name, Status.WARN, detail, "Milvus 2.5 and later have it.")
