"""Trusted documents, and those that clients register by their hash."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ecphoria.errors import ConfigurationInvalid, InvalidInput
from ecphoria_graphql.documents import (
    MANIFEST,
    Documents,
    document_id,
    manifest,
    open_documents,
    read_manifest,
)
from ecphoria_graphql.error_codes import DocumentFault

pytestmark = pytest.mark.asyncio(loop_scope="session")

REPOSITORY = Path(__file__).parents[2]
OPERATIONS = REPOSITORY / "graphql" / "operations"
MEMORY = (OPERATIONS / "memory.graphql").read_text(encoding="utf-8")
OWN = 'query Own { memory(userId: "u1", id: "m1") { id } }'
VARIABLES = {"userId": "u1", "id": "m1"}


def apq(text: str, *, bring: bool = False, **changes: Any) -> dict[str, Any]:
    persisted = {"version": 1, "sha256Hash": document_id(text), **changes}
    return {"extensions": {"persistedQuery": persisted}} | ({"query": text} if bring else {})


async def test_the_shipped_manifest_is_current() -> None:
    shipped = REPOSITORY / "graphql" / "ecphoria_graphql" / MANIFEST
    assert shipped.read_text(encoding="utf-8") == manifest(OPERATIONS), (
        "run `ecphoria schema documents --output graphql/ecphoria_graphql/operations.json`"
    )


async def test_an_id_is_what_sha256sum_prints() -> None:
    file = OPERATIONS / "recall.graphql"
    assert (
        document_id(file.read_text(encoding="utf-8"))
        == hashlib.sha256(file.read_bytes()).hexdigest()
    )


async def send(api: Any, **body: Any) -> tuple[int, dict[str, Any]]:
    response = await api.http.post("/graphql", json=body)
    return response.status_code, response.json()


def code(body: dict[str, Any]) -> str:
    found: str = body["errors"][0]["extensions"]["code"]
    assert body["errors"][0]["extensions"]["remedy"]
    return found


@pytest.mark.parametrize("form", ["{}", "sha256:{}"])
async def test_a_trusted_document_is_run_by_its_id(shop: Any, api_over: Any, form: str) -> None:
    id_ = form.format(document_id(MEMORY))
    async with api_over(shop) as api:
        status, body = await send(api, documentId=id_, variables=VARIABLES)
        assert (status, body["data"]["memory"]["id"]) == (200, "m1")
        got = await api.http.get(
            "/graphql", params={"documentId": id_, "variables": json.dumps(VARIABLES)}
        )
        assert got.json() == body
        # Apollo's clients need not register what is trusted
        status, body = await send(api, **apq(MEMORY), variables=VARIABLES)
        assert body["data"]["memory"]["id"] == "m1"


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({"documentId": "0" * 64}, 400, "UNTRUSTED_DOCUMENT"),
        ({"documentId": ""}, 400, "UNTRUSTED_DOCUMENT"),
        ({"documentId": "recall"}, 400, "UNTRUSTED_DOCUMENT"),
        ({"documentId": "../../etc/passwd"}, 400, "UNTRUSTED_DOCUMENT"),
        ({"documentId": 5}, 400, "BAD_REQUEST"),
        ({"documentId": document_id(MEMORY), "query": OWN}, 400, "BAD_REQUEST"),
        ({"documentId": document_id(MEMORY), **apq(OWN)}, 400, "BAD_REQUEST"),
        (apq(OWN), 200, "PERSISTED_QUERY_NOT_FOUND"),
        (apq(OWN, bring=True, sha256Hash="0" * 64), 400, "BAD_REQUEST"),
        (apq(OWN, bring=True, sha256Hash=None), 400, "BAD_REQUEST"),
        (apq(OWN, bring=True, version=2), 400, "BAD_REQUEST"),
        ({"extensions": {"persistedQuery": "x"}, "query": OWN}, 400, "BAD_REQUEST"),
    ],
)
async def test_documents_that_are_not_to_be_found(
    shop: Any, api_over: Any, body: dict[str, Any], status: int, expected: str
) -> None:
    async with api_over(shop) as api:
        found = await send(api, **body)
    assert (found[0], code(found[1])) == (status, expected)
    assert shop.calls["memory"] == 0


async def test_automatic_persisted_queries(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        status, body = await send(api, **apq(OWN))
        # the words that Apollo's clients look for
        assert (status, body["errors"][0]["message"]) == (200, "PersistedQueryNotFound")
        assert (await send(api, **apq(OWN, bring=True)))[1] == {"data": {"memory": {"id": "m1"}}}
        assert (await send(api, **apq(OWN)))[1] == {"data": {"memory": {"id": "m1"}}}
        extensions = json.dumps(apq(OWN)["extensions"])
        got = await api.http.get("/graphql", params={"extensions": extensions})
        assert got.json() == {"data": {"memory": {"id": "m1"}}}


async def test_a_mutation_that_is_registered_still_needs_a_post(shop: Any, api_over: Any) -> None:
    write = 'mutation { remember(input: {text: "x", userId: "u1"}) { status } }'
    async with api_over(shop) as api:
        await send(api, **apq(write, bring=True))
        shop.written.clear()
        extensions = json.dumps(apq(write)["extensions"])
        got = await api.http.get("/graphql", params={"extensions": extensions})
    assert got.status_code == 405
    assert shop.written == []


async def test_only_trusted_documents(
    shop: Any, api_over: Any, new_key: Any, server_over: Any
) -> None:
    shop.settings = shop.settings.model_copy(update={"trusted_documents": "only"})
    async with api_over(shop) as api:
        for body in (
            {"query": OWN},
            {"query": "{ __schema { types { name } } }"},
            {"query": MEMORY + " "},
            apq(OWN),
            apq(OWN, bring=True),
        ):
            status, found = await send(api, **body)
            assert (status, code(found)) == (400, "UNTRUSTED_DOCUMENT"), body
        got = await api.http.get("/graphql", params={"query": OWN})
        assert code(got.json()) == "UNTRUSTED_DOCUMENT"
        for body in ({"query": MEMORY}, {"documentId": document_id(MEMORY)}, apq(MEMORY)):
            status, found = await send(api, **body, variables=VARIABLES)
            assert found["data"]["memory"]["id"] == "m1"
    key = await new_key(shop, "t")
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        await live.subscribe("1", OWN)
        assert (await live.error("1"))["extensions"]["code"] == "UNTRUSTED_DOCUMENT"
        payload: dict[str, Any] = {"documentId": document_id(MEMORY), "variables": VARIABLES}
        await live.send("subscribe", id="2", payload=payload)
        assert (await live.next("2"))["memory"]["id"] == "m1"
    # who has not come in yet is not even told whether there is such a document
    for id_ in (document_id(MEMORY), "0" * 64):
        async with server_over(shop) as server, server.connect(key) as live:
            await live.send("subscribe", id="1", payload={"documentId": id_})
            assert (await live.closed())[0] == 4401


# --- without a server ----------------------------------------------------------------------


async def test_what_clients_register_is_bounded() -> None:
    documents = Documents({}, only=False)
    texts = [f"# {number}\n" + "x" * 40_000 for number in range(300)]
    for text in texts:
        documents.text(text, None, apq(text)["extensions"])
    with pytest.raises(DocumentFault):
        documents.text(None, None, apq(texts[0])["extensions"])
    assert documents.text(None, None, apq(texts[-1])["extensions"]) == texts[-1]
    huge = "x" * 100_000
    assert documents.text(huge, None, apq(huge)["extensions"]) == huge
    with pytest.raises(DocumentFault):
        documents.text(None, None, apq(huge)["extensions"])


async def test_your_own_manifest(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "own.graphql").write_text("query 我 { __typename }".replace("我", "Mine"))
    file = tmp_path / "manifest.json"
    file.write_text(manifest(tmp_path), encoding="utf-8")
    mine = settings.model_copy(update={"trusted_documents_file": file, "trusted_documents": "only"})
    documents = open_documents(mine)
    assert documents.text("query Mine { __typename }", None, None)
    with pytest.raises(DocumentFault):
        documents.text(MEMORY, None, None)
    with pytest.raises(ConfigurationInvalid, match=r"none\.json"):
        open_documents(
            settings.model_copy(update={"trusted_documents_file": tmp_path / "none.json"})
        )


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "null", '{"format": "other", "version": 1, "operations": []}',
        '{"format": "apollo-persisted-query-manifest", "version": 1, "operations": {}, "x": 1}x',
        json.dumps({"format": "apollo-persisted-query-manifest", "version": 1,
                    "operations": [{"id": "0" * 64, "body": "{ a }"}]}),
        json.dumps({"format": "apollo-persisted-query-manifest", "version": 1,
                    "operations": [{"id": "0" * 64, "body": 5}]}),
    ],
)  # fmt: skip
async def test_a_manifest_that_will_not_do_stops_the_start(text: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="here"):
        read_manifest(text, "here")


@pytest.mark.parametrize("text", ["{", "fragment f on Query { __typename }", "{ __typename }"])
async def test_a_file_holds_one_operation_with_a_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.graphql").write_text(text)
    with pytest.raises(InvalidInput, match=r"x\.graphql"):
        manifest(tmp_path)
    with pytest.raises(InvalidInput, match="no file"):
        manifest(tmp_path / "empty")
