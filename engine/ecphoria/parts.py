"""What the pipelines work with, made once by `Engine.open`."""

from __future__ import annotations

from dataclasses import dataclass

from ecphoria.clock import Clock
from ecphoria.embedding.port import Embedder
from ecphoria.language.lexicon import Lexicon
from ecphoria.settings import Settings
from ecphoria.stores.ports import GraphStore, VectorIndex
from ecphoria_schema.domain import Domain


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The two stores, the model, the domain with its words, the settings and the clock."""

    graph: GraphStore
    index: VectorIndex
    embedder: Embedder
    domain: Domain
    lexicon: Lexicon
    settings: Settings
    clock: Clock
