"""What is said of one attribute: receipts, changes by hand, and the past, over the API."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ecphoria.clock import Clock
from ecphoria.errors import StoreUnavailable
from ecphoria.model import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.asyncio(loop_scope="session")

RECEIPT = """status id indexed error { code message path } supersedes supersededBy conflictsWith
  possibleUpdateOf waitingFor notes links { entity { type id } certainty how }"""
REMEMBER = f"""mutation ($items: [MemoryInput!]!) {{ rememberBatch(input: {{items: $items}}) {{
  receipts {{ {RECEIPT} facts {{ {RECEIPT} }} }} }} }}"""
SUPERSEDE = f"""mutation ($memoryId: ID!, $new: MemoryInput!, $reason: String! = "a reason") {{
  done: supersede(memoryId: $memoryId, new: $new, reason: $reason) {{ {RECEIPT} }} }}"""
CORRECT = SUPERSEDE.replace("supersede(", "correct(")
RETRACT = f"""mutation ($memoryId: ID!, $userId: ID, $shared: Boolean! = false,
  $reason: String! = "a reason") {{
  done: retract(memoryId: $memoryId, userId: $userId, shared: $shared, reason: $reason) {{
  {RECEIPT} }} }}"""
MEMORY = """query ($userId: ID!, $id: ID!) { memory(userId: $userId, id: $id) {
  id text status validFrom validUntil recordedAt invalidatedAt attribute value subject evidence
  factType intent urgency details { name value } freshness accessCount lastAccessedAt reinforced
  links { entity { type id } certainty how }
  supersedes { ...other } supersededBy { ...other } conflictsWith { ...other }
  possibleUpdateOf { ...other } possiblyUpdatedBy { ...other } } }
  fragment other on Lineage { memoryId how reason by at memory { text } }"""
HISTORY = """query ($userId: ID!, $type: EntityType! = Order, $id: ID! = "882301",
  $attribute: String! = "order.status", $subject: String, $asOf: DateTime, $knownAt: DateTime) {
  attributeHistory(userId: $userId, entity: {type: $type, id: $id}, attribute: $attribute,
    subject: $subject, asOf: $asOf, knownAt: $knownAt) {
    current { ...value } conflicting { ...value } entries { ...value } } }
  fragment value on Memory { id value status validFrom validUntil }"""
UPSERT = """mutation ($entities: [EntityInput!]!, $relations: [RelationInput!]! = []) {
  upsertEntities(input: {entities: $entities, relations: $relations}) { relationsCreated } }"""

DAY = datetime(2025, 6, 15, 8, tzinfo=UTC)


def iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def status(id_: str, value: str, day: int = 0, **more: Any) -> dict[str, Any]:
    """Return that an order has a status from a day on."""
    entity = {"type": "Order", "id": more.pop("order", "882301")}
    return {
        "id": id_,
        "userId": "u1",
        "source": "crm",
        "occurredAt": iso(DAY + timedelta(days=day)),
        "facts": [{"entity": entity, "attribute": "order.status", "value": value}],
        **more,
    }


async def remember(api: Any, *items: dict[str, Any]) -> list[dict[str, Any]]:
    payload = (await api.data(REMEMBER, items=list(items)))["rememberBatch"]
    receipts: list[dict[str, Any]] = payload["receipts"]
    return receipts


async def order_of(api: Any, user: str, id_: str = "882301") -> None:
    await api.data(
        UPSERT,
        entities=[
            {"type": "User", "id": user, "properties": {"name": "张伟"}},
            {"type": "Order", "id": id_},
        ],
        relations=[
            {
                "type": "PLACED",
                "from": {"type": "User", "id": user},
                "to": {"type": "Order", "id": id_},
            }
        ],
    )


# --- receipts ------------------------------------------------------------------------------


async def test_a_receipt_says_what_became_of_it(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await order_of(api, "u1")
        (first,) = await remember(api, status("paid", "paid"))
        assert (first["status"], first["id"], first["indexed"]) == ("CREATED", "paid", True)
        assert first["links"] == [
            {"entity": {"type": "Order", "id": "882301"}, "certainty": 1.0, "how": "GIVEN"}
        ]
        (again,) = await remember(api, status("paid", "paid"))
        assert (again["status"], again["id"]) == ("DUPLICATE", "paid")
        (newer,) = await remember(api, status("shipped", "shipped", 2))
        assert (newer["status"], newer["supersedes"]) == ("SUPERSEDED", ["paid"])
        (late,) = await remember(api, status("between", "awaiting_shipment", 1))
        assert (late["status"], late["supersededBy"]) == ("HISTORICAL", "shipped")
        (rumour,) = await remember(api, status("rumour", "cancelled", 3, source="dialogue"))
        assert (rumour["status"], rumour["conflictsWith"]) == ("CONFLICT", ["shipped"])
        unknown, bad = await remember(
            api,
            status("unknown", "paid", order="882302"),
            status("bad", "on its way to the moon"),
        )
        assert (unknown["status"], unknown["waitingFor"]) == ("CREATED", ["882302"])
        assert unknown["links"] == []
        assert (bad["status"], bad["error"]["code"]) == ("REJECTED", "INVALID_INPUT")
        assert bad["error"]["path"] == ["input", "items", "1", "facts", "0", "value"]
        assert bad["error"]["message"]
        # and it is linked by itself when the order comes
        await order_of(api, "u1", "882302")
        memory = (await api.data(MEMORY, userId="u1", id="unknown"))["memory"]
        (link,) = memory["links"]
        assert (link["entity"]["id"], link["how"]) == ("882302", "ARRIVED")


async def test_facts_are_counted_one_by_one(engine: Any, tenant: str, api_over: Any) -> None:
    two = status("two", "paid")
    two["facts"].append(
        {
            "entity": {"type": "User", "id": "u1"},
            "attribute": "user.preference",
            "value": "like",
            "subject": "乌龙茶",
            "text": "用户喜欢乌龙茶",
        }
    )
    two["text"] = "用户说：订单已付款，我喜欢乌龙茶"
    async with api_over(engine, tenant=tenant) as api:
        await order_of(api, "u1")
        (receipt,) = await remember(api, two)
        assert receipt["status"] == "CREATED"
        assert [(fact["status"], fact["id"]) for fact in receipt["facts"]] == [
            ("CREATED", "two"),
            ("CREATED", "two~2"),
        ]
        memory = (await api.data(MEMORY, userId="u1", id="two~2"))["memory"]
        assert (memory["attribute"], memory["value"], memory["subject"]) == (
            "user.preference",
            "like",
            "乌龙茶",
        )
        assert memory["text"] == "用户喜欢乌龙茶"
        assert memory["evidence"] == two["text"]
        (receipt,) = await remember(api, {**two, "id": "newer", "occurredAt": iso(DAY)})
        assert receipt["status"] == "CREATED"
        without = {**two, "id": "no-text", "text": None, "facts": []}
        (empty,) = await remember(api, without)
        assert (empty["status"], empty["error"]["code"]) == ("REJECTED", "TEXT_EMPTY")
        assert empty["error"]["path"] == ["input", "items", "0", "text"]


class IndexDown:
    """A vector index that cannot be written for the moment."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def upsert(self, _rows: Any) -> None:
        msg = "the vector store does not answer"
        raise StoreUnavailable(msg)


