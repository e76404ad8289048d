"""The command line: putting memories right, forgetting them, and working in the background."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from ecphoria.engine import Engine

    from .conftest import Ecphoria

# options, output and exit codes: the verbs behind them are tried on each store set without it
pytestmark = pytest.mark.one_store_set

PATIENCE_S = 120


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def status(id_: str, value: str, days: float, **more: object) -> dict[str, Any]:
    """Return that an order has a status since so many days."""
    return {
        "id": id_,
        "user_id": "u-1",
        "source": "crm",
        "occurred_at": days_ago(days),
        "facts": [
            {
                "entity": {"type": "Order", "id": "882301"},
                "attribute": "order.status",
                "value": value,
            }
        ],
        **more,
    }


ORDER = [
    {"type": "User", "id": "u-1", "props": {"name": "张伟"}},
    {"type": "Order", "id": "882301", "props": {"status": "paid"}},
    {
        "type": "PLACED",
        "from": {"type": "User", "id": "u-1"},
        "to": {"type": "Order", "id": "882301"},
    },
]


def load(ecphoria: Ecphoria, tenant: str, *lines: dict[str, Any]) -> dict[str, Any]:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = ecphoria("import", "-", "-t", tenant, "--json", stdin=text.encode())
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


def left(ecphoria: Ecphoria, tenant: str) -> set[str]:
    """Return the ids of all memories of a tenant: each is older than nothing."""
    listed = ecphoria("forget", "-t", tenant, "--older-than", "0h", "--every-user", "--json")
    assert listed.code == 0, listed.err
    return {item["id"] for item in listed.json["items"]}


# --- look and put right --------------------------------------------------------------------


def test_memories_are_listed_page_by_page(ecphoria: Ecphoria, tenant: str) -> None:
    said = [
        {"id": f"m-{number}", "user_id": "u-1", "text": f"Parcel number {number} came late.",
         "source": source, "occurred_at": days_ago(number)}
        for number, source in enumerate(("crm", "dialogue", "crm", "crm"), 1)
    ]  # fmt: skip
    load(ecphoria, tenant, *ORDER, *said)
    wanted = ["memory", "list", "-t", tenant, "-u", "u-1", "--source", "crm", "--first", "2"]
    page = ecphoria(*wanted, "--json").json
    assert [edge["node"]["id"] for edge in page["edges"]] == ["m-1", "m-3"]
    assert (page["totalCount"], page["pageInfo"]["hasNextPage"]) == (3, True)
    shown = ecphoria(*wanted, "--after", page["pageInfo"]["endCursor"])
    assert "m-4" in shown.out
    assert "m-3" not in shown.out
    assert "1 of 3" in shown.out


def test_a_value_is_superseded_corrected_and_taken_back(ecphoria: Ecphoria, tenant: str) -> None:
    loaded = load(ecphoria, tenant, *ORDER, status("paid", "paid", 30))
    assert loaded["tally"]["memory"] == {"created": 1}
    mine = ["-t", tenant, "-u", "u-1"]
    history = ["memory", "history", "Order", "882301", "order.status", *mine]

    done = ecphoria(
        "memory", "supersede", "paid", *mine, "--value", "shipped", "--source", "crm",
        "--valid-from", days_ago(20), "--id", "shipped", "--reason", "仓库确认已发货", "--json",
    )  # fmt: skip
    assert (done.code, done.json["status"], done.json["supersedes"]) == (
        0,
        "SUPERSEDED",
        ["paid"],
    ), done.err
    assert done.json["links"][0]["entity"] == {"type": "Order", "id": "882301"}
    done = ecphoria(
        "memory", "correct", "shipped", *mine, "--value", "cancelled", "--source", "crm",
        "--id", "cancelled", "-r", "it was another order",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "SUPERSEDED cancelled" in done.out
    assert "It took the place of shipped." in done.out

    def current(*options: str) -> list[str]:
        found = ecphoria(*history, *options, "--json")
        assert found.code == 0, found.err
        return [memory["value"] for memory in found.json["current"]]

    assert current() == ["cancelled"]
    assert current("--as-of", days_ago(25)) == ["paid"]
    # before the first line was known, nothing was
    assert current("--known-at", days_ago(1)) == []
    shown = ecphoria(*history)
    assert "Order 882301 order.status: cancelled" in shown.out
    for part in ("●", "paid", "shipped", "crm", "known since"):
        assert part in shown.out

    assert ecphoria("memory", "retract", "cancelled", *mine, "-r", "a slip").code == 0
    assert current() == ["shipped"]

    view = ecphoria("memory", "show", "shipped", *mine, "--json").json
    assert (view["status"], view["attribute"], view["value"]) == (
        "ACTIVE",
        "order.status",
        "shipped",
    )
    by_hand = [each for each in view["supersedes"] if each["how"] == "HAND"]
    assert (by_hand[0]["reason"], by_hand[0]["by"]) == ("仓库确认已发货", "cli")
    shown = ecphoria("memory", "show", "paid", *mine)
    for part in ("SUPERSEDED paid", "order.status = paid", "about", "Order 882301 (given, 1.00)",
                 "replaced by", "仓库确认已发货"):  # fmt: skip
        assert part in shown.out


def test_shared_knowledge_is_put_right_too(ecphoria: Ecphoria, tenant: str) -> None:
    rule = {"user_id": None, "kind": "procedural", "text": "Returns are free within 7 days"}
    load(ecphoria, tenant, {**rule, "id": "old"})
    done = ecphoria(
        "memory", "supersede", "old", "Returns are free within 15 days", "-t", tenant, "--shared",
        "-r", "the policy changed", "--id", "new", "--json",
    )  # fmt: skip
    assert done.json["supersedes"] == ["old"]
    shown = ecphoria("memory", "show", "new", "-t", tenant, "-u", "u-9")
    assert "shared by all" in shown.out


REFUSED: dict[str, tuple[list[str], str]] = {
    "no such memory": (["memory", "show", "none", "-u", "u-1"], "NOT_FOUND"),
    "another user's": (["memory", "show", "m", "-u", "u-2"], "NOT_FOUND"),
    "another user's to supersede": (
        ["memory", "supersede", "m", "text", "-u", "u-2", "-r", "r"], "NOT_FOUND"),
    "another user's to retract": (["memory", "retract", "m", "-u", "u-2", "-r", "r"], "NOT_FOUND"),
    "one user's as shared": (["memory", "retract", "m", "--shared", "-r", "r"], "NOT_FOUND"),
    "every user": (["memory", "retract", "m", "-u", "*", "-r", "r"], "INVALID_SCOPE"),
    "no reason": (["memory", "retract", "m", "-u", "u-1", "-r", " "], "INVALID_INPUT"),
    "no value to change": (
        ["memory", "supersede", "m", "--value", "x", "-u", "u-1", "-r", "r"], "INVALID_INPUT"),
    "a bad new one": (
        ["memory", "correct", "m", "text", "--source", "nobody", "-u", "u-1", "-r", "r"],
        "INVALID_INPUT"),
    "no such attribute": (
        ["memory", "history", "Order", "1", "order.colour", "-u", "u-1"], "UNKNOWN_PROPERTY"),
}  # fmt: skip


def test_what_is_refused_has_a_code_and_a_remedy(ecphoria: Ecphoria, tenant: str) -> None:
    load(ecphoria, tenant, {"id": "m", "user_id": "u-1", "text": "电池换过了"})
    for case, (arguments, code) in REFUSED.items():
        done = ecphoria(*arguments, "-t", tenant)
        assert (done.code, done.out) == (1, ""), case
        assert f"error {code}: " in done.err, (case, done.err)
        assert "→" in done.err
    shown = ecphoria("memory", "show", "m", "-t", tenant, "-u", "u-1", "--json")
    assert shown.json["status"] == "ACTIVE"


def test_a_rejected_memory_is_json_for_scripts(ecphoria: Ecphoria, tenant: str) -> None:
    load(ecphoria, tenant, *ORDER, status("paid", "paid", 1))
    done = ecphoria(
        "memory", "correct", "paid", "--value", "on the moon", "-t", tenant, "-u", "u-1",
        "-r", "why not", "--json",
    )  # fmt: skip
    assert (done.code, done.json["status"], done.json["code"]) == (1, "REJECTED", "INVALID_INPUT")
    assert done.json["path"] == ["facts", "0", "value"]


# --- forget --------------------------------------------------------------------------------


def test_ids_are_shown_first_and_erased_with_yes(ecphoria: Ecphoria, tenant: str) -> None:
    load(
        ecphoria,
        tenant,
        {"id": "gone", "user_id": "u-1", "text": "住址：幸福路 1 号"},
        {"id": "stays", "user_id": "u-1", "text": "喜欢蓝色"},
        {"id": "other", "user_id": "u-2", "text": "another user's"},
        {"id": "shared", "user_id": None, "text": "all users'"},
    )
    forget = ["forget", "gone", "other", "shared", "-t", tenant, "-u", "u-1"]
    tried = ecphoria(*forget)
    assert tried.code == 1
    assert "gone" in tried.out
    assert "幸福路" in tried.out
    for id_ in ("other", "shared"):
        assert f"{id_} is not there, or not this user's own." in tried.err
    assert "1 memory would go. Nothing is erased yet: say --yes." in tried.err
    done = ecphoria(*forget, "--yes", "--reason", "用户要求", "--json")
    assert (done.code, done.json["forgotten"], done.json["unknown"]) == (
        1,
        1,
        ["other", "shared"],
    )
    assert done.json["items"][0]["reason"] == "用户要求"
    assert left(ecphoria, tenant) == {"stays", "other", "shared"}
    again = ecphoria("forget", "gone", "-t", tenant, "-u", "u-1", "--yes", "-r", "r")
    assert (again.code, again.out) == (1, "")
    assert "0 memories erased" in again.err


def test_a_rule_is_shown_first_and_done_with_yes(ecphoria: Ecphoria, tenant: str) -> None:
    load(
        ecphoria,
        tenant,
        *(
            {
                "id": f"old-{number}",
                "user_id": "u-1",
                "text": f"第{number}次来电",
                "occurred_at": days_ago(200),
                "importance": 0.1,
            }
            for number in range(25)
        ),
        {
            "id": "weighty",
            "user_id": "u-1",
            "text": "重要",
            "occurred_at": days_ago(200),
            "importance": 0.9,
        },
        {"id": "new", "user_id": "u-1", "text": "新的", "importance": 0.1},
        {
            "id": "of-u2",
            "user_id": "u-2",
            "text": "别人的",
            "occurred_at": days_ago(200),
            "importance": 0.1,
        },
    )
    rule = ["--older-than", "26w", "--importance-below", "0.3", "-t", tenant]
    tried = ecphoria("forget", *rule, "-u", "u-1")
    assert tried.code == 0
    assert "200 days old; importance 0.10" in tried.out
    assert "… and 5 more" in tried.out
    assert "25 memories would go" in tried.err
    explicit = ecphoria("forget", *rule, "--every-user", "--dry-run", "--json").json
    assert (explicit["dryRun"], explicit["found"], explicit["forgotten"]) == (True, 26, 0)
    assert {item["userId"] for item in explicit["items"]} == {"u-1", "u-2"}
    narrower = ecphoria("forget", *rule, "-u", "u-1", "--kind", "semantic", "--kind", "procedural")
    assert "Nothing would go." in narrower.err
    done = ecphoria("forget", *rule, "-u", "u-1", "--yes")
    assert done.code == 0
    assert "25 memories erased for good." in done.err
    assert left(ecphoria, tenant) == {"weighty", "new", "of-u2"}


# --- the past ------------------------------------------------------------------------------


def test_recall_asks_for_what_was_known(ecphoria: Ecphoria, tenant: str) -> None:
    load(ecphoria, tenant, *ORDER, status("paid", "paid", 10), status("shipped", "shipped", 5))
    ask = ["recall", "订单882301现在是什么状态？", "-t", tenant, "-u", "u-1", "--json"]

    def found(*options: str) -> set[str]:
        answer = ecphoria(*ask, *options)
        assert answer.code == 0, answer.err
        return {each["memory"]["id"] for each in answer.json["memories"]}

    assert found() == {"shipped"}
    assert found("--as-of", days_ago(7)) == {"paid"}
    assert found("--known-at", days_ago(1)) == set()
    # a conversation that is over, or never was, is an empty one
    answer = ecphoria(*ask, "--session", "s-1").json
    assert answer["session"]["turns"] == []


# --- background work -----------------------------------------------------------------------


async def test_one_round_of_work(ecphoria: Ecphoria, engine: Engine, tenant: str) -> None:
    load(ecphoria, tenant, {"id": "m", "user_id": "u-1", "text": "a note"})
    await engine.graph.requeue([f"{tenant}|Memory|m"], "another")
    done = ecphoria("worker", "--once", "--json")
    assert done.code == 0, done.err
    assert done.json["indexed"] >= 1
    assert done.json["failed"] == 0
    assert {"at", "expired", "archived", "sessions", "rebuilt"} <= done.json.keys()
    # nothing is left for another round
    again = ecphoria("worker", "--once")
    assert again.out.strip().endswith("nothing to do")


async def test_workers_share_the_work_until_they_are_stopped(
    ecphoria: Ecphoria, engine: Engine, tenant: str, tmp_path: Path
) -> None:
    count = 60
    load(
        ecphoria,
        tenant,
        *(
            {"id": f"m{number}", "user_id": "u-1", "text": f"note {number}"}
            for number in range(count)
        ),
    )
    logs = [tmp_path / "one", tmp_path / "two"]
    told: list[dict[str, Any]] = []
    with (
        logs[0].open("wb") as one,
        logs[1].open("wb") as two,
        ecphoria.started("worker", "--json", stderr=one) as first,
        ecphoria.started("worker", "--json", stderr=two) as second,
    ):
        readers = [
            threading.Thread(target=_read, args=(process.stdout, told), daemon=True)
            for process in (first, second)
        ]
        for process, log, reader in zip((first, second), logs, readers, strict=True):
            reader.start()
            _wait_for(lambda log=log: "is at work" in log.read_text(), process)
        await engine.graph.requeue(
            [f"{tenant}|Memory|m{number}" for number in range(count)], "another"
        )
        await _until_none_is_pending(engine, tenant, first)
        for process, number in ((first, signal.SIGTERM), (second, signal.SIGINT)):
            process.send_signal(number)
            assert process.wait(PATIENCE_S) == 0
        for reader in readers:
            reader.join(PATIENCE_S)
    assert not [log for log in logs if "Traceback" in log.read_text()]
    # the graph is shared: what other tests left is worked off, too
    assert sum(each["indexed"] for each in told) >= count
    assert await engine.index.count(tenant) == count


async def _until_none_is_pending(
    engine: Engine, tenant: str, process: subprocess.Popen[bytes]
) -> None:
    for _ in range(PATIENCE_S * 10):
        if not (await engine.graph.counts(tenant))["pending"]:
            return
        assert process.poll() is None, "the worker ended by itself"
        await asyncio.sleep(0.1)
    pytest.fail("the work was not done")


def _read(stream: IO[bytes] | None, told: list[dict[str, Any]]) -> None:
    assert stream is not None
    for line in stream:
        told.append(json.loads(line))  # noqa: PERF401 - it is looked at while it grows


def _wait_for(done: Any, process: subprocess.Popen[bytes]) -> None:
    waiting = threading.Event()
    for _ in range(PATIENCE_S * 10):
        if done():
            return
        assert process.poll() is None, "the worker ended by itself"
        waiting.wait(0.1)
    pytest.fail("the work was not done")


def test_a_user_is_forgotten_proved_and_on_record(ecphoria: Ecphoria, tenant: str) -> None:
    load(ecphoria, tenant, *ORDER, {"id": "m-1", "user_id": "u-1", "text": "包裹来晚了。"})
    mine = ["u-1", "-t", tenant]
    before = ecphoria("user", "verify-forgotten", *mine)
    assert (before.code, "memories" in before.out) == (3, True)

    done = ecphoria("user", "forget", *mine, "--reason", "asked by mail", "--yes", "--json")

    assert (done.code, done.json["removed"]["memories"]) == (0, 1), done.err
    assert "CLEAN" in ecphoria("user", "verify-forgotten", *mine).out
    lines = ecphoria("audit", "export", "-t", tenant, "--user", "u-1").out.splitlines()
    entries = [json.loads(line) for line in lines]
    assert ("forgetUser", "done") in {(each["operation"], each["outcome"]) for each in entries}
    assert "u-1" not in str(entries)
    assert "forgetUser" in ecphoria("audit", "list", "-t", tenant).out
    assert ecphoria("user", "allow", *mine, "--json").json == {"allowed": True}


def test_feedback_is_given_listed_and_taken_back(ecphoria: Ecphoria, tenant: str) -> None:
    load(ecphoria, tenant, {"id": "m-1", "user_id": "u-1", "text": "包裹放在门口了"})
    whose = ("-t", tenant, "--user", "u-1")
    given = ecphoria(
        "feedback", "give", "m-1", "missing-info", *whose, "--note", "哪个门？", "--json"
    ).json
    assert (given["status"], given["task"]["status"]) == ("GIVEN", "OPEN")
    again = ecphoria("feedback", "give", "m-1", "MISSING_INFO", *whose, "-n", "哪个门？")
    assert again.out.startswith(f"DUPLICATE {given['feedback']['id']}")
    (said,) = ecphoria("feedback", "list", *whose, "--standing", "--json").json["items"]
    assert (said["note"], said["by"]) == ("哪个门？", "cli")
    done = ecphoria("feedback", "undo", said["id"], *whose)
    assert (done.code, done.out.split()[0]) == (0, "UNDONE")
    assert ecphoria("feedback", "list", *whose, "--standing", "--json").json["items"] == []
    assert "missing_info" in ecphoria("feedback", "list", *whose).out
    refused = ecphoria("feedback", "give", "none", "helpful", *whose)
    assert (refused.code, refused.err.split()[:2]) == (1, ["error", "NOT_FOUND:"])
