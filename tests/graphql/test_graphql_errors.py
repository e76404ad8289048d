"""Every fault comes out with a stable code, a sentence and its place, and nothing internal."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from ecphoria.errors import (
    EcphoriaError,
    InternalError,
    InvalidInput,
    StoreUnavailable,
    error_classes,
)
from ecphoria.model import Role
from ecphoria_graphql.error_codes import MEANINGS, REMEDIES, GraphQLCode, status_of
from ecphoria_graphql.write_faults import FAULTS, TOP_LEVEL

pytestmark = pytest.mark.asyncio(loop_scope="session")

REMEMBER = "mutation ($input: MemoryInput!) { remember(input: $input) { status } }"
UPSERT = """mutation ($entities: [EntityInput!]!, $relations: [RelationInput!]!) {
  upsertEntities(input: {entities: $entities, relations: $relations}) {
    relationsCreated error { __typename code message remedy retryable path } } }"""
RECALL = """query ($input: RecallInput!) { recall(input: $input) { action } }"""
ENTITY = """query ($userId: ID!, $type: EntityType!, $id: ID!) {
  entity(userId: $userId, type: $type, id: $id) { id } }"""

QUESTION = {"question": "q", "userId": "u1"}
ORDER = {"type": "Order", "id": "o1"}

# operation, variables -> code, place in the input
BAD_VARIABLES: list[tuple[str, dict[str, Any], str, list[str | int]]] = [
    (RECALL, {}, "BAD_USER_INPUT", ["input"]),
    (RECALL, {"input": None}, "BAD_USER_INPUT", ["input"]),
    (RECALL, {"input": "text"}, "BAD_USER_INPUT", ["input"]),
    (RECALL, {"input": {"question": "q"}}, "BAD_USER_INPUT", ["input"]),
    (RECALL, {"input": {**QUESTION, "userId": None}}, "BAD_USER_INPUT", ["input", "userId"]),
    (RECALL, {"input": {**QUESTION, "userId": ["a"]}}, "BAD_USER_INPUT", ["input", "userId"]),
    (RECALL, {"input": {**QUESTION, "user": "u2"}}, "BAD_USER_INPUT", ["input"]),
    (RECALL, {"input": {**QUESTION, "question": 5}}, "BAD_USER_INPUT", ["input", "question"]),
    (RECALL, {"input": {**QUESTION, "limit": "x"}}, "BAD_USER_INPUT", ["input", "limit"]),
    (RECALL, {"input": {**QUESTION, "limit": 1.5}}, "BAD_USER_INPUT", ["input", "limit"]),
    (RECALL, {"input": {**QUESTION, "limit": 2**40}}, "BAD_USER_INPUT", ["input", "limit"]),
    (RECALL, {"input": {**QUESTION, "kinds": ["DREAM"]}}, "BAD_USER_INPUT", ["input", "kinds", 0]),
    (RECALL, {"input": {**QUESTION, "userId": ""}}, "INVALID_SCOPE", []),
    (RECALL, {"input": {**QUESTION, "userId": "*"}}, "INVALID_SCOPE", []),
    (RECALL, {"input": {**QUESTION, "userId": " u1"}}, "INVALID_SCOPE", []),
    (RECALL, {"input": {**QUESTION, "userId": "\ud800"}}, "INVALID_SCOPE", []),
    (RECALL, {"input": {**QUESTION, "userId": "u" * 10_000}}, "INVALID_SCOPE", []),
    (RECALL, {"input": {**QUESTION, "asOf": "2025-01-01"}}, "INVALID_TIME", ["input", "asOf"]),
    (
        RECALL,
        {"input": {**QUESTION, "asOf": "2025-01-01T00:00:00"}},
        "INVALID_TIME",
        ["input", "asOf"],
    ),
    (RECALL, {"input": {**QUESTION, "asOf": "soon"}}, "INVALID_TIME", ["input", "asOf"]),
    (RECALL, {"input": {**QUESTION, "asOf": 1735689600}}, "INVALID_TIME", ["input", "asOf"]),
    (
        RECALL,
        {"input": {**QUESTION, "asOf": "0001-01-01T00:00:00+14:00"}},
        "INVALID_TIME",
        ["input", "asOf"],
    ),
    (
        REMEMBER,
        {"input": {"text": "x", "userId": "u1", "occurredAt": "2025-02-30T00:00:00Z"}},
        "INVALID_TIME",
        ["input", "occurredAt"],
    ),
    (
        REMEMBER,
        {"input": {"text": "x", "userId": "u1", "about": [{"type": "Moon", "id": "1"}]}},
        "UNKNOWN_ENTITY_TYPE",
        ["input", "about", 0, "type"],
    ),
    (
        REMEMBER,
        {"input": {"text": "x", "userId": "u1", "importance": float("nan")}},
        "BAD_USER_INPUT",
        ["input", "importance"],
    ),
    (
        REMEMBER,
        {"input": {"text": "x", "userId": "u1", "importance": float("inf")}},
        "BAD_USER_INPUT",
        ["input", "importance"],
    ),
    (
        REMEMBER,
        {"input": {"text": ["x"], "userId": "u1"}},
        "BAD_USER_INPUT",
        ["input", "text"],
    ),
    (
        UPSERT,
        {"entities": [{"type": "Moon", "id": "1"}], "relations": []},
        "UNKNOWN_ENTITY_TYPE",
        ["entities", 0, "type"],
    ),
    (
        UPSERT,
        {"entities": [], "relations": [{"type": "EATS", "from": ORDER, "to": ORDER}]},
        "UNKNOWN_RELATION",
        ["relations", 0, "type"],
    ),
    (ENTITY, {**ORDER, "userId": "u1", "id": "none"}, "NOT_FOUND", []),
    (ENTITY, {**ORDER, "userId": "u1", "type": "Moon"}, "UNKNOWN_ENTITY_TYPE", ["type"]),
    (ENTITY, {**ORDER, "userId": "*"}, "INVALID_SCOPE", []),
]


@pytest.mark.parametrize(("query", "variables", "code", "path"), BAD_VARIABLES)
async def test_bad_variables(
    shop: Any, api_over: Any, query: str, variables: Any, code: str, path: list[str | int]
) -> None:
    async with api_over(shop) as api:
        error = await api.error(query, **variables)
    assert error["extensions"]["code"] == code, error
    place = error["extensions"].get("path", [])
    if path or code not in {"INVALID_SCOPE", "NOT_FOUND"}:
        assert place == path, error
    assert error["message"]
    assert error["extensions"]["remedy"]
    assert error["extensions"]["retryable"] is False
    assert shop.written == []


@pytest.mark.parametrize(
    ("entities", "path"),
    [
        ([{**ORDER, "properties": [1]}], ["input", "entities", "0", "properties"]),
        (
            [ORDER, {**ORDER, "properties": {"bad": 1}}],
            ["input", "entities", "1", "properties", "bad"],
        ),
    ],
)
async def test_what_a_mutation_finds_comes_in_its_payload(
    shop: Any, api_over: Any, entities: Any, path: list[str]
) -> None:
    async with api_over(shop) as api:
        fault = await api.fault(UPSERT, entities=entities, relations=[])
    assert fault.pop("message")
    assert fault == {
        "__typename": "InvalidInputFault",
        "code": "INVALID_INPUT",
        "remedy": InvalidInput.remedy,
        "retryable": False,
        "path": path,
    }
    assert shop.written == []


@pytest.mark.parametrize("kind", list(error_classes()))
async def test_of_every_error_it_is_said_where_a_mutation_has_it(
    shop: Any, api_over: Any, kind: type[EcphoriaError]
) -> None:
    assert (kind in FAULTS) is not (kind in TOP_LEVEL)
    shop.failures["upsert_entities"] = kind("a sentence", path=("props",))
    variables = {"entities": [ORDER], "relations": []}
    async with api_over(shop) as api:
        if kind in FAULTS:
            fault = await api.fault(UPSERT, **variables)
            assert (fault["code"], fault["retryable"]) == (kind.code, kind.retryable)
            assert (fault["message"], fault["path"]) == ("a sentence", ["input", "properties"])
        else:
            error = await api.error(UPSERT, **variables)
            assert error["extensions"]["code"] == kind.code


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{", "GRAPHQL_PARSE_FAILED"),
        ("not graphql", "GRAPHQL_PARSE_FAILED"),
        ("{ nothing }", "GRAPHQL_VALIDATION_FAILED"),
        ('{ memory(userId: "u1") { id } }', "GRAPHQL_VALIDATION_FAILED"),
        ('{ memory(id: "m1") { id } }', "GRAPHQL_VALIDATION_FAILED"),
        ('{ entity(userId: "u1", type: Moon, id: "x") { id } }', "UNKNOWN_ENTITY_TYPE"),
        (
            '{ recall(input: {question: "q", userId: "u1", asOf: "2025-01-01"}) { action } }',
            "INVALID_TIME",
        ),
        ("query A { __typename } { __typename }", "GRAPHQL_VALIDATION_FAILED"),
        ("query ($a: ID) { __typename }", "GRAPHQL_VALIDATION_FAILED"),
        ("query ($a: None) { __typename @skip(if: $a) }", "GRAPHQL_VALIDATION_FAILED"),
        ('query ($a: Int) { memory(userId: $a, id: "m1") { id } }', "GRAPHQL_VALIDATION_FAILED"),
        ('{ memory(userId: 1.5, id: "m1") { id } }', "GRAPHQL_VALIDATION_FAILED"),
        ("{ ...none }", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription { x }", "GRAPHQL_VALIDATION_FAILED"),
    ],
)
async def test_bad_queries(shop: Any, api_over: Any, query: str, code: str) -> None:
    async with api_over(shop) as api:
        response = await api.http.post("/graphql", json={"query": query})
    body = response.json()
    codes = {error["extensions"]["code"] for error in body["errors"]}
    assert codes <= {code, "BAD_REQUEST"}, body
    assert response.status_code in {200, 400}


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"null", "application/json", 400),
        (b"5", "application/json", 400),
        (b'"text"', "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "application/json", 400),
        (b'{"query": null}', "application/json", 400),
        (b'{"query": 5}', "application/json", 400),
        (b'{"query": ""}', "application/json", 400),
        (b'{"query": "{__typename}", "variables": []}', "application/json", 400),
        (b'{"query": "{__typename}", "variables": "x"}', "application/json", 400),
        (b'{"query": "{__typename}", "operationName": 5}', "application/json", 400),
        (b'{"query": "{__typename}", "operationName": "X"}', "application/json", 400),
        (b'[{"query": "{__typename}"}]', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"query": "{__typename}", "variables": {"a": ' + b"9" * 5000 + b"}}",
         "application/json", 400),
        (b"query={__typename}", "application/x-www-form-urlencoded", 415),
        (b"{__typename}", "text/plain", 415),
        (b"--x\r\n", "multipart/form-data; boundary=x", 415),
    ],
)  # fmt: skip
async def test_requests_that_are_no_graphql(
    shop: Any, api_over: Any, content: bytes, media_type: str, status: int
) -> None:
    async with api_over(shop) as api:
        response = await api.http.post(
            "/graphql", content=content, headers={"Content-Type": media_type}
        )
    assert response.status_code == status, response.text
    (error,) = response.json()["errors"]
    assert error["extensions"]["code"] == "BAD_REQUEST"
    assert error["message"]


async def test_other_methods_and_paths(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        for response in (
            await api.http.put("/graphql", json={}),
            await api.http.delete("/graphql"),
            await api.http.get("/elsewhere"),
            await api.http.get("/docs"),
            await api.http.get("/openapi.json"),
        ):
            assert response.status_code in {404, 405}
            assert response.json()["errors"][0]["extensions"]["code"] == "BAD_REQUEST"


@pytest.mark.parametrize("kind", [kind for kind in error_classes() if kind is not InternalError])
async def test_every_error_of_the_engine_keeps_its_code(
    shop: Any, api_over: Any, kind: type[EcphoriaError]
) -> None:
    shop.failure = kind("what is wrong", path=("a", 1))
    async with api_over(shop) as api:
        error = await api.error(RECALL, input=QUESTION)
    assert error["message"] == "what is wrong"
    assert error["path"] == ["recall"]
    assert error["extensions"] == {
        "code": kind.code,
        "retryable": kind.retryable,
        "remedy": kind.remedy,
        "path": ["input", "a", 1],
    }
    assert 400 <= status_of(kind("x")) <= 503


async def test_codes_are_unique() -> None:
    codes = [kind.code for kind in error_classes()] + [code.value for code in GraphQLCode]
    assert len(set(codes)) == len(codes)
    assert set(REMEDIES) == set(MEANINGS) == set(GraphQLCode)


async def test_unexpected_exceptions_are_masked_and_logged_once(shop: Any, api_over: Any) -> None:
    shop.failures["related"] = RuntimeError("password is hunter2 at 10.0.0.1")
    query = """{ recall(input: {question: "q", userId: "u1"}) { entities {
      ... on Device { repairs { id } } } } }"""
    with structlog.testing.capture_logs() as logs:
        async with api_over(shop) as api:
            body = await api.send(query)
    assert "hunter2" not in str(body)
    assert "RuntimeError" not in str(body)
    messages = {error["message"] for error in body["errors"]}
    assert {error["extensions"]["code"] for error in body["errors"]} == {"INTERNAL_ERROR"}
    (entry,) = [log for log in logs if log["event"] == "internal error"]
    assert messages == {f"an internal error happened; the log has it under {entry['incident']}"}
    assert str(entry["exc_info"]) == "password is hunter2 at 10.0.0.1"


async def test_faults_of_callers_are_no_log_entries(
    shop: Any, api_over: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with structlog.testing.capture_logs() as logs:
        async with api_over(shop) as api:
            await api.error(ENTITY, **ORDER | {"userId": "u1", "id": "none"})
            await api.error("{ nothing }")
            await api.error(RECALL, input={**QUESTION, "userId": "*"})
    assert logs == []
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_store_that_is_away_is_retryable(shop: Any, api_over: Any) -> None:
    shop.failure = StoreUnavailable("the graph store does not answer")
    async with api_over(shop) as api:
        error = await api.error(RECALL, input=QUESTION)
        assert error["extensions"]["code"] == "STORE_UNAVAILABLE"
        assert error["extensions"]["retryable"] is True
        shop.failure = None
        assert (await api.data(RECALL, input=QUESTION))["recall"]["action"] == "ANSWER"


@pytest.mark.parametrize(
    ("role", "recall", "remember", "upsert"),
    [
        (Role.AGENT, True, True, False),
        (Role.ANALYST, True, False, False),
        (Role.OPERATOR, False, True, True),
        (Role.ADMIN, True, True, True),
    ],
)
async def test_roles(
    shop: Any, api_over: Any, role: Role, *, recall: bool, remember: bool, upsert: bool
) -> None:
    async with api_over(shop, roles=(role,)) as api:
        for allowed, query, variables in (
            (recall, RECALL, {"input": QUESTION}),
            (recall, ENTITY, {**ORDER, "userId": "u1"}),
            (remember, REMEMBER, {"input": {"text": "x", "userId": "u1"}}),
            # also when nothing of it would reach the engine
            (remember, REMEMBER, {"input": {"text": "x"}}),
            (upsert, UPSERT, {"entities": [ORDER], "relations": []}),
        ):
            if allowed:
                await api.data(query, **variables)
            else:
                error = await api.error(query, **variables)
                assert error["extensions"]["code"] == "FORBIDDEN"


async def test_null_for_an_argument_with_a_default(shop: Any, api_over: Any) -> None:
    # valid as a query: only the variable's value shows that it does not fit
    query = """query ($limit: Int = 5) { entity(userId: "u1", type: Order, id: "o1") {
      ... on Order { devices(limit: $limit) { id } } } }"""
    async with api_over(shop) as api:
        assert await api.data(query)
        error = await api.error(query, limit=None)
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert error["extensions"]["path"] == ["limit"]


async def test_lone_surrogates_come_back_as_json(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        error = await api.error(ENTITY, **ORDER | {"userId": "u1", "id": "\ud800"})
        response = await api.http.get("/\ud7ff")
    assert error["extensions"]["code"] in {"INVALID_INPUT", "NOT_FOUND"}
    assert response.status_code == 404
