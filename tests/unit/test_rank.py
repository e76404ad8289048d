"""Order of the candidates: monotone, deterministic, diverse without losing a digit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, NOW, SPEC, day, edge, entity, key, memory, ref, understanding
from ecphoria.model import SourceInfo, Status
from ecphoria.recall.features import Features
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.rank import Asked, Candidate, candidates, diversified, recency, scaled
from ecphoria.recall.seed import Seed
from ecphoria.settings import RankWeights

THINGS = [("User", "u-1"), ("Order", "o-1"), ("Device", "d-1"), ("Order", "o-2")]
EDGES = [
    edge("PLACED", ("User", "u-1"), ("Order", "o-1")),
    edge("PLACED", ("User", "u-1"), ("Order", "o-2")),
    edge("CONTAINS", ("Order", "o-1"), ("Device", "d-1")),
]


def near(*mentioned, lost=False):
    return Neighbourhood(
        [entity(*thing) for thing in THINGS],
        EDGES,
        [ref(*thing) for thing in mentioned],
        domain=AFTER_SALES,
        lost=lost,
    )


def ranked(
    memories, similarities=None, wanted=None, around=None, weights=None, question="warranty?"
):
    asked = Asked(
        question,
        wanted or understanding(topics=("warranty",)),
        around or near(),
        {"crm": SourceInfo("crm", "CRM", 0.95), "ugc": SourceInfo("ugc", "review", 0.4)},
        AFTER_SALES,
        SPEC,
        NOW,
    )
    seeds = {key_: Seed(key_, cosine, None, 0.0) for key_, cosine in (similarities or {}).items()}
    return candidates(memories, seeds, asked, weights or RankWeights())


def one(similarity=None, wanted=None, around=None, **more):
    found = memory(**more)
    similarities = {} if similarity is None else {found.key: similarity}
    return ranked([found], similarities, wanted, around)[0]


@pytest.mark.parametrize(
    ("cosine", "relevance"),
    [(None, 0), (-1, 0), (0.2, 0), (0.5, 0.5), (0.8, 1), (1, 1)],
)
def test_a_cosine_is_scaled_between_the_models_anchors(cosine, relevance):
    assert scaled(cosine, SPEC) == pytest.approx(relevance)


ABOUT = st.sampled_from([(), (key("Device", "d-1"),), (key("Order", "o-2"),)])
AROUND = st.sampled_from([near(), near(("Device", "d-1")), near(lost=True)])
COSINES = st.floats(-1, 1)


@given(COSINES, COSINES, ABOUT, AROUND, st.sampled_from(["warranty", "refund", None]))
def test_more_similar_never_ranks_lower(low, high, about, around, topic):
    low, high = sorted((low, high))
    less = one(low, around=around, about=about, topic=topic)
    more = one(high, around=around, about=about, topic=topic)
    assert more.score >= less.score
    assert more.relevance >= less.relevance
    assert 0 <= less.relevance <= more.relevance <= 1
    assert 0 <= less.score <= more.score <= 1


MEMORIES = st.lists(
    st.builds(
        memory,
        id_=st.sampled_from("abcdefgh"),
        topic=st.sampled_from(["warranty", "refund"]),
        importance=st.sampled_from([0.0, 0.5]),
        occurred_at=st.sampled_from([day(-1), day(-2)]),
        about=ABOUT,
    ),
    unique_by=lambda item: item.id,
    max_size=8,
)


@given(MEMORIES.flatmap(lambda items: st.tuples(st.just(items), st.permutations(items))), AROUND)
def test_the_order_of_the_input_makes_no_difference(pair, around):
    similarities = {item.key: 0.5 for item in pair[0][::2]}
    assert ranked(pair[0], similarities, around=around) == ranked(
        pair[1], similarities, around=around
    )


def test_ties_go_by_time_then_id():
    tied = [memory("b"), memory("a")]
    weights = RankWeights(recency=0)
    newer = memory("c", occurred_at=day(-1))
    order = [item.memory.id for item in ranked([*tied, newer], weights=weights)]
    assert order == ["c", "a", "b"]


def test_rules_together_weigh_at_least_three_times_similarity():
    weights = RankWeights()
    rules = {"topic", "entity", "graph", "rule_asked", "over", "own_words", "source"}
    total = sum(getattr(weights, name) for name in rules)
    assert total >= 3 * weights.similarity


def test_a_review_ranks_below_the_shops_own_record():
    record, review = memory("record", source_id="crm"), memory("review", source_id="ugc")
    found = ranked([review, record], {record.key: 0.5, review.key: 0.55})
    assert [item.memory.id for item in found] == ["record", "review"]


def test_what_the_customer_said_ranks_above_when_that_is_asked():
    said = memory("said", source_id="dialogue")
    record = memory("record", source_id="crm")
    wanted = understanding(topics=("warranty",), wants_own_words=True)
    assert ranked([record, said], wanted=wanted)[0].memory.id == "said"


def test_what_used_to_be_ranks_above_when_that_is_asked():
    old = memory("old", status=Status.SUPERSEDED, valid_until=day(-5), occurred_at=day(-50))
    new = memory("new")
    wanted = understanding(topics=("warranty",), wants_history=True)
    assert ranked([new, old], wanted=wanted)[0].memory.id == "old"
    assert ranked([new, old])[0].memory.id == "new"


def test_the_first_topic_of_a_question_counts_most():
    wanted = understanding(topics=("refund", "warranty"))
    first, second = one(wanted=wanted, topic="refund"), one(wanted=wanted)
    assert first.score > second.score > one(wanted=wanted, topic="address").score


def test_tags_count_as_topics():
    assert one(topic="refund", tags=("warranty",)).relevance == one().relevance


def test_the_nearer_to_what_is_named_the_better():
    around = near(("Device", "d-1"))
    itself = one(around=around, about=(key("Device", "d-1"),))
    above = one(around=around, about=(key("Order", "o-1"),))
    unlinked = one(around=around)
    other = one(around=around, about=(key("Order", "o-2"),))
    scores = [item.score for item in (itself, above, unlinked, other)]
    assert scores == sorted(set(scores), reverse=True)
    relevances = [item.relevance for item in (itself, above, unlinked, other)]
    assert relevances == sorted(relevances, reverse=True)
    assert relevances[-1] < relevances[0] / 2
    assert "about User u-1 -PLACED-> Order o-1 -CONTAINS-> Device d-1" in itself.because


def test_an_id_that_leads_to_nothing_lowers_everything():
    lost, found = one(0.8, around=near(lost=True)), one(0.8, around=near())
    assert lost.relevance < found.relevance / 2
    assert lost.score < found.score / 2


def test_how_to_questions_prefer_procedures():
    wanted = understanding(wants_procedure=True)
    assert one(0.4, wanted, kind="procedural").score > one(0.4, wanted).score


def test_a_line_of_the_one_whom_the_question_names_ranks_above():
    lines = [
        memory("anna", text="Anna: the lamp is broken"),
        memory("ben", text="Ben: the lamp is broken"),
    ]
    asked = understanding(topics=())
    for name, first in (("Anna", "anna"), ("Ben", "ben")):
        best = ranked(lines, wanted=asked, question=f"What did {name} say of the lamp?")[0]
        assert best.memory.id == first
        assert f"said by {name}" in best.because


@given(st.floats(0.3, 0.8), st.booleans())
def test_without_a_topic_likeness_counts_for_more(similarity, related):
    open_question = one(similarity, wanted=understanding(topics=()), text="The lamp is broken")
    other_topic = one(
        similarity,
        wanted=understanding(topics=("repair",)),
        text="The lamp is broken",
        topic="warranty" if related else None,
    )
    assert open_question.features.open == 1
    assert other_topic.features.open == 0
    assert open_question.relevance > other_topic.relevance


def test_because_says_what_spoke_for_it():
    found = one(0.5, text="The warranty ends in May.")
    assert found.because[0] == "similar to the question (0.50)"
    assert found.because[-1] == "same topic (warranty)"
    assert one(topic="refund", text="Paid back in May.").because == ()


def test_newer_more_important_and_more_used_is_better():
    old = one(occurred_at=day(-300))
    assert one(occurred_at=day(-1)).score > old.score
    assert one(importance=0.9).score > one(importance=0.1).score
    assert one(access_count=5, last_accessed_at=day(-1)).score > one().score


def test_recency():
    assert recency(memory(occurred_at=day(-365)), NOW, AFTER_SALES) == pytest.approx(0.5)
    assert recency(memory(occurred_at=day(5)), NOW, AFTER_SALES) == 1


def test_many_uses_long_ago_count_less_than_few_of_late():
    long_ago = one(access_count=5, last_accessed_at=day(-60))
    assert one(access_count=1, last_accessed_at=day(-1)).score > long_ago.score
    assert one(access_count=9).score == one().score


def test_weights_of_nothing_but_zero_divide_by_nothing():
    zero = RankWeights(**dict.fromkeys(RankWeights.model_fields, 0.0))
    assert ranked([memory()], weights=zero)[0].score == 0


def rule(id_, text, *, lang="en", topic="warranty", similar=0.5):
    return Candidate(
        memory(id_, text, user_id=None, kind="procedural", lang=lang, topic=topic),
        0.9,
        0.1,
        0.5,
        (),
        Features(similarity=similar, rule=1.0, other_language=float(lang != "en")),
    )


def test_a_rule_has_a_place_near_the_top_when_one_is_asked_for():
    facts = [candidate(number, f"fact number {number}") for number in range(9)]
    rules = [rule("near", "Returns within 15 days.", similar=0.7), rule("far", "Wash it.")]
    shown = [item.memory.id for item in diversified([*facts, *rules], 5, wants_rule=True)]
    assert shown == ["m-0", "near", "m-1", "far", "m-2"]
    unasked = [item.memory.id for item in diversified([*facts, *rules], 5)]
    assert unasked == ["m-0", "m-1", "m-2", "near", "m-3"]
    assert diversified([*facts, rule("far", "Wash it.", similar=0.1)], 5) == tuple(facts[:5])


def test_of_a_rule_in_two_languages_the_one_of_the_question_is_shown():
    pair = [rule("zh", "15天内可以退货。", lang="zh"), rule("en", "Returns within 15 days.")]
    assert [item.memory.id for item in diversified(pair, 5)] == ["en"]
    other = rule("zh", "30天内可以退货。", lang="zh")
    assert len(diversified([other, pair[1]], 5)) == 2


# --- diversity -----------------------------------------------------------------------------


def candidate(number, text, **more):
    found = memory(f"m-{number}", text, **more)
    return Candidate(found, 0.9, 1 - number / 100, 0.5, (), Features())


def kept(*texts, limit=10):
    shown = [candidate(number, text) for number, text in enumerate(texts)]
    return [item.memory.text for item in diversified(shown, limit)]


LONG = "the extended warranty of the phone covers the battery and the screen until the end of "


def test_near_equal_texts_are_shown_once_and_the_better_stays():
    assert kept(LONG + "2026", LONG + "2026.", (LONG + "2026").upper()) == [LONG + "2026"]


@pytest.mark.parametrize(
    ("one_", "other"),
    [
        (LONG + "2026", LONG + "2027"),
        (LONG + "２０２６", LONG + "2027"),
        (LONG + "12 3", LONG + "1 23"),
        (LONG + "12，3", LONG + "123"),
        (LONG + "2026", LONG.replace("covers", "doesn't cover") + "2026"),
        (
            "客户说他的手机在保修期内并且可以享受延保服务" * 2,
            "客户说他的手机不在保修期内并且可以享受延保服务" * 2,
        ),
        (LONG + "2026", LONG.replace("of the phone covers", "of the phone not covers") + "2026"),
        ("apples", "pears"),
    ],
)
def test_what_says_something_else_stays(one_, other):
    assert kept(one_, other) == [one_, other]


def test_shared_knowledge_does_not_take_the_place_of_the_users_own():
    shown = [candidate(1, LONG), candidate(2, LONG, user_id=None)]
    assert len(diversified(shown, 5)) == 2


@given(
    st.lists(st.text("ab 12不", max_size=6).map(lambda end: LONG + end), max_size=9),
    st.integers(0, 6),
)
def test_diversity_keeps_order_limit_and_every_number(texts, limit):
    shown = [candidate(number, text) for number, text in enumerate(texts)]
    found = diversified(shown, limit)
    assert len(found) <= limit
    assert list(found) == [item for item in shown if item in found]
    if len(found) < limit:
        # nothing was cut: every sequence of numbers is still there
        numbers = lambda item: tuple(  # noqa: E731
            "".join(c if c.isdigit() else " " for c in item.memory.text).split()
        )
        assert set(map(numbers, found)) == set(map(numbers, shown))
