"""The documentation is tested: what it shows runs, what it names exists, its links lead there."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest
import typer
from graphql import parse, validate

from ecphoria.cli.main import build_app
from ecphoria.errors import error_classes
from ecphoria.governance.keys import create_key
from ecphoria.model import EveryUser, Role
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.schema import build_schema
from ecphoria_graphql.server import running_server
from ecphoria_schema.domain import parse_domain, shipped_domain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ecphoria.engine import Engine

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial.md"
SERVER = "http://127.0.0.1:8000"
PROGRAM_LIMIT_S = 180
MAX_PICTURE_BYTES = 300_000

_FENCE = re.compile(r"^( *)```([a-z]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
_HERE_DOCUMENT = re.compile(r"<<'JSON'\n(.*?)\nJSON$", re.MULTILINE | re.DOTALL)
_INLINE_COMMAND = re.compile(r"`(?:docker compose exec api )?(ecphoria [a-z][^`]*)`")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def _blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        indent, language, body = match.groups()
        lines = [line.removeprefix(indent) for line in body.splitlines()]
        found.append(
            Block(page, text.count("\n", 0, match.start()) + 1, language, "\n".join(lines))
        )
    return found


BLOCKS = [block for page in DOCS for block in _blocks(page)]


def _of(*languages: str) -> list[Any]:
    return [pytest.param(block, id=str(block)) for block in BLOCKS if block.language in languages]


def _relative(paths: Iterable[Path]) -> list[Any]:
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths]


# --- what stands in fences -----------------------------------------------------------------


def test_every_block_names_its_language() -> None:
    assert {str(block) for block in BLOCKS if not block.language} == set()
    assert {block.language for block in BLOCKS} <= {
        "console", "cypher", "graphql", "json", "python", "sh", "text", "yaml",
    }  # fmt: skip


@pytest.mark.parametrize("block", _of("json"))
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", _of("yaml"))
def test_a_domain_file_is_valid(block: Block) -> None:
    parse_domain(block.text, str(block))


@cache
def _schema() -> Any:
    return build_schema(shipped_domain())._schema


@pytest.mark.parametrize("block", _of("graphql"))
def test_graphql_fits_the_schema(block: Block) -> None:
    assert [str(error) for error in validate(_schema(), parse(block.text))] == []


@pytest.mark.parametrize("block", _of("cypher"))
async def test_cypher_runs(block: Block, engine: Engine) -> None:
    await engine.graph._read("a query of the docs", lambda tx: _consume(tx, block.text))


async def _consume(tx: Any, text: str) -> None:
    await (await tx.run(text)).consume()


# --- commands ------------------------------------------------------------------------------


@cache
def _commands() -> Any:
    return typer.main.get_command(build_app())


def _below(command: Any) -> dict[str, Any]:
    """Return the commands of a group; a command has none."""
    return getattr(command, "commands", {})


def _shell_commands(block: Block) -> list[str]:
    text = re.sub(r"\\\n\s*", " ", block.text)
    prompt = "$ " if block.language == "console" else ""
    lines = [line.removeprefix(prompt) for line in text.splitlines() if line.startswith(prompt)]
    return [
        part
        for line in lines
        for part in re.findall(r"(?:^|\$\(|[|] *|exec api )(ecphoria [^)|#]*)", line)
    ]


def _check_command(text: str) -> None:
    words = shlex.split(text.replace("[", "").replace("]", ""))[1:]
    command = _commands()
    while words and _below(command) and not words[0].startswith("-"):
        assert words[0] in _below(command), f"`{text}`: there is no command {words[0]!r}"
        command, words = _below(command)[words[0]], words[1:]
    options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    for word in words:
        if re.match(r"--?[a-z]", word):
            assert word.partition("=")[0] in options, f"`{text}`: there is no option {word}"


@pytest.mark.parametrize("block", _of("console", "sh"))
def test_commands_exist(block: Block) -> None:
    for command in _shell_commands(block):
        _check_command(command)


@pytest.mark.parametrize("page", _relative(DOCS))
def test_inline_commands_exist(page: Path) -> None:
    for command in _INLINE_COMMAND.findall(page.read_text(encoding="utf-8")):
        if "COMMAND" not in command:
            _check_command(command)


def test_remedies_name_commands_that_exist() -> None:
    for kind in error_classes():
        for command in _INLINE_COMMAND.findall(kind.remedy):
            _check_command(command)


# --- programs ------------------------------------------------------------------------------


async def _run_program(text: str, env: dict[str, str], folder: Path) -> str:
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    # not in this process: a program of the docs brings its own event loop
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        program,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(PROGRAM_LIMIT_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_the_tutorial_works(
    engine: Engine, cli_env: dict[str, str], tenant: str, tmp_path: Path
) -> None:
    """Everything of the tutorial, in order: GraphiQL's queries, curl's bodies, the programs."""
    _, key = await create_key(
        engine.graph,
        engine.clock,
        tenant=tenant,
        name="docs",
        roles=[Role.ADMIN],
        users=EveryUser.OF_TENANT,
    )
    env = cli_env | {"ECPHORIA_KEY": key}
    blocks = _blocks(TUTORIAL)
    done = {"graphql": 0, "console": 0, "python": 0}
    async with (
        running_server(create_app_for(engine)) as url,
        httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"}, timeout=60, trust_env=False
        ) as client,
    ):

        async def send(body: dict[str, Any]) -> str:
            response = await client.post(f"{url}/graphql", json=body)
            assert "errors" not in response.json(), response.text
            assert "REJECTED" not in response.text
            return response.text

        for place, block in enumerate(blocks):
            if block.language == "graphql":
                variables = blocks[place + 1]
                assert variables.language == "json", f"{block}: the variables are missing"
                await send({"query": block.text, "variables": json.loads(variables.text)})
                done["graphql"] += 1
            for body in _HERE_DOCUMENT.findall(block.text):
                assert "war-42" in await send(json.loads(body))
                done["console"] += 1
            if block.language == "python":
                said = await _run_program(block.text.replace(SERVER, url), env, tmp_path)
                assert "ANSWER" in said
                done["python"] += 1
    assert all(done.values()), done


@pytest.mark.parametrize(
    "block", [param for param in _of("python") if param.values[0].page != TUTORIAL] or [None]
)
async def test_programs_run(block: Block | None, cli_env: dict[str, str], tmp_path: Path) -> None:
    if block is None:
        pytest.skip("only the tutorial has programs")
    await _run_program(block.text, cli_env, tmp_path)


# --- links and pictures --------------------------------------------------------------------


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", _relative(DOCS))
def test_links_lead_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        assert target.is_relative_to(ROOT)
        if parts.fragment:
            assert parts.fragment in _anchors(target), f"{page.name}: {link} has no such heading"


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached:
            continue
        reached.add(page)
        links = _LINK.findall(page.read_text(encoding="utf-8"))
        paths = (urlsplit(link).path for link in links if "://" not in link)
        targets = ((page.parent / path).resolve() for path in paths)
        todo.extend(target for target in targets if target.suffix == ".md" and target.exists())
    assert set(DOCS) - reached == set()


def test_pictures_are_small_and_shown() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in DOCS)
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size < MAX_PICTURE_BYTES
        assert f"images/{picture.name}" in shown


# --- what the code already knows -----------------------------------------------------------


def test_generated_pages_are_up_to_date() -> None:
    script = ROOT / "docs" / "generate_reference.py"
    spec = importlib.util.spec_from_file_location("generate_reference", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(["--check"]) == 0


def test_the_command_reference_is_complete() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")

    def names(command: Any, path: str) -> Iterable[str]:
        if not _below(command):
            yield path
        for name, below in _below(command).items():
            yield from names(below, f"{path} {name}")

    for name in names(_commands(), "ecphoria"):
        assert f"`{name}" in page


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


# --- nothing of the machine it was written on ----------------------------------------------

# Written so that this file does not match itself.
_MACHINE = re.compile(
    r"/(?:root|Users|workspace|work)/[a-z]"
    r"|/home/(?!ecphoria\b)[a-z]"
    r"|/tmp/[a-z]{1,4}/"
    r"|[A-Z]:\\Users\\"
    r"|\b(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}(?::\d+|/)"
    r"|https?://[^/\s\"'`]*(?:artifactory|nexus|devpi|pypi-(?:mirror|proxy))",
)


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def _registry_hosts() -> set[str]:
    """Return the hosts that this machine gets packages from."""
    files = [Path.home() / ".m2" / "settings.xml", Path.home() / ".npmrc", Path("/etc/pip.conf")]
    told = [os.environ.get(name, "") for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")]
    told.extend(file.read_text(errors="replace") for file in files if file.is_file())
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, check=False
    )
    told.append(pip.stdout.decode(errors="replace"))
    hosts = {urlsplit(url).hostname for url in re.findall(r"https?://[^\s'\"<]+", " ".join(told))}
    return {host for host in hosts if host and not host.endswith(("apache.org", "w3.org"))}


def test_no_file_names_this_machine() -> None:
    hosts = _registry_hosts()
    found = []
    for file in _tracked():
        text = file.read_bytes().decode("utf-8", errors="replace")
        if "\0" in text or ".min." in file.name:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if _MACHINE.search(line) or any(host in line for host in hosts):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []
