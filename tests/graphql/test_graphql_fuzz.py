"""Operations made at random from the schema: whatever is asked, the answer is a typed one.

A hundred of them, always the same, unless ``FUZZ_EXAMPLES`` says how many new ones; see
docs/how-to/production.md.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Any

import httpx
import pytest
import schemathesis
import schemathesis.graphql
from graphql import (
    ArgumentNode,
    IntValueNode,
    ObjectFieldNode,
    StringValueNode,
    Visitor,
    parse,
    parse_value,
    print_ast,
    visit,
)
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from schemathesis.graphql import nodes

from ecphoria.model import EveryUser, MemoryInput, Role, Scope
from ecphoria_graphql.export import export_sdl
from ecphoria_graphql.negotiation import JSON, RESPONSE_JSON
from ecphoria_schema.domain import shipped_domain

from .test_graphql_engine import UPSERT, shop_of
from .test_graphql_hostile import CODES, HOSTILE, NEVER, codes, leaks

pytestmark = pytest.mark.asyncio(loop_scope="session")

EXAMPLES = os.environ.get("FUZZ_EXAMPLES")
NO_GRAPHQL = {400, 405, 406, 413, 415}
RUNNING = settings(
    max_examples=int(EXAMPLES or 100),
    # the same in every run of the tests; when asked for more, other ones, and a short one at last
    derandomize=EXAMPLES is None,
    phases=[Phase.generate] if EXAMPLES is None else [Phase.generate, Phase.shrink],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TIMES = ("2025-06-15T08:00:00Z", "9999-12-31T23:59:59+14:00", "0001-01-01T00:00:00Z", "x")
PROPERTIES = ("{status: 1}", '{status: "paid", total: 1.5}', "[]", "null", '{a: {b: [1, "x"]}}')
# Ids of the others are strings like any other, which the tests of hostile input see to.
IDS = st.sampled_from(["u1", "u1-m", "u1-m2", "u1-o", "u1-d", "u1-s", "shared-m", *HOSTILE])


class _Known(Visitor):
    """Puts what there is in the place of most ids, since hardly any random one would be found."""

    def __init__(self, data: Any) -> None:
        super().__init__()
        self._data = data

    def _put(self, node: Any) -> Any:
        wanted = node.name.value.lower().endswith(("id", "ids"))
        if not wanted or not isinstance(node.value, StringValueNode | IntValueNode):
            return None
        value = "u1" if node.name.value == "userId" else None
        if value is None or self._data.draw(st.integers(0, 9)) == 0:
            value = self._data.draw(IDS)
        return replace(node, value=StringValueNode(value=value))

    def enter_argument(self, node: ArgumentNode, *_: Any) -> Any:
        return self._put(node)

    def enter_object_field(self, node: ObjectFieldNode, *_: Any) -> Any:
        return self._put(node)


@pytest.fixture(scope="module")
def operations() -> list[Any]:
    """Return what schemathesis knows of our schema: one item a top-level field."""
    schemathesis.graphql.scalar("DateTime", st.sampled_from(TIMES).map(nodes.String))
    schemathesis.graphql.scalar("JSON", st.sampled_from(PROPERTIES).map(parse_value))
    schema = schemathesis.graphql.from_file(export_sdl(shipped_domain()))
    return [found.ok() for found in schema.get_all_operations()]


def check(response: schemathesis.Response, accept: str) -> None:
    """Hold an answer against GraphQL over HTTP."""
    (media,) = response.headers["content-type"]
    assert media.split(";")[0] == accept
    body = response.json()
    assert body.keys() <= {"data", "errors", "extensions"}
    errors = body.get("errors", [])
    if "data" in body:
        assert response.status_code == 200
        assert body["data"] is not None or errors
    else:
        assert errors
        assert response.status_code in NO_GRAPHQL or (
            response.status_code == 200 and accept == JSON
        )
    assert "errors" not in body or errors
    for error in errors:
        assert error["message"]
        assert error.keys() <= {"message", "locations", "path", "extensions"}
        assert error["extensions"]["remedy"]
    for code, message in codes(body):
        assert code in CODES - NEVER, message
        assert not leaks(message, ""), message


async def test_whatever_is_asked_the_answer_is_a_typed_one(
    engine: Any,
    tenant: str,
    new_key: Any,
    api_over: Any,
    server_over: Any,
    operations: list[Any],
) -> None:
    scope = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    async with api_over(engine, tenant=tenant) as api:
        entities, relations = shop_of("u1", "13800000001")
        await api.data(UPSERT, entities=entities, relations=relations)
    texts = {"u1-m": "The parcel came late", "u1-m2": "包裹到了"}
    await engine.remember(scope, [MemoryInput(text, "u1", id=id_) for id_, text in texts.items()])
    await engine.remember(scope, [MemoryInput("Shops open at 9", None, id="shared-m")])
    await engine.remember_turn(scope, "u1", "u1-s", "customer", "Where is it?")
    key = await new_key(engine, tenant)
    async with server_over(engine) as server:
        await asyncio.to_thread(_fuzz, server.url, key, operations)
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            assert (await http.get("/readyz")).status_code == 200
    # background work is not stuck on anything that was written
    await engine.audit.flush()


def _fuzz(url: str, key: str, operations: list[Any]) -> None:
    @RUNNING
    @given(st.data())
    def run(data: Any) -> None:
        case = data.draw(data.draw(st.sampled_from(operations)).as_strategy())
        document = print_ast(visit(parse(case.body), _Known(data)))
        if data.draw(st.integers(0, 9)) == 0:
            cut = data.draw(st.integers(0, len(document)))
            document = document[:cut] + data.draw(
                st.sampled_from(["", "}", '"', "…", "@x", "\x00"])
            )
        accept = data.draw(st.sampled_from([JSON, RESPONSE_JSON]))
        note(document)
        case.body = document
        response = case.call(
            base_url=f"{url}/graphql", headers={"X-API-Key": key, "Accept": accept}
        )
        check(response, accept)

    run()
