"""What identifies a person rests sealed, and is shown to those alone who may read it."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import timedelta

import pytest
from neo4j import AsyncGraphDatabase
from pydantic import SecretStr
from pymilvus import MilvusClient

from conftest import MASTER_KEYS
from ecphoria.clock import Clock
from ecphoria.engine import Engine
from ecphoria.errors import DataKeyDestroyed, EncryptionKeyWrong
from ecphoria.governance.access import MASK
from ecphoria.governance.data_keys import CACHE_S, DataKeys, KeyOwner
from ecphoria.governance.key_ring import OWN_FILE, KeyRing, add_own_key, new_entry, open_key_ring
from ecphoria.governance.redaction import is_bank_card
from ecphoria.model import (
    EntityInput,
    EntityRef,
    EveryUser,
    FactInput,
    MemoryInput,
    RecallRequest,
    ReceiptStatus,
    RelationInput,
    Role,
    Scope,
    SessionKey,
)
from ecphoria.session.sealed_store import SealedSessions
from ecphoria.settings import load_settings
from ecphoria.stores.session_memory import InProcessSessions

CARD = "6222021001112223331"
CLEAR = (
    "13812345678",
    "555-0132",
    "li.lei@example.com",
    "11010519491231002X",
    CARD,
    "张江路88号",
    "221 Baker Street",
    "metoprolol",
    "4417",
)
USER = EntityRef("User", "u1")


def agent(tenant, *roles):
    return Scope(tenant, "agent", frozenset(roles or {Role.AGENT}), frozenset({"u1"}))


def texts():
    """One memory for each kind of what is hidden, in both languages."""
    return [
        MemoryInput(text, "u1", id=f"m{number}", **more)
        for number, (text, more) in enumerate(
            [
                ("客户来电，手机号13812345678，订单882301的耳机没声音", {}),
                ("The customer wants to be called back at (415) 555-0132 about the warranty", {}),
                ("The invoice for order 882301 goes to li.lei@example.com", {}),
                (f"实名认证用身份证11010519491231002X，退款到银行卡{CARD}", {}),
                ("请把换货寄到上海市浦东新区张江路88号3栋501室", {}),
                ("Please ship the replacement to 221 Baker Street, Flat 2", {}),
                ("The patient takes metoprolol, see order 882301", {"privacy": "sensitive"}),
            ]
        )
    ]


async def shop(engine, admin):
    await engine.upsert_entities(
        admin,
        [
            EntityInput(
                "User",
                "u1",
                {"name": "Li Lei", "phone": "13812345678", "address": "上海市浦东新区张江路88号"},
            ),
            EntityInput("Order", "882301", {"status": "paid"}),
            EntityInput("Payment", "p1", {"method": "card", "card_last4": "4417"}),
        ],
        [
            RelationInput("PLACED", USER, EntityRef("Order", "882301")),
            RelationInput("PAID_BY", EntityRef("Order", "882301"), EntityRef("Payment", "p1")),
        ],
    )
    receipts = await engine.remember(admin, texts())
    assert [receipt.status for receipt in receipts] == [ReceiptStatus.CREATED] * len(receipts)
    fact = FactInput(USER, "user.shipping_address", "Rose Cottage, Mill Lane")
    (receipt,) = await engine.remember(
        admin, [MemoryInput("He moved to Rose Cottage, Mill Lane", "u1", id="home", facts=(fact,))]
    )
    assert receipt.status is ReceiptStatus.CREATED


async def clear_values_in_graph(stores, tenant):
    """Return the clear values in any property of any node or relation of a tenant."""
    auth = (stores.neo4j_user, stores.neo4j_password)
    found = []
    async with AsyncGraphDatabase.driver(stores.neo4j_uri, auth=auth) as driver:
        for text in (
            "MATCH (n) WHERE n.key STARTS WITH $tenant RETURN properties(n) AS props",
            "MATCH (n)-[r]->() WHERE n.key STARTS WITH $tenant RETURN properties(r) AS props",
        ):
            result = await driver.execute_query(
                text, tenant=tenant, database_=stores.neo4j_database
            )
            found += [str(dict(record["props"])) for record in result.records]
    assert found
    return {value for value in (*CLEAR, "Rose Cottage") for props in found if value in props}


def clear_values_in_index(stores, tenant):
    client = MilvusClient(uri=stores.milvus_uri)
    try:
        rows = [
            str({name: value for name, value in row.items() if not isinstance(value, list)})
            for name in client.list_collections()
            for row in client.query(
                name, filter=f'tenant == "{tenant}"', output_fields=["*"], limit=1_000
            )
        ]
    finally:
        client.close()
    assert rows
    # terms stand there as words
    wanted = {*CLEAR, "张江", "baker", "rose", "lei@example"} - {"221 Baker Street", "4417"}
    return {value for value in wanted for row in rows if value in row}


async def test_what_is_hidden_is_in_no_store_and_is_shown_by_role(engine, stores, tenant, admin):
    await shop(engine, admin)
    assert is_bank_card(CARD)
    assert await clear_values_in_graph(stores, tenant) == set()
    assert clear_values_in_index(stores, tenant) == set()

    ids = [item.id for item in texts()] + ["home"]
    full = await engine.memories(admin, "u1", ids)
    assert [full[item.id].text for item in texts()] == [item.text for item in texts()]
    assert full["home"].value == "Rose Cottage, Mill Lane"
    seen = await engine.memories(agent(tenant), "u1", ids)
    assert seen["m0"].text == "客户来电，手机号[电话]，订单882301的耳机没声音"
    assert seen["m3"].text == "实名认证用身份证[身份证号]，退款到银行卡[银行卡号]"
    assert seen["m5"].text == "Please ship the replacement to [address]"
    assert seen["home"].value == "[shipping address]"
    assert "m6" not in seen
    assert all(memory.sealed is None for memory in (*full.values(), *seen.values()))
    assert full["m0"].about == seen["m0"].about
    assert f"{tenant}|Order|882301" in full["m6"].about

    for scope, shown in ((admin, True), (agent(tenant), False)):
        question = "耳机没声音的订单882301怎么了？"
        result = await engine.recall(
            scope, RecallRequest(question, "u1", context_tokens=4_000, explain=True)
        )
        considered = [each.memory.text for step in result.trace for each in step.considered]
        entity = await engine.entity(scope, "u1", USER)
        assert entity.props["phone"] == ("13812345678" if shown else MASK)
        texts_ = [item.memory.text for item in result.memories]
        for text in (result.context, str(texts_), str(considered), str(entity)):
            assert ("13812345678" in text) is shown, text
        payments = await engine.related(
            scope, "u1", [EntityRef("Order", "882301")], "PAID_BY", "Payment"
        )
        ((payment,),) = payments.values()
        assert payment.props["card_last4"] == ("4417" if shown else MASK)
        history = await engine.attribute_history(scope, "u1", USER, "user.shipping_address")
        (current,) = history.current
        assert current.value == ("Rose Cottage, Mill Lane" if shown else "[shipping address]")


async def test_hidden_values_are_told_apart_and_known_again(engine, admin):
    first, again, other = (
        MemoryInput(f"My phone number is {phone}", "u1", occurred_at=engine.clock.now() + later)
        for phone, later in (
            ("13812345678", timedelta(hours=-1)),
            ("13812345678", timedelta(hours=-1)),
            ("13987654321", timedelta(0)),
        )
    )
    (one,) = await engine.remember(admin, [first])
    (two,) = await engine.remember(admin, [again])
    assert (two.status, two.id) == (ReceiptStatus.DUPLICATE, one.id)
    (three,) = await engine.remember(admin, [other])
    assert three.status is ReceiptStatus.SUPERSEDED
    assert three.supersedes == (one.id,)
    history = await engine.attribute_history(admin, "u1", USER, "user.phone")
    assert [memory.value for memory in history.current] == ["13987654321"]

    seen = engine.clock.now()
    entity = EntityInput("User", "u1", {"name": "Li Lei", "phone": "13812345678"}, seen)
    outcomes = [
        (await engine.upsert_entities(admin, [item])).entities[0].status
        for item in (entity, entity, replace(entity, props=entity.props | {"phone": "139"}))
    ]
    assert outcomes == [ReceiptStatus.CREATED, ReceiptStatus.UNCHANGED, ReceiptStatus.UPDATED]


async def test_what_was_moved_to_another_place_is_refused(engine, stores, tenant, admin):
    await engine.remember(
        admin,
        [
            MemoryInput("Call 13812345678", "u1", id="a"),
            MemoryInput("Call 13987654321", "u1", id="b"),
        ],
    )
    auth = (stores.neo4j_user, stores.neo4j_password)
    async with AsyncGraphDatabase.driver(stores.neo4j_uri, auth=auth) as driver:
        await driver.execute_query(
            "MATCH (a:Memory {key: $a}), (b:Memory {key: $b}) SET b.sealed = a.sealed",
            a=f"{tenant}|Memory|a",
            b=f"{tenant}|Memory|b",
            database_=stores.neo4j_database,
        )
    shown = await engine.memories(admin, "u1", ["a", "b"])
    assert shown["a"].text == "Call 13812345678"
    assert shown["b"].text == "Call [phone]"


async def test_a_destroyed_key_takes_all_with_it_and_no_other_is_made(engine, tenant, admin):
    await engine.remember(
        admin,
        [
            MemoryInput("Call 13812345678", "u1", id="his"),
            MemoryInput("Call 13987654321", "u2", id="hers"),
        ],
    )
    assert await engine.vault.destroy(tenant, "u1")
    assert (await engine.memory(admin, "u1", "his")).text == "Call [phone]"
    assert (await engine.memory(admin, "u2", "hers")).text == "Call 13987654321"
    late, fine, plain = await engine.remember(
        admin,
        [
            MemoryInput("Call 13711112222", "u1"),
            MemoryInput("Call 13711112222", "u2"),
            MemoryInput("He likes tea", "u1"),
        ],
    )
    assert (late.status, late.code) == (ReceiptStatus.REJECTED, DataKeyDestroyed.code)
    assert fine.status is ReceiptStatus.CREATED
    assert plain.status is ReceiptStatus.CREATED
    await engine.vault.allow_again(tenant, "u1")
    (back,) = await engine.remember(admin, [MemoryInput("Call 13711112222", "u1", id="new")])
    assert back.status is ReceiptStatus.CREATED
    assert (await engine.memory(admin, "u1", "new")).text == "Call 13711112222"
    assert (await engine.memory(admin, "u1", "his")).text == "Call [phone]"


async def test_without_a_master_key_nothing_sensitive_is_kept(engine, admin):
    keyless = replace(engine, vault=DataKeys(engine.graph, None, engine.clock))
    hidden, sensitive, plain = await keyless.remember(
        admin,
        [
            MemoryInput("Call 13812345678", "u1"),
            MemoryInput("He is ill", "u1", privacy="sensitive"),
            MemoryInput("He likes tea", "u1"),
        ],
    )
    assert {hidden.code, sensitive.code} == {"ENCRYPTION_KEY_MISSING"}
    assert "ECPHORIA_MASTER_KEYS" in (hidden.reason or "")
    assert plain.status is ReceiptStatus.CREATED


async def test_a_start_with_a_missing_or_wrong_master_key_is_refused(
    engine, stores, admin, prefix, tmp_path
):
    await engine.remember(admin, [MemoryInput("Call 13812345678", "u1")])
    settings = stores.settings(prefix, tmp_path)
    for keys in (None, new_entry("other"), f"{new_entry('test-1')},{new_entry('test-2')}"):
        given = None if keys is None else SecretStr(keys)
        with pytest.raises(EncryptionKeyWrong, match=r"test-[12]"):
            async with Engine.open(settings.model_copy(update={"master_keys": given})):
                pass


async def test_a_rotation_goes_on_where_it_was_interrupted(engine, tenant, admin):
    """Of this tenant's keys; those of other tests are only read."""
    names = [f"u{number}" for number in range(7)]
    await engine.remember(
        admin, [MemoryInput("Call 13812345678", name, id=f"m-{name}") for name in names]
    )
    ring = open_key_ring(engine.settings)
    turned = KeyRing(dict(reversed(ring.keys.items())))
    graph = OneTenant(engine.graph, tenant, fail_after=3)
    keys = DataKeys(graph, turned, engine.clock)
    with pytest.raises(RuntimeError):
        [step async for step in keys.rotate()]
    assert len(await graph.data_keys_not_under("test-2", "", 100)) == len(names) + 1 - 3
    graph.fail_after = None
    assert [step async for step in keys.rotate()][-1].done == len(names) + 1 - 3
    assert [step async for step in keys.rotate()][-1].done == 0
    clear = await engine.memories(admin, "u3", ["m-u3"])
    assert clear["m-u3"].text == "Call 13812345678"
    only_new = DataKeys(engine.graph, KeyRing({"test-2": ring.keys["test-2"]}), engine.clock)
    owner = KeyOwner(tenant, "u3")
    assert await only_new.to_read([owner]) == await engine.vault.to_read([owner])


