"""Values that tests are made of: the two domains, and frozen data with sensible defaults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ecphoria.language.lexicon import Lexicon
from ecphoria.model import (
    Confidence,
    ConfidencePart,
    Edge,
    EmbeddingSpec,
    Entity,
    EntityRef,
    EveryUser,
    IndexState,
    Memory,
    RecalledMemory,
    RecallRequest,
    Role,
    Scope,
    Status,
    entity_key,
    memory_key,
)
from ecphoria.recall.understand import Understanding
from ecphoria.stores.ports import VectorRow
from ecphoria_schema.domain import load_domain, shipped_domain

AFTER_SALES = shipped_domain()
CLINIC = load_domain(Path(__file__).parent / "domains" / "clinic.yaml")
AFTER_SALES_WORDS = Lexicon(AFTER_SALES)
CLINIC_WORDS = Lexicon(CLINIC)

TENANT = "shop"
USER = "u-1"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPEC = EmbeddingSpec("test-model", "1", 4, unrelated=0.2, related=0.8)


def day(number: float) -> datetime:
    """Return the moment so many days after `NOW`; negative = before."""
    return NOW + timedelta(days=number)


def scope(*roles: Role, users: Any = EveryUser.OF_TENANT, tenant: str = TENANT) -> Scope:
    return Scope(tenant, "tester", frozenset(roles or (Role.ADMIN,)), users)


def ref(type_: str, id_: str) -> EntityRef:
    return EntityRef(type_, id_)


def key(type_: str, id_: str) -> str:
    return entity_key(TENANT, EntityRef(type_, id_))


def entity(type_: str, id_: str, name: str = "", **more: Any) -> Entity:
    values: dict[str, Any] = {
        "user_id": USER,
        "props": {},
        "observed_at": NOW,
        "recorded_at": NOW,
    } | more
    return Entity(key=key(type_, id_), type=type_, id=id_, name=name or id_, **values)


def edge(type_: str, start: tuple[str, str], end: tuple[str, str]) -> Edge:
    return Edge(type_, key(*start), key(*end))


def memory(id_: str = "m-1", text: str = "something happened", **more: Any) -> Memory:
    values: dict[str, Any] = {
        "user_id": USER,
        "kind": "semantic",
        "topic": "warranty",
        "lang": "en",
        "importance": 0.5,
        "source_id": "crm",
        "privacy": "internal",
        "occurred_at": day(-10),
        "valid_from": day(-10),
        "valid_until": None,
        "expires_at": None,
        "recorded_at": day(-10),
        "status": Status.ACTIVE,
        "tier": "hot",
        "content_hash": "0" * 32,
        "embedding_model": "test-model",
        "index_state": IndexState.INDEXED,
    } | more
    return Memory(key=memory_key(TENANT, id_), id=id_, tenant=TENANT, text=text, **values)


def pending_memory(tenant: str, id_: str, moment: datetime, /, **more: Any) -> Memory:
    """A memory as the graph store is given it: said, and true, from a moment on."""
    values: dict[str, Any] = {
        "user_id": "u1",
        "kind": "episodic",
        "topic": None,
        "text": f"text of {id_}",
        "lang": "en",
        "importance": 0.5,
        "source_id": "crm",
        "privacy": "internal",
        "occurred_at": moment,
        "valid_from": moment,
        "valid_until": None,
        "expires_at": None,
        "recorded_at": moment,
        "status": Status.ACTIVE,
        "tier": "hot",
        "content_hash": f"hash of {id_}",
        "embedding_model": "model",
        "index_state": IndexState.PENDING,
    } | more
    return Memory(key=memory_key(tenant, id_), id=id_, tenant=tenant, **values)


def vector_row(tenant: str, name: str, moment: datetime, /, **more: Any) -> VectorRow:
    """A row as the vector index is given it: valid from a moment on; `vector` must be named."""
    values: dict[str, Any] = {
        "user_id": "U1",
        "kind": "episodic",
        "topic": "order",
        "source_id": "crm",
        "privacy": "internal",
        "importance": 0.5,
        "valid_from": moment,
        "valid_until": None,
        "expires_at": None,
        "status": "active",
        "tier": "hot",
        "lang": "en",
        "hash": "0" * 32,
    } | more
    return VectorRow(**({"key": memory_key(tenant, name), "tenant": tenant} | values))


def understanding(**more: Any) -> Understanding:
    values: dict[str, Any] = {
        "language": "en",
        "is_smalltalk": False,
        "wants_history": False,
        "wants_procedure": False,
        "topics": (),
        "kinds": ("episodic", "semantic", "procedural"),
        "ids": (),
        "path": "after_sales",
        "answer_types": (),
    } | more
    return Understanding(**values)


def request(question: str = "Is it under warranty?", **more: Any) -> RecallRequest:
    return RecallRequest(question=question, user_id=USER, **more)


def trust(overall: float) -> Confidence:
    part = ConfidencePart(overall, "as set by the test")
    return Confidence(overall, part, part, part)


def recalled(memory_: Memory, overall: float = 0.8, conflicts: tuple[str, ...] = ()) -> Any:
    return RecalledMemory(
        memory=memory_,
        relevance=0.9,
        score=0.9,
        similarity=0.7,
        confidence=trust(overall),
        because=("similar",),
        conflicts_with=conflicts,
    )
