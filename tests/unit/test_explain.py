"""Why a memory is, or is not, in an answer: exact rules, shares that sum up, nobody else's data."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, TENANT, USER, day, memory, request, scope, understanding
from ecphoria.model import Action, Role, SourceInfo, Standing, Status, TraceStep
from ecphoria.recall.answer import Question
from ecphoria.recall.explain import (
    DISABLED,
    GATE,
    KIND,
    NOT_SEEN,
    SAME,
    SAME_OR_OVER,
    explained,
    irrelevant,
    looked_at,
    not_expanded,
    shares,
    unfit,
    why_held,
    why_left_out,
)
from ecphoria.recall.features import Features
from ecphoria.recall.rank import Candidate, score
from ecphoria.recall.seed import Seed
from ecphoria.recall.trace import Trace, told
from ecphoria.settings import RankWeights
from ecphoria.stores.ports import Expansion

LEAST = 0.05


def candidate(id_="m-1", text="the screen was replaced", relevance=0.5, **more):
    found = Features(similarity=relevance)
    return Candidate(memory(id_, text, **more), relevance, relevance, 0.4, ("why",), found)


def question(**more):
    asked = {name: more.pop(name) for name in list(more) if name in {"known_at", "limit"}}
    asked |= {name: more.pop(name) for name in list(more) if name == "min_importance"}
    role = more.pop("role", Role.AGENT)
    return Question(
        request(**asked), scope(role), USER, more.pop("as_of", NOW), understanding(**more)
    )


# --- shares --------------------------------------------------------------------------------

FEATURES = st.builds(
    Features,
    **{
        name: st.floats(0, 1)
        for name in Features.__dataclass_fields__
        if name not in {"lost", "rule"}
    },
    lost=st.sampled_from([0.0, 1.0]),
)
WEIGHTS = st.builds(RankWeights, **{name: st.floats(-5, 5) for name in RankWeights.model_fields})


@given(FEATURES, WEIGHTS)
def test_the_shares_of_a_memory_sum_to_its_score(found, weights):
    item = replace(candidate(), features=found, score=score(found, weights))
    parts = shares(item, weights)
    assert sum(each.share for each in parts) == pytest.approx(item.score, abs=1e-9)
    sizes = [abs(each.share) for each in parts]
    assert sizes == sorted(sizes, reverse=True)
    for each in parts:
        assert each.weight == getattr(weights, each.name)
        assert each.value == getattr(found, each.name) != 0


def test_what_a_reranker_has_added_is_a_share_of_its_own():
    found, weights = Features(similarity=1.0), RankWeights()
    item = replace(candidate(), features=found, score=score(found, weights) + 0.25)
    first, second = shares(item, weights)
    assert {first.name, second.name} == {"reranker", "similarity"}
    assert first.share + second.share == pytest.approx(item.score)


# --- rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, None),
        ({"source_id": "rumour"}, DISABLED),
        ({"kind": "procedural"}, KIND),
        ({"importance": 0.2}, "importance below 0.3"),
    ],
)
def test_what_is_not_ranked_has_a_rule(changes, rule):
    asked = question(kinds=("semantic",), min_importance=0.3)
    assert unfit(memory(**changes), asked, {"rumour"}) == rule


def test_what_did_not_get_on_has_a_rule():
    best = candidate()
    same = candidate("m-2", "The screen was replaced.")
    other = candidate("m-3", "the battery lasts two days")
    noise = candidate("m-4", relevance=0.01)
    rules = [why_left_out(item, [best], LEAST, 1) for item in (best, same, other, noise)]
    assert rules == [None, SAME, "over the limit of 1", irrelevant(LEAST)]


@pytest.mark.parametrize(
    ("changes", "known_at", "reason"),
    [
        ({"status": Status.DISABLED}, None, "taken back"),
        ({"valid_from": day(1)}, None, "not true yet"),
        ({"status": Status.SUPERSEDED, "valid_until": day(-1)}, None, "no longer true"),
        ({"expires_at": day(-1)}, None, "expired"),
        ({"tier": "archive"}, None, "in the archive"),
        ({}, None, "not current"),
        ({"recorded_at": day(-1)}, day(-2), "not known yet then"),
        (
            {"past": (Standing(day(-1), Status.DISABLED, None),)},
            day(-2),
            "taken back",
        ),
    ],
)
def test_what_the_graph_holds_back_has_a_reason(changes, known_at, reason):
    assert why_held(memory(**changes), question(known_at=known_at)) == reason


class Shelf:
    """A graph that holds memories of several users."""

    def __init__(self, *memories):
        self.held = memories
        self.asked = []

    async def memories(self, tenant, ids):
        assert tenant == TENANT
        self.asked.append(list(ids))
        return tuple(each for each in self.held if each.id in ids)


def seed(found, fused=1.0):
    return Seed(found.key, 0.5, None, fused)


def test_only_what_the_asker_may_read_is_listed():
    own = memory("own", valid_until=day(-1))
    shared = memory("shared", user_id=None, valid_until=day(-1))
    hidden = [
        memory("another's", user_id="u-2"),
        memory("secret", privacy="sensitive"),
        memory("erased", status=Status.FORGOTTEN),
    ]
    passed = memory("passed")
    shelf = Shelf(own, shared, *hidden, passed)
    seeds = [seed(each, 1 / place) for place, each in enumerate(shelf.held, start=1)]
    expansion = Expansion(seeds=(passed,))
    found = asyncio.run(not_expanded(shelf, question(), seeds, expansion))
    assert [each.memory.id for each in found] == ["own", "shared"]
    assert {each.dropped for each in found} == {"no longer true"}
    assert {each.place for each in found} == {None}
    admin = asyncio.run(not_expanded(shelf, question(role=Role.ADMIN), seeds, expansion))
    assert [each.memory.id for each in admin] == ["own", "shared", "secret"]


def test_nothing_is_read_when_nothing_was_held_back():
    shelf = Shelf()
    assert asyncio.run(not_expanded(shelf, question(), [], Expansion())) == ()
    assert shelf.asked == []


class Result:
    def __init__(self, kept, action=Action.ANSWER):
        self.action = action
        self.memories = kept if action is Action.ANSWER else ()


def looked(kept, scored, unranked=(), action=Action.ANSWER, limit=1):
    expansion = Expansion(
        seeds=(*(item.memory for item in scored), *unranked),
        sources=(SourceInfo("rumour", "rumour", 0.5, disabled=True),),
    )
    return looked_at(
        question(limit=limit), expansion, scored, kept, Result(kept, action), RankWeights(), LEAST
    )


def test_the_answer_comes_first_and_in_its_own_order():
    first, second = candidate("m-1"), candidate("m-2", "the battery lasts two days")
    third = candidate("m-3", "a parcel came back")
    rumour = memory("m-4", source_id="rumour")
    found = looked((third, second), [first, second, third], [rumour], limit=2)
    assert [(each.memory.id, each.place, each.dropped) for each in found] == [
        ("m-3", 3, None),
        ("m-2", 2, None),
        ("m-1", 1, "over the limit of 2"),
        ("m-4", None, DISABLED),
    ]
    assert found[-1].relevance is found[-1].score is None


def test_of_a_fallback_everything_is_below_the_gate():
    item = candidate()
    (found,) = looked((item,), [item], action=Action.FALLBACK)
    assert found.dropped == GATE


def test_counts_are_told_rule_by_rule_and_stay_the_same_in_sum():
    kept = candidate("m-1")
    scored = [
        kept,
        candidate("m-2"),
        candidate("m-3", "a parcel came"),
        candidate("m-4", relevance=0),
    ]
    ranked = looked((kept,), scored, [memory("m-5", source_id="rumour")])
    held = (replace(ranked[0], dropped="expired"),)
    steps = [
        TraceStep("expand", 1.0, 2, {NOT_SEEN: 3, "named but another user's": 1}),
        TraceStep("rank", 1.0, 1, {DISABLED: 1, irrelevant(LEAST): 1, SAME_OR_OVER: 2}),
        TraceStep("judge", 1.0, 1, {GATE: 1}),
    ]
    expand, rank, judge = explained(steps, held, ranked)
    assert expand.dropped == {NOT_SEEN: 2, "named but another user's": 1, "expired": 1}
    assert rank.dropped == {DISABLED: 1, irrelevant(LEAST): 1, SAME: 1, "over the limit of 1": 1}
    assert judge == steps[2]
    assert (expand.considered, rank.considered) == (held, ranked)


def test_with_a_reranker_its_stage_has_what_was_ranked():
    kept = candidate("m-1")
    ranked = looked((kept,), [kept, candidate("m-2")], [memory("m-5", source_id="rumour")])
    steps = [
        TraceStep("rank", 1.0, 2, {DISABLED: 1}),
        TraceStep("rerank", 1.0, 1, {SAME_OR_OVER: 1}),
    ]
    rank, rerank = explained(steps, (), ranked)
    assert (rank.dropped, rerank.dropped) == ({DISABLED: 1}, {SAME: 1})
    assert [each.memory.id for each in rank.considered] == ["m-5"]
    assert [each.memory.id for each in rerank.considered] == ["m-1", "m-2"]


# --- counts for people ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"memories": 1, "entities": 12}, "1 memory, 12 entities"),
        ({"seeds": 1200, "named": 1}, "1,200 seeds, 1 named"),
        ({"context_characters": 2, "topics": 0}, "2 context characters"),
        ({"ids": 0}, "nothing"),
        ({}, "nothing"),
    ],
)
def test_counts_are_told_in_plain_words(counts, said):
    assert told(**counts) == said


def test_a_step_keeps_what_came_and_what_went():
    trace = Trace()
    trace.step("seed", 3, {"a rule": 0, "another": 2}, "note", came="1 question", went="3 seeds")
    (step,) = trace.steps
    assert (step.input, step.output, step.note) == ("1 question", "3 seeds", "note")
    assert step.dropped == {"another": 2}
    assert step.milliseconds >= 0
