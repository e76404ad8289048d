"""Docker cannot run everywhere: what can be known about its files without it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ecphoria.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


def test_fits_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, COMPOSE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_images_are_pinned(compose: dict[str, Any]) -> None:
    images = {name: service["image"] for name, service in compose["services"].items()}
    assert re.fullmatch(r"neo4j:5\.26\.\d+-community", images["neo4j"])
    assert re.fullmatch(r"milvusdb/milvus:v2\.6\.\d+", images["milvus"])


def test_the_tests_run_the_same_neo4j(compose: dict[str, Any]) -> None:
    pom = (ROOT / "tests" / "servers" / "pom.xml").read_text()
    version = re.search(r"<neo4j\.version>(.+?)</neo4j\.version>", pom)
    assert version
    assert compose["services"]["neo4j"]["image"] == f"neo4j:{version[1]}-community"


def test_every_store_is_watched_and_kept(compose: dict[str, Any]) -> None:
    for name in ("neo4j", "milvus"):
        service = compose["services"][name]
        assert service["healthcheck"]["test"]
        assert service["volumes"][0].split(":")[0] in compose["volumes"]
        waits = compose["services"]["api"]["depends_on"][name]
        assert waits == {"condition": "service_healthy"}


def test_ports_are_local_unless_asked_for(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports
    assert all("127.0.0.1:" in port for port in ports)


def test_no_password_stands_in_the_file_and_none_may_be_missing(compose: dict[str, Any]) -> None:
    secrets = [
        value
        for service in compose["services"].values()
        for key, value in service["environment"].items()
        if re.search(r"AUTH$|PASSWORD|TOKEN", key)
    ]
    assert len(secrets) == 4
    assert all(re.search(r"\$\{(NEO4J|MILVUS)_PASSWORD:\?", value) for value in secrets)
    example = (ROOT / ".env.example").read_text()
    for name in re.findall(r"\$\{(\w+)", COMPOSE.read_text()):
        assert re.search(rf"^#? ?{name}=", example, re.MULTILINE), name


def test_the_api_gets_settings_that_exist(compose: dict[str, Any]) -> None:
    image = re.findall(r"\bECPHORIA_\w+(?==)", (ROOT / "Dockerfile").read_text())
    for name in (*image, *compose["services"]["api"]["environment"]):
        assert name.removeprefix("ECPHORIA_").lower() in Settings.model_fields, name


def test_the_image_runs_without_root_and_is_watched() -> None:
    *_, last = (ROOT / "Dockerfile").read_text().split("FROM ")
    assert re.search(r"^USER (?!root)\w+$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "/healthz" in last


def test_the_image_gets_all_files_it_is_built_from() -> None:
    kept = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )
    assert sorted(kept) == sorted(name for names in copied for name in names.split())
