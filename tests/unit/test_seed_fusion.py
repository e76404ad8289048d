"""Reciprocal rank fusion: one ranking of several, whatever their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, understanding
from ecphoria.recall.seed import RRF_K, fuse, seed_filter
from ecphoria.stores.ports import VectorHit

RANKINGS = st.lists(
    st.lists(
        st.builds(
            VectorHit,
            st.sampled_from([f"k{number}" for number in range(12)]),
            st.sampled_from([-1.0, 0.0, 0.3, 0.30001, 1.0]),
        ),
        max_size=8,
        unique_by=lambda hit: hit.key,
    ),
    max_size=5,
)


@given(RANKINGS.flatmap(lambda items: st.tuples(st.just(items), st.permutations(items))))
def test_the_order_of_the_rankings_makes_no_difference(pair):
    assert fuse(pair[0], 20) == fuse(pair[1], 20)


@given(RANKINGS, st.integers(0, 12))
def test_every_key_once_best_first_within_the_limit(rankings, limit):
    seeds = fuse(rankings, limit)
    keys = {hit.key for ranking in rankings for hit in ranking}
    assert len(seeds) == min(limit, len(keys))
    assert len({seed.key for seed in seeds}) == len(seeds)
    assert list(seeds) == sorted(seeds, key=lambda s: (-s.fused, -s.similarity, s.key))


def test_the_formula_and_the_best_similarity():
    (seed, *_) = fuse([[VectorHit("b", 0.1), VectorHit("a", 0.2)], [VectorHit("a", 0.6)]], 5)
    assert (seed.key, seed.similarity) == ("a", 0.6)
    assert seed.fused == 1 / (RRF_K + 2) + 1 / (RRF_K + 1)


def test_ties_go_by_similarity_then_key():
    tied = [[VectorHit("c", 0.1)], [VectorHit("b", 0.9)], [VectorHit("a", 0.1)]]
    assert [seed.key for seed in fuse(tied, 5)] == ["b", "a", "c"]


def test_nothing_fuses_to_nothing():
    assert fuse([], 5) == fuse([[], []], 5) == ()


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
