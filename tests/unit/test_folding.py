"""Folding: width, case and spacing make no difference; digits and words always do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.folding import Compact, fold, is_han, language_of

NAME_CHARS = st.sampled_from("aZ9éßЖ张伟の한 -_·ＡＺ９。,'’")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("iPhone１５", "IPHONE15"),
        ("ＡＢＣ＃", "abc#"),
        ("Straße", "STRASSE"),
        ("won’t", "won't"),
        ("６６６", "٦٦٦"),
        ("ﬁx", "FIX"),
        ("caf\u00e9", "cafe\u0301"),
    ],
)
def test_texts_that_are_the_same_when_folded(one, other):
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("123456", "123457"), ("é", "e"), ("张伟", "张玮")])
def test_texts_that_stay_apart_when_folded(one, other):
    assert fold(one) != fold(other)


@given(st.text())
def test_folding_twice_is_folding_once(text):
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("张伟买的iPhone15维修后还能享受延保吗", "zh"),
        ("延保 AppleCare", "zh"),
        ("Can I still use 延保 after the repair?", "en"),
        ("Where is my order?", "en"),
        ("123456", "en"),
        ("", "en"),
        ("\U00020000 的", "zh"),
    ],
)
def test_language(text, language):
    assert language_of(text) == language


@pytest.mark.parametrize(("text", "han"), [("保修", True), ("iPhone", False), ("の", False)])
def test_han(text, han):
    assert is_han(text) is han


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("my iPhone15 is dead", "iPhone 15"),
        ("my iPhone 15 is dead", "iPhone15"),
        ("我的ｉＰｈｏｎｅ－１５坏了", "iPhone 15"),
        ("我的iPhone15坏了", "iphone 15"),
        ("张伟的订单", "张伟"),
        ("客户：张·伟", "张伟"),
        ("Robot_Vac S8, please", "robot vac S8"),
        ("O’Neil called", "O'Neil"),
        ("장웨이가 전화했다", "장웨이"),
        ("serial 1234 5678", "1234-5678"),
    ],
)
def test_a_name_is_found_however_it_is_written(text, name):
    compact = Compact(text)
    spans = compact.find(name)
    assert [compact.text[start:end] for start, end in spans] == [Compact(name).text]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("iPhone 15", "iPhone 1"),
        ("iPhone15", "iPhone 1"),
        ("ｉＰｈｏｎｅ１５", "iPhone 1"),
        ("iPhone 15", "Phone 15"),
        ("iPhone 1 5", "iPhone 15"),
        ("Galaxy S2 3 pieces", "Galaxy S23"),
        ("iPhone 15Pro", "iPhone 15"),
        ("Annabel", "Anna"),
        ("Иванов", "Иван"),
        ("Renée", "Ren"),
        ("anything", "---"),
        ("", "iPhone"),
    ],
)
def test_a_name_is_not_found_in_another(text, name):
    assert Compact(text).find(name) == []


@given(st.text(NAME_CHARS, min_size=1, max_size=12))
def test_a_name_with_a_letter_never_folds_to_nothing_and_is_found_in_itself(name):
    if not any(char.isalnum() for char in name):
        return
    assert Compact(name).text
    assert (0, len(Compact(name).text)) in Compact(name).find(name)


@given(st.text(NAME_CHARS, max_size=20), st.text(NAME_CHARS, max_size=4))
def test_what_is_found_is_what_was_looked_for(text, name):
    compact = Compact(text)
    for start, end in compact.find(name):
        assert compact.text[start:end] == Compact(name).text
