"""What the pipelines work with, made once by `Engine.open`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ecphoria.access_log import AccessLog
from ecphoria.audit_log import AuditLog, no_audit
from ecphoria.changes import ChangeFeed
from ecphoria.clock import Clock
from ecphoria.embedding.port import Embedder
from ecphoria.extraction.port import FactExtractor
from ecphoria.governance.data_keys import DataKeys, no_data_keys
from ecphoria.governance.pseudonyms import Pseudonyms, no_pseudonyms
from ecphoria.language.lexicon import Lexicon
from ecphoria.recall.query_cache import QueryCache
from ecphoria.recall.topic_sense import TopicSense
from ecphoria.reranking.port import Reranker
from ecphoria.session.summary import Summarizer
from ecphoria.settings import Settings
from ecphoria.stores.ports import GraphStore, VectorIndex
from ecphoria.stores.session_port import SessionStore
from ecphoria_schema.domain import Domain


@dataclass(frozen=True, slots=True)
class EngineParts:
    """What every verb works with: stores, models, the domain with its words, settings, clock.

    Attributes:
        queries: Vectors of questions that may be asked again.
        topic_sense: What the topics mean to the embedding model.
        reranker: Reads question and memories together; None when there is none.
        vault: The keys that hidden values are sealed by.
        pseudonyms: Users by names that nobody can guess them from.
        audit: Who did what to whose data.
    """

    graph: GraphStore
    index: VectorIndex
    embedder: Embedder
    domain: Domain
    lexicon: Lexicon
    settings: Settings
    clock: Clock
    extractor: FactExtractor
    access: AccessLog
    changes: ChangeFeed
    sessions: SessionStore
    summarizer: Summarizer
    queries: QueryCache
    topic_sense: TopicSense
    reranker: Reranker | None = None
    vault: DataKeys = field(default_factory=no_data_keys)
    pseudonyms: Pseudonyms = field(default_factory=no_pseudonyms)
    audit: AuditLog = field(default_factory=no_audit)
