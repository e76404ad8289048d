"""The four verbs, held to one behaviour: in memory, and over an engine on each store set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
import pytest_asyncio

from ecphoria.errors import (
    EcphoriaError,
    IdConflict,
    InvalidInput,
    InvalidScope,
    InvalidTime,
    MemoryForgotten,
    TextEmpty,
    UnknownProperty,
)
from ecphoria.model import EntityInput, EntityRef, RelationInput
from ecphoria.testing import EngineStore, InMemoryStore, ManualClock, MemoryStore
from engines import with_clock

IN_MEMORY = "in-memory"
# Long ago: a clean-up by this clock leaves alone what tests with today's clock keep.
START = datetime(2021, 3, 1, 9, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ORDER = EntityRef("Order", "#882301")


def pytest_generate_tests(metafunc):
    if "store_of" in metafunc.fixturenames:
        metafunc.parametrize(
            "store_of", [IN_MEMORY, *metafunc.config.getoption("--stores").split(",")]
        )


@pytest.fixture
def clock(tenant):
    return ManualClock(START, name=tenant)


@pytest_asyncio.fixture(loop_scope="session")
async def store(store_of, _started, admin, clock) -> MemoryStore:
    if store_of == IN_MEMORY:
        return InMemoryStore(clock)
    engine = with_clock(await _started.engine(store_of), clock)
    # an engine gives no answer about an order that it does not know
    await engine.upsert_entities(
        admin,
        [EntityInput("User", "u1", {"name": "Ann"}), EntityInput("Order", ORDER.id)],
        [RelationInput("PLACED", EntityRef("User", "u1"), ORDER)],
    )
    return EngineStore(engine, admin)


async def ids(store, question, user="u1", **more):
    return [memory.id for memory in await store.recall(user, question, **more)]


# --- what is written is found --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("The spare key of the shop is kept in the blue drawer.", "Where is the spare key kept?"),
        ("仓库的备用钥匙放在蓝色抽屉里。", "仓库的备用钥匙放在哪里？"),
    ],
)
@pytest.mark.parametrize("given", [None, "mine", "编号|1"])
async def test_what_is_written_is_found_at_once_under_the_id_that_came_back(
    store, text, question, given
):
    id_ = await store.write_memory("u1", text, id=given)
    assert given in {None, id_}
    (found,) = await store.recall("u1", question)
    assert (found.id, found.text, found.user_id) == (id_, text, "u1")
    assert (found.valid_from, found.valid_until) == (START, None)


async def test_a_limit_is_kept(store):
    for number in range(4):
        await store.write_memory("u1", f"Courier number {number} came on foot.")
    assert len(await store.recall("u1", "Which courier came on foot?", limit=2)) == 2


async def test_small_talk_reads_nothing(store):
    await store.write_memory("u1", "Hello, thanks, good morning!")
    assert await store.recall("u1", "你好！") == ()


async def test_a_dialogue_is_found_by_what_each_side_said(store):
    await store.write_memory(
        "u1",
        "用户：我的订单#882301怎么还没发货？客服：已发出，物流单号SF112233。"
        "用户：物流官网查不到啊。客服：我帮您联系仓库核查",
    )
    shipped = await store.recall("u1", "订单#882301的物流单号是多少？")
    assert any("SF112233" in memory.text for memory in shipped)
    promised = await store.recall("u1", "订单#882301客服承诺了什么？")
    assert any("核查" in memory.text for memory in promised)


# --- identity ------------------------------------------------------------------------------


async def test_a_repeated_write_makes_nothing_new(store, clock):
    text = "The parcel waits at locker 17."
    first = await store.write_memory("u1", text)
    assert await store.write_memory("u1", text) == first
    clock.advance(2 * DAY)
    assert await store.write_memory("u1", text) == first
    assert await store.write_memory("u1", "the parcel waits at the locker 17.") == first
    own = await store.write_memory("u1", "Note of the shop.", id="mine")
    assert await store.write_memory("u1", "Note of the shop.", id="mine") == own
    found = await ids(store, "At which locker does the parcel wait?")
    assert found.count(first) == 1


async def test_a_value_that_comes_back_is_news(store, clock):
    made = []
    for value in ("gold", "silver", "gold"):
        made.append(await store.write_memory("u1", "", attribute="user.level", value=value))
        clock.advance(DAY)
    assert len(set(made)) == 3
    found = await store.recall("u1", "Which membership level does the customer have?")
    assert [memory.id for memory in found] == made[-1:]
    again = await store.write_memory("u1", "", attribute="user.level", value="gold")
    assert again == made[-1]


async def test_one_digit_makes_another_memory(store):
    made = {
        await store.write_memory("u1", f"The parcel of order {order} waits at locker {locker}.")
        for order in ("882301", "882302")
        for locker in (17, 18)
    }
    assert len(made) == 4


async def test_after_a_week_it_is_news_again(store, clock):
    text = "客户又来电催了一次。"
    first = await store.write_memory("u1", text)
    clock.advance(8 * DAY)
    assert await store.write_memory("u1", text) != first


async def test_an_id_stays_with_its_content_and_its_user(store):
    await store.write_memory("u1", "The parcel waits at locker 17.", id="mine")
    with pytest.raises(IdConflict) as other_content:
        await store.write_memory("u1", "The parcel waits at locker 18.", id="mine")
    assert other_content.value.path == ("id",)
    with pytest.raises(IdConflict):
        await store.write_memory("u2", "The parcel waits at locker 17.", id="mine")
    assert await store.recall("u2", "At which locker does the parcel wait?") == ()


# --- one value at a time -------------------------------------------------------------------


async def status_of(store, question="What is the status of order #882301?"):
    found = await store.recall("u1", question)
    return [memory.value for memory in found if memory.attribute == "order.status"]


async def write_status(store, value, at, text=""):
    return await store.write_memory(
        "u1", text, entity=ORDER, attribute="order.status", value=value, valid_from=at
    )


async def test_a_newer_value_takes_the_older_ones_place(store, clock):
    await write_status(store, "paid", START)
    clock.advance(DAY)
    await write_status(store, "shipped", START + DAY)
    assert await status_of(store) == ["shipped"]
    found = await store.recall("u1", "What was the status of order #882301 before?")
    ends = {memory.value: memory.valid_until for memory in found if memory.value}
    assert ends == {"paid": START + DAY, "shipped": None}


async def test_old_news_that_come_late_are_history(store, clock):
    clock.advance(5 * DAY)
    await write_status(store, "delivered", START + 4 * DAY, "订单#882301已签收")
    await write_status(store, "shipped", START + 2 * DAY, "订单#882301已发货")
    assert await status_of(store, "订单#882301现在是什么状态？") == ["delivered"]
    assert set(await status_of(store, "订单#882301以前是什么状态？")) == {"delivered", "shipped"}


async def test_values_of_the_user_himself_need_no_entity(store, clock):
    await store.write_memory("u1", "", attribute="user.level", value="gold")
    clock.advance(DAY)
    await store.write_memory("u1", "", attribute="user.level", value="platinum")
    found = await store.recall("u1", "Which membership level does the customer have?")
    assert [memory.value for memory in found] == ["platinum"]


async def test_what_is_not_true_yet_is_not_found_yet(store, clock):
    text = "From April on parcels are left with the neighbour."
    id_ = await store.write_memory("u1", text, valid_from=START + 10 * DAY)
    question = "With whom are parcels left?"
    assert await store.recall("u1", question) == ()
    clock.advance(10 * DAY)
    assert await ids(store, question) == [id_]


async def test_times_of_all_zones_are_compared_as_moments(store, clock):
    east, west = timezone(8 * HOUR), timezone(-5 * HOUR)
    clock.advance(DAY)
    # later by the wall, earlier in time
    await write_status(store, "paid", datetime(2021, 3, 1, 23, tzinfo=east))
    await write_status(store, "shipped", datetime(2021, 3, 1, 11, tzinfo=west))
    assert await status_of(store) == ["shipped"]


# --- going -----------------------------------------------------------------------------------


async def test_what_is_forgotten_is_gone_for_good(store):
    text = "The gift card code for the parcel is 4711."
    question = "What is the gift card code for the parcel?"
    id_ = await store.write_memory("u1", text, id="secret")
    assert await store.forget("u2", [id_]) == 0
    assert await ids(store, question) == [id_]
    assert await store.forget("u1", [id_, id_, "never there"]) == 1
    assert await store.forget("u1", [id_]) == 0
    assert await store.recall("u1", question) == ()
    with pytest.raises(MemoryForgotten):
        await store.write_memory("u1", text, id=id_)
    assert await store.recall("u1", f"{question} (before)") == ()


async def test_a_text_is_forgotten_with_all_that_was_cut_from_it(store):
    text = (
        "用户：我的订单#882301怎么还没发货？客服：已发出，物流单号SF112233。"
        "用户：物流官网查不到啊。客服：我帮您联系仓库核查"
    )
    id_ = await store.write_memory("u1", text, id="talk")
    other = await store.write_memory("u1", "订单#882301的包裹放在蓝色抽屉里。", id="talk~")
    assert await store.forget("u1", [id_]) == 1
    for question in ("订单#882301的物流单号是多少？", "订单#882301客服承诺了什么？"):
        assert set(await ids(store, question)) <= {other}
    with pytest.raises(MemoryForgotten):
        await store.write_memory("u1", text, id="talk")
    assert other in await ids(store, "订单#882301的包裹放在哪里？")


async def test_what_a_forgotten_value_had_ended_stays_ended(store, clock):
    await write_status(store, "paid", START)
    clock.advance(DAY)
    shipped = await write_status(store, "shipped", START + DAY)
    assert await store.forget("u1", [shipped]) == 1
    assert await status_of(store) == []
    clock.advance(HOUR)
    await write_status(store, "delivered", START + DAY + HOUR)
    assert await status_of(store) == ["delivered"]


async def test_what_has_expired_is_not_found_and_then_erased(store, clock):
    text = "The parcel waits at locker 17."
    question = "At which locker does the parcel wait?"
    await store.write_memory("u1", text, id="gone", expires_at=START + HOUR)
    stays = await store.write_memory("u2", text, expires_at=START + 3 * HOUR)
    assert await store.clean_expired() == 0
    clock.advance(HOUR)
    assert await store.recall("u1", question) == ()
    assert await store.clean_expired() == 1
    assert await store.clean_expired() == 0
    with pytest.raises(MemoryForgotten):
        await store.write_memory("u1", text, id="gone")
    assert await ids(store, question, "u2") == [stays]


async def test_what_just_happened_lives_two_months(store, clock):
    await store.write_memory("u1", "The courier rang at the wrong door.")
    clock.advance(60 * DAY - HOUR)
    assert await store.clean_expired() == 0
    clock.advance(HOUR)
    assert await store.clean_expired() == 1


async def test_a_use_keeps_it_out_of_the_archive_for_another_month(store, clock):
    id_ = await store.write_memory("u1", "The courier rang at the wrong door.")
    question = "At which door did the courier ring?"
    clock.advance(31 * DAY)
    assert await ids(store, question) == [id_]
    await store.clean_expired()
    # it was asked for today: that is another month
    clock.advance(20 * DAY)
    await store.clean_expired()
    assert await ids(store, question) == [id_]


async def test_the_archive_is_searched_when_history_is_asked_for(store, clock):
    id_ = await store.write_memory("u1", "The courier rang at the wrong door.")
    question, ever = (
        "At which door did the courier ring?",
        "At which door did the courier ring before?",
    )
    clock.advance(31 * DAY)
    assert await store.clean_expired() == 0
    assert await store.recall("u1", question) == ()
    assert await ids(store, ever) == [id_]
    await store.clean_expired()
    assert await ids(store, question) == [id_]


# --- whose it is, and what is no input -------------------------------------------------------


async def test_users_never_mix(store):
    text = "The gift card code for the parcel is 4711."
    question = "What is the gift card code for the parcel?"
    first = await store.write_memory("u1", text)
    second = await store.write_memory("u2", text)
    assert first != second
    assert await ids(store, question, "u1") == [first]
    assert await ids(store, question, "u2") == [second]
    assert await store.recall("u3", question) == ()


@pytest.mark.parametrize("user", ["", " ", "*", "%", None, "u\n1"])
async def test_a_user_is_named_exactly(store, user):
    for call in (
        store.write_memory(user, "text"),
        store.recall(user, "Where is it?"),
        store.forget(user, ["m"]),
    ):
        with pytest.raises(InvalidScope):
            await call


@pytest.mark.parametrize(
    ("changes", "kind", "path"),
    [
        ({"text": " \n"}, TextEmpty, ("text",)),
        ({"text": 5}, InvalidInput, ("text",)),
        ({"id": ""}, InvalidInput, ("id",)),
        ({"valid_from": datetime(2021, 1, 1)}, InvalidTime, ("valid_from",)),  # noqa: DTZ001
        ({"expires_at": datetime(2021, 1, 1)}, InvalidTime, ("expires_at",)),  # noqa: DTZ001
        ({"attribute": "order.status"}, InvalidInput, ("value",)),
        ({"value": "paid"}, InvalidInput, ("attribute",)),
        ({"entity": ORDER}, InvalidInput, ("attribute",)),
        (
            {"attribute": "order.colour", "value": "red"},
            UnknownProperty,
            ("facts", 0, "attribute"),
        ),
        (
            {"entity": ORDER, "attribute": "order.status", "value": "eaten"},
            InvalidInput,
            ("facts", 0, "value"),
        ),
        ({"attribute": "order.status", "value": "paid"}, InvalidInput, ("facts", 0, "entity")),
    ],
)
async def test_bad_input_is_refused_with_the_place_and_nothing_is_kept(store, changes, kind, path):
    item = {"text": "The parcel waits at locker 17.", "id": "bad"} | changes
    text = item.pop("text")
    with pytest.raises(EcphoriaError) as caught:
        await store.write_memory("u1", text, **item)
    assert (type(caught.value), caught.value.path) == (kind, path)
    assert await store.recall("u1", "At which locker does the parcel wait?") == ()


@pytest.mark.parametrize(("question", "limit"), [("", 5), (" ", 5), ("Where?", 0), ("Where?", 101)])
async def test_a_question_is_asked_properly(store, question, limit):
    with pytest.raises(InvalidInput):
        await store.recall("u1", question, limit=limit)
