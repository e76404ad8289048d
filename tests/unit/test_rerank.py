"""A reranker orders the best candidates anew, within bounds, and may fail."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import memory
from ecphoria.errors import ConfigurationInvalid, RerankingFailed
from ecphoria.recall.rank import Candidate
from ecphoria.recall.rerank import reordered, reranked
from ecphoria.settings import load_settings

NOISE = 0.05


def ranked(*scores, relevance=0.5):
    return tuple(
        Candidate(memory(f"m{number}", f"text {number}"), relevance, score, None, ())
        for number, score in enumerate(scores)
    )


def ids(found):
    return [item.memory.id for item in found]


class Fake:
    """A reranker with a score for each text; it notes what it was asked."""

    name = "fake"

    def __init__(self, scores=None, failure=None):
        self._scores = scores or {}
        self._failure = failure
        self.asked = []

    async def scores(self, question, texts):
        self.asked.append((question, list(texts)))
        if isinstance(self._failure, Exception):
            raise self._failure
        if self._failure == "hangs":
            await asyncio.Event().wait()
        return tuple(self._scores.get(text, 0.0) for text in texts)

    async def close(self):
        return None


def settings(**given):
    return load_settings(**({"reranker_weight": 1.0} | given))


async def again(reranker, found, question="Is it?", **given):
    return await reranked(reranker, question, found, settings(**given), least=NOISE)


@pytest.mark.parametrize("question", ["Is it repaired?", "修好了吗？"])
async def test_the_best_answer_comes_first(question):
    fake = Fake({"text 2": 0.9, "text 0": 0.3})
    found = await again(fake, ranked(0.8, 0.7, 0.6), question)

    assert ids(found.candidates) == ["m2", "m0", "m1"]
    assert fake.asked == [(question, ["text 0", "text 1", "text 2"])]
    assert found.read == 3
    assert found.degradations == ()
    assert "reads like an answer (0.90)" in found.candidates[0].because
    assert found.candidates[1].because == ()


async def test_the_weight_says_how_much_it_counts():
    fake = Fake({"text 1": 0.6, "text 2": 1.0})
    order = {
        weight: ids((await again(fake, ranked(0.8, 0.7, 0.4), reranker_weight=weight)).candidates)
        for weight in (0.0, 0.5, 1.0)
    }
    # between best and worst the three stand at 1, 0.75 and 0
    assert order == {0.0: ["m0", "m1", "m2"], 0.5: ["m1", "m0", "m2"], 1.0: ["m2", "m1", "m0"]}


async def test_only_the_best_are_read_and_the_others_stay_behind():
    fake = Fake({"text 3": 1.0, "text 1": 0.5})
    found = await again(fake, ranked(0.8, 0.7, 0.6, 0.5), reranker_top=2)

    assert fake.asked[0][1] == ["text 0", "text 1"]
    assert ids(found.candidates) == ["m1", "m0", "m2", "m3"]


async def test_noise_is_not_read():
    fake = Fake({"text 1": 1.0})
    noise = ranked(0.9, relevance=0.01)
    found = await again(fake, (*noise, *ranked(0.0, 0.7, 0.6)[1:]))

    assert fake.asked[0][1] == ["text 1", "text 2"]
    assert found.read == 2


async def test_relevance_is_left_alone():
    found = await again(Fake({"text 1": 1.0}), ranked(0.8, 0.7))
    assert [item.relevance for item in found.candidates] == [0.5, 0.5]


@pytest.mark.parametrize("found", [(), ranked(0.5), ranked(0.5, 0.4, relevance=0.0)])
async def test_what_cannot_be_ordered_is_not_read(found):
    fake = Fake(failure=RerankingFailed("must not be asked"))
    assert (await again(fake, found)).candidates == found
    assert fake.asked == []


async def test_one_that_fails_is_said_and_changes_nothing():
    found = await again(Fake(failure=RerankingFailed("out of memory")), ranked(0.8, 0.7))
    assert ids(found.candidates) == ["m0", "m1"]
    assert found.degradations == ("reranker failed: out of memory",)
    assert found.read == 0


async def test_one_that_hangs_is_not_waited_for():
    found = await again(Fake(failure="hangs"), ranked(0.8, 0.7), reranker_timeout_s=0.01)
    assert ids(found.candidates) == ["m0", "m1"]
    assert found.degradations == ("reranker failed: no answer within 0.01 seconds",)


async def test_a_bug_is_not_taken_for_a_failure():
    with pytest.raises(KeyError):
        await again(Fake(failure=KeyError("bug")), ranked(0.8, 0.7))


async def test_ties_keep_their_order():
    found = await again(Fake(), ranked(0.5, 0.5, 0.5, 0.5))
    assert ids(found.candidates) == ["m0", "m1", "m2", "m3"]


SCORES = st.lists(st.floats(-1, 1), min_size=1, max_size=12).map(
    lambda found: sorted(found, reverse=True)
)


@given(scores=SCORES, weight=st.floats(0, 1), top=st.integers(1, 12), data=st.data())
def test_nothing_is_lost_and_the_order_is_by_score(scores, weight, top, data):
    found = ranked(*scores)
    head = found[:top]
    said = data.draw(st.lists(st.floats(0, 1), min_size=len(head), max_size=len(head)))

    after = reordered(found, head, said, weight)
    assert sorted(ids(after)) == sorted(ids(found))
    # what was not read stands where it stood
    assert ids(after)[len(head) :] == ids(found)[len(head) :]
    assert [item.score for item in after] == sorted((item.score for item in after), reverse=True)
    assert after == reordered(found, head, said, weight)


@given(scores=SCORES, weight=st.floats(0, 1), data=st.data())
def test_a_better_score_never_puts_a_memory_back(scores, weight, data):
    found = ranked(*scores)
    said = data.draw(st.lists(st.floats(0, 1), min_size=len(found), max_size=len(found)))
    place = data.draw(st.integers(0, len(found) - 1))
    better = [*said]
    better[place] = data.draw(st.floats(said[place], 1))

    id_ = found[place].memory.id
    before, after = (ids(reordered(found, found, each, weight)) for each in (said, better))
    assert after.index(id_) <= before.index(id_)


@pytest.mark.parametrize("name", ["bge-reranker", "cohere:x", "sentence-transformers:"])
def test_a_reranker_that_there_is_not_is_refused(name):
    with pytest.raises(ConfigurationInvalid, match="ECPHORIA_RERANKER"):
        load_settings(reranker=name)


def test_a_device_without_a_reranker_is_refused():
    with pytest.raises(ConfigurationInvalid, match="ECPHORIA_RERANKER_DEVICE"):
        load_settings(reranker_device="cpu")
