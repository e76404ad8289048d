"""Putting an answer together: the gate, masks, and who is believed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    AFTER_SALES,
    NOW,
    USER,
    day,
    edge,
    entity,
    key,
    memory,
    recalled,
    ref,
    request,
    scope,
    understanding,
)
from ecphoria.governance.access import MASK
from ecphoria.model import Action, Role, SourceInfo
from ecphoria.recall.answer import (
    Question,
    answer,
    dropped_below_gate,
    graph_support,
    masked,
    no_answer,
    reliable_first,
)
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.rank import Candidate
from ecphoria.settings import Settings
from ecphoria.stores.ports import Expansion

SETTINGS = Settings()
SOURCES = (SourceInfo("crm", "CRM", 0.95), SourceInfo("ugc", "review", 0.4))
THINGS = (
    entity("User", "u-1", props={"phone": "138", "name": "张伟", "city": "上海"}),
    entity("Device", "d-1"),
    entity("Warranty", "w-1"),
)
EDGES = (edge("COVERED_BY", ("Device", "d-1"), ("Warranty", "w-1")),)
EMPTY = Expansion(sources=SOURCES)


def question(**more):
    values = {
        "request": request(),
        "scope": scope(Role.AGENT),
        "user_id": USER,
        "as_of": NOW,
        "wanted": understanding(),
    }
    return Question(**(values | more))


def around(*mentioned, things=THINGS, lost=False, named=()):
    return Neighbourhood(
        things,
        EDGES,
        [ref(*it) for it in mentioned],
        domain=AFTER_SALES,
        lost=lost,
        named=[ref(*it) for it in named],
    )


def candidate(memory_, relevance=0.9):
    return Candidate(memory_, relevance, relevance, 0.7, ("similar",))


def answered(ranked, near=None, expansion=EMPTY, asked=None):
    return answer(
        ranked, near or around(), asked or question(), expansion, AFTER_SALES, SETTINGS, ()
    )


# --- the gate ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relevance", "action"),
    [(0.0, Action.FALLBACK), (0.1599, Action.FALLBACK), (0.16, Action.ANSWER), (1, Action.ANSWER)],
)
def test_the_gate_is_on_the_best_relevance(relevance, action):
    ranked = [candidate(memory("low"), 0.0), candidate(memory("best"), relevance)]
    result = answered(ranked)
    assert result.action is action
    assert bool(result.memories) is (action is Action.ANSWER)


def test_a_fallback_holds_everything_back_and_says_so():
    result = answered([candidate(memory(), 0.1)])
    assert (result.memories, result.entities, result.relations) == ((), (), ())
    assert (result.context, result.confidence) == ("", None)
    assert "Do not guess" in result.advisory
    assert dropped_below_gate(result, [1, 2]) == {"below the relevance gate": 2}
    assert dropped_below_gate(answered([candidate(memory())]), [1]) == {}


def test_a_skip_warns_of_nothing():
    result = no_answer(Action.SKIP, question(), ("slow",))
    assert (result.action, result.advisory, result.degradations) == (Action.SKIP, None, ("slow",))


def test_a_fallback_speaks_the_questions_language():
    chinese = question(wanted=understanding(language="zh"))
    assert "请" in no_answer(Action.FALLBACK, chinese).advisory


@pytest.mark.parametrize("kind", ["procedural", "semantic"])
def test_what_holds_for_everybody_does_not_tell_what_is_ones_own(kind):
    rule = candidate(memory("rule", kind=kind, user_id=None))
    own = question(wanted=understanding(speaks_of_own=True))
    assert answered([rule], asked=own).action is Action.FALLBACK
    asked_for = question(wanted=understanding(speaks_of_own=True, wants_procedure=True))
    assert answered([rule], asked=asked_for).action is Action.ANSWER
    assert answered([rule]).action is Action.ANSWER


# --- the graph alone -----------------------------------------------------------------------

WARRANTY = understanding(answer_types=("Warranty",))


@pytest.mark.parametrize(
    ("near", "wanted", "support"),
    [
        (around(("Device", "d-1")), WARRANTY, 0.85),
        (around(), WARRANTY, 0.75),
        (around(lost=True), WARRANTY, 0),
        (around(), understanding(), 0),
        (around(things=THINGS[:2]), WARRANTY, 0),
        # named, but the warranty hangs on another device
        (around(("Device", "d-2"), things=(*THINGS, entity("Device", "d-2"))), WARRANTY, 0),
        # what is recorded is on another topic than the likeliest one
        (around(), replace(WARRANTY, is_recorded=False), 0),
        # the thing is his, whatever is asked of it
        (around(("Device", "d-1"), named=[("Device", "d-1")]), understanding(), 0.5),
        (around(("Device", "d-1"), named=[("Device", "d-1")], lost=True), understanding(), 0),
    ],
)
def test_how_far_the_graph_answers(near, wanted, support):
    assert graph_support(near, wanted) == support


def test_the_graph_answers_without_any_memory():
    result = answered([], around(("Device", "d-1")), asked=question(wanted=WARRANTY))
    assert result.action is Action.ANSWER
    assert [item.entity.id for item in result.entities] == ["d-1", "w-1"]
    assert result.confidence.overall > 0.9
    assert "- Warranty w-1" in result.context


# --- masks ---------------------------------------------------------------------------------

ZHANG = entity(
    "User",
    "u-1",
    props={"name": "张伟", "phone": "13800000000", "city": "上海", "level": "gold"},
)
CARD = entity("Payment", "p-1", props={"amount": 5.0, "card_last4": "1234"})


@pytest.mark.parametrize(
    ("roles", "shown"),
    [
        ((Role.AGENT,), {"phone": MASK, "city": "上海"}),
        ((Role.ANALYST,), {"phone": MASK, "city": "上海"}),
        ((Role.OPERATOR,), {"phone": MASK, "city": MASK}),
        ((Role.ADMIN,), {"phone": "13800000000", "city": "上海"}),
        ((Role.OPERATOR, Role.AGENT), {"phone": MASK, "city": "上海"}),
    ],
)
def test_masks_by_role(roles, shown):
    found = masked(ZHANG, AFTER_SALES, scope(*roles)).props
    assert found == {"name": "张伟", "level": "gold"} | shown


def test_what_is_no_text_is_left_out_instead_of_masked():
    properties = AFTER_SALES.entities["Payment"].properties
    secret = properties["amount"].model_copy(update={"privacy": "sensitive"})
    payment = AFTER_SALES.entities["Payment"].model_copy(
        update={"properties": properties | {"amount": secret}}
    )
    domain = AFTER_SALES.model_copy(
        update={"entities": AFTER_SALES.entities | {"Payment": payment}}
    )
    assert masked(CARD, domain, scope(Role.AGENT)).props == {"card_last4": MASK}
    assert masked(CARD, domain, scope(Role.ADMIN)).props == CARD.props


def test_nothing_sensitive_reaches_the_context():
    found = replace(ZHANG, key=key("User", "u-1"))
    near = Neighbourhood((found,), (), [ref("User", "u-1")], domain=AFTER_SALES)
    result = answered([candidate(memory())], near)
    assert result.entities[0].entity.props["phone"] == MASK
    assert "13800000000" not in str(result)


# --- who is believed -----------------------------------------------------------------------

DEVICE = (key("Device", "d-1"),)
MARCH = memory("march", "The warranty ends on 1 March 2027", about=DEVICE, source_id="ugc")
MAY = memory("may", "The warranty ends on 1 May 2027", about=DEVICE)


def test_of_those_that_disagree_the_most_trusted_comes_first():
    other = memory("other", "The parcel was late", about=DEVICE)
    expansion = replace(EMPTY, seeds=(MARCH, other, MAY))
    result = answered([candidate(MARCH), candidate(other), candidate(MAY)], expansion=expansion)
    assert [item.memory.id for item in result.memories] == ["may", "other", "march"]
    assert result.memories[0].conflicts_with == ("march",)
    assert result.memories[0].confidence.consistency.score == 0.5


def test_what_is_not_shown_lowers_consistency_but_is_not_named():
    expansion = replace(EMPTY, seeds=(MAY,), others=(MARCH,))
    (found,) = answered([candidate(MAY)], expansion=expansion).memories
    assert found.conflicts_with == ()
    assert found.confidence.consistency.score == 0


def test_a_disabled_source_has_no_say():
    sources = (SOURCES[0], replace(SOURCES[1], disabled=True))
    expansion = Expansion(seeds=(MAY,), others=(MARCH,), sources=sources)
    (found,) = answered([candidate(MAY)], expansion=expansion).memories
    assert found.confidence.consistency.score == 1


def test_low_confidence_is_advised():
    stale = memory(valid_until=day(1), source_id="unknown")
    result = answered([candidate(stale)], expansion=replace(EMPTY, seeds=(stale,)))
    assert result.confidence.overall < 0.6
    assert "Low confidence" in result.advisory


@given(st.data())
def test_reliable_first_only_moves_what_disagrees(data):
    ids = [f"m-{number}" for number in range(data.draw(st.integers(0, 7)))]
    pairs = data.draw(
        st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=4)
        if ids
        else st.just([])
    )
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    shown = tuple(
        recalled(
            memory(id_),
            data.draw(st.sampled_from([0.1, 0.5, 0.9])),
            tuple({*(b for a, b in pairs if a == id_), *(a for a, b in pairs if b == id_)}),
        )
        for id_ in ids
    )
    found = reliable_first(shown)
    assert sorted(item.memory.id for item in found) == ids
    for before, after in zip(shown, found, strict=True):
        if not before.conflicts_with:
            assert after is before


@pytest.mark.parametrize("elsewhere", ["gone", "m-0"])
def test_a_conflict_with_what_is_not_shown_moves_nothing(elsewhere):
    shown = (recalled(memory("m-0"), 0.1), recalled(memory("m-1"), 0.9, (elsewhere,)))
    expected = ["m-0", "m-1"] if elsewhere == "gone" else ["m-1", "m-0"]
    assert [item.memory.id for item in reliable_first(shown)] == expected
