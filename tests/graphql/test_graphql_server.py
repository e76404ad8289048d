"""The server: health, the reconciler, ports, the page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from graphql import FieldNode, OperationDefinitionNode, parse, validate

from ecphoria.errors import (
    ConfigurationInvalid,
    DomainFileInvalid,
    InternalError,
    PortInUse,
    StoreUnavailable,
)
from ecphoria.settings import Settings
from ecphoria_graphql import app as app_module
from ecphoria_graphql import server as server_module
from ecphoria_graphql.app import create_app, create_app_for
from ecphoria_graphql.field_access import top_level_fields
from ecphoria_graphql.graphiql import ASSETS_PATH, EXAMPLES
from ecphoria_graphql.schema import build_schema
from ecphoria_graphql.server import base_url, bind, running_server, serve
from ecphoria_schema.domain import shipped_domain

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_healthz_and_readyz(shop: Any, api_over: Any) -> None:
    async with api_over(shop, anonymous=True) as api:
        assert (await api.http.get("/healthz")).json() == {"status": "alive"}
        ready = await api.http.get("/readyz")
        assert ready.status_code == 200
        assert ready.json() == {
            "status": "ready",
            "graph": "Fake/1",
            "vectors": "Fake/2",
            "sessions": "Fake/3",
            "model": "fake",
        }
        shop.failures["health"] = StoreUnavailable("the vector store does not answer")
        away = await api.http.get("/readyz")
        assert away.status_code == 503
        assert away.json()["status"] == "not ready"
        assert away.json()["errors"][0]["extensions"]["code"] == "STORE_UNAVAILABLE"
        # alive all the same: a restart would not bring the store back
        assert (await api.http.get("/healthz")).status_code == 200
        shop.failures.clear()
        assert (await api.http.get("/readyz")).status_code == 200


async def test_readyz_does_not_wait_for_ever(
    shop: Any, api_over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang() -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(app_module, "READY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(shop, "health", hang)
    async with api_over(shop, anonymous=True) as api:
        response = await api.http.get("/readyz")
    assert response.status_code == 503
    assert response.json()["errors"][0]["extensions"]["code"] == "STORE_UNAVAILABLE"


@pytest.mark.parametrize("failure", [StoreUnavailable("away"), None])
async def test_background_work_goes_on_while_it_serves(
    shop: Any, failure: Exception | None
) -> None:
    if failure is not None:
        # a store that was away for the first questions is no reason not to work later
        shop.failures["warm_up"] = failure
    async with running_server(create_app_for(shop)):
        async with asyncio.timeout(10):
            while not shop.calls["work_for_ever"]:  # noqa: ASYNC110 - a plain counter will do
                await asyncio.sleep(0.01)
        assert shop.calls["work ended"] == 0
    assert (shop.calls["work_for_ever"], shop.calls["work ended"]) == (1, 1)


async def test_running_server_answers_and_stops(shop: Any) -> None:
    async with running_server(create_app_for(shop)) as url:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{url}/readyz")).status_code == 200
    async with httpx.AsyncClient(trust_env=False) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(f"{url}/readyz")


async def test_a_port_in_use_is_named(shop: Any, settings: Settings) -> None:
    with contextlib.closing(bind("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=str(port)):
            bind("127.0.0.1", port)
        with pytest.raises(PortInUse, match=str(port)):
            async with running_server(create_app_for(shop), port=port):
                pass
        # before any store is opened: the data directory stays empty
        with pytest.raises(PortInUse, match=str(port)):
            serve(settings, port=port)
    assert list(settings.data_dir.iterdir()) == []


@pytest.mark.parametrize("host", ["203.0.113.77", "no such host", "host.invalid", "a" * 300])
async def test_addresses_that_are_not_ours(host: str) -> None:
    with pytest.raises(ConfigurationInvalid):
        bind(host, 0)


async def test_base_url_is_reachable() -> None:
    with contextlib.closing(bind("0.0.0.0", 0)) as listener:  # noqa: S104
        assert base_url(listener).startswith("http://127.0.0.1:")
    if socket.has_ipv6:
        with (
            contextlib.suppress(ConfigurationInvalid),
            contextlib.closing(bind("::1", 0)) as listener,
        ):
            assert base_url(listener).startswith("http://[::1]:")


async def test_an_application_that_does_not_start() -> None:
    async def broken(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    with pytest.raises(InternalError):
        async with running_server(broken):
            pytest.fail("it started")


async def test_create_app_opens_and_closes_the_engine(
    shop: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    @dataclass
    class Opening:
        @staticmethod
        @contextlib.asynccontextmanager
        async def open(given: Settings) -> Any:
            assert given is settings
            steps.append("opened")
            yield shop
            steps.append("closed")

    monkeypatch.setattr(app_module, "Engine", Opening)
    async with running_server(create_app(settings)) as url:
        assert steps == ["opened"]
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{url}/readyz")).status_code == 200
    assert steps == ["opened", "closed"]


async def test_create_app_reads_the_domain_first(tmp_path: Any) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("version: 2\n")
    with pytest.raises(DomainFileInvalid, match=r"bad\.yaml:1"):
        create_app(Settings(data_dir=tmp_path, domain=str(file), _env_file=None))


async def test_serve_announces_and_stops_on_a_signal(tmp_path: Any) -> None:
    # a process of its own: signals and event loops are the process's
    import signal  # noqa: PLC0415
    import sys  # noqa: PLC0415

    script = tmp_path / "run.py"
    script.write_text(SERVE)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 30) == b"opened\n"
    url = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"{url}/healthz")).status_code == 200
    process.send_signal(signal.SIGTERM)
    rest = await asyncio.wait_for(process.stdout.read(), 30)
    assert rest == b"closed\nreturned\n"
    assert await process.wait() == 0
    assert server_module.GRACE_S > 0


SERVE = """
import asyncio
import contextlib
import sys

