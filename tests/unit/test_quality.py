"""The quality checklist: its arithmetic, its file, and that what is bad does not pass."""

from __future__ import annotations

import asyncio
import math
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, AFTER_SALES_WORDS, CLINIC, SPEC
from ecphoria.errors import InvalidInput
from ecphoria.extraction.port import Fact
from ecphoria.extraction.rules import RuleExtractor
from ecphoria.language.lexicon import Lexicon
from ecphoria.quality.checklist import ExpectedFact, load_checklist, parse_checklist
from ecphoria.quality.checks import (
    Limits,
    Verdict,
    examine,
    facts_right,
    separation,
)
from ecphoria.settings import Settings
from engines import HashEmbedder

SHIPPED = load_checklist(None)
SETTINGS = Settings.model_construct()


def examined(embedder, domain=AFTER_SALES, languages=("en", "zh"), checklist=SHIPPED):
    extractor = RuleExtractor(domain, Lexicon(domain), 1_200, 150)
    found = asyncio.run(examine(checklist, embedder, domain, SETTINGS, extractor, languages))
    return {each.name: each for each in found}


class GroupEmbedder(HashEmbedder):
    """As good as a model can be: what means the same has the same vector."""

    def __init__(self, checklist):
        super().__init__(SPEC)
        self.places = {
            text: place
            for place, group in enumerate(checklist.phrasings)
            for text in (*group.en, *group.zh)
        }
        self.dimension = len(checklist.phrasings) + 8

    def _vector(self, text):
        vector = [0.0] * self.dimension
        place = self.places.get(text)
        vector[len(self.places) % 8 - 8 if place is None else place] = 1.0
        return vector


class ConstantEmbedder(GroupEmbedder):
    """As bad as a model can be: everything means the same."""

    def _vector(self, _text):
        return [1.0] + [0.0] * (self.dimension - 1)


# --- separation ----------------------------------------------------------------------------


def angle(degrees):
    return (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))


def test_pairs_of_a_group_and_of_two_groups_are_averaged_apart():
    vectors = [angle(0), angle(60), angle(90)]
    found = separation(vectors, ["a", "a", "b"], vectors, ["a", "a", "b"], same=True)
    assert found.within == pytest.approx(0.5)
    assert found.between == pytest.approx((0 + math.cos(math.radians(30))) / 2)
    assert found.value == pytest.approx(found.within - found.between)
    # 60 degrees is nearer to 90 than to 0, and 90 has nobody of its own
    assert found.misses == ((1, 2), (2, 1))


def test_two_sets_are_compared_with_one_another_only():
    found = separation([angle(0)], ["a"], [angle(0), angle(90)], ["a", "b"], same=False)
    assert (found.within, found.between) == (pytest.approx(1), pytest.approx(0))
    assert found.misses == ()


@given(
    st.lists(
        st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(
            lambda v: np.linalg.norm(v) > 0.1
        ),
        min_size=4,
        max_size=12,
    )
)
def test_a_separation_is_the_difference_of_two_means_of_cosines(raw):
    vectors = [np.array(each) / np.linalg.norm(each) for each in raw]
    groups = [str(place % 2) for place in range(len(vectors))]
    found = separation(vectors, groups, vectors, groups, same=True)
    assert min(found.within, found.between) >= -1.000001
    assert max(found.within, found.between) <= 1.000001
    assert all(groups[row] != groups[column] for row, column in found.misses)


@pytest.mark.parametrize(
    ("value", "limits", "verdict"),
    [
        (0.9, Limits(0.9, 0.7), Verdict.PASS),
        (0.89, Limits(0.9, 0.7), Verdict.WARN),
        (0.7, Limits(0.9, 0.7), Verdict.WARN),
        (0.69, Limits(0.9, 0.7), Verdict.FAIL),
        (-1.0, Limits(0.9, None), Verdict.WARN),
    ],
)
def test_a_figure_has_a_verdict(value, limits, verdict):
    assert limits.verdict(value) is verdict


# --- facts ---------------------------------------------------------------------------------


def ids_of(text):
    return frozenset(mention.text for mention in AFTER_SALES_WORDS.id_mentions(text))


SHIPPED_FACT = Fact(
    "Order #770214: shipped", "order_status", attribute="order.status", value="shipped"
)


@pytest.mark.parametrize(
    ("expected", "right"),
    [
        (
            ExpectedFact(
                rule="order_status", attribute="order.status", value="shipped", ids=("#770214",)
            ),
            1,
        ),
        (ExpectedFact(rule="order_status", attribute="order.status"), 1),
        (ExpectedFact(rule="order_status", attribute="order.status", value="delivered"), 0),
        (ExpectedFact(rule="order_status", attribute="order.status", ids=("#770215",)), 0),
        (ExpectedFact(rule="order_notice", attribute="order.status", value="shipped"), 0),
        (ExpectedFact(rule="order_status"), 0),
        (ExpectedFact(), 0),
    ],
)
def test_a_fact_is_right_in_all_that_is_expected_of_it(expected, right):
    assert facts_right([expected], [SHIPPED_FACT], ids_of) == right


