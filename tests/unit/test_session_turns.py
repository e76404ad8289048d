"""Turns in, context out: checked, linked, within the budget, nothing cut in silence."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, AFTER_SALES_WORDS, NOW, entity, ref, scope
from ecphoria.audit_log import no_audit
from ecphoria.clock import Clock
from ecphoria.errors import (
    ChatFailed,
    Forbidden,
    IdConflict,
    InvalidInput,
    InvalidScope,
    InvalidTime,
    StoreUnavailable,
    TextEmpty,
    TextTooLong,
)
from ecphoria.governance.pseudonyms import no_pseudonyms
from ecphoria.language.tokens import estimated_tokens
from ecphoria.model import NamedEntity, Role, SessionContext, SessionKey, Turn
from ecphoria.session.summary import ExtractiveSummarizer
from ecphoria.session.turns import remember_turn, session_context, summary_due
from ecphoria.settings import load_settings
from ecphoria.stores.session_memory import InProcessSessions
from ecphoria.stores.session_port import SessionState, Summary

IPHONE = NamedEntity("iPhone 15", "name", (ref("Device", "d-1"), ref("Product", "p-1")))
CHARGER = NamedEntity("充电器", "name_zh", (ref("Device", "c-1"), ref("Device", "c-2")))
ZHANG = NamedEntity("张伟", "name_zh", (ref("User", "u-1"),))


class FakeGraph:
    """Has names, and the entities that they and ids may mean."""

    def __init__(self, *seen, down=False):
        self.seen = frozenset(seen)
        self.down = down

    async def names(self, *_):
        if self.down:
            msg = "the graph store cannot be reached"
            raise StoreUnavailable(msg)
        return (IPHONE, CHARGER, ZHANG)

    async def forgotten_users(self, _keys):
        return {}

    async def visible_entities(self, _tenant, _user_id, refs):
        return tuple(entity(one.type, one.id) for one in refs if one in self.seen)


@dataclass
class Summaries:
    """A summarizer that says what it was given, or fails."""

    fails: bool = False
    asked: list = field(default_factory=list)

    async def summarize(self, previous, turns, *, lang, max_tokens):
        self.asked.append((previous, [turn.number for turn in turns], lang, max_tokens))
        if self.fails:
            msg = "no answer within 20 s"
            raise ChatFailed(msg)
        return f"{previous}+{turns[0].number}-{turns[-1].number}"


class Parts(SimpleNamespace):
    """What the functions use of the engine, with a clock that is set by hand."""

    def pass_(self, **time):
        self.now += timedelta(**time)


def parts_of(*, graph=None, summarizer=None, **settings):
    made = load_settings(**settings)
    tokens = iter(range(1_000_000))
    parts = Parts(
        graph=graph or FakeGraph(),
        sessions=InProcessSessions(made.session_ttl_s),
        summarizer=summarizer or ExtractiveSummarizer(AFTER_SALES_WORDS),
        domain=AFTER_SALES,
        lexicon=AFTER_SALES_WORDS,
        pseudonyms=no_pseudonyms(),
        audit=no_audit(),
        settings=made,
        now=NOW,
    )
    parts.clock = Clock(now=lambda: parts.now, token=lambda: f"token-{next(tokens)}")
    return parts


async def say(parts, text, speaker="customer", session="s-1", user="u-1", **more):
    return await remember_turn(parts, scope(), user, session, speaker, text, **more)


# --- checks --------------------------------------------------------------------------------


async def test_a_turn_comes_back_clean():
    parts = parts_of()
    context = await say(parts, "  我的订单\u200b怎么\0还没发货？ ")
    assert context == SessionContext(
        session_id="s-1",
        summary="",
        turns=(Turn(1, "customer", "我的订单怎么 还没发货？", NOW),),
        entities=(),
        turn_count=1,
        expires_at=NOW + timedelta(seconds=parts.settings.session_ttl_s),
    )
    assert await session_context(parts, scope(), "u-1", "s-1") == context


@pytest.mark.parametrize(
    ("changes", "error", "path"),
    [
        ({"text": " \u200b\n"}, TextEmpty, ("text",)),
        ({"text": "x" * 101}, TextTooLong, ("text",)),
        ({"text": None}, InvalidInput, ("text",)),
        ({"speaker": "bot"}, InvalidInput, ("speaker",)),
        ({"speaker": ["customer"]}, InvalidInput, ("speaker",)),
        ({"session": ""}, InvalidInput, ("session_id",)),
        ({"session": "a\nb"}, InvalidInput, ("session_id",)),
        ({"session": "x" * 257}, TextTooLong, ("session_id",)),
        ({"user": "*"}, InvalidScope, ("user_id",)),
        ({"user": ""}, InvalidScope, ("user_id",)),
        ({"user": None}, InvalidScope, ("user_id",)),
        ({"turn_id": " "}, InvalidInput, ("turn_id",)),
        ({"said_at": NOW.replace(tzinfo=None)}, InvalidTime, ("said_at",)),
    ],
)
async def test_a_bad_turn_is_refused_with_its_place(changes, error, path):
    parts = parts_of(max_text_chars=100)
    with pytest.raises(error) as caught:
        await say(parts, **{"text": "hello", **changes})
    assert caught.value.path == path
    assert await parts.sessions.idle(NOW, 10) == ()


@pytest.mark.parametrize("role", [Role.ANALYST, Role.OPERATOR])
async def test_conversations_are_for_agents(role):
    parts = parts_of()
    with pytest.raises(Forbidden):
        await remember_turn(parts, scope(role), "u-1", "s-1", "customer", "hello")
    with pytest.raises(Forbidden):
        await session_context(parts, scope(role), "u-1", "s-1")


async def test_a_key_for_one_user_sees_no_other():
    parts = parts_of()
    await say(parts, "a secret", user="u-2")
    own = scope(Role.AGENT, users=frozenset({"u-1"}))
    with pytest.raises(Forbidden):
        await session_context(parts, own, "u-2", "s-1")
    assert (await session_context(parts, own, "u-1", "s-1")).turns == ()


async def test_the_caller_may_say_when_it_was_said():
    parts = parts_of()
    context = await say(parts, "hello", said_at=NOW - timedelta(hours=3))
    assert context.turns[0].said_at == NOW - timedelta(hours=3)
    # the session lives from when the turn came
    assert context.expires_at == NOW + timedelta(minutes=30)


async def test_a_turn_sent_again_is_there_once():
    parts = parts_of()
    await say(parts, "hello", turn_id="t-1")
    context = await say(parts, "hello", turn_id="t-1")
    assert context.turn_count == 1
    assert (await say(parts, "hello")).turn_count == 2
    with pytest.raises(IdConflict):
        await say(parts, "good bye", turn_id="t-1")


async def test_an_unknown_or_finished_conversation_is_an_empty_one():
    parts = parts_of()
    nothing = SessionContext("s-1", "", (), (), 0, None)
    assert await session_context(parts, scope(), "u-1", "s-1") == nothing
    await say(parts, "hello")
    parts.pass_(minutes=29, seconds=59)
    assert (await session_context(parts, scope(), "u-1", "s-1")).turn_count == 1
    parts.pass_(seconds=1)
    assert await session_context(parts, scope(), "u-1", "s-1") == nothing
    assert (await say(parts, "hello again")).turn_count == 1


async def test_a_life_beyond_the_calendar_has_no_end():
    parts = parts_of(session_ttl_s=1e13)
    assert (await say(parts, "hello")).expires_at is None


# --- entities ------------------------------------------------------------------------------


async def test_entities_are_found_by_id_and_name_in_the_order_of_the_text():
    graph = FakeGraph(ref("Order", "#882301"), ref("Device", "d-1"), ref("Product", "p-1"))
    parts = parts_of(graph=graph)
    context = await say(parts, "张伟的ｉＰｈｏｎｅ15，订单#882301")
    assert context.turns[0].entities == (
        ref("Device", "d-1"),
        ref("Product", "p-1"),
        ref("Order", "#882301"),
    )
    context = await say(parts, "订单#882301的iPhone 15呢")
    assert context.entities == (
        ref("Product", "p-1"),
        ref("Device", "d-1"),
        ref("Order", "#882301"),
    )


async def test_what_is_named_twice_stands_where_it_was_named_last():
    graph = FakeGraph(ref("Order", "#882301"), ref("Order", "#882302"))
    parts = parts_of(graph=graph)
    context = await say(parts, "order #882301, not #882302, I mean #882301")
    assert context.turns[0].entities == (ref("Order", "#882302"), ref("Order", "#882301"))
    assert context.entities == (ref("Order", "#882301"),)


async def test_an_id_with_one_other_digit_is_nobody():
    parts = parts_of(graph=FakeGraph(ref("Order", "#882301")))
    assert (await say(parts, "订单#882302")).entities == ()


async def test_a_name_of_two_things_means_neither():
    one = parts_of(graph=FakeGraph(ref("Device", "c-1")))
    assert (await say(one, "我的充电器坏了")).entities == (ref("Device", "c-1"),)
    two = parts_of(graph=FakeGraph(ref("Device", "c-1"), ref("Device", "c-2")))
    assert (await say(two, "我的充电器坏了")).entities == ()


async def test_without_the_graph_a_turn_is_kept_without_entities():
    parts = parts_of(graph=FakeGraph(ref("Order", "#882301"), down=True))
    context = await say(parts, "订单#882301")
    assert [turn.text for turn in context.turns] == ["订单#882301"]
    assert context.entities == ()


# --- window and summary --------------------------------------------------------------------


async def test_every_twenty_turns_a_summary_is_made():
    summarizer = Summaries()
    parts = parts_of(summarizer=summarizer)
    for number in range(1, 61):
        context = await say(parts, f"第{number}句", "service" if number % 2 == 0 else "customer")
        assert context.turn_count == number
        if number < 20:
            assert context.summary == ""
    assert summarizer.asked == [
        ("", list(range(1, 11)), "zh", 500),
        ("+1-10", list(range(11, 31)), "zh", 500),
        ("+1-10+11-30", list(range(31, 51)), "zh", 500),
    ]
    assert context.summary == "+1-10+11-30+31-50"
    assert [turn.number for turn in context.turns] == list(range(51, 61))


async def test_turns_that_no_longer_fit_are_summarised_before():
    parts = parts_of(session_tokens=100)
    for number in range(1, 10):
        context = await say(parts, f"Message number {number} about order #88230{number}.")
        assert sum(estimated_tokens(turn.text) for turn in context.turns) <= 100
        assert context.turns[-1].number == number
        shown = f"{context.summary} {context.turns}"
        assert all(f"#88230{one}" in shown for one in range(max(1, number - 4), number + 1))
    assert context.summary.startswith("User: ")


async def test_a_turn_longer_than_the_window_is_in_the_summary():
    parts = parts_of(session_tokens=100)
    await say(parts, "hello")
    context = await say(parts, "订单#882301。" + "嗯" * 500)
    assert context.turns == ()
    assert "订单#882301。" in context.summary
    assert (await say(parts, "you see?")).turns[0].number == 3


async def test_without_the_chat_model_the_summary_is_made_by_rules():
    parts = parts_of(summarizer=Summaries(fails=True), session_summary_every=2)
    await say(parts, "Where is order #882301?")
    context = await say(parts, "It is on its way.", "service")
    assert context.summary == "User: Where is order #882301?"
    assert [turn.number for turn in context.turns] == [2]


async def test_a_summary_that_another_replica_made_is_taken():
    summarizer = Summaries()
    parts = parts_of(summarizer=summarizer)
    await asyncio.gather(*(say(parts, f"turn {number}") for number in range(19)))
    key = SessionKey("shop", "u-1", "s-1")
    keep = parts.sessions.keep_summary

    async def after_another(_, state, summary):
        await keep(key, state, Summary("by another", 12, 20))
        return await keep(key, state, summary)

    parts.sessions.keep_summary = after_another
    context = await say(parts, "turn 20")
    assert context.summary == "by another"
    assert [turn.number for turn in context.turns] == list(range(13, 21))
    assert len(summarizer.asked) == 1


async def test_where_no_summary_can_be_kept_the_context_is_still_whole():
    parts = parts_of(summarizer=Summaries())

    async def refuse(*_):
        return False

    parts.sessions.keep_summary = refuse
    for number in range(25):
        context = await say(parts, f"turn {number}")
    assert context.summary == "+1-15"
    assert [turn.number for turn in context.turns] == list(range(16, 26))


TEXTS = st.lists(st.integers(1, 120).map(lambda size: "字" * size), min_size=1, max_size=40)


@given(TEXTS, st.integers(1, 300), st.integers(2, 25), st.integers(0, 10))
def test_what_is_kept_word_by_word_fits_and_the_rest_is_summarised(said, budget, every, before):
    settings = load_settings(session_tokens=budget, session_summary_every=every)
    last = before + len(said)
    turns = tuple(Turn(before + n, "customer", text, NOW) for n, text in enumerate(said, 1))
    state = SessionState("A", 1, last, NOW, Summary("", before, before), turns, ())
    upto = summary_due(state, settings)
    stay = turns if upto is None else [turn for turn in turns if turn.number > upto]
    assert sum(estimated_tokens(turn.text) for turn in stay) <= budget
    if upto is None:
        assert len(said) < every
    else:
        assert before < upto <= last
        assert last - upto <= every // 2
