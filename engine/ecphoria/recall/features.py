"""What speaks for a memory: the numbers that its place and its relevance are made from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """What speaks for a memory, each 0..1, and whether a rule can speak at all.

    Attributes:
        similarity: Cosine, scaled between the model's anchors.
        words: Weighted share of the question's words that it has.
        lexical: How well its words, and those said right before it, fit the question, next to the
            best of what was found by words; 0 when it was found otherwise.
        topic: Share of the question's topics that it has; half when the question has none.
        likeliest: 1 when it has the likeliest of them; half when the question has none.
        sense: How likely the question is on a topic that it has, by words and by sense.
        open: 1 when the question is on none of the topics, so that its words and its sense are all
            that tells what it is about.
        speaker: 1 when it is a line of a dialogue, and the question names who says it.
        attribute: 1 when it gives a value of an attribute that is asked for.
        entity: How near it is to what the question means; 0 when that is nothing of the user's.
        apart: 1 when it is about another thing than the one that is meant.
        lost: 1 when the question means a thing that the user does not have.
        rule: 1 when it tells what holds for everybody.
        rule_asked: 1 when it does, and the question asks for it.
        over: 1 when it is what used to be, and the question asks for it.
        other_language: 1 when it is a rule in the other language.
        own_words: 1 when the customer said it, and the question asks for what he said.
        source: Reliability of its source, less the doubt that feedback has left.
        recency: 1 when it just happened, half after its kind's half-life.
        importance: As stored.
        heat: How often and how lately it was used.
        graph: 1 at what is meant, half one hop away; 0 apart.
    """

    similarity: float = 0.0
    words: float = 0.0
    lexical: float = 0.0
    topic: float = 0.0
    likeliest: float = 0.0
    sense: float = 0.0
    open: float = 0.0
    speaker: float = 0.0
    attribute: float = 0.0
    entity: float = 0.0
    apart: float = 0.0
    lost: float = 0.0
    rule: float = 0.0
    rule_asked: float = 0.0
    over: float = 0.0
    other_language: float = 0.0
    own_words: float = 0.0
    source: float = 0.0
    graph: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    heat: float = 0.0
