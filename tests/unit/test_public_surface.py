"""The names that others import: taking one away breaks them, so it is done knowingly."""

from __future__ import annotations

import importlib
import inspect

import pytest

from ecphoria.engine import Engine

SURFACE = {
    "ecphoria.errors": {
        "BatchTooLarge",
        "CardinalityViolated",
        "ConfigurationInvalid",
        "DataDirectoryUnusable",
        "DomainFileInvalid",
        "DuplicateId",
        "EcphoriaError",
        "EmbeddingFailed",
        "EmbeddingMismatch",
        "Forbidden",
        "IdConflict",
        "InternalError",
        "InvalidInput",
        "InvalidScope",
        "InvalidTime",
        "InvalidVector",
        "MalformedLine",
        "MigrationFailed",
        "MissingEntity",
        "ModelUnavailable",
        "NotFound",
        "PortInUse",
        "RequestTooLarge",
        "StoreAuthenticationFailed",
        "StoreError",
        "StoreLocked",
        "StoreStartFailed",
        "StoreUnavailable",
        "TextEmpty",
        "TextTooLong",
        "Unauthenticated",
        "UnknownProperty",
        "UnknownRelation",
        "UnknownType",
        "error_classes",
    },
    "ecphoria.model": {
        "Action",
        "ApiKey",
        "Confidence",
        "ConfidencePart",
        "Edge",
        "EmbeddingSpec",
        "Entity",
        "EntityInput",
        "EntityReceipts",
        "EntityRef",
        "EveryUser",
        "IndexState",
        "Memory",
        "MemoryInput",
        "NamedEntity",
        "RecallRequest",
        "RecallResult",
        "RecalledEntity",
        "RecalledMemory",
        "RecalledRelation",
        "Receipt",
        "ReceiptStatus",
        "RelationInput",
        "Role",
        "Scope",
        "SourceInfo",
        "Status",
        "TraceStep",
        "checked_id",
        "checked_user",
        "entity_key",
        "memory_key",
        "parse_time",
        "utc",
        "vector_id",
    },
    "ecphoria.engine": {"Engine", "Health", "open_domain"},
}
VERBS = {
    "entities": "scope user_id refs",
    "entity": "scope user_id ref",
    "health": "",
    "memories": "scope user_id ids",
    "memory": "scope user_id memory_id",
    "open": "settings clock rebuild_index",
    "recall": "scope request",
    "reconcile": "",
    "reconcile_in_batches": "",
    "related": "scope user_id refs relation other forward limit",
    "remember": "scope items",
    "upsert_entities": "scope entities relations",
    "warm_up": "",
}


@pytest.mark.parametrize("module", SURFACE)
def test_names_are_where_they_are_imported_from(module):
    found = importlib.import_module(module)
    public = {
        name
        for name, item in vars(found).items()
        if not name.startswith("_") and getattr(item, "__module__", None) == module
    }
    assert public == SURFACE[module]


def test_the_verbs_and_their_arguments():
    found = {
        name: " ".join(
            arg for arg in inspect.signature(getattr(Engine, name)).parameters if arg != "self"
        )
        for name, item in vars(Engine).items()
        if not name.startswith("_") and (callable(item) or isinstance(item, classmethod))
    }
    assert found == VERBS


# They act on the whole installation.
UNSCOPED = {"open", "health", "reconcile", "reconcile_in_batches", "warm_up"}


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - UNSCOPED))
def test_the_scope_comes_first_and_has_no_default(verb):
    first = list(inspect.signature(getattr(Engine, verb)).parameters.values())[1]
    assert (first.name, first.default) == ("scope", inspect.Parameter.empty)
