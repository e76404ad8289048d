"""Ask thousands of questions of users about other users; nothing of these may come back.

Everything that a recall returns is looked at, texts, entities, relations, paths, trace and session
alike: for marks that stand in another user's data, for ids that are neither his nor in his
question, and for owners.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.answering import bar, in_stores, positive
from benchmarks.figures import machine, percentile
from benchmarks.isolation_data import (
    NOW,
    SESSION,
    Query,
    User,
    World,
    entities,
    ids,
    marks,
    memories,
    queries,
    relations,
    turn,
    world,
)
from benchmarks.stores import STORE_SETS, open_store_set
from ecphoria.engine import Engine
from ecphoria.errors import EcphoriaError, Forbidden
from ecphoria.model import EveryUser, RecallResult, ReceiptStatus, Role, Scope

TENANTS: Final = ("isolation-a", "isolation-b")
AT_ONCE: Final = 8
_BATCH: Final = 200


class LoadFailed(Exception):
    """The engine did not take the data."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a user's answers may hold: of every text that is his or shared, marks and ids."""

    marks: frozenset[str]
    ids: frozenset[str]


@dataclass(slots=True)
class Report:
    """What a run found.

    Attributes:
        actions: How many answers of each action.
        own_asked: Questions of users about their own things alone, at the present.
        own_found: Of these, those whose answer has something of theirs.
        refused: Questions in the name of a user that the key may not name, all refused.
        leaks: What came back that is somebody else's, one line each.
    """

    asked: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    own_asked: int = 0
    own_found: int = 0
    refused: int = 0
    leaks: list[str] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    seconds: float = 0.0


def allowed(found: World) -> dict[tuple[str, str], Allowed]:
    """Return what may come back for each user, by tenant and id."""
    table = {}
    for tenant in {user.tenant for user in found.users}:
        told = list(memories(found, tenant))
        for user in found.of(tenant):
            texts = " ".join(each.text for each in told if each.user_id in {None, user.id})
            own = (
                user.id,
                user.order,
                user.serial,
                user.repair,
                user.ticket,
                user.device,
                user.warranty,
                *(each.id for each in told if each.user_id == user.id and each.id),
            )
            table[tenant, user.id] = Allowed(
                frozenset({user.mark, found.shared[tenant]}), ids(texts) | frozenset(own)
            )
    return table


def leaks(may: Allowed, user: User, question: str, result: RecallResult) -> list[str]:
    """Return what in a result is somebody else's.

    Args:
        may: What may be there.
        user: Who asked.
        question: What; the ids in it may be repeated.
        result: What came back.
    """
    said = repr(result)
    found = [f"mark {mark}" for mark in sorted(marks(said) - may.marks)]
    found += [f"id {id_}" for id_ in sorted(ids(said) - may.ids - ids(question))]
    owned = [
        *((item.memory.key, item.memory.user_id) for item in result.memories),
        *((item.entity.key, item.entity.user_id) for item in result.entities),
        *(
            (each.memory.key, each.memory.user_id)
            for step in result.trace
            for each in step.considered
        ),
    ]
    found += [
        f"{key} of {owner}"
        for key, owner in owned
        if owner not in {None, user.id} or not key.startswith(f"{user.tenant}|")
    ]
    return found


async def load(engine: Engine, found: World) -> None:
    """Keep the data in the engine.

    Raises:
        LoadFailed: When it is not taken.
    """
    for tenant in dict.fromkeys(user.tenant for user in found.users):
        scope = Scope(tenant, "isolation", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
        written = await engine.upsert_entities(
            scope, entities(found, tenant), relations(found, tenant)
        )
        _check(written.entities)
        told = list(memories(found, tenant))
        for start in range(0, len(told), _BATCH):
            _check(await engine.remember(scope, told[start : start + _BATCH]))
        for user in found.of(tenant):
            await engine.remember_turn(scope, user.id, SESSION, "customer", turn(user))


def _check(receipts: Iterable[Any]) -> None:
    for receipt in receipts:
        if receipt.status is ReceiptStatus.REJECTED:
            msg = f"the engine refuses the data: {receipt.code} {receipt.reason}"
            raise LoadFailed(msg)


async def ask_all(
    engine: Engine,
    found: World,
    asked: Iterable[Query],
    *,
    at_once: int = AT_ONCE,
    tick: Callable[[int], None] = lambda _: None,
) -> Report:
    """Ask every question, several at once, and look at all that comes back.

    Args:
        engine: It holds the data.
        found: Who there is.
        asked: The questions.
        at_once: How many at a time.
        tick: Called with how many are done.

    Raises:
        EcphoriaError: When a question that may be asked fails.
    """
    report = Report()
    table = allowed(found)
    waiting = iter(asked)
    start = time.perf_counter()

    async def worker() -> None:
        for query in waiting:
            await _ask(engine, query, table[query.user.tenant, query.user.id], report)
            tick(report.asked)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())
    report.seconds = time.perf_counter() - start
    return report


