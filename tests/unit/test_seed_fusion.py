"""Fusion of what two searches found, and what a search that fails leaves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, SPEC, understanding
from ecphoria.errors import EmbeddingFailed, StoreUnavailable
from ecphoria.recall.seed import MAX_TERMS, find_seeds, fuse, seed_filter
from ecphoria.settings import SeedWeights
from ecphoria.stores.ports import TermHit, VectorHit

KEYS = st.sampled_from([f"k{number}" for number in range(12)])
COSINES = st.dictionaries(KEYS, st.sampled_from([-1.0, 0.0, 0.3, 0.30001, 1.0]), max_size=8)
FITS = st.dictionaries(KEYS, st.sampled_from([0.0, 0.1, 0.5, 0.50001, 1.0]), max_size=8)
WEIGHTS = SeedWeights()
KINDS = ("episodic", "semantic", "procedural")


@given(COSINES, FITS, st.integers(0, 20))
def test_every_key_once_best_first_within_the_limit(cosines, fits, limit):
    seeds = fuse(cosines, fits, WEIGHTS, limit)

    keys = cosines.keys() | fits.keys()
    assert len(seeds) == min(limit, len(keys))
    assert len({seed.key for seed in seeds}) == len(seeds)
    assert [seed.fused for seed in seeds] == sorted((s.fused for s in seeds), reverse=True)
    for seed in seeds:
        assert (seed.similarity, seed.lexical) == (cosines.get(seed.key), fits.get(seed.key))
        assert 0 <= seed.fused <= WEIGHTS.similarity + WEIGHTS.lexical + 1e-9


@given(COSINES, FITS, st.randoms())
def test_the_order_of_what_was_found_makes_no_difference(cosines, fits, random):
    def shuffled(found):
        items = list(found.items())
        random.shuffle(items)
        return dict(items)

    assert fuse(shuffled(cosines), shuffled(fits), WEIGHTS, 20) == fuse(cosines, fits, WEIGHTS, 20)


@given(COSINES, FITS)
def test_what_is_better_by_both_is_never_behind(cosines, fits):
    place = {seed.key: number for number, seed in enumerate(fuse(cosines, fits, WEIGHTS, 20))}

    for one, other in itertools.permutations(cosines.keys() & fits.keys(), 2):
        if cosines[one] > cosines[other] and fits[one] >= fits[other]:
            assert place[one] < place[other]


@given(COSINES)
def test_one_search_alone_keeps_its_order(cosines):
    by_cosine = sorted(cosines, key=lambda key: (-cosines[key], key))

    assert [seed.key for seed in fuse(cosines, {}, WEIGHTS, 20)] == by_cosine


def test_words_lead_and_meaning_decides_among_equals():
    seeds = fuse({"a": 0.9, "b": 0.5, "c": 0.1}, {"b": 0.8, "c": 0.8, "d": 0.2}, WEIGHTS, 5)

    assert [seed.key for seed in seeds] == ["b", "c", "a", "d"]
    assert [seed.fused for seed in seeds] == pytest.approx([1.25, 1.0, 0.5, 0.25])


def test_a_weight_of_0_leaves_the_other_search():
    meaning = SeedWeights(similarity=1, lexical=0)

    seeds = fuse({"a": 0.9, "b": 0.5}, {"b": 1.0}, meaning, 5)

    assert [seed.key for seed in seeds] == ["a", "b"]


def test_nothing_fuses_to_nothing():
    assert fuse({}, {}, WEIGHTS, 5) == ()


# --- searches that fail --------------------------------------------------------------------


class _Embedder:
    spec = SPEC

    def __init__(self, error=None):
        self._error = error

    async def embed_query(self, _text):
        if self._error is not None:
            raise self._error
        return (1.0, 0.0, 0.0, 0.0)


@dataclass
class _Index:
    """Finds one memory of each kind by meaning, and another by words."""

    dense: Exception | None = None
    lexical: Exception | None = None
    lacking: tuple[str, ...] = ()
    asked: list[tuple[str, ...]] = field(default_factory=list)

    async def search(self, kind, _vector, _filter, _limit):
        if self.dense is not None:
            raise self.dense
        return (VectorHit(f"meant-{kind}", 0.5),)

    async def search_terms(self, kind, terms, _filter, _limit):
        self.asked.append(tuple(terms))
        if self.lexical is not None:
            raise self.lexical
        if kind in self.lacking:
            return None
        return (TermHit(f"said-{kind}", 3.0, tuple(terms)),)


async def _seeds(index, question="Is the battery dead?", embedder=None):
    return await find_seeds(
        index, embedder or _Embedder(), question, KINDS, _filter(), 100, WEIGHTS
    )


def _filter():
    return seed_filter(
        understanding(),
        tenant="shop",
        user_id="u-1",
        as_of=NOW,
        privacy=frozenset({"public"}),
        min_importance=0.0,
    )


def _keys(seeds):
    return {seed.key for seed in seeds.found}


MEANT = {f"meant-{kind}" for kind in KINDS}
SAID = {f"said-{kind}" for kind in KINDS}


async def test_both_searches_of_every_kind():
    seeds = await _seeds(_Index())

    assert _keys(seeds) == MEANT | SAID
    assert (seeds.degradations, seeds.note) == ((), "")
    assert {(seed.similarity, seed.lexical) for seed in seeds.found} == {(0.5, None), (None, 1.0)}


async def test_without_the_model_words_are_searched():
    seeds = await _seeds(_Index(), embedder=_Embedder(EmbeddingFailed("no model")))

    assert _keys(seeds) == SAID
    assert seeds.degradations == ("embedding model failed: no model",)


async def test_a_failed_search_by_meaning_leaves_the_one_by_words():
    seeds = await _seeds(_Index(dense=StoreUnavailable("down")))

    assert _keys(seeds) == SAID
    assert seeds.degradations == ("vector index unavailable: down",)


async def test_a_failed_search_by_words_leaves_the_one_by_meaning():
    seeds = await _seeds(_Index(lexical=StoreUnavailable("down")))

    assert _keys(seeds) == MEANT
    assert seeds.degradations == ("lexical search unavailable: down",)


async def test_a_store_that_is_down_is_told_once():
    error = StoreUnavailable("down")

    seeds = await _seeds(_Index(dense=error, lexical=error))

    assert seeds.found == ()
    assert seeds.degradations == ("vector index unavailable: down",)


async def test_an_index_without_words_is_noted_and_no_degradation():
    seeds = await _seeds(_Index(lacking=KINDS))

    assert _keys(seeds) == MEANT
    assert seeds.degradations == ()
    assert seeds.note == "no lexical search of episodic, semantic, procedural"
    assert (await _seeds(_Index(lacking=KINDS[:1]))).note == "no lexical search of episodic"


async def test_a_question_without_words_is_searched_by_meaning_alone():
    index = _Index()

    seeds = await _seeds(index, "?!")

    assert index.asked == []
    assert _keys(seeds) == MEANT
    assert (seeds.degradations, seeds.note) == ((), "")


async def test_a_pasted_text_asks_for_no_more_terms_than_the_limit():
    index = _Index()

    await _seeds(index, " ".join(f"w{number}" for number in range(5_000)))

    assert {len(terms) for terms in index.asked} == {MAX_TERMS}


# --- the filter ----------------------------------------------------------------------------


def test_history_and_the_past_widen_the_filter_in_time_tier_and_status_only():
    def made(*, history, known_at=None):
        return seed_filter(
            understanding(wants_history=history),
            known_at=known_at,
            tenant="shop",
            user_id="u-1",
            as_of=NOW,
            privacy=frozenset({"public", "internal"}),
            min_importance=0.2,
        )

    now, ever = made(history=False), made(history=True)
    assert (now.as_of, now.tiers) == (NOW, ("hot",))
    assert (ever.as_of, ever.tiers) == (None, ("hot", "archive"))
    then = made(history=False, known_at=NOW)
    assert (then.as_of, then.tiers) == (ever.as_of, ever.tiers)
    # what was taken back since was not taken back then
    assert set(then.statuses) - set(now.statuses) == {"disabled"}
    assert now.statuses == ever.statuses == ("active", "superseded")
    for found in (now, ever, then):
        assert (found.tenant, found.user_id, found.min_importance) == ("shop", "u-1", 0.2)
        assert found.privacy == ("internal", "public")
