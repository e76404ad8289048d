"""Distances from what a question names: up and down, never sideways."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, CLINIC, edge, entity, key, ref
from ecphoria.recall.neighbourhood import Neighbourhood

THINGS = [
    ("User", "u-1"),
    ("Order", "o-1"),
    ("Order", "o-2"),
    ("Order", "o-3"),
    ("Device", "d-1"),
    ("Device", "d-2"),
    ("Device", "d-3"),
    ("Repair", "r-1"),
    ("Repair", "r-2"),
    ("Warranty", "w-1"),
    ("Warranty", "w-2"),
    ("Product", "p-1"),
]
EDGES = [
    edge("PLACED", ("User", "u-1"), ("Order", "o-1")),
    edge("PLACED", ("User", "u-1"), ("Order", "o-2")),
    edge("PLACED", ("User", "u-1"), ("Order", "o-3")),
    edge("CONTAINS", ("Order", "o-1"), ("Device", "d-1")),
    edge("CONTAINS", ("Order", "o-1"), ("Device", "d-2")),
    edge("CONTAINS", ("Order", "o-2"), ("Device", "d-3")),
    edge("HAS_REPAIR", ("Device", "d-1"), ("Repair", "r-1")),
    edge("HAS_REPAIR", ("Device", "d-1"), ("Repair", "r-2")),
    edge("COVERED_BY", ("Device", "d-1"), ("Warranty", "w-1")),
    edge("COVERED_BY", ("Device", "d-2"), ("Warranty", "w-2")),
    edge("INSTANCE_OF", ("Device", "d-1"), ("Product", "p-1")),
    edge("INSTANCE_OF", ("Device", "d-3"), ("Product", "p-1")),
]


def around(*mentioned, edges=EDGES, things=THINGS, lost=False):
    return Neighbourhood(
        [entity(*thing) for thing in things],
        edges,
        [ref(*thing) for thing in mentioned],
        domain=AFTER_SALES,
        lost=lost,
    )


def distances(near):
    return {
        thing[1]: hops for thing in THINGS if (hops := near.distance([key(*thing)])) is not None
    }


@pytest.mark.parametrize(
    ("mentioned", "expected"),
    [
        # down to what hangs on it, up to the order; not to the other device of the order
        (
            [("Device", "d-1")],
            {"d-1": 0, "o-1": 1, "r-1": 1, "r-2": 1, "w-1": 1, "p-1": 1},
        ),
        # a leaf brings what hangs on its parent
        (
            [("Repair", "r-1")],
            {"r-1": 0, "d-1": 1, "o-1": 2, "r-2": 2, "w-1": 2, "p-1": 2},
        ),
        # an order without devices does not bring the user's other orders
        ([("Order", "o-3")], {"o-3": 0}),
        ([("Order", "o-2")], {"o-2": 0, "d-3": 1, "p-1": 2}),
        # a shared thing has no way up: it would lead to every buyer
        ([("Product", "p-1")], {"p-1": 0}),
        (
            [("Device", "d-2"), ("Repair", "r-1")],
            {"d-2": 0, "r-1": 0, "w-2": 1, "d-1": 1, "o-1": 1, "r-2": 2, "w-1": 2, "p-1": 2},
        ),
        ([("Device", "unknown")], {}),
        ([], {}),
    ],
)
def test_up_and_down_never_sideways(mentioned, expected):
    assert distances(around(*mentioned)) == expected


def test_the_user_is_near_to_everything_and_so_no_match():
    near = around(("Device", "d-1"))
    assert near.distance([key("User", "u-1")]) is None
    assert near.distance([key("User", "u-1"), key("Repair", "r-1")]) == 1
    assert near.reach([key("Device", "d-1")])[key("User", "u-1")] == 2


def test_the_user_named_by_his_id_is_a_match_with_all_he_has():
    near = around(("User", "u-1"))
    assert near.distance([key("User", "u-1")]) == 0
    assert near.distance([key("Warranty", "w-2")]) == 3


def test_reach_starts_anywhere():
    near = around()
    assert not near.has_mentions
    assert near.reach([key("Warranty", "w-2"), "shop|Order|unknown"]) == {
        key("Warranty", "w-2"): 0,
        key("Device", "d-2"): 1,
        key("Order", "o-1"): 2,
        key("User", "u-1"): 3,
    }
    assert near.reach([]) == {}


def test_nearest_of_several_keys():
    near = around(("Device", "d-1"))
    assert near.distance([key("Order", "o-2"), key("Warranty", "w-1")]) == 1
    assert near.distance([]) is None


def test_roots_and_specific_things():
    near = around()
    assert near.roots == {key("User", "u-1")}
    keys = [key("User", "u-1"), key("Product", "p-1"), key("Device", "d-1"), key("Order", "a|b")]
    assert near.specific(keys) == (key("Device", "d-1"), key("Order", "a|b"))


def test_paths_are_readable():
    near = around(("Repair", "r-1"))
    path = "User u-1 -PLACED-> Order o-1 -CONTAINS-> Device d-1 -HAS_REPAIR-> Repair r-1"
    assert near.path_to(key("Repair", "r-1")) == path
    assert near.path_of([key("Warranty", "w-1"), key("Repair", "r-1")]) == f"about {path}"
    assert near.path_of([key("Order", "o-2")]) == ""
    assert near.path_to("shop|Order|unknown") == ""


def test_an_edge_to_nowhere_is_no_edge():
    dangling = [*EDGES, edge("HAS_REPAIR", ("Device", "d-1"), ("Repair", "hidden"))]
    near = around(("Device", "d-1"), edges=dangling)
    assert distances(near) == distances(around(("Device", "d-1")))


DOCTORS = [("Patient", "u-1"), ("Visit", "v"), *(("Doctor", f"d{n}") for n in range(4))]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["CAME_FOR", "SEEN_BY", "RESULTED_IN", "REFERRED_TO"]),
            st.sampled_from(DOCTORS),
            st.sampled_from(DOCTORS),
        ),
        max_size=14,
    ),
    st.sets(st.sampled_from(DOCTORS), max_size=3),
)
def test_nothing_of_a_cycle_hangs(edges, mentioned):
    things = [entity(*thing) for thing in DOCTORS]
    near = Neighbourhood(
        things,
        [edge(*item) for item in edges],
        [ref(*thing) for thing in mentioned],
        domain=CLINIC,
    )
    for thing in things:
        near.path_to(thing.key)
        hops = near.distance([thing.key])
        assert hops is None or 0 <= hops < len(things)
    for thing in mentioned:
        assert near.distance([key(*thing)]) == 0


def test_many_ways_to_one_thing_take_no_time():
    layers = [[("Order", f"o{layer}-{side}") for side in "ab"] for layer in range(40)]
    edges = [
        edge("CONTAINS", upper, lower)
        for above, below in itertools.pairwise(layers)
        for upper in above
        for lower in below
    ]
    things = [thing for layer in layers for thing in layer]
    near = around(layers[-1][0], edges=edges, things=things)
    assert near.distance([key(*layers[0][1])]) == 39
