"""What a question is about, by words and by sense."""

import asyncio
import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, memory, understanding
from ecphoria.embedding.universal_sentence_encoder import UniversalSentenceEncoder
from ecphoria.errors import EmbeddingFailed
from ecphoria.model import EmbeddingSpec
from ecphoria.recall.rank import topic_chance
from ecphoria.recall.topic_sense import TopicSense, topic_odds

SPEC = EmbeddingSpec("m", "1", 3, unrelated=0.1, related=0.6)


@dataclass
class Embedder:
    """Counts what it is asked for; fails while it is told to."""

    spec: EmbeddingSpec = SPEC
    calls: list[int] = field(default_factory=list)
    fails: bool = False

    async def embed_passages(self, texts):
        if self.fails:
            msg = "no model"
            raise EmbeddingFailed(msg)
        self.calls.append(len(texts))
        return [[1.0, 0.0, 0.0] for _ in texts]

    async def embed_query(self, _text):
        return [1.0, 0.0, 0.0]

    async def close(self):
        pass


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("Which floor do I live on, and is there a way up besides walking?", "building_access"),
        ("Who drives my boxes to me?", "courier"),
        ("What kind of loyal customer am I in your eyes?", "membership"),
        ("我是你们的什么级别的顾客？", "membership"),
        ("东西是哪家公司负责送的？", "courier"),
        ("退给我的钱会打到哪张卡上？", "refund_method"),
    ],
)
def test_what_is_said_in_other_words_is_understood_by_its_sense(question, topic):
    async def likeliest():
        embedder = UniversalSentenceEncoder()
        sense = TopicSense(AFTER_SALES)
        odds = await sense.odds(embedder, await embedder.embed_query(question), ())
        await embedder.close()
        return sorted(odds, key=odds.__getitem__)[-3:]

    assert topic in asyncio.run(likeliest())


topics = st.sampled_from(sorted(AFTER_SALES.topics))
cosines = st.dictionaries(topics, st.floats(-1, 1), min_size=1)


@given(near=cosines, said=st.lists(topics, unique=True))
def test_odds_are_probabilities(near, said):
    odds = topic_odds(near, said, SPEC)
    assert odds.keys() == near.keys()
    assert math.fsum(odds.values()) < 1 + 1e-9
    assert all(0 <= chance <= 1 for chance in odds.values())


@given(near=cosines, topic=topics, more=st.floats(0.01, 0.5))
def test_a_topic_that_is_nearer_or_said_is_likelier(near, topic, more):
    near = {"refund": 0.1} | near
    topic = topic if topic in near else "refund"
    before = topic_odds(near, (), SPEC)[topic]
    assert topic_odds(near | {topic: near[topic] + more}, (), SPEC)[topic] >= before
    assert topic_odds(near, (topic,), SPEC)[topic] >= before


def test_phrases_are_embedded_once_for_a_model_even_for_many_at_once():
    async def ask():
        embedder, sense = Embedder(), TopicSense(AFTER_SALES)
        await asyncio.gather(*(sense.odds(embedder, [1.0, 0.0, 0.0], ()) for _ in range(5)))
        first = len(embedder.calls)
        embedder.spec = EmbeddingSpec("other", "1", 3, unrelated=0.1, related=0.6)
        await sense.odds(embedder, [1.0, 0.0, 0.0], ())
        return first, len(embedder.calls)

    assert asyncio.run(ask()) == (1, 2)


def test_a_model_that_failed_is_asked_again():
    async def ask():
        embedder, sense = Embedder(fails=True), TopicSense(AFTER_SALES)
        with pytest.raises(EmbeddingFailed):
            await sense.load(embedder)
        embedder.fails = False
        return await sense.odds(embedder, [1.0, 0.0, 0.0], ("warranty",))

    odds = asyncio.run(ask())
    assert max(odds, key=odds.__getitem__) == "warranty"


def test_a_memory_is_as_likely_as_its_topics_together():
    wanted = understanding(topics=("refund",), topic_odds={"refund": 0.5, "payment": 0.3})
    assert topic_chance(wanted, memory(topic="refund", tags=("payment",))) == pytest.approx(0.8)
    assert topic_chance(wanted, memory(topic="gift")) == 0


def test_without_odds_the_words_tell():
    wanted = understanding(topics=("refund", "payment"))
    assert topic_chance(wanted, memory(topic="refund")) == pytest.approx(2 / 3)