@pytest.mark.parametrize("named", [True, False])
async def test_a_duplicate_does_not_claim_to_be_indexed(
    engine: Any, tenant: str, api_over: Any, *, named: bool
) -> None:
    item = {"userId": "u1", "text": "电池已经更换", "occurredAt": iso(DAY)}
    if named:
        item["id"] = "mine"
    down = replace(engine, index=IndexDown(engine.index))
    async with api_over(down, tenant=tenant) as api:
        receipts = [(await remember(api, item))[0] for _ in range(2)]
        twins = await remember(api, item, item)
    found = {receipt["id"] for receipt in (*receipts, *twins)}
    assert [(each["status"], each["indexed"]) for each in (*receipts, *twins)] == [
        ("CREATED", False),
        ("DUPLICATE", False),
        ("DUPLICATE", False),
        ("DUPLICATE", False),
    ]
    async with api_over(engine, tenant=tenant) as api:
        await engine.reconcile()
        (receipt,) = await remember(api, item)
        assert (receipt["status"], receipt["indexed"]) == ("DUPLICATE", True)
        assert found == {receipt["id"]}
        memory = (await api.data(MEMORY, userId="u1", id=receipt["id"]))["memory"]
        assert memory["reinforced"] == 4


async def test_a_possible_update_is_linked_both_ways(
    engine: Any, tenant: str, api_over: Any
) -> None:
    old = "The technician replaced the battery of the laptop for 320 yuan"
    new = "The technician replaced the battery of the laptop for 450 yuan"
    async with api_over(engine, tenant=tenant) as api:
        (first,) = await remember(api, {"userId": "u1", "text": old, "occurredAt": iso(DAY)})
        (second,) = await remember(api, {"userId": "u1", "text": new, "occurredAt": iso(DAY)})
        assert second["status"] == "CREATED"
        assert second["possibleUpdateOf"] == [first["id"]]
        memory = (await api.data(MEMORY, userId="u1", id=second["id"]))["memory"]
        (update,) = memory["possibleUpdateOf"]
        assert (update["memoryId"], update["memory"]["text"]) == (first["id"], old)
        memory = (await api.data(MEMORY, userId="u1", id=first["id"]))["memory"]
        assert [each["memoryId"] for each in memory["possiblyUpdatedBy"]] == [second["id"]]
        assert memory["status"] == "ACTIVE"


