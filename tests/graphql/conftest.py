"""Helpers for tests of the API: a client over any engine, and an engine without stores.

The engine without stores (`shop`) is for what real ones cannot do on demand: fail, hang, count.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from ecphoria.audit_log import no_audit
from ecphoria.changes import ChangeFeed
from ecphoria.errors import InvalidInput, NotFound
from ecphoria.governance.access import Operation, check_access
from ecphoria.governance.keys import create_key
from ecphoria.model import (
    Action,
    ApiKey,
    Confidence,
    ConfidencePart,
    ConsideredMemory,
    Entity,
    EntityReceipts,
    EntityRef,
    EveryUser,
    FeatureShare,
    IndexState,
    Link,
    LinkMethod,
    Memory,
    RecalledEntity,
    RecalledMemory,
    RecalledRelation,
    RecallResult,
    Receipt,
    ReceiptStatus,
    Role,
    Status,
    TraceStep,
    entity_key,
)
from ecphoria.recall.query_cache import QueryCache
from ecphoria.settings import Settings
from ecphoria.stores.ports import Lineage, ServerInfo
from ecphoria_graphql import app as app_module
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.schema import build_schema
from ecphoria_graphql.server import running_server
from ecphoria_schema.domain import Domain, load_domain, shipped_domain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

NOW = datetime(2025, 6, 15, 8, 0, 0, 250_000, tzinfo=UTC)
REPOSITORY = Path(__file__).parents[2]


# --- an engine without stores --------------------------------------------------------------


class Keys:
    """The part of a graph store that keeps API keys."""

    def __init__(self) -> None:
        self.by_id: dict[str, ApiKey] = {}
        self.failure: Exception | None = None

    async def save_api_key(self, key: ApiKey) -> None:
        self.by_id[key.id] = key

    async def rotate_api_key(self, key: ApiKey, expected_hash: str) -> bool:
        there = self.by_id.get(key.id)
        if there is None or there.secret_hash != expected_hash or there.revoked_at is not None:
            return False
        self.by_id[key.id] = key
        return True

    async def api_key(self, key_id: str) -> ApiKey | None:
        if self.failure is not None:
            raise self.failure
        return self.by_id.get(key_id)


class FrozenClock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.moment = NOW

    def now(self) -> datetime:
        return self.moment

    def token(self) -> str:
        return "a token"


@dataclass(frozen=True)
class Health:
    """What a healthy engine reports."""

    graph: ServerInfo = field(default=ServerInfo("Fake", "1"))
    vectors: ServerInfo = field(default=ServerInfo("Fake", "2"))
    sessions: ServerInfo = field(default=ServerInfo("Fake", "3"))
    model: str = "fake"


def _confidence(score: float) -> Confidence:
    return Confidence(
        score,
        ConfidencePart(score, "seen today", "STABLE"),
        ConfidencePart(score, "from the CRM"),
        ConfidencePart(score, "nothing disagrees"),
    )


class Shop:
    """An engine without stores: one user's few things, in any number, and what calls were made.

    Attributes:
        calls: How often each verb was called; `related` also by relation.
        failure: Raised by every verb when set.
    """

    def __init__(self, domain: Domain, settings: Settings) -> None:
        self.domain = domain
        self.settings = settings
        self.clock = FrozenClock()
        self.graph = Keys()
        self.audit = no_audit()
        self.changes = ChangeFeed()
        self.queries = QueryCache(settings.query_cache_size)
        self.failure: Exception | None = None
        self.failures: dict[str, Exception] = {}
        self.calls: Counter[str] = Counter()
        self.asked_for: set[str] = set()
        self.written: list[Any] = []
        self.entities_by_ref: dict[EntityRef, Entity] = {}
        self.edges: list[tuple[str, EntityRef, EntityRef]] = []
        self.memory_rows: dict[str, Memory] = {}
        self.link_rows: dict[str, tuple[Link, ...]] = {}
        self.lineage_rows: dict[str, tuple[Lineage, ...]] = {}

    def put(self, type_: str, id_: str, name: str = "", /, **props: Any) -> EntityRef:
        ref = EntityRef(type_, id_)
        self.entities_by_ref[ref] = Entity(
            entity_key("t", ref), type_, id_, name or id_, props, "u1", NOW, NOW
        )
        return ref

    def connect(self, relation: str, start: EntityRef, end: EntityRef) -> None:
        self.edges.append((relation, start, end))

    def memory_row(self, id_: str, text: str, *about: EntityRef, **changes: Any) -> Memory:
        made = Memory(
            key=f"t|Memory|{id_}", id=id_, tenant="t", user_id="u1", kind="episodic",
            topic="repair", text=text, lang="en", importance=0.5, source_id="crm",
            privacy="internal", occurred_at=NOW, valid_from=NOW, valid_until=None,
            expires_at=None, recorded_at=NOW, status=Status.ACTIVE, tier="hot",
            content_hash="h", embedding_model="m", index_state=IndexState.INDEXED,
            about=tuple(entity_key("t", ref) for ref in about),
        )  # fmt: skip
        self.memory_rows[id_] = made = replace(made, **changes)
        return made

    def _called(self, verb: str, user_id: str | None = None) -> None:
        self.calls[verb] += 1
        if user_id is not None:
            self.asked_for.add(user_id)
        failure = self.failures.get(verb, self.failure)
        if failure is not None:
            raise failure

    async def health(self) -> Health:
        self._called("health")
        return Health()

    async def warm_up(self) -> None:
        self._called("warm_up")

    async def work_for_ever(self, worker: str) -> None:
        assert worker
        self._called("work_for_ever")
        try:
            await asyncio.Event().wait()
        finally:
            self.calls["work ended"] += 1

    async def recall(self, scope: Any, request: Any) -> RecallResult:
        check_access(scope, Operation.RECALL)
        self._called("recall", scope.user(request.user_id))
        return RecallResult(
            action=Action.ANSWER,
            as_of=request.as_of or NOW,
            language="en",
            topics=request.topics or ("repair",),
            memories=tuple(
                RecalledMemory(row, 0.9, 1.5, 0.8, _confidence(0.8), ("question → memory",))
                for row in self.memory_rows.values()
            ),
            entities=tuple(
                RecalledEntity(entity, 0.7, _confidence(0.9), "User u1 → Order o1")
                for entity in self.entities_by_ref.values()
            ),
            relations=tuple(
                RecalledRelation(type_, start, end, 0.9) for type_, start, end in self.edges
            ),
            confidence=_confidence(0.85),
            advisory=None,
            context="the default block",
            degradations=(),
            trace=(
                TraceStep(
                    "seed",
                    1.5,
                    3,
                    {"expired": 2},
                    "note",
                    "1 question",
                    "3 seeds",
                    tuple(
                        ConsideredMemory(
                            row,
                            place=1,
                            relevance=0.9,
                            score=0.5,
                            similarity=None,
                            features=(FeatureShare("similarity", 0.5, 4.0, 0.25),),
                            dropped="expired",
                        )
                        for row in self.memory_rows.values()
                        if request.explain
                    ),
                ),
            ),
        )

    async def memory(self, scope: Any, user_id: str, memory_id: str) -> Memory:
        check_access(scope, Operation.READ)
        self._called("memory", scope.user(user_id))
        if memory_id not in self.memory_rows:
            msg = f"there is no memory {memory_id!r} in this scope"
            raise NotFound(msg)
        return self.memory_rows[memory_id]

    async def memories(self, scope: Any, user_id: str, ids: Sequence[str]) -> Any:
        check_access(scope, Operation.READ)
        self._called("memories", scope.user(user_id))
        return {id_: self.memory_rows[id_] for id_ in ids if id_ in self.memory_rows}

    async def links(self, scope: Any, user_id: str, ids: Sequence[str]) -> Any:
        check_access(scope, Operation.READ)
        self._called("links", scope.user(user_id))
        return {id_: self.link_rows.get(id_, ()) for id_ in ids}

    async def lineage(self, scope: Any, user_id: str, ids: Sequence[str]) -> Any:
        check_access(scope, Operation.READ)
        self._called("lineage", scope.user(user_id))
        return {id_: self.lineage_rows.get(id_, ()) for id_ in ids}

    def listen(self, scope: Any, user_id: str) -> Any:
        check_access(scope, Operation.READ)
        return self.changes.listen(scope.tenant, scope.user(user_id))

    async def entities(self, scope: Any, user_id: str, refs: Sequence[EntityRef]) -> Any:
        check_access(scope, Operation.READ)
        self._called("entities", scope.user(user_id))
        return {ref: self.entities_by_ref[ref] for ref in refs if ref in self.entities_by_ref}

    async def entity(self, scope: Any, user_id: str, ref: EntityRef) -> Entity:
        found = await self.entities(scope, user_id, [ref])
        if ref not in found:
            msg = f"there is no {ref.type} {ref.id!r} in this scope"
            raise NotFound(msg)
        return found[ref]

    async def related(
        self,
        scope: Any,
        user_id: str,
        refs: Sequence[EntityRef],
        relation: str,
        other: str,
        *,
        forward: bool = True,
        limit: int = 50,
    ) -> Any:
        assert len({ref.type for ref in refs}) == 1
        self._called("related", scope.user(user_id))
        self.calls[f"{relation}:{other}"] += 1
        found: dict[EntityRef, tuple[Entity, ...]] = {}
        for ref in refs:
            ends = [
                (end if forward else start)
                for type_, start, end in self.edges
                if type_ == relation and (start if forward else end) == ref
            ]
            found[ref] = tuple(
                self.entities_by_ref[end] for end in ends[:limit] if end.type == other
            )
        return found

    async def remember(self, scope: Any, items: Sequence[Any]) -> tuple[Receipt, ...]:
        check_access(scope, Operation.REMEMBER)
        self._called("remember")
        self.written.extend(items)
        return tuple(
            Receipt(
                index,
                ReceiptStatus.CREATED,
                f"m{index}",
                tuple(Link(ref, 1.0, LinkMethod.GIVEN) for ref in item.about),
                indexed=True,
            )
            for index, item in enumerate(items)
        )

    async def upsert_entities(self, scope: Any, entities: Any, relations: Any) -> EntityReceipts:
        check_access(scope, Operation.UPSERT_ENTITIES)
        self._called("upsert_entities")
        for index, entity in enumerate(entities):
            if "bad" in entity.props:
                msg = "`bad` is no good"
                raise InvalidInput(msg, path=("entities", index, "props", "bad"))
        self.written.extend([*entities, *relations])
        receipts = tuple(
            Receipt(index, ReceiptStatus.CREATED, entity.id)
            for index, entity in enumerate(entities)
        )
        return EntityReceipts(receipts, len(relations), 0)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, _env_file=None, reconcile_every_s=0.01)


@pytest.fixture
def shop(settings: Settings) -> Shop:
    """An engine without stores, with one user's order, two devices and a repair."""
    made = Shop(shipped_domain(), settings)
    user = made.put("User", "u1", "Zhang Wei", phone="13800000000", city="Wuhan")
    order = made.put("Order", "o1", status="paid", placed_at=NOW, total=1.5)
    made.connect("PLACED", user, order)
    for number in (1, 2):
        device = made.put("Device", f"d{number}", f"Phone {number}", serial=f"S{number}")
        repair = made.put("Repair", f"r{number}", status="closed", under_warranty=True)
        made.connect("CONTAINS", order, device)
        made.connect("HAS_REPAIR", device, repair)
    ticket = made.put("Ticket", "k1", "Broken", subject="Broken")
    made.connect("CONCERNS", ticket, order)
    made.connect("CONCERNS", ticket, EntityRef("Device", "d1"))
    made.connect("CONCERNS", ticket, EntityRef("Repair", "r1"))
    made.memory_row("m1", "The screen was replaced", EntityRef("Device", "d1"), order)
    made.memory_row("m2", "It rattles", EntityRef("Device", "d1"), EntityRef("Device", "d2"))
    return made


