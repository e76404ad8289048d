"""Which memories compete: one key for every form of an id, and never for two things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, TENANT, USER, memory, ref
from ecphoria.model import EntityRef, Link, LinkMethod
from ecphoria.remember.claims import MIN_CERTAINTY, canonical, claim_key, claim_of, entity_of
from ecphoria.stores.ports import Mention

STATUS = {"attribute": "order.status", "value": "paid"}


def link(ref_, certainty=0.95, how=LinkMethod.ID):
    return Link(ref_, certainty, how)


def mention(ref_):
    return Mention(ref_.id, ref_, 0.95)


@pytest.mark.parametrize(
    ("forms", "type_"),
    [
        (["882301", "#882301"], "Order"),
        (["rep-7a21", "REP-7a21", "REP7a21"], "Repair"),
        (["tkt-031", "TKT-031", "TKT031"], "Ticket"),
    ],
)
def test_all_forms_of_an_id_are_one(forms, type_):
    assert len({canonical(ref(type_, form), AFTER_SALES) for form in forms}) == 1


@pytest.mark.parametrize("id_", ["d-1", "订单一", "#88", "20260101"])
def test_what_is_no_id_of_the_pattern_stays_as_it_is(id_):
    assert canonical(ref("Order", id_), AFTER_SALES) == ref("Order", id_)


PARTS = st.text("a|=:1 ", min_size=1, max_size=4).map(str.strip).filter(bool)


@given(st.tuples(PARTS, PARTS, PARTS), st.tuples(PARTS, PARTS, PARTS))
def test_no_two_things_have_one_key(one, other):
    def key(user, entity, subject):
        return claim_key(TENANT, user, "user.preference", EntityRef("User", entity), subject)

    def parts(user, entity, subject):
        return user, entity, " ".join(subject.split())

    assert (key(*one) == key(*other)) is (parts(*one) == parts(*other))


def test_what_is_shared_is_nobodys_own():
    keys = {
        claim_key(TENANT, user, "order.status", ref("Order", "1"), None)
        for user in (None, "shared", "=shared", "")
    }
    assert len(keys) == 4


def test_width_case_and_blanks_of_a_subject_make_no_difference():
    def key(subject):
        return claim_key(TENANT, USER, "user.preference", ref("User", USER), subject)

    assert key("Green Tea") == key("ｇｒｅｅｎ　 tea")
    assert len({key(subject) for subject in ("咖啡", "茶", "囍", "〇", "coffee")}) == 5


def test_an_attribute_of_the_user_is_his_own():
    level = memory(attribute="user.level", value="gold")
    assert entity_of(level, (), (), AFTER_SALES) == ref("User", USER)
    shared = memory(attribute="user.level", value="gold", user_id=None)
    assert entity_of(shared, (), (), AFTER_SALES) is None


def test_an_attribute_is_of_the_one_thing_that_is_meant():
    first, second = ref("Order", "#882301"), ref("Order", "#882302")
    status = memory(**STATUS)
    one = canonical(first, AFTER_SALES)
    for links, mentions in (
        ([link(first)], []),
        ([], [mention(first)]),
        # a form of it, and what is not of the type
        ([link(first), link(ref("Order", "882301"))], [mention(ref("Ticket", "tkt-031"))]),
        # what exists counts more than what may
        ([link(first)], [mention(second)]),
    ):
        assert entity_of(status, links, mentions, AFTER_SALES) == one
    for links, mentions in (
        ([], []),
        ([link(first), link(second)], []),
        ([], [mention(first), mention(second)]),
        ([link(first, MIN_CERTAINTY - 0.01)], []),
        ([link(ref("Device", "d-1"))], []),
    ):
        assert entity_of(status, links, mentions, AFTER_SALES) is None


def test_what_gives_no_value_competes_with_nothing():
    first = [link(ref("Order", "#882301"))]
    assert claim_of(memory(), first, (), AFTER_SALES) is None
    assert claim_of(memory(attribute="order.status"), first, (), AFTER_SALES) is None
    assert claim_of(memory(**STATUS), first, (), AFTER_SALES) is not None
    assert claim_of(memory(**STATUS), (), (), AFTER_SALES) is None