class OneTenant:
    """A graph in which a rotation sees one tenant, one key a page, and breaks off."""

    def __init__(self, graph, tenant, fail_after):
        self.graph, self.tenant, self.fail_after = graph, tenant, fail_after

    def __getattr__(self, name):
        return getattr(self.graph, name)

    async def data_keys_not_under(self, master_id, after, limit):
        rows = await self.graph.data_keys_not_under(master_id, after, 10_000)
        own = [row for row in rows if row.tenant == self.tenant]
        return tuple(own[: 1 if limit == 500 else limit])

    async def rewrap_data_keys(self, rows, master_id, check):
        if self.fail_after is not None:
            if not self.fail_after:
                raise RuntimeError
            self.fail_after -= 1
        return await self.graph.rewrap_data_keys(rows, master_id, check)

    async def drop_unused_master_keys(self, current):
        """Leave what the engines of other tests have in use."""


async def test_turns_rest_sealed_and_are_shown_by_role(engine, tenant, admin):
    store = InProcessSessions(engine.settings.session_ttl_s)
    talking = replace(engine, sessions=SealedSessions(store, engine.vault, engine.domain))
    said = "我的手机号是13812345678，寄到张江路88号"
    for _ in range(2):
        await talking.remember_turn(agent(tenant), "u1", "s1", "customer", said, turn_id="t1")
    context = await talking.remember_turn(agent(tenant), "u1", "s1", "service", "好的，已登记")
    shown = [turn.text for turn in context.turns]
    assert shown == ["我的手机号是[电话]，寄到[地址]", "好的，已登记"]
    assert (await talking.session(admin, "u1", "s1")).turns[0].text == said
    state = await store.read(SessionKey(tenant, "u1", "s1"), engine.clock.now())
    assert "13812345678" not in str(state)
    assert "张江路" not in str(state)
    flush = await talking.end_session(admin, "u1", "s1")
    (receipt, *_) = flush.receipts
    ids = [receipt.id, *(part.id for part in receipt.facts)]
    kept = await talking.memories(admin, "u1", ids)
    assert any("13812345678" in memory.text for memory in kept.values())
    assert "13812345678" not in str(await talking.memories(agent(tenant), "u1", ids))