@pytest.fixture
def clinic() -> Domain:
    """A second domain that has nothing in common with the shipped one."""
    return load_domain(REPOSITORY / "tests" / "domains" / "clinic.yaml")


# --- a client over any engine --------------------------------------------------------------

_SCHEMAS: dict[str, Any] = {}


def _schema_once(domain: Domain) -> Any:
    # making one takes a good part of a second, and most tests make an application
    if domain.name not in _SCHEMAS:
        _SCHEMAS[domain.name] = build_schema(domain)
    return _SCHEMAS[domain.name]


@pytest.fixture(autouse=True)
def _schemas_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "build_schema", _schema_once)


@dataclass
class Api:
    """Talks to the application over an engine as an HTTP client does."""

    http: httpx.AsyncClient
    app: Any

    async def send(
        self, query: str, /, *, key: str | None = None, **variables: Any
    ) -> dict[str, Any]:
        """Run an operation; return the whole body."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        # unlike httpx's own, this lets NaN and lone surrogates pass
        content = json.dumps({"query": query, "variables": variables})
        response = await self.http.post("/graphql", content=content, headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("application/json")
        body: dict[str, Any] = response.json()
        return body

    async def data(self, query: str, /, **variables: Any) -> dict[str, Any]:
        """Run an operation that must succeed; return its data."""
        body = await self.send(query, **variables)
        assert "errors" not in body, body
        data: dict[str, Any] = body["data"]
        return data

    async def fault(self, query: str, /, **variables: Any) -> dict[str, Any]:
        """Run a mutation that must do nothing; return what its payload says about it."""
        (payload,) = (await self.data(query, **variables)).values()
        fault: dict[str, Any] | None = payload["error"]
        assert fault is not None, payload
        assert fault["message"]
        return fault

    async def error(self, query: str, /, **variables: Any) -> dict[str, Any]:
        """Run an operation that must fail with one error; return it."""
        body = await self.send(query, **variables)
        assert len(body.get("errors", ())) == 1, body
        error: dict[str, Any] = body["errors"][0]
        assert error["message"]
        assert error["extensions"]["remedy"]
        return error


@pytest.fixture
def new_key() -> Callable[..., Any]:
    """Make an API key of any engine: `await new_key(engine, "tenant", Role.AGENT)`."""

    async def make(
        engine: Any,
        tenant: str,
        *roles: Role,
        users: Any = EveryUser.OF_TENANT,
        lifetime: timedelta | None = None,
    ) -> str:
        _, secret = await create_key(
            engine.graph,
            engine.clock,
            tenant=tenant,
            name="test",
            roles=roles or (Role.ADMIN,),
            users=users,
            lifetime=lifetime,
        )
        return secret

    return make


@pytest.fixture
def api_over(new_key: Callable[..., Any]) -> Any:
    """Open a client over an engine, by default with an admin's key for tenant `t`.

    `async with api_over(engine, tenant="t", roles=(Role.AGENT,)) as api: ...`
    """

    @contextlib.asynccontextmanager
    async def open_(
        engine: Any,
        *,
        tenant: str = "t",
        roles: Sequence[Role] = (Role.ADMIN,),
        users: Any = EveryUser.OF_TENANT,
        anonymous: bool = False,
    ) -> AsyncIterator[Api]:
        app = create_app_for(engine)
        headers = {}
        if not anonymous:
            key = await new_key(engine, tenant, *roles, users=users)
            headers["Authorization"] = f"Bearer {key}"
        # exceptions that escape are answered, as a server answers them
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", headers=headers
        ) as http:
            yield Api(http, app)

    return open_


# --- a client of subscriptions -------------------------------------------------------------

PATIENCE_S = 60


@dataclass
class Live:
    """Talks ``graphql-transport-ws`` as a client does."""

    socket: ClientConnection

    async def send(self, type_: str, **message: Any) -> None:
        await self.socket.send(json.dumps({"type": type_, **message}))

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            message: dict[str, Any] = json.loads(await self.socket.recv())
            return message

    async def begin(self, **payload: Any) -> None:
        """Have the connection acknowledged."""
        await self.send("connection_init", **({"payload": payload} if payload else {}))
        assert await self.receive() == {"type": "connection_ack"}

    async def subscribe(self, id_: str, query: str, **variables: Any) -> None:
        await self.send("subscribe", id=id_, payload={"query": query, "variables": variables})

    async def next(self, id_: str) -> dict[str, Any]:
        """Return the data of the next result, which has no errors."""
        message = await self.receive()
        assert (message["type"], message["id"]) == ("next", id_), message
        assert "errors" not in message["payload"], message
        data: dict[str, Any] = message["payload"]["data"]
        return data

    async def errors(self, id_: str) -> list[dict[str, Any]]:
        """Return the errors that end an operation before its first result."""
        message = await self.receive()
        assert (message["type"], message["id"]) == ("error", id_), message
        found: list[dict[str, Any]] = message["payload"]
        assert all(error["message"] and error["extensions"]["remedy"] for error in found)
        return found

    async def error(self, id_: str) -> dict[str, Any]:
        """Return the one error that ends an operation before its first result."""
        (found,) = await self.errors(id_)
        return found

    async def closed(self) -> tuple[int | None, str | None]:
        """Return code and reason once the server has closed the connection."""
        async with asyncio.timeout(PATIENCE_S):
            await self.socket.wait_closed()
        return self.socket.close_code, self.socket.close_reason


@dataclass
class Server:
    """A server of its own, as `running_server` starts one."""

    url: str

    @contextlib.asynccontextmanager
    async def connect(
        self, key: str | None = None, *, protocol: str = "graphql-transport-ws", **headers: str
    ) -> AsyncIterator[Live]:
        """Open a websocket, with the key in a header when there is one."""
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        async with connect(
            f"{self.url.replace('http', 'ws', 1)}/graphql",
            subprotocols=[Subprotocol(protocol)],
            additional_headers=headers,
            proxy=None,
            max_size=None,
        ) as socket:
            yield Live(socket)


@pytest.fixture
def server_over() -> Any:
    """Serve an engine on a port of its own: `async with server_over(engine) as server: ...`."""

    @contextlib.asynccontextmanager
    async def open_(engine: Any) -> AsyncIterator[Server]:
        async with running_server(create_app_for(engine)) as url:
            yield Server(url)

    return open_


async def until_followed(engine: Any, tenant: str, user_id: str, times: int = 1) -> None:
    """Return once so many follow a user's changes."""
    async with asyncio.timeout(PATIENCE_S):
        while len(engine.changes._listeners.get((tenant, user_id), ())) != times:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
