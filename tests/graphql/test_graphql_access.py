"""Who may use which field: the table is whole, and it is looked at before anything is done."""

from __future__ import annotations

import itertools
from typing import Any

import jwt
import pytest
from graphql import GraphQLSchema, Undefined

from ecphoria.errors import ConfigurationInvalid
from ecphoria.governance.access import ALLOWED
from ecphoria.governance.keys import revoke_key, rotate_key
from ecphoria.model import Role
from ecphoria.settings import load_settings
from ecphoria_graphql import field_access
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.field_access import FIELD_OPERATIONS, top_level_fields
from ecphoria_graphql.schema import build_schema
from ecphoria_schema.domain import shipped_domain

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "a secret of more than thirty-two bytes"
GOOD = '{ memory(userId: "u1", id: "m1") { id } }'


async def test_every_top_level_field_is_in_the_table(clinic: Any) -> None:
    for domain in (shipped_domain(), clinic):
        fields = set(top_level_fields(build_schema(domain)._schema))
        assert fields == set(FIELD_OPERATIONS), (
            "say in ecphoria_graphql/field_access.py which operation a new field is"
        )


async def test_a_field_that_is_in_no_row_is_open_to_nobody(
    shop: Any, api_over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = {name: item for name, item in FIELD_OPERATIONS.items() if name != "Query.memory"}
    monkeypatch.setattr(field_access, "FIELD_OPERATIONS", without)
    monkeypatch.setattr("ecphoria_graphql.app.build_schema", build_schema)
    async with api_over(shop) as api:
        error = await api.error(GOOD)
    assert error["extensions"]["code"] == "FORBIDDEN"
    assert shop.calls["memory"] == 0


def _has_default(item: Any) -> bool:
    return item.default_value is not None and item.default_value is not Undefined


def _sample(schema: GraphQLSchema, type_: Any, name: str) -> str:
    """Return a value that an argument takes, as text of a query."""
    text = str(type_).rstrip("!")
    if text.startswith("["):
        return f"[{_sample(schema, text.strip('[]!'), name)}]"
    kind = schema.type_map[text]
    if hasattr(kind, "values"):
        return next(iter(kind.values))
    if hasattr(kind, "fields"):
        needed = {
            key: item
            for key, item in kind.fields.items()
            if key == "userId" or (str(item.type).endswith("!") and not _has_default(item))
        }
        inner = ", ".join(
            f"{key}: {_sample(schema, item.type, key)}" for key, item in needed.items()
        )
        return f"{{{inner}}}"
    samples = {
        "Boolean": "false", "Int": "1", "Float": "0.5", "Long": "1", "JSON": "1",
        "DateTime": '"2025-06-15T08:00:00Z"', "Date": '"2025-06-15"',
    }  # fmt: skip
    return samples.get(text, '"u1"')


def _operation(schema: GraphQLSchema, field: str) -> str:
    """Return an operation with one field and all the arguments that it needs."""
    root, name = field.split(".")
    definition = schema.type_map[root].fields[name]  # type: ignore[attr-defined]
    given = ", ".join(
        f"{key}: {_sample(schema, item.type, key)}"
        for key, item in definition.args.items()
        if str(item.type).endswith("!") or key == "userId"
    )
    arguments = f"({given})" if given else ""
    inner = " { __typename }" if hasattr(_named(schema, definition.type), "fields") else ""
    kind = {"Query": "query", "Mutation": "mutation", "Subscription": "subscription"}[root]
    return f"{kind} {{ {name}{arguments}{inner} }}"


def _named(schema: GraphQLSchema, type_: Any) -> Any:
    return schema.type_map[str(type_).strip("[]!")]


CORE = build_schema(shipped_domain())._schema


REFUSED = [
    (field, role)
    for field, role in itertools.product(sorted(top_level_fields(CORE)), Role)
    if field in FIELD_OPERATIONS and role not in ALLOWED[FIELD_OPERATIONS[field]]
]


@pytest.mark.parametrize(("field", "role"), REFUSED)
async def test_a_role_that_may_not_is_refused_before_the_engine_is_asked(
    shop: Any, api_over: Any, field: str, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = FIELD_OPERATIONS[field]
    asked: list[str] = []
    for name in dir(type(shop)):
        if not name.startswith("_") and callable(getattr(shop, name)) and name != "put":
            monkeypatch.setattr(shop, name, lambda *_, **__: asked.append("a verb"))
    async with api_over(shop, roles=(role,)) as api:
        response = await api.http.post(
            "/graphql",
            json={"query": _operation(CORE, field)},
            headers={"Accept": "text/event-stream"},
        )
    assert '"FORBIDDEN"' in response.text, response.text
    assert f"{operation} needs one of the roles" in response.text
    assert asked == []


# --- introspection -------------------------------------------------------------------------

SERVERS = {"neo4j_uri": "bolt://localhost:7687", "milvus_uri": "http://localhost:19530"}


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        ({}, set(Role)),
        (SERVERS, set(Role) - {Role.AGENT}),
        ({"introspection_roles": "admin"}, {Role.ADMIN}),
        ({"introspection_roles": "admin, analyst", **SERVERS}, {Role.ADMIN, Role.ANALYST}),
        ({"introspection_roles": "agent", **SERVERS}, {Role.AGENT}),
        ({"introspection_roles": "none"}, set()),
    ],
)
async def test_roles_that_may_introspect(tmp_path: Any, given: Any, roles: Any) -> None:
    assert load_settings(data_dir=tmp_path, **given).introspecting == roles


@pytest.mark.parametrize("given", ["root", "admin,", "none,admin", "Admin"])
async def test_an_unknown_role_stops_the_start(tmp_path: Any, given: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="ECPHORIA_INTROSPECTION_ROLES"):
        load_settings(data_dir=tmp_path, introspection_roles=given)


