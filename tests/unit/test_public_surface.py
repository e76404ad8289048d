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
        "DataKeyDestroyed",
        "DataDirectoryUnusable",
        "DomainFileInvalid",
        "DuplicateId",
        "EcphoriaError",
        "EmbeddingFailed",
        "EmbeddingMismatch",
        "EncryptionKeyMissing",
        "EncryptionKeyWrong",
        "FeedbackLimit",
        "IdempotencyKeyInUse",
        "IdempotencyKeyReused",
        "Forbidden",
        "IdConflict",
        "InternalError",
        "InvalidCursor",
        "InvalidInput",
        "InvalidNodeId",
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
        "OperationTimeout",
        "PortInUse",
        "RateLimited",
        "ReembedInProgress",
        "RequestRefused",
        "RequestTooLarge",
        "RerankingFailed",
        "ServerUnreachable",
        "StoreAuthenticationFailed",
        "StoreError",
        "StoreLocked",
        "StoreStartFailed",
        "StoreUnavailable",
        "TextEmpty",
        "TextTooLong",
        "TooManyOperations",
        "Unauthenticated",
        "UnknownProperty",
        "UnknownRelation",
        "UnknownType",
        "UserForgotten",
        "error_classes",
    },
    "ecphoria.model": {
        "Action",
        "ApiKey",
        "AuditEntry",
        "AuditFilter",
        "AuditOutcome",
        "Before",
        "ChangeKind",
        "CompletionTask",
        "Confidence",
        "ConfidencePart",
        "Conflict",
        "ConsideredMemory",
        "Edge",
        "EmbeddingSpec",
        "Entity",
        "EntityGraph",
        "EntityInput",
        "EntityReceipts",
        "EntityRef",
        "EveryUser",
        "FactInput",
        "FeatureShare",
        "Feedback",
        "FeedbackFilter",
        "FeedbackInput",
        "FeedbackReceipt",
        "FeedbackStatus",
        "IndexState",
        "Link",
        "LinkMethod",
        "Memory",
        "MemoryChange",
        "MemoryCount",
        "MemoryFilter",
        "MemoryInput",
        "NamedEntity",
        "Page",
        "Principal",
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
        "Stats",
        "Status",
        "TaskStatus",
        "Topics",
        "TraceStep",
        "Turn",
        "Verdict",
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
    "allow_forgotten": "scope user_id",
    "attribute_history": "scope user_id entity attribute subject as_of known_at",
    "audit_log": "scope filter_ first after",
    "conflicts": "scope user_id topic first after",
    "correct": "scope memory_id new reason attempt",
    "count_entities": "scope user_id type_",
    "count_memories": "scope user_id filter_",
    "drop_old_indexes": "unfinished",
    "encryption_status": "",
    "end_session": "scope user_id session_id",
    "entities": "scope user_id refs",
    "entity": "scope user_id ref",
    "entity_graph": "scope user_id ref path depth",
    "complete_task": "scope user_id task_id memory_id",
    "completion_tasks": "scope user_id status first after",
    "feedback": "scope item",
    "list_feedback": "scope user_id filter_ first after",
    "undo_feedback": "scope user_id feedback_id",
    "forget": "scope user_id ids reason",
    "forget_by_rule": "scope rule dry_run",
    "forget_user": "scope user_id reason",
    "forget_user_in_batches": "scope user_id reason",
    "health": "",
    "lineage": "scope user_id ids",
    "links": "scope user_id ids",
    "list_entities": "scope user_id type_ first after",
    "list_memories": "scope user_id filter_ first after",
    "listen": "scope user_id",
    "me": "scope",
    "memories": "scope user_id ids",
    "memory": "scope user_id memory_id",
    "open": "settings clock any_model",
    "recall": "scope request",
    "reconcile": "",
    "reconcile_in_batches": "",
    "reembed": "force rollback",
    "reembed_status": "",
    "related": "scope user_id refs relation other forward limit",
    "related_pages": "scope user_id refs relation others forward first after",
    "remember": "scope items",
    "remember_turn": "scope user_id session_id speaker text said_at turn_id",
    "retract": "scope user_id memory_id reason attempt",
    "once": "scope request act answer keep",
    "rotate_master_key": "",
    "session": "scope user_id session_id",
    "sources": "scope",
    "stats": "scope user_id",
    "supersede": "scope memory_id new reason attempt",
    "tenant_stats": "scope",
    "upsert_entities": "scope entities relations",
    "verify": "repair tenant",
    "verify_forgotten": "scope user_id",
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
    "encryption_status",
    "health",
    "open",
    "reconcile",
    "reconcile_in_batches",
    "reembed",
    "reembed_status",
    "rotate_master_key",
    "verify",
    "warm_up",
    "work_for_ever",
    "work_once",
}


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - UNSCOPED))
def test_the_scope_comes_first_and_has_no_default(verb):
    first = list(inspect.signature(getattr(Engine, verb)).parameters.values())[1]
    assert (first.name, first.default) == ("scope", inspect.Parameter.empty)
