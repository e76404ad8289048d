"""The ASGI application: GraphQL, GraphiQL, health checks and metrics over one engine."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from strawberry.subscriptions import GRAPHQL_SSE_PROTOCOL, GRAPHQL_TRANSPORT_WS_PROTOCOL

from ecphoria.engine import Engine, open_domain
from ecphoria.errors import EcphoriaError, InternalError, StoreUnavailable
from ecphoria_graphql.auth import Gate
from ecphoria_graphql.context import Context, Socket
from ecphoria_graphql.documents import Documents, open_documents
from ecphoria_graphql.endpoint import Endpoint
from ecphoria_graphql.error_codes import (
    error_body,
    error_response,
    json_response,
    request_fault,
)
from ecphoria_graphql.graphiql import graphiql_routes
from ecphoria_graphql.limits import BodyLimit
from ecphoria_graphql.metrics import MEDIA_TYPE, Metrics
from ecphoria_graphql.negotiation import JSON, accepted
from ecphoria_graphql.schema import Schema, build_schema

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ecphoria.settings import Settings
    from ecphoria_schema.domain import Domain

_log = structlog.get_logger(__name__)

GRAPHQL_PATH = "/graphql"
READY_TIMEOUT_S = 5.0
INIT_TIMEOUT_S = 10.0


async def _context(connection: HTTPConnection) -> Context | Socket:
    gate: Gate = connection.app.state.gate
    metrics: Metrics = connection.app.state.metrics
    if connection.scope["type"] == "websocket":
        return Socket(gate, connection.headers, metrics, connection.app.state.documents)
    given = connection.headers.items()
    scope = await gate.admit(given)
    return Context(gate, scope, metrics, lambda: gate.scope(given))


async def _work(engine: Engine) -> None:
    try:
        # behind the first requests, not before them: they would only wait for the same
        await engine.warm_up()
    except EcphoriaError as error:
        _log.warning("warm-up failed", code=error.code, reason=error.message)
    await engine.work_for_ever(engine.clock.token())


@contextlib.asynccontextmanager
async def _serving(engine: Engine) -> AsyncIterator[None]:
    worker = asyncio.create_task(_work(engine), name="worker")
    try:
        yield
    finally:
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker


def create_app(settings: Settings) -> FastAPI:
    """Return the application; its lifespan opens and closes the engine.

    Raises:
        DomainFileInvalid: With every fault of the domain file.
        ConfigurationInvalid: When a file that the settings name cannot be read.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with Engine.open(settings) as engine:
            _attach(app, engine)
            async with _serving(engine):
                yield

    return _app(settings, open_domain(settings), lifespan)


def create_app_for(engine: Engine) -> FastAPI:
    """Return the application over an open engine, which stays the caller's to close.

    It answers at once; background work begins only once a server starts the lifespan.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with _serving(engine):
            yield

    app = _app(engine.settings, engine.domain, lifespan)
    _attach(app, engine)
    return app


def _attach(app: FastAPI, engine: Engine) -> None:
    app.state.engine = engine
    app.state.gate = Gate.of(engine)


def _app(settings: Settings, domain: Domain, lifespan: Any) -> FastAPI:  # noqa: ANN401 - Starlette's Lifespan
    # no OpenAPI pages: the API is GraphQL, and their assets would come from elsewhere
    app = FastAPI(
        title="ecphoria", lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None
    )
    app.add_middleware(
        BodyLimit, max_bytes=settings.max_request_bytes, seconds=settings.client_timeout_s
    )
    app.add_exception_handler(EcphoriaError, _on_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)
    app.router.routes.extend(graphiql_routes(GRAPHQL_PATH, f"ecphoria: {domain.title.en}"))
    app.state.documents = open_documents(settings)
    app.include_router(_endpoint(build_schema(domain), app.state.documents))
    app.add_api_route("/healthz", _healthz, methods=["GET"])
    app.add_api_route("/readyz", _readyz, methods=["GET"])
    # only asked once there is an engine
    app.state.metrics = Metrics(lambda: app.state.engine.queries)
    app.add_api_route("/metrics", _metrics, methods=["GET"])
    return app


def _endpoint(schema: Schema, documents: Documents) -> Endpoint:
    made = Endpoint(
        schema,
        path=GRAPHQL_PATH,
        graphql_ide=None,
        context_getter=_context,
        subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL, GRAPHQL_SSE_PROTOCOL),
        connection_init_wait_timeout=timedelta(seconds=INIT_TIMEOUT_S),
        # `sockets` has the limit, with a typed error
        max_subscriptions_per_connection=None,
    )
    made.documents, made.parsed = documents, schema.parsed
    return made


async def _on_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, EcphoriaError):
        raise error
    return error_response(error, accepted(request.headers.get("accept")).json or JSON)


async def _on_http_error(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return request_fault(str(error.detail), error.status_code)


async def _on_bug(_request: Request, _error: Exception) -> Response:
    # the server logs it with its traceback; the client learns nothing but that it happened
    return error_response(InternalError("an internal error happened; the log has it"))


async def _healthz() -> Response:
    return json_response({"status": "alive"}, 200)


async def _readyz(request: Request) -> Response:
    engine: Engine = request.app.state.engine
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            health = await engine.health()
    except TimeoutError:
        msg = f"the stores did not answer within {READY_TIMEOUT_S:g} seconds"
        return _not_ready(StoreUnavailable(msg))
    except EcphoriaError as error:
        return _not_ready(error)
    stores = {
        "graph": f"{health.graph.product}/{health.graph.version}",
        "vectors": f"{health.vectors.product}/{health.vectors.version}",
        "sessions": f"{health.sessions.product}/{health.sessions.version}",
    }
    return json_response({"status": "ready", **stores, "model": health.model}, 200)


async def _metrics(request: Request) -> Response:
    metrics: Metrics = request.app.state.metrics
    return Response(metrics.page(), headers={"Content-Type": MEDIA_TYPE})


def _not_ready(error: EcphoriaError) -> Response:
    return json_response({"status": "not ready", **error_body(error)}, 503)
