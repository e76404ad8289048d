"""How well words fit: rare ones count more, whatever the store; nothing found is 0."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.recall.lexical import lexical_fit
from ecphoria.stores.ports import TermHit

TERMS = st.lists(st.sampled_from(["电", "电池", "batteri", "screen", "lens", "882301"]), max_size=8)
HITS = st.lists(st.tuples(TERMS, TERMS), max_size=12).map(
    lambda texts: [
        TermHit(f"k{number}", 1.0, tuple(own), tuple(context))
        for number, (own, context) in enumerate(texts)
    ]
)


def hits(*texts: str, context: str = "") -> list[TermHit]:
    return [
        TermHit(f"k{number}", 1.0, tuple(text.split()), tuple(context.split()))
        for number, text in enumerate(texts)
    ]


@given(TERMS, HITS)
def test_fits_are_between_0_and_1_and_of_what_has_a_term(asked, found):
    fits = lexical_fit(asked, found)

    having = {hit.key for hit in found if set(asked) & {*hit.terms, *hit.context}}
    assert fits.keys() == having
    assert all(0 < fit <= 1 for fit in fits.values())


@given(TERMS, HITS, st.randoms())
def test_order_and_repetition_make_no_difference(asked, found, random):
    fits = lexical_fit(asked, found)
    shuffled = random.sample(found, len(found))

    assert lexical_fit([*reversed(asked), *asked], shuffled) == pytest.approx(fits)


@given(TERMS, HITS, st.floats(0.001, 1000))
def test_the_scores_of_a_store_make_no_difference(asked, found, score):
    other = [TermHit(hit.key, score, hit.terms, hit.context) for hit in found]

    assert lexical_fit(asked, other) == lexical_fit(asked, found)


@given(TERMS, HITS)
def test_who_has_more_of_the_terms_at_the_same_length_is_not_behind(asked, found):
    fits = lexical_fit(asked, found)

    for one, other in itertools.permutations(found, 2):
        mine = [sorted(set(asked) & set(hit.terms)) for hit in (one, other)]
        once = all(
            len(set(hit.terms)) == len(hit.terms) and not hit.context for hit in (one, other)
        )
        if once and len(one.terms) == len(other.terms) and set(mine[0]) >= set(mine[1]):
            assert fits.get(one.key, 0) >= fits.get(other.key, 0)


def test_a_rare_term_counts_for_more_than_a_frequent_one():
    found = hits("phone rare", "phone lens", "phone case", "phone bag")

    fits = lexical_fit(["phone", "rare"], found)

    assert max(fits, key=fits.__getitem__) == "k0"
    assert fits["k0"] > 3 * fits["k1"]


def test_a_term_that_nobody_has_keeps_all_fits_low():
    found = hits("phone lens", "phone case")

    assert max(lexical_fit(["phone"], found).values()) == pytest.approx(1)
    assert max(lexical_fit(["phone", "missing"], found).values()) < 0.3


def test_what_was_said_before_counts_for_less_than_what_is_said():
    (own,) = hits("battery yes indeed")
    (before,) = hits("yes indeed", context="battery")
    before = TermHit("k1", 1.0, before.terms, before.context)

    fits = lexical_fit(["battery"], [own, before])

    assert fits["k0"] > fits["k1"] > 0


def test_nothing_asked_or_found_is_nothing():
    assert lexical_fit([], hits("a b")) == {}
    assert lexical_fit(["a"], []) == {}
    assert lexical_fit(["a"], hits("")) == {}
