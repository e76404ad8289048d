"""Which of several things a question means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, NOW, day, edge, entity, key, ref, understanding
from ecphoria.language.time_words import TimeWindow
from ecphoria.recall.focus import described, focus, may_describe
from ecphoria.recall.neighbourhood import Neighbourhood

USER = ("User", "u-1")
THINGS = (
    entity(*USER),
    entity("Order", "o-1", props={"placed_at": day(-400)}),
    entity("Order", "o-2", props={"placed_at": day(-40)}),
    entity("Device", "d-1"),
    entity("Device", "d-2"),
    entity("Repair", "r-1", props={"opened_at": day(-300), "fault": "leaks water"}),
    entity("Repair", "r-2", props={"opened_at": day(-20), "fault": "battery drains fast"}),
    entity("Warranty", "w-1", props={"ends_at": day(300)}),
)
EDGES = (
    edge("PLACED", USER, ("Order", "o-1")),
    edge("PLACED", USER, ("Order", "o-2")),
    edge("CONTAINS", ("Order", "o-1"), ("Device", "d-1")),
    edge("CONTAINS", ("Order", "o-2"), ("Device", "d-2")),
    edge("HAS_REPAIR", ("Device", "d-1"), ("Repair", "r-1")),
    edge("HAS_REPAIR", ("Device", "d-1"), ("Repair", "r-2")),
    edge("COVERED_BY", ("Device", "d-1"), ("Warranty", "w-1")),
)
BOTH = (("Device", "d-1"), ("Device", "d-2"))
REPAIRS = {key("Repair", "r-1"): 0.8, key("Repair", "r-2"): 0.3}


def chosen(*mentioned, fits=None, **wanted):
    near = Neighbourhood(THINGS, EDGES, [ref(*it) for it in mentioned], domain=AFTER_SALES)
    keys, _ = focus(near, understanding(**wanted), fits or {}, domain=AFTER_SALES, as_of=NOW)
    return {key_.split("|", 1)[1] for key_ in keys}


def window(start, end):
    return (TimeWindow(day(start), day(end), "then"),)


@pytest.mark.parametrize(
    ("start", "end", "meant"),
    [
        (-410, -390, {"Device|d-1"}),
        (-50, -30, {"Device|d-2"}),
        # nothing was bought then, but something happened to it
        (-310, -290, {"Device|d-1"}),
        (-5, 0, set()),
    ],
)
def test_a_time_tells_devices_of_one_name_apart(start, end, meant):
    assert chosen(*BOTH, windows=window(start, end)) == meant


def test_without_a_name_a_time_means_what_is_asked_for():
    assert chosen(windows=window(-30, 0), answer_types=("Repair",)) == {"Repair|r-2"}
    assert chosen(windows=window(-30, 0), answer_types=("Warranty",)) == set()


@pytest.mark.parametrize(("order", "meant"), [("latest", "Repair|r-2"), ("first", "Repair|r-1")])
def test_the_last_and_the_first_are_told_by_time(order, meant):
    # the end of a warranty lies ahead: that is no event to count
    wanted = {"order": order, "answer_types": ("Warranty", "Repair")}
    assert chosen(**wanted) == {meant}
    assert chosen(("Device", "d-1"), **wanted) == {meant}
    assert chosen(("Device", "d-2"), **wanted) == set()


def test_a_description_means_the_thing_that_it_fits():
    assert chosen(fits=REPAIRS) == {"Repair|r-1"}
    assert chosen(*BOTH, fits=REPAIRS) == {"Repair|r-1"}
    # one thing is named: that is it
    assert chosen(("Device", "d-2"), fits=REPAIRS) == set()
    assert chosen(fits=dict.fromkeys(REPAIRS, 0.1)) == set()


@pytest.mark.parametrize(
    ("mentioned", "topics", "tells"),
    [
        (BOTH, {"topics": ("repair",), "answer_types": ("Repair",)}, True),
        (BOTH, {"topics": ("packaging",)}, False),
        (BOTH, {}, True),
        # who names nothing can only describe it
        ((), {"topics": ("warranty",), "answer_types": ("Warranty",)}, True),
    ],
)
def test_a_fault_tells_apart_where_faults_are_spoken_of(mentioned, topics, tells):
    near = Neighbourhood(THINGS, EDGES, [ref(*it) for it in mentioned], domain=AFTER_SALES)
    repair = near.entities[key("Repair", "r-1")]
    assert may_describe(repair, understanding(**topics), near) is tells


def test_only_what_the_domain_says_describes_a_thing():
    assert described(THINGS, AFTER_SALES) == {
        key("Repair", "r-1"): "leaks water",
        key("Repair", "r-2"): "battery drains fast",
    }


@given(
    st.sets(st.sampled_from(BOTH)),
    st.sampled_from([None, "latest", "first"]),
    st.dictionaries(st.sampled_from(sorted(REPAIRS)), st.floats(0, 1)),
    st.lists(
        st.builds(
            TimeWindow,
            st.none() | st.just(day(-100)),
            st.none() | st.just(day(-1)),
            st.just("then"),
        ),
        max_size=2,
    ),
)
def test_what_is_meant_is_among_what_there_is(mentioned, order, fits, windows):
    found = chosen(
        *mentioned,
        fits=fits,
        order=order,
        windows=tuple(windows),
        answer_types=("Warranty", "Repair"),
    )
    assert found <= {f"{thing.type}|{thing.id}" for thing in THINGS}
