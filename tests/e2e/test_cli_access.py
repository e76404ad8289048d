"""The command line about access: rotated keys, trusted documents, changes of the schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ecphoria.cli.main import main
from ecphoria.errors import Unauthenticated
from ecphoria.governance.keys import authenticate

if TYPE_CHECKING:
    from ecphoria.engine import Engine

    from .conftest import Ecphoria

ROOT = Path(__file__).parents[2]


async def _counts(engine: Engine, secret: str) -> bool:
    try:
        await authenticate(engine.graph, engine.clock, secret)
    except Unauthenticated:
        return False
    return True


async def test_a_key_is_rotated(ecphoria: Ecphoria, engine: Engine, tenant: str) -> None:
    key: Any = ecphoria("keys", "create", "bot", "-t", tenant, "--every-user", "--json").json
    rotate = ("keys", "rotate", key["id"], "-t", tenant)
    done = ecphoria(*rotate, "--grace", "1h", "--days", "7", "--json").json
    assert (done["id"], done["name"]) == (key["id"], "bot")
    until = datetime.fromisoformat(done["previousSecretUntil"])
    assert timedelta(minutes=55) < until - datetime.now(UTC) < timedelta(minutes=61)
    assert done["expiresAt"] is not None
    assert [await _counts(engine, item["key"]) for item in (key, done)] == [True, True]
    last = ecphoria(*rotate)
    # the secret alone, for a script
    assert last.out.strip().startswith(f"ecph_{key['id']}_")
    found = [await _counts(engine, item) for item in (key["key"], done["key"], last.out.strip())]
    assert found == [False, False, True]
    ecphoria("keys", "revoke", key["id"], "-t", tenant)
    refused = ecphoria(*rotate)
    assert (refused.code, refused.out) == (1, "")
    assert "INVALID_INPUT" in refused.err
    assert ecphoria("keys", "rotate", "0" * 16, "-t", tenant).err.startswith("error NOT_FOUND")


@pytest.mark.parametrize("grace", ["", "1", "h", "-1h", "1.5h", "1w", "one hour"])
def test_a_grace_is_a_duration(grace: str) -> None:
    assert main(["keys", "rotate", "k", "-t", "t", f"--grace={grace}"]) == 2


@pytest.mark.parametrize("command", ["keys rotate", "schema documents", "schema compare"])
def test_the_commands_have_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    assert "--data-dir" in capsys.readouterr().out


def test_the_manifest_of_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.graphql").write_text("query Own { __typename }\n")
    file = tmp_path / "own.json"
    documents = ["schema", "documents", str(tmp_path)]
    assert main([*documents, "--check", "-o", str(file)]) == 1
    assert main([*documents, "-o", str(file)]) == 0
    (entry,) = json.loads(file.read_text())["operations"]
    assert (entry["name"], entry["body"]) == ("Own", "query Own { __typename }\n")
    assert main([*documents, "--check", "-o", str(file)]) == 0
    capsys.readouterr()
    assert main(documents) == 0
    assert capsys.readouterr().out == file.read_text()
    assert main(["schema", "documents", str(tmp_path / "none")]) == 1


def test_changes_that_break_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "export", "-o", str(tmp_path / "now.graphql")]) == 0
    now = (tmp_path / "now.graphql").read_text(encoding="utf-8")
    released, accepted = tmp_path / "released.graphql", tmp_path / "accepted.txt"
    compare = ["schema", "compare", str(released), "--accepted", str(accepted)]
    released.write_text(now, encoding="utf-8")
    assert main(compare) == 0
    # a field that clients may ask for is gone
    old = now.replace("type Query {\n", "type Query {\n  gone: Int\n\n", 1)
    released.write_text(old, encoding="utf-8")
    capsys.readouterr()
    assert main(compare) == 1
    assert "FIELD_REMOVED: Field Query.gone was removed." in capsys.readouterr().err
    accepted.write_text("# meant\nFIELD_REMOVED: Field Query.gone was removed.\n")
    assert main(compare) == 0
    # what is accepted and is no more is taken out again
    released.write_text(now, encoding="utf-8")
    assert main(compare) == 1
    assert "there is none" in capsys.readouterr().err
    released.write_text("type Query {", encoding="utf-8")
    assert main(compare) == 1
    assert main(["schema", "compare", str(tmp_path / "none")]) == 1
