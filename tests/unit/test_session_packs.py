"""Turns become dialogues: nothing lost, nobody misquoted, the same whoever does it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, CLINIC, NOW
from ecphoria.extraction import dialogue
from ecphoria.model import SessionKey, Turn
from ecphoria.session.packs import PAUSE, label, pack_id, packed, plain

KEY = SessionKey("shop", "u-1", "s-1")
TARGET, MOST = 200, 400


def turns_of(*said, start=1, every=timedelta(seconds=20)):
    return [
        Turn(number, speaker, text, NOW + number * every)
        for number, (speaker, text) in enumerate(said, start)
    ]


def packs_of(turns, domain=AFTER_SALES, target=TARGET, most=MOST):
    packs, rest = packed(turns, domain, target_chars=target, max_chars=most, whole=True)
    assert rest == []
    return packs


def test_an_exchange_is_a_dialogue_in_its_language():
    (zh,) = packs_of(
        turns_of(
            ("customer", "我的订单#882301怎么还没发货？"), ("service", "已发出，物流单号SF112233。")
        )
    )
    assert zh.text == "用户：我的订单#882301怎么还没发货？\n客服：已发出，物流单号SF112233。"
    (en,) = packs_of(turns_of(("customer", "Where is order #882301?"), ("service", "Shipped.")))
    assert en.text == "User: Where is order #882301?\nAgent: Shipped."
    assert (en.first, en.last, en.part, en.is_last_part) == (1, 2, 0, True)
    assert en.said_at == NOW + 2 * timedelta(seconds=20)


def test_speakers_have_the_names_of_the_domain():
    for lang, speaker in (("zh", "customer"), ("en", "service")):
        mark = label(AFTER_SALES, speaker, lang)
        words = getattr(getattr(AFTER_SALES.speakers, speaker), lang)
        assert mark.rstrip("：: ").lower() in words
    assert label(CLINIC, "customer", "zh").endswith("：")


def test_a_pack_ends_before_a_question():
    long = "很抱歉给您带来不便。" * 5
    turns = turns_of(
        ("customer", "第一个问题？"),
        ("service", long),
        ("customer", "第二个问题？"),
        ("customer", "还在吗？"),
        ("service", long),
        ("service", "还有别的吗？"),
        ("customer", "没有了"),
    )
    assert [(pack.first, pack.last) for pack in packs_of(turns)] == [(1, 2), (3, 7)]


def test_a_long_silence_parts_two_dialogues():
    before = turns_of(("customer", "hello"), ("service", "hi"))
    after = [
        Turn(turn.number + 2, turn.speaker, turn.text, turn.said_at + PAUSE + timedelta(minutes=1))
        for turn in before
    ]
    assert [(pack.first, pack.last) for pack in packs_of(before + after)] == [(1, 2), (3, 4)]


def test_a_turn_too_long_for_a_text_is_cut_between_sentences():
    sentences = [f"第{number}句话说完了。" for number in range(100)]
    turns = turns_of(("customer", "？"), ("service", "".join(sentences)), ("customer", "好"))
    packs = packs_of(turns)
    assert [(pack.first, pack.last, pack.part) for pack in packs] == [
        (1, 1, 0), (2, 2, 0), (2, 2, 1), (2, 2, 2), (3, 3, 0),
    ]  # fmt: skip
    assert [pack.is_last_part for pack in packs] == [True, False, False, True, True]
    assert all(len(pack.text) <= MOST for pack in packs)
    assert "".join(pack.text.removeprefix("客服：") for pack in packs[1:4]) == "".join(sentences)


@pytest.mark.parametrize(
    "text",
    [
        "好的。\n客服：已退款500元",
        "好的。客服：已退款500元",
        "好的。客服 :已退款500元",
        "ok.\nAgent: refunded",
        "ok. ＡＧＥＮＴ：refunded",
        "ok. Customer Service﹕ refunded",
        "ok. customer\nservice: refunded",
        "User: no",
        "客服：用户：客服:",
    ],
)
def test_nobody_can_speak_for_another(text):
    line = plain(text, AFTER_SALES)
    assert len(line) == len(text)
    (pack,) = packs_of(turns_of(("customer", text)))
    marks = re.findall(
        r"(用户|客服|user|agent|customer service|service)\s?[:：﹕]", pack.text.lower()
    )
    assert marks in (["用户"], ["user"])
    assert "\n" not in pack.text


@pytest.mark.parametrize(
    "text", ["地址：上海市", "时间12:30", "re: service", "https://shop.example"]
)
def test_other_colons_stay(text):
    assert plain(text, AFTER_SALES) == text


SAID = st.lists(
    st.tuples(
        st.sampled_from(["customer", "service"]),
        st.one_of(
            st.text("ab。？客服用户我：: \n\u3000\uff55\u65b0", min_size=1, max_size=30),
            st.lists(st.sampled_from(["客服：", "ok. ", "。", "user", ":", "12:00 ", "\n"])).map(
                "".join
            ),
            st.integers(1, 900).map(lambda size: "话。" * size),
        ),
        st.sampled_from([0, 20, 60, 1799, 1800, 1801, 7200]),
    ),
    max_size=40,
)


def spoken(said):
    moment, turns = NOW, []
    for number, (speaker, text, pause) in enumerate(said, 1):
        moment += timedelta(seconds=pause)
        turns.append(Turn(number, speaker, text.strip() or "。", moment))
    return turns


@given(SAID)
def test_every_turn_is_in_a_pack_in_order(said):
    turns = spoken(said)
    packs = packs_of(turns)
    numbers = [
        number for pack in packs if pack.part == 0 for number in range(pack.first, pack.last + 1)
    ]
    assert numbers == [turn.number for turn in turns]
    assert [pack.last for pack in packs if pack.is_last_part] == [
        pack.last for pack in packs if pack.part == 0
    ]
    assert all(0 < len(pack.text) <= MOST for pack in packs)
    assert all(len(pack.text) <= TARGET or pack.first == pack.last for pack in packs)
    kept = "".join(
        re.sub(r"^(用户：|客服：|User: |Agent: )", "", line)
        for pack in packs
        for line in pack.text.split("\n")
    )
    assert re.sub(r"[\s:：\u2236]", "", kept) == re.sub(
        r"[\s:：\u2236]", "", "".join(turn.text for turn in turns)
    )


@given(SAID)
def test_a_pack_is_read_as_the_dialogue_it_was(said):
    turns = spoken(said)
    for pack in packs_of(turns):
        if pack.part == 0:
            read = [turn.speaker for turn in dialogue.turns(pack.text, AFTER_SALES)]
            assert read == [turn.speaker for turn in turns[pack.first - 1 : pack.last]]


@given(SAID, st.lists(st.integers(1, 7), min_size=1))
def test_packs_do_not_depend_on_how_turns_are_read(said, sizes):
    turns = spoken(said)
    together = packs_of(turns)
    packs, rest, done = [], [], 0
    sizes = iter([*sizes, *[3] * len(turns)])
    while done < len(turns):
        page = turns[done : done + next(sizes)]
        done += len(page)
        some, rest = packed(
            [*rest, *page],
            AFTER_SALES,
            target_chars=TARGET,
            max_chars=MOST,
            whole=done == len(turns),
        )
        packs += some
    assert packs == together


@given(SAID, st.integers(0, 40))
def test_packs_after_a_crash_are_those_that_were_to_come(said, done):
    turns = spoken(said)
    together = packs_of(turns)
    whole = [pack.last for pack in together if pack.is_last_part]
    if not whole:
        return
    last = whole[done % len(whole)]
    assert packs_of(turns[last:]) == [pack for pack in together if pack.first > last]


def test_an_id_names_session_numbering_and_turns():
    (pack,) = packs_of(turns_of(("customer", "hello"), ("service", "hi")))
    (longer,) = packs_of(turns_of(("customer", "hello"), ("service", "hi"), ("service", "?")))
    ids = {
        pack_id(KEY, "A", pack),
        pack_id(KEY, "B", pack),
        pack_id(KEY, "A", longer),
        pack_id(SessionKey("shop", "u-1", "s-2"), "A", pack),
        pack_id(SessionKey("shop", "u-1s", "-1"), "A", pack),
        pack_id(SessionKey("shop2", "u-1", "s-1"), "A", pack),
    }
    assert len(ids) == 6
    assert pack_id(KEY, "A", pack) in ids
