"""The graph store over Bolt: Neo4j in production, ArcadeDB on a laptop, the same driver."""

from __future__ import annotations

from neo4j import AsyncDriver

from ecphoria.model import Edge, entity_key
from ecphoria.stores.graph_rows import entity_from, memory_from, source_from, split_key
from ecphoria.stores.neo4j_connection import Row, records
from ecphoria.stores.neo4j_data_keys import Neo4jDataKeys
from ecphoria.stores.neo4j_entities import Neo4jEntities
from ecphoria.stores.neo4j_feedback import Neo4jFeedback
from ecphoria.stores.neo4j_forgetting import Neo4jForgetting
from ecphoria.stores.neo4j_keyed_calls import Neo4jKeyedCalls
from ecphoria.stores.neo4j_keys import Neo4jKeys
from ecphoria.stores.neo4j_listing import Neo4jListing
from ecphoria.stores.neo4j_reading import Neo4jReading
from ecphoria.stores.ports import ExpandQuery, Expansion
from ecphoria_schema.domain import Domain
from ecphoria_schema.expansion import expansion_query


class Neo4jGraph(
    Neo4jEntities,
    Neo4jFeedback,
    Neo4jReading,
    Neo4jListing,
    Neo4jKeyedCalls,
    Neo4jKeys,
    Neo4jDataKeys,
    Neo4jForgetting,
):
    """`GraphStore` over the neo4j driver."""

    def __init__(
        self, driver: AsyncDriver, database: str, domain: Domain, timeout_s: float
    ) -> None:
        """Use a driver; `open` makes one."""
        super().__init__(driver, database, domain, timeout_s)
        self._expansions = {path: expansion_query(domain, path) for path in domain.paths}

    async def expand(self, query_: ExpandQuery) -> Expansion:
        """See `GraphStore.expand`."""
        mentions: dict[str, list[str]] = {
            f"mentions_{label}": [] for label in self._domain.entities
        }
        for ref in query_.mentions:
            mentions[f"mentions_{ref.type}"].append(entity_key(query_.tenant, ref))
        owner = self._owner(query_.tenant, query_.user_id)
        newest = {
            f"newest_{label}": [owner] if label in query_.newest else []
            for label in self._domain.newest_by
        }
        rows = await self._read(
            "expanding",
            records(
                self._expansions[query_.path],
                p={
                    "tenant": query_.tenant,
                    "user": query_.user_id,
                    "owner": owner,
                    "t": query_.as_of,
                    "history": query_.include_history,
                    "statuses": [
                        "active",
                        "superseded",
                        *(["disabled"] if query_.include_retracted else ()),
                    ],
                    "privacy": list(query_.privacy),
                    "seeds": list(query_.seeds),
                    "anchors": list(query_.seeds[: query_.anchors]),
                    "from_root": query_.from_root,
                    "cap": query_.memories_per_entity,
                    "scan": query_.scan_cap,
                    **mentions,
                    **newest,
                },
            ),
        )
        return self._expansion(rows[0])

    def _expansion(self, row: Row) -> Expansion:
        others = {
            item["key"]: memory_from(item, item["about"]) for kept in row["others"] for item in kept
        }
        entities = tuple(entity_from(self._domain, props) for props in row["entities"])
        known = {entity.key for entity in entities}
        return Expansion(
            seeds=tuple(memory_from(item, item["about"]) for item in row["seeds"]),
            others=tuple(others.values()),
            entities=entities,
            edges=tuple(
                dict.fromkeys(
                    Edge(type_, start, end)
                    for start, type_, end in row["edges"]
                    if start in known and end in known
                )
            ),
            mentioned=tuple(split_key(key)[1] for key in dict.fromkeys(row["named"])),
            sources=tuple(source_from(props) for props in row["sources"]),
            hidden=row["hidden"],
            scanned_out=bool(row["full"]),
        )