import structlog
from ecphoria.clock import Clock
from ecphoria.settings import Settings
from ecphoria_graphql import server
from ecphoria_schema.domain import shipped_domain

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))

class Fake:
    settings = Settings(_env_file=None, reconcile_every_s=60)
    domain = shipped_domain()
    clock = Clock()
    async def warm_up(self):
        return None
    async def work_for_ever(self, worker):
        await asyncio.sleep(60)

class Opening:
    @staticmethod
    @contextlib.asynccontextmanager
    async def open(settings):
        print("opened", flush=True)
        try:
            yield Fake()
        finally:
            print("closed", flush=True)

server.Engine = Opening
server.serve(Fake.settings, "127.0.0.1", 0, announce=lambda url: print(url, flush=True))
print("returned", flush=True)
"""


# --- the page ------------------------------------------------------------------------------


async def test_the_page_needs_nothing_from_elsewhere(shop: Any, api_over: Any) -> None:
    async with api_over(shop, anonymous=True) as api:
        page = await api.http.get("/graphql", headers={"Accept": "text/html,*/*;q=0.8"})
        assert page.status_code == 200
        assert not re.search(r"(?:https?:)?//\w", page.text)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "http" not in policy
        assert "unsafe-eval" not in policy
        links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert len([link for link in links if link.startswith(ASSETS_PATH)]) >= 5
        for link in links:
            if link.startswith("data:"):
                continue
            asset = await api.http.get(link)
            assert asset.status_code == 200, link
            assert asset.headers["content-type"].split(";")[0] in {"text/css", "text/javascript"}
            assert asset.headers["x-content-type-options"] == "nosniff"
            if link.endswith(".css"):
                assert not re.search(r"url\(['\"]?(?!data:)", asset.text), link
                assert "@import" not in asset.text
        # no inline script: the policy would refuse it
        assert not re.search(r"<script(?![^>]*\bsrc=)", page.text)


async def test_the_page_is_for_browsers_only(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        plain = await api.http.get("/graphql", headers={"Accept": "*/*"})
        assert plain.status_code == 400
        # a browser that is given a query sees the page, too: it has no key to run it
        page = await api.http.get(
            "/graphql", params={"query": "{ __typename }"}, headers={"Accept": "text/html"}
        )
        assert page.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("name", ["none.js", "README.md", "..%2Fapp.py", "%2e%2e/app.py", ""])
async def test_no_other_file_is_served(shop: Any, api_over: Any, name: str) -> None:
    async with api_over(shop, anonymous=True) as api:
        assert (await api.http.get(f"{ASSETS_PATH}/{name}")).status_code == 404


async def test_the_page_has_an_example_of_every_operation(shop: Any, api_over: Any) -> None:
    async with api_over(shop, anonymous=True) as api:
        answer = await api.http.get(f"{ASSETS_PATH}/{EXAMPLES}")
        page = (await api.http.get("/graphql", headers={"Accept": "text/html"})).text
    assert answer.headers["content-type"] == "application/json"
    assert f'data-assets="{ASSETS_PATH}"' in page
    schema = build_schema(shipped_domain())._schema
    shown = set()
    for example in answer.json()["operations"]:
        document = parse(example["body"])
        assert validate(schema, document) == []
        # what it is for stands above it
        assert example["body"].startswith("# ")
        (operation,) = document.definitions
        assert isinstance(operation, OperationDefinitionNode)
        shown |= {
            f"{operation.operation.value.title()}.{field.name.value}"
            for field in operation.selection_set.selections
            if isinstance(field, FieldNode)
        }
    assert shown == set(top_level_fields(schema))


async def test_assets_come_with_their_licences() -> None:
    from importlib import resources  # noqa: PLC0415

    assets = resources.files("ecphoria_graphql") / "graphiql_assets"
    for name in ("graphiql", "react", "fira-code", "roboto", "codemirror"):
        assert (assets / f"LICENSE.{name}").is_file()


async def test_the_page_keeps_no_key_in_the_browser() -> None:
    from importlib import resources  # noqa: PLC0415

    page = (resources.files("ecphoria_graphql") / "graphiql_assets" / "page.js").read_text("utf-8")
    # GraphiQL's history would: so it gets a storage that drops headers
    assert "shouldPersistHeaders: false" in page
    assert "storage," in page
    assert 'name === "headers" ? null' in page
