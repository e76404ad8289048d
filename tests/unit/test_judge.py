"""Confidence: three parts with fixed weights, each explained; and the advisory."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, CLINIC, NOW, day, entity, key, memory, trust
from ecphoria.model import ConfidencePart, SourceInfo, Status
from ecphoria.recall.judge import (
    advisory,
    confidence,
    conflicts,
    consistency,
    disagreeing,
    entity_confidence,
    joint,
    memory_confidence,
    overall,
    source_reliability,
    timeliness,
)

SECOND = 1 / 86_400


@pytest.mark.parametrize(
    ("days", "score", "level"),
    [
        (-1, 0, "EXPIRED"),
        (0, 0, "EXPIRED"),
        (SECOND, SECOND / 90, "HIGH_RISK"),
        (7 - SECOND, 7 / 90, "HIGH_RISK"),
        (7, 7 / 90, "NORMAL"),
        (45, 0.5, "NORMAL"),
        (90 - SECOND, 1, "NORMAL"),
        (90, 1, "NORMAL"),
        (90 + SECOND, 1, "STABLE"),
        (10_000, 1, "STABLE"),
    ],
)
def test_timeliness_by_the_remaining_days(days, score, level):
    part = timeliness(day(days), day(-500), 60, NOW)
    assert part.score == pytest.approx(score, abs=1e-5)
    assert part.level == level
    assert "2" in part.reason


@pytest.mark.parametrize(
    ("age", "score", "level"),
    [
        (-5, 1, "STABLE"),
        (0, 1, "STABLE"),
        (60, 0.5, "NORMAL"),
        (120, 0.25, "NORMAL"),
        (121, 0.247, "HIGH_RISK"),
        (24, 0.758, "STABLE"),
        (26, 0.741, "NORMAL"),
        (36_500, 0, "HIGH_RISK"),
    ],
)
def test_timeliness_by_age_where_there_is_no_end(age, score, level):
    part = timeliness(None, day(-age), 60, NOW)
    assert part.score == pytest.approx(score, abs=1e-3)
    assert part.level == level
    assert "half-life 60 days" in part.reason


@given(st.floats(-400, 400), st.floats(-400, 400), st.booleans())
def test_timeliness_is_monotone(one, other, ends):
    less, more = sorted((one, other))

    def score(days):
        part = timeliness(day(days) if ends else None, day(days), 60, NOW)
        assert 0 <= part.score <= 1
        return part.score

    assert score(less) <= score(more)


def test_the_weights():
    assert overall(1, 0, 0) == 0.40
    assert overall(0, 1, 0) == 0.35
    assert overall(0, 0, 1) == 0.25
    assert overall(1, 1, 1) == 1
    assert overall(0, 0, 0) == 0


def test_what_is_exactly_at_the_threshold_does_not_fall_below_it():
    steps = [Fraction(number, 20) for number in range(21)]
    at = [
        parts
        for parts in itertools.product(steps, repeat=3)
        if 40 * parts[0] + 35 * parts[1] + 25 * parts[2] == 60
    ]
    assert at
    for parts in at:
        found = overall(*map(float, parts))
        assert found == 0.6
        assert advisory(trust(found), "en", 0.6, fallback=False) is None


def test_sources():
    known = SourceInfo("crm", "CRM", 0.95)
    assert source_reliability(known, "crm") == ConfidencePart(0.95, "from CRM")
    assert source_reliability(None, "rumour").score == 0
    assert "rumour" in source_reliability(None, "rumour").reason


# --- conflicts -----------------------------------------------------------------------------

DEVICE = (key("Device", "d-1"),)
MARCH = memory("m-3", "The warranty ends on 1 March 2026", about=DEVICE)
MAY = memory("m-5", "The warranty ends on 1 May 2026", about=DEVICE)
PARCEL = memory("m-p", "The parcel came in the evening", about=DEVICE)


def test_what_disagrees_on_the_same_thing_is_a_conflict():
    assert conflicts([MARCH, MAY, PARCEL]) == {"m-3": ("m-5",), "m-5": ("m-3",), "m-p": ()}
    assert conflicts([]) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"topic": "refund"},
        {"about": (key("Device", "d-2"),)},
        {"about": ()},
        {"user_id": None},
        {"status": Status.SUPERSEDED},
        # over before the other began
        {"valid_from": day(-99), "valid_until": MARCH.valid_from},
    ],
)
def test_what_is_about_something_else_or_over_is_no_conflict(changes):
    assert conflicts([MARCH, replace(MAY, **changes)]) == {"m-3": (), "m-5": ()}


def test_validities_that_overlap_conflict():
    overlapping = replace(MAY, valid_from=day(-99), valid_until=day(-9.9))
    assert conflicts([MARCH, overlapping])["m-3"] == ("m-5",)


def test_what_is_not_shown_disagrees_as_well():
    assert disagreeing([MARCH], [MARCH, replace(MARCH), MAY, PARCEL]) == {"m-3": ("m-5",)}


PAID = memory("m-a", "订单 paid", about=(), topic=None, claim="c", value="paid", attribute="a.b")
SHIPPED = replace(PAID, key="shop|Memory|m-b", id="m-b", text="已寄出", value="Shipped")


def test_other_values_of_one_attribute_disagree_whatever_their_words():
    assert conflicts([PAID, SHIPPED]) == {"m-a": ("m-b",), "m-b": ("m-a",)}
    assert conflicts([SHIPPED, replace(PAID, value="ＳＨＩＰＰＥＤ")]) == {"m-b": (), "m-a": ()}
    assert conflicts([PAID, replace(SHIPPED, claim="another")]) == {"m-a": (), "m-b": ()}


def test_what_took_the_place_of_a_value_does_not_disagree_with_it():
    over = replace(PAID, status=Status.SUPERSEDED, valid_until=SHIPPED.valid_from)
    assert conflicts([over, SHIPPED]) == {"m-a": (), "m-b": ()}


def said(number, **more):
    id_ = f"m-1{number}"
    return replace(MARCH, id=id_, key=f"shop|Memory|{id_}", **more)


@pytest.mark.parametrize(("against", "score"), [(0, 1), (1, 0.5), (2, 0)])
def test_consistency_is_the_share_that_does_not_disagree(against, score):
    others = [said(0), said(1)]
    pool = [MARCH, replace(MARCH), *others]
    ids = [other.id for other in others[:against]]
    assert consistency(MARCH, pool, ids).score == score


def test_copies_of_a_lesser_source_neither_outvote_a_better_one_nor_back_each_other():
    better = said(0, reliability=0.95)
    copies = [said(number, reliability=0.40) for number in range(1, 9)]
    pool, ids = [better, *copies], [copy.id for copy in copies]
    one = consistency(better, [better, copies[0]], ids).score
    assert consistency(better, pool, ids).score == one == pytest.approx(1 - 0.40 / 0.95)
    assert consistency(copies[0], pool, [better.id]).score == 0
    # who stands with a better one stands firm
    backed = [*pool, said(9, reliability=0.95)]
    assert consistency(better, backed, ids).score == 1


def test_alone_is_consistent():
    assert consistency(MARCH, [MARCH], ()).score == 1
    assert "nothing else" in consistency(MARCH, [MARCH], ()).reason


def test_confidence_of_a_memory():
    sources = {"crm": SourceInfo("crm", "CRM", 0.95)}
    found = memory_confidence(
        replace(MARCH, valid_until=day(45)),
        [MARCH, MAY, PARCEL],
        {"m-3": ("m-5",)},
        sources,
        AFTER_SALES,
        NOW,
    )
    assert found.timeliness.score == 0.5
    assert found.source.score == 0.95
    assert found.consistency.score == 0.5
    assert found.overall == pytest.approx(0.40 * 0.5 + 0.35 * 0.95 + 0.25 * 0.5)


@pytest.mark.parametrize(("domain", "best"), [(AFTER_SALES, 0.95), (CLINIC, 0.9)])
def test_a_record_of_the_business_is_as_good_as_its_best_source(domain, best):
    found = entity_confidence(entity("Order", "o-1"), domain, NOW)
    assert (found.timeliness.score, found.source.score) == (1, best)
    undated = entity("Order", "o-1", observed_at=None, recorded_at=day(-3650))
    assert entity_confidence(undated, domain, NOW).timeliness.score < 0.01


# --- of an answer --------------------------------------------------------------------------


def parted(time, source=0.8, agreed=1.0):
    return confidence(
        ConfidencePart(time, f"time {time}", "NORMAL"),
        ConfidencePart(source, f"source {source}"),
        ConfidencePart(agreed, f"agreed {agreed}"),
    )


def test_the_answers_confidence_is_weighted_by_relevance():
    found = joint([(0.9, parted(1.0)), (0.3, parted(0.2, agreed=0.0))])
    assert found.timeliness.score == pytest.approx(0.8)
    assert found.consistency.score == pytest.approx(0.75)
    assert found.timeliness.reason == "weakest: time 0.2"
    assert found.overall == pytest.approx(0.4 * 0.8 + 0.35 * 0.8 + 0.25 * 0.75)


def test_nothing_to_trust():
    assert joint([]) is None
    assert joint([(0.0, parted(1.0))]) is None


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1)), min_size=1, max_size=5))
def test_the_answers_confidence_lies_between_its_parts(parts):
    found = joint([(weight, parted(time)) for weight, time in parts])
    times = [time for _, time in parts]
    assert min(times) - 1e-9 <= found.timeliness.score <= max(times) + 1e-9


@pytest.mark.parametrize(("language", "word"), [("en", "timeliness"), ("zh", "时效性")])
def test_low_confidence_is_told_in_the_questions_language_with_its_cause(language, word):
    text = advisory(parted(0.1), language, 0.6, fallback=False)
    assert word in text
    assert "0.57" in text
    assert any("\u4e00" <= char <= "\u9fff" for char in text) is (language == "zh")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_advisory_just_below_at_and_above(language):
    assert advisory(trust(0.5999), language, 0.6, fallback=False)
    assert advisory(trust(0.6), language, 0.6, fallback=False) is None
    assert advisory(trust(0.61), language, 0.6, fallback=False) is None
    assert advisory(None, language, 0.6, fallback=False) is None
    assert advisory(None, language, 0.6, fallback=True)