async def test_another_replica_sees_within_seconds_that_a_key_is_destroyed(engine, tenant, admin):
    now = [engine.clock.now()]
    replica = DataKeys(engine.graph, engine.vault.ring, Clock(now=lambda: now[0]))
    await engine.remember(admin, [MemoryInput("Call 13812345678", "u1")])
    owner = KeyOwner(tenant, "u1")
    assert owner in await replica.to_read([owner])
    await engine.vault.destroy(tenant, "u1")
    now[0] += timedelta(seconds=CACHE_S)
    assert await replica.to_read([owner]) == {}


async def test_embedded_stores_have_a_ring_of_their_own(embedded_env, tenant):
    settings = load_settings(data_dir=embedded_env["ECPHORIA_DATA_DIR"])
    admin = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    async with Engine.open(settings) as engine:
        await shop(engine, admin)
        before = (settings.data_dir / OWN_FILE).read_text()
    assert stat.S_IMODE((settings.data_dir / OWN_FILE).stat().st_mode) == 0o600
    assert add_own_key(settings) == "k2"
    async with Engine.open(settings) as engine:
        steps = [step async for step in engine.rotate_master_key()]
        assert steps[-1].done == steps[-1].total > 0
        status = await engine.encryption_status()
        assert (status.current, set(status.wrapped)) == ("k2", {"k2"})
        assert (await engine.memory(admin, "u1", "m0")).text == texts()[0].text
    # the old key is no longer needed
    lines = (settings.data_dir / OWN_FILE).read_text().splitlines()
    (settings.data_dir / OWN_FILE).write_text("\n".join(lines[:1]))
    async with Engine.open(settings) as engine:
        assert (await engine.entity(admin, "u1", USER)).props["phone"] == "13812345678"
    found = {
        (value, str(path.relative_to(settings.data_dir)))
        for path in settings.data_dir.rglob("*")
        if path.is_file()
        for value in (*CLEAR, "Rose Cottage")
        if value != "4417" and any(form in path.read_bytes() for form in _forms(value))
    }
    assert found == set()
    (settings.data_dir / OWN_FILE).write_text(before)
    with pytest.raises(EncryptionKeyWrong, match="k2"):
        async with Engine.open(settings):
            pass