async def _ask(engine: Engine, query: Query, may: Allowed, report: Report) -> None:
    user, request = query.user, query.request
    users = frozenset({user.id}) if query.one_user else EveryUser.OF_TENANT
    scope = Scope(user.tenant, "isolation", frozenset({Role.AGENT}), users)
    start = time.perf_counter()
    try:
        result = await engine.recall(scope, request)
    except Forbidden:
        report.asked += 1
        if not query.foreign:
            raise
        report.refused += 1
        return
    report.milliseconds.append((time.perf_counter() - start) * 1000)
    report.asked += 1
    report.actions[result.action.value] += 1
    where = f"{user.tenant} {user.id} asks {request.question!r}"
    if query.foreign:
        report.leaks.append(f"{where} for {request.user_id}: not refused")
    report.leaks += [f"{where}: {leak}" for leak in leaks(may, user, request.question, result)]
    if query.own and request.as_of in {None, NOW}:
        report.own_asked += 1
        report.own_found += bool(marks(repr(result)) & may.marks)


def figures(report: Report) -> dict[str, Any]:
    """Return a report as plain values."""
    return {
        "queries": report.asked,
        "leaks": report.leaks,
        "refused": report.refused,
        "actions": dict(report.actions),
        "own_asked": report.own_asked,
        "own_found": report.own_found,
        "seconds": round(report.seconds, 1),
        "per_s": round(report.asked / report.seconds, 1),
        "ms": {
            f"p{part}": round(percentile(report.milliseconds, part), 1) for part in (50, 95, 99)
        },
    }


def _table(name: str, found: dict[str, Any], users: int) -> Table:
    table = Table(
        title=f"Isolation, {name}, 2 x {users} users",
        title_justify="left",
        title_style="bold",
        show_header=False,
    )
    table.add_row("questions", f"{found['queries']:,}")
    leaked = len(found["leaks"])
    table.add_row("results of another user", f"{leaked:,}", style="bold red" if leaked else "bold")
    table.add_row("refused: a user who may not be named", f"{found['refused']:,}")
    for action, count in sorted(found["actions"].items()):
        table.add_row(f"  {action}", f"{count:,}")
    table.add_row("about his own, and found", f"{found['own_found']:,} of {found['own_asked']:,}")
    times = found["ms"]
    table.add_row(
        f"ms, {AT_ONCE} at once: p50, p95, p99", f"{times['p50']}, {times['p95']}, {times['p99']}"
    )
    table.add_row("questions a second", f"{found['per_s']}")
    return table


async def _run(arguments: argparse.Namespace, root: Path, console: Console) -> None:
    found = world(TENANTS, arguments.users)
    async with open_store_set(arguments.stores, root / "stores") as stores:
        settings = stores.settings("isolation", root / "data")
        async with Engine.open(settings) as engine:
            with console.status(f"Loading {len(found.users)} users …"):
                await load(engine, found)
            asked = queries(found, arguments.queries, arguments.seed)
            with bar(console, "ask", arguments.queries) as moved:
                report = await ask_all(engine, found, asked, tick=moved)
    told = figures(report)
    console.print(_table(arguments.stores, told, arguments.users))
    for leak in report.leaks[:20]:
        console.print(leak, style="red", highlight=False, markup=False)
    if arguments.json is not None:
        whole = {
            "stores": arguments.stores,
            "users": 2 * arguments.users,
            "seed": arguments.seed,
            "machine": machine(),
            **told,
        }
        arguments.json.write_text(json.dumps(whole, ensure_ascii=False, indent=2) + "\n", "utf-8")
    arguments.leaked = bool(report.leaks)


def main() -> int:
    """Run what the command line asks for; 1 when something leaked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.isolation", description=__doc__)
    parser.add_argument("--queries", type=positive, default=10_000, help="default: 10000")
    parser.add_argument("--users", type=positive, default=20, help="in each tenant; default: 20")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--stores", choices=STORE_SETS, default="embedded")
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    arguments.keep, arguments.leaked = None, False
    try:
        status = in_stores(arguments, _run)
    except (EcphoriaError, LoadFailed) as error:
        Console(stderr=True).print(f"error: {error}", style="red", highlight=False, markup=False)
        return 2
    return status or int(arguments.leaked)


if __name__ == "__main__":
    sys.exit(main())
