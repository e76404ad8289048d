"""When two memories are one, and when one may be an update of the other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import day, key, memory
from ecphoria.model import Status
from ecphoria.remember.compare import better_text, is_duplicate, is_news, is_possible_update

WINDOW = timedelta(days=7)
TEXT = "The parcel of order #882301 waits at locker 17."
OLD = memory("old", TEXT)


def new(text=TEXT, **more):
    return memory("new", text, **more)


@pytest.mark.parametrize(
    "text", [TEXT, TEXT.upper(), "the parcel of the order ＃８８２３０１ waits at the locker 17"]
)
def test_the_same_in_other_dress_is_one(text):
    assert is_duplicate(new(text), OLD, WINDOW)
    assert is_duplicate(OLD, new(text), WINDOW)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("882301", "882302"),
        TEXT.replace("17", "18"),
        TEXT.replace("waits", "does not wait"),
        TEXT.replace("parcel", "letter"),
        "订单#882301的包裹在17号柜",
    ],
)
def test_other_words_numbers_or_a_no_are_another(text):
    assert not is_duplicate(new(text), OLD, WINDOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"user_id": "u-2"},
        {"user_id": None},
        {"kind": "episodic"},
        {"source_id": "ugc"},
        {"privacy": "public"},
        {"valid_until": day(9)},
        {"about": (key("Order", "#882301"),)},
        {"attribute": "order.status", "value": "paid"},
        {"subject": "coffee"},
        {"occurred_at": OLD.occurred_at + WINDOW + timedelta(seconds=1)},
        {"occurred_at": OLD.occurred_at - WINDOW - timedelta(seconds=1)},
    ],
)
def test_what_is_about_or_from_something_else_is_another(changes):
    assert not is_duplicate(new(**changes), OLD, WINDOW)


@pytest.mark.parametrize("status", [Status.SUPERSEDED, Status.DISABLED])
def test_what_is_over_is_not_said_again_but_news(status):
    assert not is_duplicate(new(), memory("old", TEXT, status=status), WINDOW)
    assert not is_possible_update(new(TEXT + " Hurry!"), memory("old", TEXT, status=status))


def test_at_the_end_of_the_window_it_is_still_the_same():
    assert is_duplicate(new(occurred_at=OLD.occurred_at + WINDOW), OLD, WINDOW)
    assert not is_duplicate(OLD, OLD, WINDOW)


def test_an_update_says_something_else_about_the_same_or_about_nothing_named():
    order, other = (key("Order", "#882301"),), (key("Order", "#882302"),)
    moved = TEXT.replace("17", "18")
    assert is_possible_update(new(moved), OLD)
    assert is_possible_update(new(moved, about=order), OLD)
    assert is_possible_update(new(moved, about=(*order, *other)), memory("old", TEXT, about=order))
    assert not is_possible_update(new(moved, about=other), memory("old", TEXT, about=order))
    assert not is_possible_update(new(moved, user_id="u-2"), OLD)
    assert not is_possible_update(new(), OLD)
    # values of one attribute are put in order, nothing is left open
    claimed = memory("old", TEXT, claim="c", value="a")
    assert not is_possible_update(new(moved, claim="c", value="b"), claimed)
    assert is_possible_update(new(moved, claim="d", value="b"), claimed)


def test_the_text_with_more_letters_is_better():
    assert better_text(new(TEXT + "!"), OLD) == TEXT + "!"
    assert better_text(new(), OLD) is None
    assert better_text(OLD, new(TEXT + "!")) is None


def test_a_value_given_again_is_news_once_another_came_between():
    paid = memory("paid", value="paid", valid_from=day(1))
    again = memory("again", value="paid", valid_from=day(5))
    shipped = memory("shipped", value="shipped", valid_from=day(3))
    assert not is_news(again, paid, [paid])
    assert is_news(again, paid, [paid, shipped])
    assert not is_news(memory("again", value="ＰＡＩＤ", valid_from=day(5)), paid, [paid, again])
    # it held earlier than was known
    assert is_news(paid, again, [again])
    # the other one was over before
    assert not is_news(again, paid, [paid, memory("placed", value="placed", valid_from=day(0))])
