"""What every text goes through before a model sees it."""

from __future__ import annotations

import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.embedding.text import MAX_MARKS, break_words, clean, windows
from ecphoria.errors import TextEmpty

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs"]),
        st.sampled_from("\0\t\n\r \u00a0\u2028\u200b\u200d\ufeff\u0301\u0315한가。.!?；ａ１"),
    )
)


def visible(text: str) -> bool:
    try:
        clean(text)
    except TextEmpty:
        return False
    return True


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("  订单  123 \t x ", "订单 123 x"),
        ("a\r\n\r\n b", "a\nb"),
        ("a\u2028b\u0085c", "a\nb\nc"),
        ("a\0b", "a b"),
        ("a\x1b[31mb\x7f", "a [31mb"),
        ("a\ud800b", "a b"),
        ("\udc00x\udfff", "x"),
        ("\ud83d\ude00", "😀"),
        ("订\u200b单\ufeff", "订单"),
        ("abc\u202edef", "abcdef"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("e\u0301", "é"),
        ("\u1112\u1161\u11ab", "한"),
        ("a\u3000b\u00a0c", "a b c"),
        ("１２３", "１２３"),
        ("x", "x"),
        ("مرحبا שלום", "مرحبا שלום"),
    ],
)
def test_clean(raw, expected):
    assert clean(raw) == expected


@pytest.mark.parametrize(
    "raw",
    ["", " ", "\n\t", "\0\0", "\ud800", "\u200b\u200d", "\ufeff", "\u3000", "\ufe0f", "\u2800"],
)
def test_nothing_visible_is_empty(raw):
    with pytest.raises(TextEmpty):
        clean(raw)


@given(ANY_TEXT.filter(visible))
def test_clean_text_is_fit_for_models(raw):
    text = clean(raw)
    text.encode()  # no surrogates
    assert text == clean(text)
    assert text == text.strip()
    assert unicodedata.is_normalized("NFC", text)
    assert not any(unicodedata.category(char) in {"Cc", "Cs"} for char in text if char != "\n")
    assert not any(a.isspace() and b.isspace() for a, b in pairwise(text))


def test_stacked_marks_do_not_take_quadratic_time():
    raw = "a" + "\u0315\u0300" * 60_000
    start = time.perf_counter()
    text = clean(raw)
    assert time.perf_counter() - start < 2  # 14 s when normalised in one piece
    assert max(len(part) for part in text.split(" ")) <= MAX_MARKS + 1
    assert text.count("\u0315") == 60_000


def test_short_text_is_one_window():
    assert windows("订单。好。", 5) == ["订单。好。"]


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("第一句话。第二句话！第三句", 10, ["第一句话。第二句话！", "第三句"]),
        ("他说：「好。」然后走了", 8, ["他说：「好。」", "然后走了"]),
        ("One two. Three four. Five", 12, ["One two.", "Three four.", "Five"]),
        ("It costs 3.14159 and more", 13, ["It costs", "3.14159 and", "more"]),
        ("first line\nsecond line", 15, ["first line", "second line"]),
        ("aaaa bbbb cccc", 6, ["aaaa", "bbbb", "cccc"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("aaae\u0301bbb", 4, ["aaa", "e\u0301bb", "b"]),
    ],
)
def test_cuts_at_the_best_place(text, size, expected):
    assert windows(text, size) == expected


def test_a_sentence_end_just_at_the_limit_counts():
    assert windows("abcd efg. hij", 9) == ["abcd efg.", "hij"]


@given(ANY_TEXT.filter(visible).map(clean), st.integers(1, 40))
def test_windows_without_overlap_are_the_text(text, size):
    found = windows(text, size)
    assert all(0 < len(window) <= size for window in found)
    assert "".join("".join(found).split()) == "".join(text.split())


@given(
    st.text("ab。. \n\u0301", min_size=1, max_size=300).filter(visible).map(clean),
    st.integers(9, 40),
)
def test_windows_with_overlap_cover_everything(text, size):
    overlap = (size - 1) // 4
    found = windows(text, size, overlap)
    assert len(found) <= len(text) // (size // 2 - overlap) + 1
    # Whether window i can lie at a place that leaves no gap after windows 0..i-1.
    ends = {0}
    for window in found:
        ends = {
            at + len(window)
            for at in range(len(text))
            if text.startswith(window, at)
            and any(not text[end:at].strip() and at <= end + len(text) for end in ends)
        }
        assert ends
    assert any(not text[end:].strip() for end in ends)


def test_windows_overlap():
    assert windows("one two three four five six", 16, 3) == ["one two three", "ee four five six"]
    # At a blank, where the overlap has one.
    assert windows("one two to 4 five six seven", 16, 3) == ["one two to 4", "4 five six seven"]
    assert windows("abcdefghijklmnop", 9, 2) == ["abcdefghi", "hijklmnop"]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 3), (10, -1)])
def test_windows_refuses_sizes_without_progress(size, overlap):
    with pytest.raises(ValueError, match="windows of"):
        windows("x", size, overlap)


def test_windows_of_a_long_text_are_fast():
    start = time.perf_counter()
    for text in ("x" * 200_000, "。" * 200_000, "ab " * 70_000, "a" + "\u0301" * 200_000):
        assert windows(text, 640, 64)
    assert time.perf_counter() - start < 3


def test_break_words():
    assert break_words("short words", 5) == "short words"
    assert break_words("x" * 10, 5) == "xxxxx xxxxx"
    assert break_words("한" * 4, 6) == "한한 한한"  # three characters each, decomposed
    assert break_words("", 5) == ""


@given(st.text("ab 한\ufdfa", max_size=200), st.integers(18, 40))
def test_break_words_bounds_every_word(text, longest):
    broken = break_words(text, longest)
    assert broken.replace(" ", "") == text.replace(" ", "")
    assert all(len(unicodedata.normalize("NFD", w)) <= longest for w in broken.split())
