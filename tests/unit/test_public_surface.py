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
        "ChatFailed",
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
        "LessReliable",
        "MalformedLine",
        "MemoryForgotten",
        "MigrationFailed",
        "MissingEntity",
        "ModelUnavailable",
        "NotCurrent",
        "NotFound",
        "PortInUse",
        "ReembedInProgress",
        "RequestTooLarge",
        "RerankingFailed",
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
        "ChangeKind",
        "Confidence",
        "ConfidencePart",
        "ConsideredMemory",
        "Edge",
        "EmbeddingSpec",
        "Entity",
        "EntityInput",
        "EntityReceipts",
        "EntityRef",
        "EveryUser",
        "FactInput",
        "FeatureShare",
        "IndexState",
        "Link",
        "LinkMethod",
        "Memory",
        "MemoryChange",
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
        "SessionContext",
        "SessionKey",
        "SourceInfo",
        "Standing",
        "Status",
        "TraceStep",
        "Turn",
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
    "age": "",
    "attribute_history": "scope user_id entity attribute subject as_of known_at",
    "correct": "scope memory_id new reason",
    "drop_old_indexes": "unfinished",
    "end_session": "scope user_id session_id",
    "entities": "scope user_id refs",
    "entity": "scope user_id ref",
    "forget": "scope user_id ids reason",
    "forget_by_rule": "scope rule dry_run",
    "health": "",
    "lineage": "scope user_id ids",
    "links": "scope user_id ids",
    "listen": "scope user_id",
    "memories": "scope user_id ids",
    "memory": "scope user_id memory_id",
    "open": "settings clock any_model",
    "recall": "scope request",
    "reconcile": "",
    "reconcile_in_batches": "",
    "reembed": "force rollback",
    "reembed_status": "",
    "related": "scope user_id refs relation other forward limit",
    "remember": "scope items",
    "remember_turn": "scope user_id session_id speaker text said_at turn_id",
    "retract": "scope user_id memory_id reason",
    "session": "scope user_id session_id",
    "supersede": "scope memory_id new reason",
    "upsert_entities": "scope entities relations",
    "verify": "repair tenant",
    "warm_up": "",
    "work_for_ever": "worker",
    "work_once": "worker",
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
UNSCOPED = {
    "age",
    "drop_old_indexes",
    "health",
    "open",
    "reconcile",
    "reconcile_in_batches",
    "reembed",
    "reembed_status",
    "verify",
    "warm_up",
    "work_for_ever",
    "work_once",
}


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - UNSCOPED))
def test_the_scope_comes_first_and_has_no_default(verb):
    first = list(inspect.signature(getattr(Engine, verb)).parameters.values())[1]
    assert (first.name, first.default) == ("scope", inspect.Parameter.empty)
