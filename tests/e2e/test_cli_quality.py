"""`ecphoria doctor --quality`, as a user has it: the shipped model, no store, exit codes."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from ecphoria.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Ecphoria

DOMAINS = Path(__file__).parents[1] / "domains"
CHECKS = {
    "synonyms, English",
    "synonyms, Chinese",
    "synonyms, between the languages",
    "facts cut right",
    "right memories kept",
    "wrong memories dropped",
    "topics right",
    "intents right",
    "urgency right",
}


@pytest.fixture
def broken_domain(tmp_path: Path) -> Path:
    """Return the shipped domain with the words of two topics put in one another's place."""
    text = (
        resources.files("ecphoria_schema").joinpath("domains/after_sales.yaml").read_text("utf-8")
    )
    domain = yaml.safe_load(text)
    names = list(domain["topics"])
    words = [domain["topics"][name]["keywords"] for name in names]
    for name, other in zip(names, words[1:] + words[:1], strict=True):
        domain["topics"][name]["keywords"] = other
    domain["topic_rules"] = []
    file = tmp_path / "domain.yaml"
    file.write_text(yaml.safe_dump(domain, allow_unicode=True), "utf-8")
    return file


def test_the_shipped_model_and_domain_do_not_fail(bare_ecphoria: Ecphoria) -> None:
    # no store could be reached
    done = bare_ecphoria(
        "doctor",
        "--quality",
        "--json",
        ECPHORIA_NEO4J_URI="bolt://127.0.0.1:1",
        ECPHORIA_MILVUS_URI="http://127.0.0.1:1",
    )
    assert done.code == 0, done
    found = {each["check"]: each for each in done.json}
    assert set(found) == CHECKS
    for each in found.values():
        assert each["verdict"] in {"PASS", "WARN"}
        assert each["detail"]
        assert bool(each["advice"]) == (each["verdict"] == "WARN")
    # words and meaning in either language
    assert found["synonyms, English"]["verdict"] == found["synonyms, Chinese"]["verdict"] == "PASS"


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Return what runs the command in this process: a process of its own takes seconds to start."""
    for name in [name for name in os.environ if name.startswith("ECPHORIA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def call(*options: object, **env: str) -> tuple[int, str, str]:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        code = main(["doctor", *map(str, options)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_people_get_a_table_with_verdicts_and_advice(
    run: Callable[..., tuple[int, str, str]], broken_domain: Path
) -> None:
    code, out, _ = run("--quality", "--language", "en", ECPHORIA_DOMAIN=str(broken_domain))
    assert code == 1
    lines = out.splitlines()
    assert "domain after_sales" in lines[0]
    for check in CHECKS - {"synonyms, Chinese", "synonyms, between the languages"}:
        assert sum(check in line for line in lines) == 1, check
    (topics,) = (line for line in lines if "topics right" in line)
    assert topics.startswith("FAIL")
    assert "Add the words of the misses to `topics` in the domain file." in out


def test_for_another_domain_the_rest_is_skipped(run: Callable[..., tuple[int, str, str]]) -> None:
    clinic = str(DOMAINS / "clinic.yaml")
    code, out, _ = run("--quality", "--language", "en", "--json", ECPHORIA_DOMAIN=clinic)
    assert code == 0
    verdicts = {each["check"]: each["verdict"] for each in json.loads(out)}
    assert verdicts.pop("synonyms, English") == "PASS"
    assert set(verdicts.values()) == {"SKIP"}


def test_a_checklist_that_is_wrong_is_told_with_its_line(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("version: 1\ndomain: after_sales\nphrasing: []\n", "utf-8")
    code, _, err = run("--quality", "--checklist", file)
    assert code == 1
    assert "INVALID_INPUT" in err
    assert "mine.yaml:3: phrasing" in err


@pytest.mark.parametrize(
    "options", [["--language", "en"], ["--checklist", "x.yaml"], ["--quality", "--language", "fr"]]
)
def test_wrong_usage_ends_with_2(
    run: Callable[..., tuple[int, str, str]], options: list[str]
) -> None:
    code, _, err = run(*options)
    assert code == 2
    assert "Usage: ecphoria" in err
