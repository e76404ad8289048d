"""Where sentences end, and how long texts are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.extraction.chunks import chunks, sentences

TEXTS = st.text() | st.text(alphabet="ab 。！？.!?;；,，\n”\"'）一二1")


def cut(text):
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("一。二！三？四；五", ["一。", "二！", "三？", "四；", "五"]),
        ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ('"Really?" Yes.', ['"Really?" ', "Yes."]),
        ("我喜欢蓝色!我讨厌红色", ["我喜欢蓝色!", "我讨厌红色"]),
        ("Version 3.5 of example.com works.", ["Version 3.5 of example.com works."]),
        ("No. 12 Hill Lane, St. Louis. Next", ["No. 12 Hill Lane, St. Louis. ", "Next"]),
        ("Ask J. Smith, e.g. today. Then", ["Ask J. Smith, e.g. today. ", "Then"]),
        ("It was approx. five. But", ["It was approx. five. ", "But"]),
        ("line one\nline two\n\nline three", ["line one\n", "line two\n\n", "line three"]),
        ("等等……然后", ["等等……", "然后"]),
        ("Wait... what", ["Wait... ", "what"]),
        ("all lower case. as in chats", ["all lower case. ", "as in chats"]),
        ("no end at all", ["no end at all"]),
        ("what?!now", ["what?!now"]),
        ("", []),
    ],
)
def test_sentences(text, parts):
    assert cut(text) == parts


@given(TEXTS)
def test_sentences_are_the_text(text):
    assert "".join(cut(text)) == text
    assert all(part for part in cut(text))


@given(TEXTS, st.integers(8, 60), st.data())
def test_chunks_hold_every_word_in_order_and_none_is_too_long(text, limit, data):
    overlap = data.draw(st.integers(0, (limit - 1) // 4))
    found = chunks(text, limit, overlap)
    assert found
    assert all(len(chunk) <= limit for chunk in found) or found == (text,)
    # each chunk begins before the one before it ends, but for blanks, and not too far before
    end = at = 0
    for chunk in found:
        at = text.index(chunk, max(at, end - overlap))
        assert not text[end:at].strip()
        end = at + len(chunk)
    assert not text[end:].strip()


def test_chunks_overlap_as_said_where_nothing_can_be_cut():
    text = "".join(chr(0x4E00 + number) for number in range(1_000))
    first, second, *rest = chunks(text, 400, 90)
    assert (len(first), second[:90]) == (400, first[-90:])
    assert rest
    assert text.endswith(rest[-1])


@pytest.mark.parametrize("end", ["。", ". ", "\n", "！"])
def test_chunks_end_where_sentences_end(end):
    text = (("字" * 30) + end) * 20
    found = chunks(text, 100, 20)
    assert len(found) > 1
    assert all(chunk.endswith(end.strip() or "字") for chunk in found)


def test_a_text_that_fits_is_not_touched():
    assert chunks("  a. b ", 10, 2) == ("  a. b ",)
    assert chunks("", 10, 2) == ("",)
