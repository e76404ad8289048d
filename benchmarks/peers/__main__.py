"""Ask the after-sales questions to ecphoria and to its peers, in one run; print one table.

Every peer runs in a virtual environment of its own, made here from its own list of requirements,
so that the product depends on none of them. All get the same: the files of the generator, the
vectors of ecphoria's own embedder, the user, the moment, and as many memories and entities as the
scorer looks at. Peers filter by user and by validity; a memory that another replaces ends when that
one begins, which they are told at loading.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.after_sales import (
    ENTITIES,
    FILES,
    MEMORIES,
    QUESTIONS,
    Question,
    ask_all,
    read_questions,
    sampled,
    served,
)
from benchmarks.answering import asking_parser, bar, checked_arguments, in_stores
from benchmarks.peers.exchange import MEMORY_VECTORS, QUESTION_VECTORS, Order, rows
from benchmarks.report import plain_table
from benchmarks.scoring import LANGUAGES, Report, choose_lines, percent, score, solved
from benchmarks.stores import LeftOut, open_store_set
from ecphoria.embedding.port import Embedder

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PRODUCT: Final = "ecphoria"
# Name of the peer's module and of its requirements -> whether it wants a Neo4j server, and title.
PEERS: Final[Mapping[str, tuple[bool, str]]] = {
    "vector_cypher": (True, "neo4j-graphrag"),
    "vector_only": (False, "vectors only"),
}
RESULTS: Final = "peers.json"

_EMBEDDED_AT_ONCE: Final = 256
_STAMP: Final = "requirements.made"
_TAIL_LINES: Final = 15


async def _vectors(
    embedder: Embedder, data: Path, questions: Sequence[Question], out: Path, console: Console
) -> None:
    """Embed all memories and these questions as the product does; write both files."""
    texts = [row["text"] for row in rows(data / FILES[-1])]
    found = []
    with bar(console, "embed for the peers", len(texts) + len(questions)) as moved:
        for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
            found += await embedder.embed_passages(texts[start : start + _EMBEDDED_AT_ONCE])
            moved(len(found))
        asked = []
        for question in questions:
            asked.append(await embedder.embed_query(question.text))
            moved(len(found) + len(asked))
    np.save(out / MEMORY_VECTORS, np.array(found, dtype=np.float32))
    np.save(out / QUESTION_VECTORS, np.array(asked, dtype=np.float32))


def _environment(name: str, directory: Path) -> Path:
    """Make the virtual environment of a peer, unless it is there; return its Python.

    Raises:
        LeftOut: When it cannot be made.
    """
    wanted = HERE / f"{name}.txt"
    place = directory / name
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = place / _STAMP
    if stamp.is_file() and stamp.read_text("utf-8") == wanted.read_text("utf-8"):
        return python
    pip = (str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    for command in (
        (sys.executable, "-m", "venv", "--clear", str(place)),
        (*pip, "-r", str(wanted)),
    ):
        done = subprocess.run(command, check=False, stdout=PIPE, stderr=STDOUT)
        if done.returncode:
            msg = f"the environment of {name} cannot be made: {_tail(done.stdout)}"
            raise LeftOut(msg)
    stamp.write_text(wanted.read_text("utf-8"), encoding="utf-8")
    return python


def _tail(said: bytes) -> str:
    return "\n".join(said.decode("utf-8", "replace").splitlines()[-_TAIL_LINES:])


async def _answered_by(
    name: str, python: Path, order: Order, total: int, log: Path, console: Console
) -> None:
    """Let a peer answer in its environment.

    Raises:
        RuntimeError: When it fails; with the end of its log.
    """
    with log.open("wb") as file:
        child = await asyncio.create_subprocess_exec(
            *(str(python), "-m", f"benchmarks.peers.{name}"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=file,
            cwd=ROOT,
        )
    if child.stdin is None or child.stdout is None:  # for the type checker: they were asked for
        raise AssertionError
    try:
        child.stdin.write(order.line().encode())
        child.stdin.close()
        with bar(console, name, total) as moved:
            while line := await child.stdout.readline():
                moved(int(line))
            if await child.wait() == 0:
                moved(total)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        said = await asyncio.to_thread(log.read_bytes)
        msg = f"{name} ended with {child.returncode}: {_tail(said)}"
        raise RuntimeError(msg)


@asynccontextmanager
async def _neo4j(*, wanted: bool, root: Path) -> AsyncIterator[tuple[str, str, str, str]]:
    """Start an empty Neo4j for a peer that wants one."""
    if not wanted:
        yield ("", "", "", "")
        return
    async with open_store_set("servers", root) as stores:
        yield (stores.neo4j_uri, stores.neo4j_user, stores.neo4j_password, stores.neo4j_database)


async def _ask_peer(
    name: str, order: Order, total: int, arguments: argparse.Namespace, root: Path, console: Console
) -> None:
    wants_neo4j, _ = PEERS[name]
    with console.status(f"the environment of {name}"):
        python = await asyncio.to_thread(_environment, name, arguments.envs or root / "envs")
    async with _neo4j(wanted=wants_neo4j, root=root / name) as neo4j:
        log = root / f"{name}.log"
        await _answered_by(name, python, replace(order, neo4j=neo4j), total, log, console)


async def _run(arguments: argparse.Namespace, root: Path, console: Console) -> None:
    out: Path = arguments.answers_dir
    questions = sampled(read_questions(arguments.data), arguments.questions, arguments.seed)
    _make(out)
    asked = out / QUESTIONS
    choose_lines(arguments.data / QUESTIONS, {item.id for item in questions}, asked)
    titles = {PRODUCT: f"{PRODUCT}, {arguments.stores}"}
    left_out: dict[str, str] = {}
    # never kept: a peer's server has to be empty
    with tempfile.TemporaryDirectory(prefix="ecphoria-peers-", ignore_cleanup_errors=True) as own:
        vectors = Path(own) / "vectors"
        _make(vectors)
        async with served(arguments.stores, root, arguments.data, console) as (engine, client):
            await ask_all(client, questions, out / f"{PRODUCT}.jsonl", console, PRODUCT)
            await _vectors(engine.embedder, arguments.data, questions, vectors, console)
        for name in arguments.peers:
            order = Order(
                data=arguments.data,
                questions=asked,
                vectors=vectors,
                answers=out / f"{name}.jsonl",
                memory_limit=MEMORIES,
                entity_limit=ENTITIES,
                gate=arguments.gate,
                neo4j=("", "", "", ""),
            )
            try:
                await _ask_peer(name, order, len(questions), arguments, Path(own), console)
            except LeftOut as error:
                left_out[name] = str(error)
                console.print(f"[yellow]{name} left out[/]: {error}", highlight=False)
                continue
            titles[name] = PEERS[name][1]
    if arguments.scorer is None:
        console.print(f"Answers written to {out}.", highlight=False)
        return
    reports = {name: score(arguments.scorer, asked, out / f"{name}.jsonl") for name in titles}
    gate = "none" if arguments.gate is None else f"{arguments.gate}"
    console.print(
        peers_table(f"{len(questions)} questions, gate of the peers: {gate}", titles, reports)
    )
    figures = {
        "questions": len(questions),
        "gate": arguments.gate,
        "stores": arguments.stores,
        "systems": {
            name: {"title": title, "report": reports[name]} for name, title in titles.items()
        },
        "left_out": left_out,
    }
    (out / RESULTS).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    console.print(f"Answers and {RESULTS} written to {out}.", highlight=False)


def peers_table(title: str, titles: Mapping[str, str], reports: Mapping[str, Report]) -> Table:
    """Return the one table: what each way solved, by type, and at what price.

    Args:
        title: Of the table.
        titles: Of the ways, by name.
        reports: Of the scorer, by name.
    """
    table = plain_table(title, "solved", *titles.values())
    found = [reports[name] for name in titles]

    def add(name: str, values: Iterable[str], *, last: bool = False) -> None:
        table.add_row(name, *values, end_section=last)

    groups = [name for name, each in found[0]["groups"].items() if each and name != "all"]
    for group in groups:
        add(group, (percent(solved(each, group)) for each in found), last=group == groups[-1])
    for language in LANGUAGES:
        name = "all" if language == "all" else f"all, {language}"
        shares = (percent(solved(each, "all", language)) for each in found)
        add(name, shares, last=language == LANGUAGES[-1])
    for part in ("precision", "recall"):
        add(f"FALLBACK {part}", (percent(each["fallback"]["all"][part]) for each in found))
    whole = [each["groups"]["all"]["all"] for each in found]
    add("forbidden came back", (percent(each["forbidden"]) for each in whole))
    for part in ("memories", "entities"):
        add(f"{part} an answer", (f"{each[part]:.1f}" for each in whole))
    return table


def _make(*directories: Path) -> None:
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)


def main() -> int:
    """Run what the command line asks for."""
    parser = asking_parser(
        "python -m benchmarks.peers",
        __doc__,
        "the benchmark's generator",
        stores="servers",
        answers="--answers-dir",
    )
    parser.add_argument(
        "--peers", nargs="+", choices=tuple(PEERS), default=tuple(PEERS), help="default: all"
    )
    parser.add_argument(
        "--gate",
        type=float,
        help="peers answer FALLBACK when the best cosine, -1..1, is less (default: never, "
        "as they have none)",
    )
    parser.add_argument("--envs", type=Path, help="keep the peers' environments here")
    parser.add_argument("--questions", type=int, help="ask so many only (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    arguments = checked_arguments(parser, sys.argv[1:])
    # a peer runs in another directory
    for name in ("data", "answers_dir", "envs"):
        place = getattr(arguments, name)
        setattr(arguments, name, place and place.resolve())
    return in_stores(arguments, _run)


if __name__ == "__main__":
    sys.exit(main())