# --- by hand -------------------------------------------------------------------------------


async def test_supersede_keeps_the_old_one_as_history(
    engine: Any, tenant: str, api_over: Any, new_key: Any
) -> None:
    engine = replace(engine, clock=Clock(lambda: DAY + timedelta(days=9)))
    key = await new_key(engine, tenant, Role.AGENT)
    async with api_over(engine, tenant=tenant) as api:
        await order_of(api, "u1")
        await remember(api, status("paid", "paid"))
        body = await api.send(
            SUPERSEDE,
            key=key,
            memoryId="paid",
            new=status("shipped", "shipped", 1),
            reason="  客服确认已发货 ",
        )
        receipt = body["data"]["done"]
        assert (receipt["status"], receipt["id"], receipt["supersedes"]) == (
            "SUPERSEDED",
            "shipped",
            ["paid"],
        )
        old = (await api.data(MEMORY, userId="u1", id="paid"))["memory"]
        assert (old["status"], old["validUntil"]) == ("SUPERSEDED", iso(DAY + timedelta(days=1)))
        assert old["invalidatedAt"] == iso(DAY + timedelta(days=9))
        by_hand = next(each for each in old["supersededBy"] if each["how"] == "HAND")
        assert by_hand["reason"] == "客服确认已发货"
        assert by_hand["by"] == key.split("_")[1]
        assert by_hand["memoryId"] == "shipped"
        assert by_hand["memory"]["text"]
        new = (await api.data(MEMORY, userId="u1", id="shipped"))["memory"]
        assert [each["memoryId"] for each in new["supersedes"]] == ["paid"]
        fault = await api.fault(SUPERSEDE, memoryId="paid", new=status("other", "refunded", 2))
        assert (fault["code"], fault["path"]) == ("NOT_CURRENT", ["memoryId"])
        assert "'shipped'" in fault["message"]


