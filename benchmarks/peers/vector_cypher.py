"""A peer: `VectorCypherRetriever` of neo4j-graphrag, on a Neo4j server of its own.

Used as its guide says: nodes with a vector index, metadata filters for the user and the moment, and
a `retrieval_query` that goes from the memory found to what it mentions, and two steps on from there
to orders, devices, repairs and warranties.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import neo4j
import numpy as np

# only in the peer's own environment
from neo4j_graphrag.indexes import create_vector_index  # type: ignore[import-not-found]
from neo4j_graphrag.retrievers import VectorCypherRetriever  # type: ignore[import-not-found]

from benchmarks.peers.exchange import (
    EVERYBODY,
    MEMORY_VECTORS,
    QUESTION_VECTORS,
    Found,
    Order,
    Question,
    answer,
    in_order,
    key_of,
    read_memories,
    read_order,
    read_questions,
    rows,
    write_answers,
)

INDEX: Final = "memory_vectors"
_PAGE: Final = 500
_INDEX_WAIT_S: Final = 300

# Not through a user: that would reach all he owns. Nearer things first, so that a cut keeps them.
RETRIEVAL: Final = """
OPTIONAL MATCH path = (node)-[:MENTIONS]->(:Thing)
  -[:PLACED|CONTAINS|HAS_REPAIR|COVERED_BY*0..2]-(thing:Thing)
WHERE none(inner IN nodes(path)[1..-1] WHERE inner:User)
WITH node, score, thing, min(length(path)) AS steps ORDER BY steps, thing.key
RETURN node.id AS memory, score,
       collect({type: thing.type, id: thing.id, steps: steps}) AS things
ORDER BY score DESC
"""
_THING: Final = (
    "UNWIND $rows AS row CREATE (n:Thing:{type} {{key: row.key}}) "
    "SET n.type = '{type}', n.id = row.id, n.name = row.name"
)
_LINK: Final = (
    "UNWIND $rows AS row MATCH (a:Thing {{key: row.start}}) MATCH (b:Thing {{key: row.end}}) "
    "CREATE (a)-[:{type}]->(b)"
)
_MEMORY: Final = (
    "UNWIND $rows AS row CREATE (m:Memory {id: row.id, user_id: row.user_id, text: row.text, "
    "valid_from: row.valid_from, valid_until: row.valid_until}) "
    "WITH m, row CALL db.create.setNodeVectorProperty(m, 'embedding', row.vector) "
    "WITH m, row UNWIND row.about AS key MATCH (e:Thing {key: key}) CREATE (m)-[:MENTIONS]->(e)"
)


def _pages(items: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    return (items[start : start + _PAGE] for start in range(0, len(items), _PAGE))


def _name(text: str) -> str:
    # it goes into Cypher as it is
    if not text.isidentifier():
        msg = f"{text!r} is no type"
        raise ValueError(msg)
    return text


def _load(driver: neo4j.Driver, database: str, order: Order) -> None:
    """Write the data into an empty database."""

    def run(text: str, **parameters: object) -> None:
        driver.execute_query(text, parameters, database_=database)

    run("CREATE CONSTRAINT thing FOR (n:Thing) REQUIRE n.key IS UNIQUE")
    run("CREATE INDEX owner FOR (n:Memory) ON (n.user_id)")
    things: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows(order.data / "entities.jsonl"):
        name = row["props"].get("name")
        things[_name(row["type"])].append({"key": key_of(row), "id": row["id"], "name": name})
    links: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows(order.data / "relations.jsonl"):
        ends = {"start": key_of(row["from"]), "end": key_of(row["to"])}
        links[_name(row["type"])].append(ends)
    for text, by_type in ((_THING, things), (_LINK, links)):
        for type_, items in by_type.items():
            for page in _pages(items):
                run(text.format(type=type_), rows=page)
    memories = read_memories(order.data / "memories.jsonl")
    vectors = np.load(order.vectors / MEMORY_VECTORS)
    create_vector_index(
        driver,
        INDEX,
        label="Memory",
        embedding_property="embedding",
        dimensions=vectors.shape[1],
        similarity_fn="cosine",
        neo4j_database=database,
    )
    written = [
        {
            "id": memory.id,
            "user_id": memory.user_id,
            "text": memory.text,
            "valid_from": memory.valid_from,
            "valid_until": memory.valid_until,
            "about": [key_of(ref) for ref in memory.about],
            "vector": vector.tolist(),
        }
        for memory, vector in zip(memories, vectors, strict=True)
    ]
    for page in _pages(written):
        run(_MEMORY, rows=page)
    run("CALL db.awaitIndexes($seconds)", seconds=_INDEX_WAIT_S)


def _retriever(driver: neo4j.Driver, database: str) -> VectorCypherRetriever:
    retriever = VectorCypherRetriever(driver, INDEX, RETRIEVAL, neo4j_database=database)
    # a fault of 1.22: it reads the name of the property into another attribute than the one that
    # it filters by, so that no filter works on servers before 2026
    if retriever._node_embedding_property is None:  # noqa: SLF001 - there is no other way
        retriever._node_embedding_property = "embedding"  # noqa: SLF001
    return retriever


def _find(
    retriever: VectorCypherRetriever, question: Question, vector: list[float], k: int
) -> Found:
    records = retriever.get_search_results(
        query_vector=vector,
        top_k=k,
        filters={
            "user_id": {"$in": [question.user_id, EVERYBODY]},
            "valid_from": {"$lte": question.asked_at},
            "valid_until": {"$gt": question.asked_at},
        },
    ).records
    return Found(
        [record["memory"] for record in records],
        in_order([record["things"] for record in records]),
        # Neo4j scales it to 0..1
        2 * records[0]["score"] - 1 if records else 0.0,
    )


def _answers(order: Order) -> Iterator[dict[str, object]]:
    uri, user, password, database = order.neo4j
    asked = np.load(order.vectors / QUESTION_VECTORS)
    questions = read_questions(order.questions)
    with neo4j.GraphDatabase.driver(
        uri, auth=(user, password), notifications_min_severity="OFF"
    ) as driver:
        _load(driver, database, order)
        retriever = _retriever(driver, database)
        for question, vector in zip(questions, asked, strict=True):
            found = _find(retriever, question, vector.tolist(), order.memory_limit)
            yield answer(question, found, order)


if __name__ == "__main__":
    # of what the peer calls itself
    warnings.simplefilter("ignore", DeprecationWarning)
    given = read_order()
    write_answers(given, _answers(given))
