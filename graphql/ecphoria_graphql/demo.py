"""The demo: a sample shop, three questions, the whole way through HTTP."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
from rich.markup import escape

from ecphoria.bulk_import import sources
from ecphoria.cli.answer import show_answer
from ecphoria.cli.common import cli_scope, err, open_engine, out
from ecphoria.cli.imports import load
from ecphoria.errors import DataDirectoryUnusable, InternalError, Unauthenticated
from ecphoria.governance.keys import authenticate, create_key
from ecphoria.model import EveryUser, Role
from ecphoria.settings import Settings
from ecphoria_graphql.app import GRAPHQL_PATH, create_app_for
from ecphoria_graphql.server import running_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ecphoria.engine import Engine

TENANT: Final = "demo"
REFERENCE: Final = "2026-11-30T09:00:00Z"
STATE: Final = "demo.json"
TIMEOUT_S: Final = 60.0

# What the demo takes from the user's settings; all else is as shipped, so that its answers are.
_KEPT: Final = frozenset({"log_level", "log_json", "embedded_heap", "store_timeout_s"})


def demo_settings(settings: Settings) -> Settings:
    """Return the settings of the demo: embedded stores of its own, the shipped domain."""
    shipped = {
        name: field.get_default(call_default_factory=True)
        for name, field in Settings.model_fields.items()
        if name not in _KEPT
    }
    return settings.model_copy(update={**shipped, "data_dir": settings.data_dir / "demo"})


async def run_demo(settings: Settings) -> bool:
    """Load the data unless they are there, ask, print, and check.

    Returns:
        Whether every answer is as it should be.
    """
    mine = demo_settings(settings)
    faults: list[str] = []
    async with open_engine(mine) as engine:
        with resources.as_file(resources.files("ecphoria") / "demo_data") as data:
            key = await _prepared(engine, data)
            questions = json.loads((data / "questions.json").read_text(encoding="utf-8"))
        async with running_server(create_app_for(engine), "127.0.0.1", 0) as url:
            err().print(f"[dim]asking over HTTP: {url}{GRAPHQL_PATH}[/]")
            for number, question in enumerate(questions, 1):
                answer = await _ask(url, key, question)
                out().rule(f"[bold]{number}. {escape(question['question'])}", align="left")
                out().print(f"[dim]asked for user {escape(question['user_id'])}[/]\n")
                show_answer(out(), answer)
                faults += [f"question {number}: {fault}" for fault in _faults(question, answer)]
    out().rule()
    for fault in faults:
        err().print(f"[bold red]wrong answer[/]: {escape(fault)}")
    if not faults:
        out().print(f"[bold green]All {len(questions)} answers are as they should be.[/]")
    _say_what_next(mine, key)
    return not faults


async def _prepared(engine: Engine, data: Path) -> str:
    """Load the data and make a key, unless an earlier run did; return the key."""
    file = engine.settings.data_dir / STATE
    state = _State.read(file)
    fingerprint = _fingerprint(data)
    if state is None or state.data != fingerprint:
        _, _, bad = await load(engine, cli_scope(TENANT), sources([str(data)]))
        if bad:
            msg = f"{bad} lines of the demo data were refused"
            raise InternalError(msg)
    key = None if state is None else state.key
    try:
        await authenticate(engine.graph, engine.clock, key)
    except Unauthenticated:
        _, key = await create_key(
            engine.graph,
            engine.clock,
            tenant=TENANT,
            name="demo",
            roles=[Role.AGENT],
            users=EveryUser.OF_TENANT,
        )
    made = _State(fingerprint, key or "")
    if made != state:
        made.write(file)
    return made.key


def _fingerprint(data: Path) -> str:
    found = hashlib.sha256()
    for file in sorted(data.glob("*.jsonl")):
        found.update(file.read_bytes())
    return found.hexdigest()


@dataclass(frozen=True, slots=True)
class _State:
    """What one run of the demo leaves for the next.

    The key opens nothing but the sample data, and whoever can read it can read those anyway.
    """

    data: str
    key: str = field(repr=False)

    @classmethod
    def read(cls, file: Path) -> _State | None:
        """Return what is there, if it can be used."""
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            return cls(str(found["data"]), str(found["key"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, file: Path) -> None:
        """Keep it, readable by the owner only."""
        try:
            file.touch(mode=0o600)
            file.write_text(json.dumps({"data": self.data, "key": self.key}), encoding="utf-8")
        except OSError as error:
            msg = f"cannot write {file}: {error.strerror or error}"
            raise DataDirectoryUnusable(msg) from error


async def _ask(url: str, key: str, question: Mapping[str, Any]) -> dict[str, Any]:
    query = (resources.files("ecphoria_graphql") / "demo.graphql").read_text(encoding="utf-8")
    variables = {
        "question": question["question"],
        "userId": question["user_id"],
        "asOf": REFERENCE,
    }
    # not through a proxy: the server is this very process
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S, trust_env=False) as client:
        response = await client.post(
            GRAPHQL_PATH,
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {key}"},
        )
    body = response.json()
    if body.get("errors"):
        first = body["errors"][0]
        msg = f"the API answered {(first.get('extensions') or {}).get('code')}: {first['message']}"
        raise InternalError(msg)
    answer: dict[str, Any] = body["data"]["recall"]
    return answer


def _faults(question: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with an answer."""
    expected = question["expect"]
    found = {(hit["entity"]["type"], hit["entity"]["id"]) for hit in answer["entityHits"]}
    faults = []
    if answer["action"] != expected["action"]:
        faults.append(f"the action is {answer['action']}, not {expected['action']}")
    for name, wanted in (("entities", True), ("absent_entities", False)):
        for each in expected.get(name, ()):
            if ((each["type"], each["id"]) in found) is not wanted:
                what = "is missing" if wanted else "must not be there"
                faults.append(f"{each['type']} {each['id']} {what}")
    return faults


def _say_what_next(settings: Settings, key: str) -> None:
    command = _command()
    console = out()
    console.print(
        f"\nKeep it serving:  [bold]{escape(command)} serve --data-dir {settings.data_dir}[/]\n"
        f"Click through it: [bold]http://{settings.host}:{settings.port}{GRAPHQL_PATH}[/], with"
        " the header\n"
        f'                  [bold]{{"Authorization": "Bearer {key}"}}[/]',
        soft_wrap=True,
    )


def _command() -> str:
    """Return how the user called this program, as short as it works from here."""
    called = Path(sys.argv[0])
    if shutil.which("ecphoria") and Path(str(shutil.which("ecphoria"))).samefile(called):
        return "ecphoria"
    try:
        return str(called.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(called)
