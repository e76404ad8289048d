"""Which entities a memory may be about."""

from __future__ import annotations

import pytest

from builders import AFTER_SALES, AFTER_SALES_WORDS, memory, ref
from ecphoria.model import NamedEntity
from ecphoria.remember.link import MAX_MEANT, Draft, wanted_refs

PHONE = NamedEntity("iPhone 15", "name", (ref("Device", "d-1"), ref("Product", "p-1")))
ZHANG = NamedEntity("张伟", "name_zh", (ref("User", "u-1"),))
MANY = NamedEntity(
    "charger", "name", tuple(ref("Device", f"c-{number}") for number in range(MAX_MEANT + 1))
)
FEW = NamedEntity(
    "cable", "name", tuple(ref("Device", f"k-{number}") for number in range(MAX_MEANT))
)


def wanted(text, explicit=(), *, of=None, **more):
    draft = Draft(memory(text=text, **more), explicit, of)
    return wanted_refs(draft, AFTER_SALES_WORDS, (PHONE, ZHANG, MANY, FEW), AFTER_SALES).refs


def test_ids_and_names_in_the_text_are_candidates():
    assert wanted("iPhone15 in order #882301") == (
        ref("Order", "882301"),
        ref("Order", "#882301"),
        ref("Device", "d-1"),
        ref("Product", "p-1"),
    )


def test_the_callers_word_comes_first_and_keeps_names_out_but_not_ids():
    explicit = (ref("Device", "d-2"), ref("Order", "#882301"))
    assert wanted("iPhone15 in order #882301", explicit) == (*explicit, ref("Order", "882301"))


def test_the_user_himself_is_not_what_a_memory_is_about():
    assert wanted("张伟来电") == ()


def test_a_name_that_fits_too_many_says_nothing():
    assert wanted("the charger") == ()
    assert wanted("the cable") == FEW.refs


def test_a_mere_digit_more_is_another_id():
    refs = wanted("order 8823012")
    assert ref("Order", "882301") not in refs
    assert ref("Order", "8823012") in refs


def test_nothing_is_about_nothing():
    assert wanted("It rained.") == ()


def test_whose_attribute_it_is_comes_with_the_ids_and_keeps_names_out():
    order = ref("Order", "A-1")
    assert wanted("iPhone15 is shipped", of=order) == (order,)


@pytest.mark.parametrize("text", ["物流单号 SF112233", "tracking number SF112233"])
def test_what_a_rule_has_recognised_is_no_id(text):
    assert wanted(text, details={"tracking_number": "SF112233"}) == ()
    assert ref("Order", "SF112233") in wanted("SF112233")