def test_an_expected_fact_counts_once():
    expected = ExpectedFact(rule="order_status", attribute="order.status")
    assert facts_right([expected], [SHIPPED_FACT, SHIPPED_FACT], ids_of) == 1
    assert facts_right([expected, expected], [SHIPPED_FACT], ids_of) == 1


# --- the whole -----------------------------------------------------------------------------


def test_a_perfect_model_separates_perfectly():
    found = examined(GroupEmbedder(SHIPPED))
    for name in ("English", "Chinese", "between the languages"):
        assert found[f"synonyms, {name}"].value == pytest.approx(1)
        assert found[f"synonyms, {name}"].verdict is Verdict.PASS
        assert found[f"synonyms, {name}"].misses == ()


def test_a_model_that_tells_nothing_apart_fails():
    found = examined(ConstantEmbedder(SHIPPED))
    for language in ("English", "Chinese"):
        assert found[f"synonyms, {language}"].value == pytest.approx(0)
        assert found[f"synonyms, {language}"].verdict is Verdict.FAIL
        assert "reembed" in found[f"synonyms, {language}"].advice
    # a model of one language is no fault of the installation
    assert found["synonyms, between the languages"].verdict is Verdict.WARN


def test_one_language_can_be_asked_alone():
    found = examined(GroupEmbedder(SHIPPED), languages=("zh",))
    assert {name for name in found if name.startswith("synonyms")} == {"synonyms, Chinese"}
    assert found["topics right"].detail.endswith("of 40 phrasings")


def with_other_words(**parts):
    return AFTER_SALES.model_copy(update=parts)


def test_a_domain_without_the_right_words_fails():
    nothing = {
        "keywords": AFTER_SALES.topics["refund"].keywords.model_copy(
            update={"en": ("zzzz",), "zh": ("〇〇",)}
        )
    }
    dumb = with_other_words(
        topics={
            name: topic.model_copy(update=nothing) for name, topic in AFTER_SALES.topics.items()
        },
        topic_rules=(),
        intents={
            name: intent.model_copy(update=nothing) for name, intent in AFTER_SALES.intents.items()
        },
        intent_rules=(),
        facts={},
    )
    found = examined(GroupEmbedder(SHIPPED), dumb)
    for name in ("topics right", "intents right", "facts cut right"):
        assert found[name].verdict is Verdict.FAIL, found[name]
        assert "domain file" in found[name].advice
        assert found[name].misses
    assert found["topics right"].value == 0


def test_a_domain_that_takes_every_question_for_one_of_the_past_brings_what_is_over():
    cues = AFTER_SALES.cues
    past = cues.history.model_copy(update={"en": ("what", "was", "how", "who*", "where")})
    found = examined(
        GroupEmbedder(SHIPPED), with_other_words(cues=cues.model_copy(update={"history": past}))
    )
    usual = examined(GroupEmbedder(SHIPPED))
    assert any("old-address" in miss for miss in found["wrong memories dropped"].misses)
    assert not any("old-address" in miss for miss in usual["wrong memories dropped"].misses)


def test_for_another_domain_only_the_model_is_measured():
    found = examined(GroupEmbedder(SHIPPED), CLINIC)
    assert found["synonyms, English"].verdict is Verdict.PASS
    rest = [each for name, each in found.items() if not name.startswith("synonyms")]
    assert len(rest) == 6
    for each in rest:
        assert (each.verdict, each.value) == (Verdict.SKIP, None)
        assert "--checklist" in each.advice


# --- the file ------------------------------------------------------------------------------


def test_the_shipped_checklist_has_ten_of_each_in_both_languages():
    assert len(SHIPPED.phrasings) == len(SHIPPED.dialogues) == len(SHIPPED.shelf.questions) == 10
    for group in SHIPPED.phrasings:
        assert len(group.en) == len(group.zh) >= 4
    texts = [text for _, text in SHIPPED.said(("en", "zh"))]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("version: 1", "version: 2"), ":4: version"),
        (("domain: after_sales", "domain: ''"), ":5: domain"),
        (("about: [dev-vacuum]", "about: [dev-nowhere]"), "'dev-nowhere' is nowhere on the shelf"),
        (("id: coffee-pump", "id: vacuum-brush"), "'vacuum-brush' stands there 2 times"),
        (("as_of: '2026-06-01T12:00:00Z'", "as_of: '2026-06-01T12:00:00'"), "has no time zone"),
        (("    topics: [refund]\n", ""), "phrasings.0.topics"),
        (("phrasings:", "phrasing:"), "phrasing: Extra inputs are not permitted"),
    ],
)
def test_a_fault_of_the_file_is_told_with_its_line(change, said):
    text = resources.files("ecphoria.quality").joinpath("checklist.yaml").read_text("utf-8")
    assert change[0] in text
    with pytest.raises(InvalidInput) as caught:
        parse_checklist(text.replace(*change, 1), "mine.yaml")
    assert "mine.yaml:" in caught.value.message
    assert said in caught.value.message


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_checklist(tmp_path / "none.yaml")
