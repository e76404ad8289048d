"""Terms of a text: the same for a question and a memory, whatever the writing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.terms import terms


@given(st.text())
def test_any_text_has_terms_of_letters_and_digits_alone(text):
    found = terms(text)

    assert all(term.isalnum() for term in found)
    assert terms(text) == found


@given(st.text(), st.text())
def test_texts_set_apart_have_the_terms_of_both(one, other):
    assert sorted(terms(f"{one}\n{other}")) == sorted((*terms(one), *terms(other)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("batteries", "battery"),
        ("charging", "charged"),
        ("The customer's phone", "customer phone"),
        ("ＩＰＨＯＮＥ　１５", "iphone 15"),
        ("电池的充电", "电池 充电"),
        ("the of 的了吗", ""),
        ("?!。…", ""),
    ],
)
def test_writings_of_the_same(one, other):
    assert set(terms(one)) == set(terms(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("882301", "882302"), ("RMA-2025/0042", "RMA-2025/0043"), ("电池", "水池"), ("v1.2", "v1.3")],
)
def test_what_differs_in_one_place_differs_in_a_term(one, other):
    assert set(terms(one)) != set(terms(other))
    assert set(terms(one)) - set(terms(other))


def test_chinese_goes_into_characters_and_pairs():
    assert terms("换电池了") == ("换", "电", "池", "换电", "电池")


def test_words_next_to_chinese_are_words():
    assert set(terms("我的iPhone15手机")) == {"我", "iphone15", "手", "机", "手机"}


def test_a_code_is_found_as_a_whole_and_by_its_parts():
    assert set(terms("ticket RMA-2025/0042.")) == {"ticket", "rma20250042", "rma", "2025", "0042"}
    # words with a hyphen are no code
    assert set(terms("well-known")) == {"well", "known"}


def test_repeated_terms_stay_repeated():
    assert terms("battery, battery and batteries") == ("batteri",) * 3


def test_nothing_is_loaded_by_the_import():
    code = (
        "import sys, ecphoria.language.terms\n"
        "assert not any(name.startswith('snowball') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
