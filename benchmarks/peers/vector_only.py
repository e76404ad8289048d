"""A peer: vectors alone. The nearest memories that the user may see and that are valid, exactly.

The entities of an answer are those that its memories name: all that a vector store has of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.peers.exchange import (
    EVERYBODY,
    MEMORY_VECTORS,
    QUESTION_VECTORS,
    Floats,
    Found,
    Memory,
    Order,
    Question,
    Ref,
    answer,
    read_memories,
    read_order,
    read_questions,
    write_answers,
)


def nearest(
    memories: list[Memory], vectors: Floats, question: Question, vector: Floats, limit: int
) -> Found:
    """Return the nearest memories to a question.

    Args:
        memories: All.
        vectors: Of the memories, of unit length, in the same order.
        question: Who asks, and when.
        vector: Of the question, of unit length.
        limit: How many.
    """
    seen = [
        place
        for place, memory in enumerate(memories)
        if memory.user_id in {question.user_id, EVERYBODY}
        and memory.valid_from <= question.asked_at < memory.valid_until
    ]
    similarity = vectors[seen] @ vector
    best = np.argsort(-similarity, kind="stable")[:limit]
    found = [memories[seen[place]] for place in best]
    entities: dict[tuple[str, str], Ref] = {}
    for memory in found:
        for ref in memory.about:
            entities.setdefault((ref["type"], ref["id"]), ref)
    return Found(
        [memory.id for memory in found],
        list(entities.values()),
        float(similarity[best[0]]) if len(best) else 0.0,
    )


def _answers(order: Order) -> Iterator[dict[str, object]]:
    memories = read_memories(order.data / "memories.jsonl")
    vectors = np.load(order.vectors / MEMORY_VECTORS)
    asked = np.load(order.vectors / QUESTION_VECTORS)
    questions = read_questions(order.questions)
    for question, vector in zip(questions, asked, strict=True):
        found = nearest(memories, vectors, question, vector, order.memory_limit)
        yield answer(question, found, order)


if __name__ == "__main__":
    given = read_order()
    write_answers(given, _answers(given))