def _forms(value):
    return value.encode(), value.encode("utf-16-le"), json.dumps(value)[1:-1].encode()


async def test_what_holds_nothing_sealed_costs_no_look_for_keys(engine, admin):
    watched = Watched(engine.vault)
    plain = replace(engine, vault=watched)
    await plain.remember(admin, [MemoryInput("The earbuds of order 882301 crackle", "u1", id="a")])
    assert watched.asked == []
    found = await plain.recall(admin, RecallRequest("Which earbuds crackle?", "u1", explain=True))
    assert [item.memory.id for item in found.memories] == ["a"]
    assert [owners for _, owners in watched.asked if owners] == []
    texts_ = [f"Call 1381234567{number}, the earbuds crackle" for number in range(10)]
    await plain.remember(admin, [MemoryInput(text, f"u{n}") for n, text in enumerate(texts_)])
    # the keys of a batch at once: ten users', and the one that values are compared by
    assert [len(owners) for verb, owners in watched.asked if verb == "to_write"] == [11]


class Watched:
    """Data keys that note what is asked of them."""

    def __init__(self, keys):
        self.keys, self.asked = keys, []

    def __getattr__(self, name):
        return getattr(self.keys, name)

    async def to_read(self, owners):
        owners = list(owners)
        self.asked.append(("to_read", owners))
        return await self.keys.to_read(owners)

    async def to_write(self, owners):
        owners = list(owners)
        self.asked.append(("to_write", owners))
        return await self.keys.to_write(owners)


def test_the_command_line_rotates_and_tells_no_key(ecphoria, cli_env):
    rotated = ecphoria("encryption", "rotate", "--json")
    assert rotated.json["current"] == "test-1"
    assert set(rotated.json["dataKeys"]) <= {"test-1"}
    shown = ecphoria("encryption", "status")
    assert "test-1" in shown.out
    secrets = [entry.partition(":")[2] for entry in cli_env["ECPHORIA_MASTER_KEYS"].split(",")]
    assert not any(secret in text for secret in secrets for text in (shown.out, shown.err))
    refused = ecphoria("encryption", "rotate", "--new-key")
    assert refused.code == 1
    assert "CONFIGURATION_INVALID" in refused.err


def test_the_keys_of_tests_are_two():
    assert list(KeyRing.parsed(MASTER_KEYS, "here").keys) == ["test-1", "test-2"]
