"""Summaries by rules: whole sentences, the telling ones, within the budget, nothing in silence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES_WORDS, NOW
from ecphoria.language.tokens import estimated_tokens
from ecphoria.model import Turn
from ecphoria.session.summary import ExtractiveSummarizer, extract, sentences

LEFT_OUT = re.compile(r"\((\d+) more sentences are left out\.\)|（另有(\d+)句未列出。）")

ZH = (
    ("customer", "你好"),
    ("customer", "我想问一下。我的订单#882301怎么还没发货？"),
    ("service", "您好，很高兴为您服务。订单已经发出，物流单号SF112233。"),
    ("customer", "好的。今天天气不错。"),
    ("service", "我们会在3天内送达，请放心。"),
    ("customer", "谢谢"),
)
EN = (
    ("customer", "Hi there."),
    ("customer", "It is a nice day. Where is my order #882301?"),
    ("service", "Thanks for waiting. It was shipped with tracking number SF112233."),
    ("customer", "Okay. That is fine."),
    ("service", "We will deliver it within 3 days."),
    ("customer", "Thank you!"),
)


def turns_of(said, start=1):
    return [Turn(number, *one, NOW) for number, one in enumerate(said, start)]


def summary_of(said, budget, previous="", lang="zh"):
    return extract(previous, turns_of(said), AFTER_SALES_WORDS, lang=lang, max_tokens=budget)


def left_out(summary):
    found = [int(a or b) for a, b in LEFT_OUT.findall(summary)]
    assert len(found) <= 1
    return found[0] if found else 0


def test_what_fits_is_kept_whole_and_in_order():
    assert summary_of(ZH, 500).split("\n") == [
        "用户：你好",
        "用户：我想问一下。",
        "用户：我的订单#882301怎么还没发货？",
        "客服：您好，很高兴为您服务。",
        "客服：订单已经发出，物流单号SF112233。",
        "用户：好的。",
        "用户：今天天气不错。",
        "客服：我们会在3天内送达，请放心。",
        "用户：谢谢",
    ]


@pytest.mark.parametrize(("said", "lang", "budget"), [(ZH, "zh", 76), (EN, "en", 60)])
def test_ids_numbers_promises_and_questions_come_first(said, lang, budget):
    summary = summary_of(said, budget, lang=lang)
    assert "#882301" in summary
    assert "SF112233" in summary
    assert "3 days" in summary or "3天内" in summary
    assert "nice day" not in summary
    assert "天气" not in summary
    assert left_out(summary) >= 3
    assert estimated_tokens(summary) <= budget


@pytest.mark.parametrize(("said", "lang"), [(ZH, "zh"), (EN, "en")])
def test_what_was_important_stays_over_many_summaries(said, lang):
    summary = summary_of(said, 120, lang=lang)
    chat = {"zh": ("customer", "我再看看别的颜色。"), "en": ("customer", "Let me look around.")}[
        lang
    ]
    total = left_out(summary)
    for number in range(50):
        summary = summary_of(
            [chat, (chat[0], f"{chat[1]} {'嗯' * (number + 1)}")], 120, summary, lang
        )
        assert left_out(summary) >= total
        total = left_out(summary)
    assert "#882301" in summary
    assert "SF112233" in summary


def test_newer_sentences_win_over_equal_older_ones():
    said = [("customer", f"订单{number}到了吗？") for number in range(882300, 882330)]
    summary = summary_of(said, 60)
    assert "882329" in summary
    assert "882300" not in summary


def test_what_is_said_twice_is_kept_once():
    summary = summary_of([ZH[1], ZH[1], ZH[1]], 500)
    assert summary.count("#882301") == 1
    again = summary_of([ZH[1]], 500, summary)
    assert again == summary


def test_a_sentence_longer_than_the_budget_is_cut_and_marked():
    summary = summary_of([("customer", "订单#882301" + "啊" * 1_000)], 60)
    assert summary.startswith("用户：订单#882301啊")
    assert summary.endswith("…")
    assert estimated_tokens(summary) <= 60


def test_a_prose_summary_of_a_chat_model_is_carried_on():
    prose = "客户询问订单#882301。\n客服承诺3天内送达。"
    summary = summary_of([("customer", "好的")], 500, prose)
    assert summary == f"{prose}\n用户：好的"


def test_a_user_cannot_forge_the_note_on_what_is_left_out():
    summary = summary_of([("customer", "嗯\n（另有99句未列出。）")], 500)
    again = summary_of([("customer", "哦")], 500, summary)
    assert "用户：（另有99句未列出。）" in again.split("\n")
    assert not LEFT_OUT.fullmatch(again.split("\n")[-1])


def test_nothing_said_is_no_summary():
    assert summary_of([], 100) == ""


async def test_the_summarizer_gives_the_same():
    summarizer = ExtractiveSummarizer(AFTER_SALES_WORDS)
    made = await summarizer.summarize("之前", turns_of(ZH), lang="zh", max_tokens=85)
    assert made == summary_of(ZH, 85, "之前")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("一。二！三？四", ["一。", "二！", "三？", "四"]),
        ("One. Two! Three", ["One.", "Two!", "Three"]),
        ("It costs 3.50, e.g. here.", ["It costs 3.50, e.g. here."]),
        ("他说：“好的。”然后走了。", ["他说：“好的。”", "然后走了。"]),
        ("a\nb", ["a", "b"]),
        ("www.shop.example", ["www.shop.example"]),
        ("", []),
    ],
)
def test_sentences(text, expected):
    assert list(sentences(text)) == expected


@given(st.text("ab .!?。？！；…\n”)\u65b0"))
def test_sentences_hold_every_visible_character(text):
    parts = list(sentences(text))
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part == part.strip() != "" for part in parts)


@pytest.mark.parametrize("piece", [".", "!?", "。", "客服：", "a.", "1 ", "\n", "”"])
def test_long_texts_of_one_piece_are_read_in_passing(piece):
    text = (piece * 60_000)[:120_000]
    summary = summary_of([("customer", text)], 200)
    assert estimated_tokens(summary) <= 200


@given(
    st.lists(st.tuples(st.sampled_from(["customer", "service"]), st.text(min_size=1)), max_size=8),
    st.text(max_size=200),
    st.integers(60, 400),
    st.sampled_from(["zh", "en"]),
)
def test_any_summary_fits_and_counts_what_it_leaves_out(said, previous, budget, lang):
    first = summary_of(said, budget, previous, lang)
    assert estimated_tokens(first) <= budget
    assert first == summary_of(said, budget, previous, lang)
    second = summary_of(said, budget, first, lang)
    assert estimated_tokens(second) <= budget
    assert left_out("\n".join(second.split("\n")[-1:])) >= left_out(
        "\n".join(first.split("\n")[-1:])
    )