async def test_free_text_can_be_superseded_too(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await remember(
            api, {"id": "old", "userId": "u1", "text": "The customer wants a call on Monday"}
        )
        done = await api.data(
            SUPERSEDE,
            memoryId="old",
            new={"id": "new", "userId": "u1", "text": "The customer wants an e-mail"},
        )
        assert done["done"]["supersedes"] == ["old"]
        old = (await api.data(MEMORY, userId="u1", id="old"))["memory"]
        assert old["status"] == "SUPERSEDED"


async def test_shared_knowledge_is_changed_by_who_may(
    engine: Any, tenant: str, api_over: Any
) -> None:
    rule = {"shared": True, "kind": "PROCEDURAL", "text": "退货期限为七天"}
    async with api_over(engine, tenant=tenant) as api:
        await remember(api, {**rule, "id": "old"})
        new = {**rule, "id": "new", "text": "退货期限为十五天"}
        async with api_over(engine, tenant=tenant, roles=(Role.AGENT,)) as agent:
            for query, variables in (
                (SUPERSEDE, {"new": new}),
                (CORRECT, {"new": new}),
                (RETRACT, {"shared": True}),
            ):
                error = await agent.error(query, memoryId="old", **variables)
                assert error["extensions"]["code"] == "FORBIDDEN"
        assert (await api.data(SUPERSEDE, memoryId="old", new=new))["done"]["supersedes"] == ["old"]
        assert (await api.data(RETRACT, memoryId="new", shared=True))["done"]["status"] == (
            "RETRACTED"
        )
        assert (await api.data(MEMORY, userId="u9", id="old"))["memory"]["status"] == "ACTIVE"


CHANGES = {
    "supersede": (SUPERSEDE, {"new": {"userId": "u1", "text": "屏幕换过了"}}),
    "correct": (CORRECT, {"new": {"userId": "u1", "text": "屏幕换过了"}}),
    "retract": (RETRACT, {"userId": "u1"}),
}


@pytest.mark.parametrize(("query", "variables"), CHANGES.values(), ids=CHANGES)
async def test_what_may_not_be_changed(
    engine: Any, tenant: str, api_over: Any, query: str, variables: dict[str, Any]
) -> None:
    given = {"memoryId": "m", **variables}

    def of_user(user: str | None) -> dict[str, Any]:
        return (
            {**given, "new": {**given["new"], "userId": user}}
            if "new" in given
            else {**given, "userId": user}
        )

    async with api_over(engine, tenant=tenant) as api:
        await remember(api, {"id": "m", "userId": "u1", "text": "电池换过了", "source": "crm"})
        for change, code, path in (
            # another user's, another tenant's and none look the same
            (of_user("u2"), "NOT_FOUND", ["memoryId"]),
            ({**given, "memoryId": "none"}, "NOT_FOUND", ["memoryId"]),
            ({**given, "memoryId": '") or true or ("'}, "NOT_FOUND", ["memoryId"]),
            ({**given, "memoryId": ""}, "INVALID_INPUT", ["memoryId"]),
            ({**given, "reason": ""}, "INVALID_INPUT", ["reason"]),
            ({**given, "reason": " \n"}, "INVALID_INPUT", ["reason"]),
            ({**given, "reason": "x" * 10_000}, "INVALID_INPUT", ["reason"]),
            (of_user("*"), "INVALID_SCOPE", None),
            (of_user(""), "INVALID_SCOPE", None),
            (of_user(None), "INVALID_SCOPE", None),
        ):
            fault = await api.fault(query, **change)
            assert fault["code"] == code, (change, fault)
            if path is not None:
                assert fault["path"] == path
        for options in ({"roles": (Role.ANALYST,)}, {"users": ["u2"]}):
            async with api_over(engine, **{"tenant": tenant, **options}) as other:
                error = await other.error(query, **given)
                assert error["extensions"]["code"] == "FORBIDDEN", (options, error)
        for options, code in (
            ({"tenant": f"{tenant}-x"}, "NOT_FOUND"),
            # dialogue, the default source, is less reliable than the CRM
            ({"roles": (Role.AGENT,)}, "LESS_RELIABLE"),
        ):
            async with api_over(engine, **{"tenant": tenant, **options}) as other:
                fault = await other.fault(query, **given)
                assert fault["code"] == code, (options, fault)
        memory = (await api.data(MEMORY, userId="u1", id="m"))["memory"]
        assert (memory["status"], memory["supersededBy"]) == ("ACTIVE", [])


async def test_a_new_memory_that_is_no_good_is_rejected_by_its_receipt(
    engine: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await remember(api, status("paid", "paid"))
        for query in (SUPERSEDE, CORRECT):
            bad = status("new", "on the moon", 1)
            receipt = (await api.data(query, memoryId="paid", new=bad))["done"]
            assert receipt["status"] == "REJECTED"
            assert receipt["error"]["path"] == ["new", "facts", "0", "value"]
        memory = (await api.data(MEMORY, userId="u1", id="paid"))["memory"]
        assert memory["status"] == "ACTIVE"


# --- the past ------------------------------------------------------------------------------


async def test_the_past_as_it_was_and_as_it_was_known(
    engine: Any, tenant: str, api_over: Any
) -> None:
    """A is written, then B; B is corrected to C, and C is taken back."""
    clock = {"now": DAY}
    engine = replace(engine, clock=Clock(lambda: clock["now"]))

    def day(number: int) -> datetime:
        return DAY + timedelta(days=number)

    async with api_over(engine, tenant=tenant) as api:
        clock["now"] = day(10)
        await remember(api, status("a", "paid", 0))
        clock["now"] = day(20)
        await remember(api, status("b", "shipped", 15))
        clock["now"] = day(30)
        done = await api.data(
            CORRECT, memoryId="b", new=status("c", "cancelled", 29), reason="a slip"
        )
        assert done["done"]["supersedes"] == ["b"]
        clock["now"] = day(40)
        await api.data(RETRACT, memoryId="c", userId="u1", reason="the slip was none")
        clock["now"] = day(50)

        # columns: known before all, after A, after B, after the correction, after the retraction
        known = (day(9), day(10), day(20), day(30), day(40))
        table: dict[int, Sequence[str | None]] = {
            -1: (None, None, None, None, None),
            0: (None, "paid", "paid", "paid", "paid"),
            14: (None, "paid", "paid", "paid", "paid"),
            15: (None, "paid", "shipped", "cancelled", "shipped"),
            29: (None, "paid", "shipped", "cancelled", "shipped"),
            45: (None, "paid", "shipped", "cancelled", "shipped"),
        }
        for as_of, column in itertools.product(table, range(len(known))):
            found = (
                await api.data(
                    HISTORY, userId="u1", asOf=iso(day(as_of)), knownAt=iso(known[column])
                )
            )["attributeHistory"]
            values = {memory["value"] for memory in found["current"]}
            expected = table[as_of][column]
            assert values == ({expected} if expected else set()), (as_of, column, found)
            assert found["conflicting"] == []
        # just before a change is known, nothing of it is
        for moment, value in ((day(20), "paid"), (day(30), "shipped"), (day(40), "cancelled")):
            before = moment - timedelta(milliseconds=1)
            found = await api.data(HISTORY, userId="u1", knownAt=iso(before))
            assert [each["value"] for each in found["attributeHistory"]["current"]] == [value]
        # how each stood, as known at the time
        found = await api.data(HISTORY, userId="u1", knownAt=iso(day(30)))
        entries = {each["id"]: each for each in found["attributeHistory"]["entries"]}
        assert entries["a"]["validUntil"] == iso(day(15))
        assert entries["b"]["status"] == "SUPERSEDED"
        assert entries["c"]["status"] == "ACTIVE"
        now = (await api.data(HISTORY, userId="u1"))["attributeHistory"]
        assert [(each["id"], each["value"]) for each in now["current"]] == [("b", "shipped")]
        assert "c" not in {each["id"] for each in now["entries"]}


async def test_recall_answers_from_what_was_known_then(
    engine: Any, tenant: str, api_over: Any
) -> None:
    query = """query ($asOf: DateTime, $knownAt: DateTime) { recall(input: {
      question: "订单882301现在是什么状态？", userId: "u1", asOf: $asOf, knownAt: $knownAt}) {
      memories { memory { id } } } }"""
    clock = {"now": DAY}
    engine = replace(engine, clock=Clock(lambda: clock["now"]))
    async with api_over(engine, tenant=tenant) as api:
        await order_of(api, "u1")
        await remember(api, status("paid", "paid"))
        clock["now"] = DAY + timedelta(days=2)
        await remember(api, status("shipped", "shipped", 1))
        await engine.reconcile()

        async def found(**when: str) -> set[str]:
            answer = await api.data(query, **when)
            return {each["memory"]["id"] for each in answer["recall"]["memories"]}

        assert await found() == {"shipped"}
        assert await found(knownAt=iso(DAY)) == {"paid"}
        assert await found(asOf=iso(DAY)) == {"paid"}
        assert await found(knownAt=iso(DAY - timedelta(days=1))) == set()
        error = await api.error(query, knownAt="2025-06-15")
        assert error["extensions"]["code"] == "INVALID_TIME"


async def test_a_contradiction_is_shown_beside_the_value(
    engine: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await order_of(api, "u1")
        await remember(
            api, status("crm", "shipped"), status("said", "delivered", 1, source="dialogue")
        )
        found = (await api.data(HISTORY, userId="u1"))["attributeHistory"]
        assert [each["value"] for each in found["current"]] == ["shipped"]
        assert [each["value"] for each in found["conflicting"]] == ["delivered"]
        memory = (await api.data(MEMORY, userId="u1", id="crm"))["memory"]
        (conflict,) = memory["conflictsWith"]
        assert (conflict["memoryId"], conflict["how"]) == ("said", "ATTRIBUTE")


@pytest.mark.parametrize("text", ["I love coffee", "我喜欢咖啡"])
async def test_a_keyed_attribute_has_one_history_a_subject(
    engine: Any, tenant: str, api_over: Any, text: str
) -> None:
    subject = "coffee" if text.isascii() else "咖啡"
    hated = text.replace("love", "hate").replace("喜欢", "讨厌")
    ask = {"type": "User", "id": "u1", "attribute": "user.preference"}
    async with api_over(engine, tenant=tenant) as api:
        await remember(api, {"id": "love", "userId": "u1", "text": text, "occurredAt": iso(DAY)})
        (receipt,) = await remember(
            api,
            {
                "id": "hate",
                "userId": "u1",
                "text": hated,
                "occurredAt": iso(DAY + timedelta(days=1)),
            },
        )
        assert (receipt["status"], receipt["supersedes"]) == ("SUPERSEDED", ["love"])
        found = (await api.data(HISTORY, userId="u1", **ask, subject=subject))["attributeHistory"]
        assert [each["value"] for each in found["current"]] == ["dislike"]
        assert [each["value"] for each in found["entries"]] == ["like", "dislike"]
        other = await api.data(HISTORY, userId="u1", **ask, subject="tea")
        assert other["attributeHistory"]["entries"] == []


async def test_history_is_the_users_own(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await remember(api, status("mine", "paid"))
        other = await api.data(HISTORY, userId="u2")
        assert other["attributeHistory"] == {"current": [], "conflicting": [], "entries": []}
        for change, code, path in (
            ({"userId": "*"}, "INVALID_SCOPE", None),
            ({"attribute": "order.colour"}, "UNKNOWN_PROPERTY", ["attribute"]),
            ({"type": "Device"}, "INVALID_INPUT", ["entity"]),
            ({"id": ""}, "INVALID_INPUT", ["entity", "id"]),
            ({"type": "Moon"}, "UNKNOWN_ENTITY_TYPE", ["type"]),
            ({"asOf": "2025-01-01"}, "INVALID_TIME", ["asOf"]),
        ):
            error = await api.error(HISTORY, **{"userId": "u1", **change})
            assert error["extensions"]["code"] == code, (change, error)
            if path is not None:
                assert error["extensions"]["path"] == path
    for options, code in (
        ({"roles": (Role.OPERATOR,)}, "FORBIDDEN"),
        ({"users": ["u2"]}, "FORBIDDEN"),
    ):
        async with api_over(engine, tenant=tenant, **options) as narrow:
            error = await narrow.error(HISTORY, userId="u1")
            assert error["extensions"]["code"] == code


# --- what a memory tells of itself ---------------------------------------------------------


async def test_use_and_age_are_told(engine: Any, tenant: str, api_over: Any) -> None:
    clock = {"now": DAY}
    engine = replace(engine, clock=Clock(lambda: clock["now"]))
    async with api_over(engine, tenant=tenant) as api:
        await remember(api, {"id": "m", "userId": "u1", "text": "屏幕有划痕"})
        fresh = (await api.data(MEMORY, userId="u1", id="m"))["memory"]
        assert (fresh["freshness"], fresh["accessCount"], fresh["lastAccessedAt"]) == (1.0, 0, None)
        clock["now"] = DAY + timedelta(days=10)
        older = (await api.data(MEMORY, userId="u1", id="m"))["memory"]
        assert older["freshness"] == pytest.approx(0.95**10)


async def test_a_dialogue_is_told_by_its_facts(engine: Any, tenant: str, api_over: Any) -> None:
    dialogue = (
        "用户：我的订单#882301怎么还没发货？客服：已发出，物流单号SF112233。"
        "用户：物流官网查不到啊。客服：我帮您联系仓库核查"
    )
    async with api_over(engine, tenant=tenant) as api:
        await order_of(api, "u1")
        (receipt,) = await remember(api, {"id": "talk", "userId": "u1", "text": dialogue})
        assert receipt["status"] == "CREATED"
        told = [
            (await api.data(MEMORY, userId="u1", id=fact["id"]))["memory"]
            for fact in receipt["facts"]
        ]
        assert [memory["factType"] for memory in told] == ["order_status", "service_resolution"]
        state = told[0]
        assert (state["attribute"], state["value"]) == ("order.status", "shipped")
        assert {"name": "tracking_number", "value": "SF112233"} in state["details"]
        assert "已发出" in state["evidence"]
        assert state["links"][0]["entity"] == {"type": "Order", "id": "882301"}
        assert state["links"][0]["how"] == "ID"
        assert state["intent"]
        assert state["urgency"] in {"LOW", "NORMAL", "HIGH"}


class Counting:
    """An engine that notes how often it reads, and is otherwise the one given."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._engine, name)
        if name not in {"memories", "links", "lineage"}:
            return verb

        async def counted(*args: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            return await verb(*args)

        return counted


async def test_relations_of_many_memories_are_one_round_trip(
    engine: Any, tenant: str, api_over: Any
) -> None:
    query = """{ attributeHistory(userId: "u1", entity: {type: Order, id: "882301"},
      attribute: "order.status") { entries { id links { how }
        supersedes { memory { id } } supersededBy { memory { id } } conflictsWith { memoryId }
        possibleUpdateOf { memoryId } } } }"""
    counting = Counting(engine)
    async with api_over(counting, tenant=tenant) as api:
        await remember(
            api, *(status(f"m{day}", ("paid", "shipped")[day % 2], day) for day in range(6))
        )
        counting.calls.clear()
        entries = (await api.data(query))["attributeHistory"]["entries"]
    assert len(entries) == 6
    assert [each["supersededBy"][0]["memory"]["id"] for each in entries[:-1]] == [
        f"m{day}" for day in range(1, 6)
    ]
    assert counting.calls == {"links": 1, "lineage": 1, "memories": 1}


# --- conversations -------------------------------------------------------------------------

SAY = """mutation ($userId: ID!, $sessionId: ID!, $speaker: Speaker! = CUSTOMER, $text: String!,
  $turnId: ID) { rememberTurn(userId: $userId, sessionId: $sessionId, speaker: $speaker,
  text: $text, turnId: $turnId) { session { turnCount entities { type id }
  turns { number speaker text } } error { code message path } } }"""
SESSION = """query ($userId: ID!, $sessionId: ID!) {
  session(userId: $userId, sessionId: $sessionId) { turnCount turns { text } } }"""
END = """mutation ($userId: ID!, $sessionId: ID!) {
  endSession(userId: $userId, sessionId: $sessionId) { turns setAside underWay
    receipts { status id } } }"""


async def test_a_conversation_is_kept_asked_and_ended(
    engine: Any, tenant: str, api_over: Any
) -> None:
    recall = """query ($question: String!) { recall(input: {
      question: $question, userId: "u1", sessionId: "s1"}) {
      session { sessionId turnCount turns { text } } } }"""
    here = {"userId": "u1", "sessionId": "s1"}
    async with api_over(engine, tenant=tenant, roles=(Role.AGENT,)) as api:
        async with api_over(engine, tenant=tenant) as admin:
            await order_of(admin, "u1")
        for _ in range(2):
            # sent again after a lost answer, it is the same turn
            said = await api.data(SAY, **here, text="我的订单#882301怎么还没发货？", turnId="1")
        assert said["rememberTurn"]["session"]["turnCount"] == 1
        assert said["rememberTurn"]["session"]["entities"] == [{"type": "Order", "id": "882301"}]
        said = await api.data(SAY, **here, text="已发出，物流单号SF112233。", speaker="SERVICE")
        assert [turn["speaker"] for turn in said["rememberTurn"]["session"]["turns"]] == [
            "CUSTOMER",
            "SERVICE",
        ]
        assert (await api.data(SESSION, **here))["session"]["turnCount"] == 2
        answer = await api.data(recall, question="它发货了吗？")
        assert answer["recall"]["session"]["turnCount"] == 2
        for other in ({"userId": "u2", "sessionId": "s1"}, {"userId": "u1", "sessionId": "s2"}):
            assert (await api.data(SESSION, **other))["session"]["turns"] == []
        ended = (await api.data(END, **here))["endSession"]
        assert (ended["turns"], ended["setAside"], ended["underWay"]) == (2, 0, False)
        assert [each["status"] for each in ended["receipts"]] == ["CREATED"]
        assert (await api.data(SESSION, **here))["session"]["turnCount"] == 0
        found = (await api.data(HISTORY, userId="u1"))["attributeHistory"]
        assert [each["value"] for each in found["current"]] == ["shipped"]


async def test_conversations_of_others_are_refused(engine: Any, tenant: str, api_over: Any) -> None:
    here = {"userId": "u1", "sessionId": "s1"}
    for options in ({"roles": (Role.ANALYST,)}, {"roles": (Role.OPERATOR,)}, {"users": ["u2"]}):
        async with api_over(engine, tenant=tenant, **options) as api:
            for query, more in ((SAY, {"text": "你好"}), (SESSION, {}), (END, {})):
                error = await api.error(query, **here, **more)
                assert error["extensions"]["code"] == "FORBIDDEN", (options, error)
    async with api_over(engine, tenant=tenant) as api:
        for change, code, path in (
            ({"userId": "*"}, "INVALID_SCOPE", ["userId"]),
            ({"sessionId": ""}, "INVALID_INPUT", ["sessionId"]),
            ({"text": " "}, "TEXT_EMPTY", ["text"]),
            ({"turnId": " x"}, "INVALID_INPUT", ["turnId"]),
        ):
            fault = await api.fault(SAY, **{**here, "text": "你好", **change})
            assert (fault["code"], fault["path"]) == (code, path), change
        error = await api.error(SAY, **{**here, "text": "你好", "speaker": "PARROT"})
        assert error["extensions"]["code"] == "BAD_USER_INPUT"
        assert error["extensions"]["path"] == ["speaker"]
