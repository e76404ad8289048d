"""Walks: what parses, what does not, and that nothing else ever happens."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoria_schema.walk import DEFAULT_CAP, MAX_CAP, Hop, Walk, WalkError, parse_walk


def _written(walk: Walk) -> str:
    """Write a walk so that each hop is a chain of its own, or goes on from the hop before."""
    chains: list[str] = []
    last = ""
    for hop in walk.hops:
        step = f"-{hop.relation}[{hop.cap}]->{hop.end}"
        if chains and hop.start_step == last:
            chains[-1] += step
        else:
            chains.append(hop.start + step)
        last = hop.end_step
    return ",".join(chains)


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    """Trees of hops, with second visits that are reached by going straight on."""
    types = draw(
        st.lists(st.from_regex(r"\A[A-Z][A-Za-z0-9]{0,6}\Z"), min_size=2, max_size=5, unique=True)
    )
    visits = {types[0]: 1}
    hops: list[Hop] = []
    place = (types[0], types[0])
    for number in range(draw(st.integers(1, 8))):
        if draw(st.booleans()):
            again = draw(st.sampled_from(sorted(visits)))
            place = (again, again)
        end = draw(st.sampled_from(types))
        visits[end] = visits.get(end, 0) + 1
        end_step = end if visits[end] == 1 else f"{end}_{visits[end]}"
        cap = draw(st.integers(1, MAX_CAP))
        hops.append(Hop(place[0], f"R_{number}", end, cap, place[1], end_step))
        place = (end, end_step)
    return Walk(types[0], tuple(hops))


def test_a_walk_is_a_tree_of_hops() -> None:
    walk = parse_walk(" A - KNOWS [ 7 ] -> B-HAS->C ,\n B-LIKES[2]->D")
    assert walk.root == "A"
    assert walk.hops == (
        Hop("A", "KNOWS", "B", 7, "A", "B"),
        Hop("B", "HAS", "C", DEFAULT_CAP, "B", "C"),
        Hop("B", "LIKES", "D", 2, "B", "D"),
    )
    assert walk.steps == ("A", "B", "C", "D")


def test_a_second_visit_is_a_step_of_its_own() -> None:
    walk = parse_walk("A-R->B-BACK[2]->A-R[3]->B")
    assert walk.steps == ("A", "B", "A_2", "B_2")
    assert walk.types == ("A", "B")
    assert walk.hops[2].start_step == "A_2"


def test_a_later_chain_continues_the_first_visit() -> None:
    walk = parse_walk("A-R->A1-S[2]->A, A-T->C")
    assert walk.hops[-1] == Hop("A", "T", "C", DEFAULT_CAP, "A", "C")


@pytest.mark.parametrize("again", ["A-R->B", "A-R[4]->B"])
def test_a_hop_written_again_is_the_same_hop(again: str) -> None:
    assert len(parse_walk(f"A-R[4]->B-S->C, {again}-T->D").hops) == 3


@pytest.mark.parametrize("cap", [1, MAX_CAP])
def test_caps_reach_from_one_to_the_most(cap: int) -> None:
    assert parse_walk(f"A-R[{cap}]->B").hops[0].cap == cap
    assert parse_walk(f"A-R[000{cap}]->B").hops[0].cap == cap


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected an entity type at ''"),
        ("  ", "expected an entity type at ''"),
        ("a-R->B", "expected an entity type at 'a-R->B'"),
        ("A-R->B,", "expected an entity type at ''"),
        ("A", "nothing follows A"),
        ("A-R->B, B", "nothing follows B"),
        ("A-r->B", "expected -RELATION->Type at '-r->B'"),
        ("A-R-B", "expected -RELATION->Type"),
        ("A<-R-B", "expected -RELATION->Type"),
        ("A-R[]->B", "expected -RELATION->Type"),
        ("A-R[-1]->B", "expected -RELATION->Type"),
        ("A-R[٣]->B", "expected -RELATION->Type"),
        ("A-R->B C", "expected -RELATION->Type at 'C'"),
        ("A-R->B, C-S->D", "C is not reached before it is left again"),
        ("A-R->B-S->A", "A is visited again by S: give the hop a cap, S[n]"),
        ("A-R->B, A-S->B", "B is visited again by S"),
        ("A-R[0]->B", "the cap of R is 0; it must be 1 to 100"),
        ("A-R[101]->B", "the cap of R is 101"),
        ("A-R[" + "9" * 5000 + "]->B", "the cap of R is 999999999999"),
        ("A-R[2]->B, A-R[3]->B-S->C", "R has two caps, 2 and 3"),
        ("A-R->B-S->C, A-R[3]->B-T->D", "R has two caps, 5 and 3"),
    ],
)
def test_faults_say_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(WalkError, match=re.escape(words)):
        parse_walk(text)


@settings(deadline=None)  # a busy machine is no fault
@given(walks())
def test_walks_come_back_as_they_were_written(walk: Walk) -> None:
    assert parse_walk(_written(walk)) == walk


@settings(deadline=None)  # a busy machine is no fault
@given(st.text() | st.text(alphabet="AB-R>[]0123456789, _<\n٣", max_size=60))
def test_any_text_parses_or_is_a_walk_error(text: str) -> None:
    try:
        walk = parse_walk(text)
    except WalkError:
        return
    assert parse_walk(_written(walk)).types == walk.types
    assert len(set(walk.steps)) == len(walk.steps)