async def test_introspection_is_for_the_roles_that_may(shop: Any, api_over: Any) -> None:
    shop.settings = shop.settings.model_copy(update={"introspection_roles": "admin"})
    queries = (
        "{ __schema { types { name } } }",
        '{ __type(name: "Memory") { name } }',
        f"{{ ...f {GOOD[1:-1]} }} fragment f on Query {{ s: __schema {{ types {{ name }} }} }}",
    )
    async with api_over(shop, roles=(Role.AGENT,)) as api:
        for query in queries:
            error = await api.error(query)
            assert error["extensions"]["code"] == "FORBIDDEN"
        assert await api.data("{ __typename }") == {"__typename": "Query"}
        assert (await api.data('{ memory(userId: "u1", id: "m1") { __typename } }'))["memory"]
        # nor does an error tell the schema piece by piece
        error = await api.error('{ memory(userId: "u1", id: "m1") { textt } }')
        assert "textt" in error["message"]
        assert "Did you mean" not in error["message"]
        streamed = await api.http.post(
            "/graphql", json={"query": "{ memor }"}, headers={"Accept": "text/event-stream"}
        )
        assert "memor" in streamed.text
        assert "Did you mean" not in streamed.text
    assert shop.calls["memory"] == 1
    async with api_over(shop) as api:
        for query in queries:
            await api.data(query)
        error = await api.error('{ memory(userId: "u1", id: "m1") { textt } }')
        assert "Did you mean" in error["message"]


async def test_introspection_is_not_bottomless(shop: Any, api_over: Any) -> None:
    query = "{ __schema { types { " + "fields { type { " * 12 + "name" + " } }" * 12 + " } } }"
    async with api_over(shop) as api:
        body = await api.send(query)
    assert "GRAPHQL_VALIDATION_FAILED" in {item["extensions"]["code"] for item in body["errors"]}


# --- keys and tokens at the door -----------------------------------------------------------


def token(shop: Any, **changes: Any) -> str:
    claims = {
        "iss": "https://login.example",
        "aud": "ecphoria",
        "sub": "bot",
        "exp": int(shop.clock.moment.timestamp()) + 60,
        "tenant": "t",
        "roles": ["agent"],
        "users": ["u1"],
    }
    return jwt.encode(claims | changes, SECRET, "HS256")


async def test_a_token_opens_what_a_key_does(
    shop: Any, api_over: Any, new_key: Any, server_over: Any
) -> None:
    settings = load_settings(
        data_dir=shop.settings.data_dir,
        jwt_secret=SECRET,
        jwt_issuer="https://login.example",
        jwt_audience="ecphoria",
    )
    shop.settings = settings
    good = token(shop)
    async with api_over(shop, anonymous=True) as api:

        async def send(presented: str, query: str = GOOD) -> Any:
            headers = {"Authorization": f"Bearer {presented}"}
            return await api.http.post("/graphql", json={"query": query}, headers=headers)

        assert (await send(good)).json() == {"data": {"memory": {"id": "m1"}}}
        assert (await send(await new_key(shop, "t"))).status_code == 200
        other = (await send(good, GOOD.replace("u1", "u2"))).json()
        assert other["errors"][0]["extensions"]["code"] == "FORBIDDEN"
        for bad in (good + "x", token(shop, aud="other"), token(shop, roles=["root"]), "a.b.c"):
            refused = await send(bad)
            assert refused.status_code == 401
            (error,) = refused.json()["errors"]
            assert error["message"] == "the API key is missing or not valid"
        shop.clock.moment = shop.clock.moment.replace(minute=5)
        assert (await send(good)).status_code == 401
        fresh = token(shop)
    async with server_over(shop) as server, server.connect(fresh) as live:
        await live.begin()
        await live.subscribe("1", GOOD)
        assert (await live.next("1"))["memory"] == {"id": "m1"}


async def test_without_a_setting_no_token_counts(shop: Any, api_over: Any) -> None:
    async with api_over(shop, anonymous=True) as api:
        response = await api.http.post(
            "/graphql", json={"query": GOOD}, headers={"X-API-Key": token(shop)}
        )
    assert response.status_code == 401


async def test_a_key_file_that_cannot_be_read_stops_the_start(shop: Any, tmp_path: Any) -> None:
    shop.settings = load_settings(
        data_dir=tmp_path,
        jwt_jwks_file=tmp_path / "none.json",
        jwt_issuer="https://login.example",
        jwt_audience="ecphoria",
    )
    with pytest.raises(ConfigurationInvalid, match=r"none\.json"):
        create_app_for(shop)


async def test_revoking_and_rotating_bite_in_every_replica_at_once(
    shop: Any, api_over: Any, new_key: Any
) -> None:
    """Two applications over one graph, as two processes have it: neither keeps a key in mind."""
    key = await new_key(shop, "t", Role.AGENT)
    id_ = key.split("_")[1]
    async with api_over(shop, anonymous=True) as one, api_over(shop, anonymous=True) as two:

        async def status(presented: str) -> list[int]:
            headers = {"X-API-Key": presented}
            found = [
                await api.http.post("/graphql", json={"query": GOOD}, headers=headers)
                for api in (one, two)
            ]
            return [response.status_code for response in found]

        assert await status(key) == [200, 200]
        _, new = await rotate_key(shop.graph, shop.clock, tenant="t", key_id=id_)
        assert (await status(key), await status(new)) == ([401, 401], [200, 200])
        await revoke_key(shop.graph, shop.clock, tenant="t", key_id=id_)
        assert await status(new) == [401, 401]
