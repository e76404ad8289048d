"""Open the stores that the settings name: embedded ones, or servers by URI."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from ecphoria.errors import ConfigurationInvalid
from ecphoria.settings import Settings
from ecphoria.stores.local import open_local_stores
from ecphoria.stores.milvus import MilvusIndex
from ecphoria.stores.neo4j import Neo4jGraph
from ecphoria.stores.ports import GraphStore, VectorIndex
from ecphoria_schema.domain import Domain


@contextlib.asynccontextmanager
async def open_stores(
    settings: Settings, domain: Domain
) -> AsyncIterator[tuple[GraphStore, VectorIndex]]:
    """Connect to both stores, after starting them when they are embedded.

    Raises:
        StoreError: When an embedded store does not start.
        ConfigurationInvalid: When a setting for a server is missing.
    """
    async with contextlib.AsyncExitStack() as stack:
        if settings.neo4j_uri is None or settings.milvus_uri is None:
            local = await stack.enter_async_context(
                open_local_stores(settings.data_dir, heap=settings.embedded_heap)
            )
            bolt = (local.neo4j_uri, local.neo4j_user, local.neo4j_password)
            database, milvus_uri, token = local.neo4j_database, local.milvus_uri, None
        else:
            if settings.neo4j_password is None:
                msg = "ECPHORIA_NEO4J_PASSWORD is not set"
                raise ConfigurationInvalid(msg)
            password = settings.neo4j_password.get_secret_value()
            bolt = (settings.neo4j_uri, settings.neo4j_user, password)
            database, milvus_uri = settings.neo4j_database, settings.milvus_uri
            token = settings.milvus_token.get_secret_value() if settings.milvus_token else None
        graph = await stack.enter_async_context(
            Neo4jGraph.open(
                *bolt, database=database, domain=domain, timeout_s=settings.store_timeout_s
            )
        )
        index = MilvusIndex(
            milvus_uri,
            token=token,
            prefix=settings.collection_prefix,
            timeout_s=settings.store_timeout_s,
        )
        stack.push_async_callback(index.close)
        yield graph, index
