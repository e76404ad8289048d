"""The command line: every command, its exit codes, and what it says when something is wrong."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from ecphoria.cli.main import main

if TYPE_CHECKING:
    from .conftest import Ecphoria

ROOT = Path(__file__).parents[2]
DEMO_DATA = ROOT / "engine" / "ecphoria" / "demo_data"
QUESTION = "张伟买的iPhone15维修后还能享受延保吗"
COMMANDS = ["demo", "serve", "import", "recall", "keys", "keys create", "keys list", "keys revoke",
            "schema export", "doctor", "reconcile", "reembed", "verify", "version", "worker",
            "browser-kit", "forget", "user forget", "user verify-forgotten", "user allow",
            "audit list", "audit export", "memory", "memory show", "memory history",
            "memory supersede", "memory correct", "memory retract", "feedback", "feedback give",
            "feedback list", "feedback undo"]  # fmt: skip
GROUPS = ("keys", "memory", "user", "audit", "feedback")


# --- without stores ------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert "Usage: ecphoria" in said
    if command and command not in GROUPS:
        assert "--data-dir" in said or command == "version"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["recall", "question"],
        ["recall", "question", "--user", "u"],
        ["import", "--tenant", "t"],
        ["keys", "create", "k", "--tenant", "t"],
        ["keys", "create", "k", "--tenant", "t", "--user", "u", "--every-user"],
        ["keys", "create", "k", "--tenant", "t", "--every-user", "--role", "king"],
        ["serve", "--port", "70000"],
        ["doctor", "--log-level", "loud"],
        ["forget", "-t", "t"],
        ["forget", "-t", "t", "--user", "u"],
        ["forget", "m", "-t", "t"],
        ["forget", "m", "-t", "t", "--user", "u", "--yes"],
        ["forget", "m", "-t", "t", "--user", "u", "--older-than", "1d"],
        ["forget", "m", "-t", "t", "--user", "u", "--every-user"],
        ["forget", "-t", "t", "--older-than", "1d"],
        ["forget", "-t", "t", "--older-than", "1d", "--user", "u", "--every-user"],
        ["forget", "-t", "t", "--older-than", "long", "--user", "u"],
        ["forget", "-t", "t", "--older-than", "-1d", "--user", "u"],
        ["forget", "-t", "t", "--importance-below", "2", "--user", "u"],
        ["forget", "-t", "t", "--older-than", "1d", "--kind", "dream", "--user", "u"],
        ["forget", "-t", "t", "--kind", "episodic", "--user", "u"],
        ["memory", "show", "m", "-t", "t"],
        ["memory", "supersede", "m", "text", "-t", "t", "--user", "u"],
        ["memory", "supersede", "m", "-t", "t", "--user", "u", "--reason", "r"],
        ["memory", "supersede", "m", "text", "-t", "t", "--reason", "r"],
        ["memory", "supersede", "m", "-t", "t", "--reason", "r", "--shared", "--value", "v"],
        ["memory", "correct", "m", "text", "-t", "t", "-r", "r", "--user", "u", "--shared"],
        ["memory", "retract", "m", "-t", "t", "--reason", "r"],
        ["memory", "history", "Order", "1", "-t", "t", "--user", "u"],
        ["feedback", "give", "m", "splendid", "-t", "t", "--user", "u"],
        ["feedback", "give", "m", "wrong", "-t", "t"],
        ["feedback", "give", "m", "expired", "-t", "t", "--user", "u", "--at", "noon"],
        ["feedback", "undo", "f", "-t", "t", "--user", "u", "--shared"],
    ],
)
def test_wrong_usage_ends_with_2(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ECPHORIA_TENANT", raising=False)
    assert main(arguments) == 2
    assert "Usage: ecphoria" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--json"]) == 0
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", json.loads(capsys.readouterr().out)["version"])


REFUSED = {
    "tenant is *": (["recall", "hi", "-t", "*", "-u", "u"], {}, "INVALID_SCOPE"),
    "tenant is empty": (["keys", "list", "-t", ""], {}, "INVALID_SCOPE"),
    "user is *": (["recall", "hi", "-t", "t", "-u", "*"], {}, "INVALID_SCOPE"),
    "as-of has no zone": (
        ["recall", "hi", "-t", "t", "-u", "u", "--as-of", "2025-01-01"], {}, "INVALID_TIME"),
    "known-at is no time": (
        ["recall", "hi", "-t", "t", "-u", "u", "--known-at", "yesterday"], {}, "INVALID_TIME"),
    "time zone is unknown": (
        ["recall", "hi", "-t", "t", "-u", "u", "--time-zone", "Beijing"], {}, "INVALID_INPUT"),
    "until is no time": (
        ["recall", "hi", "-t", "t", "-u", "u", "--until", "yesterday"], {}, "INVALID_TIME"),
    "valid-from has no zone": (
        ["memory", "supersede", "m", "text", "-t", "t", "-u", "u", "-r", "why",
         "--valid-from", "2025-01-01"], {}, "INVALID_TIME"),
    "no such file": (["import", "nowhere.jsonl", "-t", "t"], {}, "INVALID_INPUT"),
    "a setting is wrong": (
        ["doctor"], {"ECPHORIA_STORE_TIMEOUT_S": "soon"}, "CONFIGURATION_INVALID"),
    "one URI only": (
        ["recall", "hi", "-t", "t", "-u", "u"],
        {"ECPHORIA_NEO4J_URI": "bolt://127.0.0.1:1"}, "CONFIGURATION_INVALID"),
    "no such domain": (
        ["recall", "hi", "-t", "t", "-u", "u"],
        {"ECPHORIA_DOMAIN": "nowhere.yaml"}, "DOMAIN_FILE_INVALID"),
    "data directory below a file": (
        ["keys", "list", "-t", "t", "--data-dir", f"{__file__}/data"], {},
        "DATA_DIRECTORY_UNUSABLE"),
    "the error file cannot be written": (
        ["import", str(DEMO_DATA), "-t", "t", "--errors", f"{__file__}/bad"], {},
        "INVALID_INPUT"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "env", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_wrong_has_a_code_a_sentence_and_a_remedy(
    bare_ecphoria: Ecphoria, arguments: list[str], env: dict[str, str], code: str
) -> None:
    done = bare_ecphoria(*arguments, **env)
    assert done.code == 1
    assert done.out == ""
    first, *rest = done.err.splitlines()
    assert re.match(rf"error {code}: \S.+", first), done.err
    assert rest[-1].startswith("  → ")


def test_a_malformed_domain_file_is_reported_with_its_lines(
    bare_ecphoria: Ecphoria, tmp_path: Path
) -> None:
    domain = tmp_path / "shop.yaml"
    domain.write_text("version: 1\nname: shop\nnonsense: true\n")
    for command in (["schema", "export"], ["recall", "hi", "-t", "t", "-u", "u"]):
        done = bare_ecphoria(*command, ECPHORIA_DOMAIN=str(domain))
        assert done.code == 1
        assert "error DOMAIN_FILE_INVALID" in done.err
        assert "shop.yaml:3: nonsense" in done.err


def test_a_port_in_use_is_said_before_anything_starts(
    bare_ecphoria: Ecphoria, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = bare_ecphoria("serve", "--host", "127.0.0.1", "--port", port)
    assert done.code == 1
    assert "error PORT_IN_USE" in done.err
    assert str(port) in done.err
    assert not (tmp_path / "data").exists()


def test_servers_that_do_not_answer(bare_ecphoria: Ecphoria) -> None:
    nowhere = {
        "ECPHORIA_NEO4J_URI": "bolt://127.0.0.1:1",
        "ECPHORIA_NEO4J_PASSWORD": "letmein-please",
        "ECPHORIA_MILVUS_URI": "http://127.0.0.1:1",
        "ECPHORIA_STORE_TIMEOUT_S": "3",
    }
    done = bare_ecphoria("recall", "hi", "-t", "t", "-u", "u", **nowhere)
    assert (done.code, "error STORE_UNAVAILABLE" in done.err) == (1, True), done.err
    found = bare_ecphoria("doctor", "--json", **nowhere)
    assert found.code == 1
    checks = {check["check"]: check for check in found.json}
    failed = [check for check in found.json if check["status"] == "FAIL"]
    assert failed
    assert all("STORE_UNAVAILABLE" in check["detail"] and check["advice"] for check in failed)
    assert checks["domain file"]["status"] == "OK"
    assert checks["embedding model"]["status"] == "OK"
    assert "letmein" not in done.err + found.out + found.err


def test_the_schema_is_exported_and_checked(bare_ecphoria: Ecphoria, tmp_path: Path) -> None:
    file = tmp_path / "schema.graphql"
    assert bare_ecphoria("schema", "export", "--check", "--output", file).code == 1
    assert bare_ecphoria("schema", "export", "--output", file).code == 0
    assert "type Query" in file.read_text()
    assert bare_ecphoria("schema", "export", "--check", "-o", file).code == 0
    file.write_text(file.read_text() + "# changed\n")
    stale = bare_ecphoria("schema", "export", "--check", "-o", file)
    assert (stale.code, "stale" in stale.err) == (1, True)
    assert bare_ecphoria("schema", "export").out + "# changed\n" == file.read_text()


# --- with stores ---------------------------------------------------------------------------


def test_import_ask_and_look_after_it(ecphoria: Ecphoria, tenant: str) -> None:
    loaded = ecphoria("import", DEMO_DATA, "--tenant", tenant, "--json")
    assert (loaded.code, loaded.json["bad"]) == (0, 0), loaded.err

    ask = ["recall", QUESTION, "--tenant", tenant, "-u", "u-zhangwei-1"]
    when = ["--as-of", "2026-11-30T09:00:00Z"]
    answer = ecphoria(*ask, *when, "--json").json
    assert answer["action"] == "ANSWER"
    found = {(hit["entity"]["type"], hit["entity"]["id"]) for hit in answer["entityHits"]}
    expected = json.loads((DEMO_DATA / "questions.json").read_text())[0]["expect"]
    for name, wanted in (("entities", True), ("absent_entities", False)):
        for each in expected[name]:
            assert ((each["type"], each["id"]) in found) is wanted, each
    assert set(answer["confidence"]) == {"overall", "timeliness", "source", "consistency"}

    shown = ecphoria(*ask, *when, "--explain", ECPHORIA_TENANT=tenant)
    assert shown.code == 0
    for part in ("ANSWER", "timeliness", "Repair", "rep-7f31", "PLACED", "because", "trace"):
        assert part in shown.out

    # the graph is shared: other tests may have left rows of theirs for the first run
    assert ecphoria("reconcile", "--json").json["left"] == 0
    assert ecphoria("reconcile", "--json").json == {"done": 0, "left": 0}
    checks = ecphoria("doctor", "--json")
    assert checks.code == 0, checks.out
    names = {check["check"] for check in checks.json}
    assert {"Python", "settings", "data directory", "free space", "domain file", "graph store",
            "vector store", "migrations", "pending rows", "index model",
            "embedding model"} <= names  # fmt: skip
    assert {check["status"] for check in checks.json} <= {"OK", "WARN"}


def test_keys_are_made_listed_and_revoked(ecphoria: Ecphoria, tenant: str) -> None:
    made = ecphoria(
        "keys",
        "create",
        "chat",
        "-t",
        tenant,
        "--user",
        "u-1",
        "--user",
        "u-2",
        "--role",
        "agent",
        "--role",
        "analyst",
        "--days",
        "7",
        "--json",
    ).json
    assert re.fullmatch(r"ecph_[0-9a-f]{16}_[\w-]{43}", made["key"])
    assert (made["users"], made["roles"]) == (["u-1", "u-2"], ["agent", "analyst"])
    secret = made["key"].rpartition("_")[2]
    # however narrow the terminal, an id can be copied
    for columns in ("200", "60"):
        listed = ecphoria("keys", "list", "-t", tenant, COLUMNS=columns)
        assert made["id"] in listed.out
    assert secret not in listed.out + listed.err
    assert ecphoria("keys", "list", "-t", f"{tenant}-other", "--json").json == []
    other = ecphoria("keys", "revoke", made["id"], "-t", f"{tenant}-other")
    assert (other.code, "error NOT_FOUND" in other.err) == (1, True)
    assert ecphoria("keys", "revoke", made["id"], "-t", tenant, "--json").json["revokedAt"]


def test_serve_answers_and_stops_cleanly(ecphoria: Ecphoria, tenant: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    key = ecphoria("keys", "create", "test", "-t", tenant, "--every-user").out.strip()
    with (
        log.open("wb") as stderr,
        ecphoria.started("serve", "--port", "0", stderr=stderr) as process,
    ):
        url = _announced(process, log)
        assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
        assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
        asked = ecphoria("recall", "warranty?", "-t", tenant, "-u", "u-1", "--json")
        assert asked.json["action"] == "FALLBACK"
        with connect(
            f"{url.replace('http', 'ws', 1)}/graphql",
            subprotocols=[Subprotocol("graphql-transport-ws")],
            proxy=None,
        ) as follower:
            init = {"type": "connection_init", "payload": {"X-API-Key": key}}
            follower.send(json.dumps(init))
            assert json.loads(follower.recv(60)) == {"type": "connection_ack"}
            query = 'subscription { memoryChanged(userId: "u-1") { kind } }'
            follower.send(json.dumps({"type": "subscribe", "id": "1", "payload": {"query": query}}))
            # the answer to this comes when the subscription has begun
            follower.send(json.dumps({"type": "ping"}))
            assert json.loads(follower.recv(60)) == {"type": "pong"}
            # who follows is told that the server stops, and does not keep it from stopping
            process.send_signal(signal.SIGINT)
            with pytest.raises(ConnectionClosed) as closed:
                follower.recv(60)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
        assert process.wait(60) == 0
    assert "Traceback" not in log.read_text()


def test_a_data_directory_belongs_to_one_process(bare_ecphoria: Ecphoria, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        log.open("wb") as stderr,
        bare_ecphoria.started("serve", "--port", "0", stderr=stderr) as process,
    ):
        _announced(process, log)
        asked = bare_ecphoria("recall", "warranty?", "-t", "t", "-u", "u-1", "--json")
        assert asked.code == 1
        assert "error STORE_LOCKED" in asked.err
        assert str(process.pid) in asked.err
        found = bare_ecphoria("doctor")
        assert found.code == 0, found.out
        assert str(process.pid) in found.out
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert bare_ecphoria("keys", "list", "-t", "t", "--json").json == []


def _announced(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"Serving (http://[\d.:]+)/graphql", log.read_text()):
            return found[1]
        time.sleep(0.1)
    pytest.fail(f"serve did not start: {log.read_text()}")


def test_a_wrong_password_is_said_and_not_shown(ecphoria: Ecphoria, tenant: str) -> None:
    wrong = {"ECPHORIA_NEO4J_PASSWORD": "not-the-password"}
    done = ecphoria("keys", "list", "-t", tenant, **wrong)
    assert (done.code, "error STORE_AUTHENTICATION_FAILED" in done.err) == (1, True), done.err
    found = ecphoria("doctor", **wrong)
    assert (found.code, "STORE_AUTHENTICATION_FAILED" in found.out) == (1, True)
    assert "not-the-password" not in done.err + found.out + found.err


def test_ctrl_c_ends_an_import_quietly(ecphoria: Ecphoria, tenant: str, tmp_path: Path) -> None:
    lines = [{"user_id": "u", "text": f"Note {number}, kept."} for number in range(20_000)]
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    imports = Path(ecphoria.env["ECPHORIA_DATA_DIR"]) / "imports"
    log = tmp_path / "log"
    with (
        log.open("wb") as stderr,
        ecphoria.started("import", file, "-t", tenant, stderr=stderr) as process,
    ):
        deadline = time.monotonic() + 120
        while not list(imports.glob("*.json")) and time.monotonic() < deadline:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert "Traceback" not in log.read_text()
    assert list(imports.glob("*.json"))


def test_the_demo_answers_its_questions_and_is_quick_the_second_time(
    bare_ecphoria: Ecphoria, tmp_path: Path
) -> None:
    first = bare_ecphoria("demo", "--data-dir", tmp_path)
    assert first.code == 0, first.err + first.out
    assert QUESTION in first.out
    assert "All 3 answers are as they should be" in first.out
    assert f"serve --data-dir {tmp_path / 'demo'}" in first.out
    second = bare_ecphoria("demo", "--data-dir", tmp_path)
    assert second.code == 0
    assert "memories.jsonl" not in second.err
    [key] = set(re.findall(r"ecph_\S+(?=\")", first.out + second.out))
    assert key
