"""Errors: stable codes, help for every one, and nothing lost on the way."""

from __future__ import annotations

import copy
import pickle

import pytest

from ecphoria import errors
from ecphoria.errors import EcphoriaError, InvalidInput, TextEmpty, error_classes

OURS = [kind for kind in error_classes() if kind.__module__ == "ecphoria.errors"]

# Clients switch on these: a code is never renamed, and never given to another class.
CODES = {
    "ECPHORIA_ERROR": "EcphoriaError",
    "INVALID_INPUT": "InvalidInput",
    "INVALID_SCOPE": "InvalidScope",
    "UNAUTHENTICATED": "Unauthenticated",
    "FORBIDDEN": "Forbidden",
    "NOT_FOUND": "NotFound",
    "STORE_ERROR": "StoreError",
    "MODEL_UNAVAILABLE": "ModelUnavailable",
    "EMBEDDING_FAILED": "EmbeddingFailed",
    "CONFIGURATION_INVALID": "ConfigurationInvalid",
    "PORT_IN_USE": "PortInUse",
    "INTERNAL_ERROR": "InternalError",
    "TEXT_EMPTY": "TextEmpty",
    "TEXT_TOO_LONG": "TextTooLong",
    "INVALID_TIME": "InvalidTime",
    "UNKNOWN_ENTITY_TYPE": "UnknownType",
    "UNKNOWN_RELATION": "UnknownRelation",
    "UNKNOWN_PROPERTY": "UnknownProperty",
    "CARDINALITY_VIOLATED": "CardinalityViolated",
    "DUPLICATE_ID": "DuplicateId",
    "ID_CONFLICT": "IdConflict",
    "BATCH_TOO_LARGE": "BatchTooLarge",
    "REQUEST_TOO_LARGE": "RequestTooLarge",
    "MALFORMED_LINE": "MalformedLine",
    "INVALID_VECTOR": "InvalidVector",
    "DOMAIN_FILE_INVALID": "DomainFileInvalid",
    "MISSING_ENTITY": "MissingEntity",
    "STORE_UNAVAILABLE": "StoreUnavailable",
    "STORE_AUTHENTICATION_FAILED": "StoreAuthenticationFailed",
    "STORE_LOCKED": "StoreLocked",
    "DATA_DIRECTORY_UNUSABLE": "DataDirectoryUnusable",
    "STORE_START_FAILED": "StoreStartFailed",
    "MIGRATION_FAILED": "MigrationFailed",
    "EMBEDDING_MISMATCH": "EmbeddingMismatch",
    "MEMORY_FORGOTTEN": "MemoryForgotten",
    "USER_FORGOTTEN": "UserForgotten",
    "LESS_RELIABLE": "LessReliable",
    "NOT_CURRENT": "NotCurrent",
    "CHAT_FAILED": "ChatFailed",
    "RERANKING_FAILED": "RerankingFailed",
    "REEMBED_IN_PROGRESS": "ReembedInProgress",
    "DATA_KEY_DESTROYED": "DataKeyDestroyed",
    "ENCRYPTION_KEY_MISSING": "EncryptionKeyMissing",
    "ENCRYPTION_KEY_WRONG": "EncryptionKeyWrong",
    "INVALID_CURSOR": "InvalidCursor",
    "INVALID_NODE_ID": "InvalidNodeId",
    "RATE_LIMITED": "RateLimited",
    "FEEDBACK_LIMIT": "FeedbackLimit",
    "IDEMPOTENCY_KEY_IN_USE": "IdempotencyKeyInUse",
    "IDEMPOTENCY_KEY_REUSED": "IdempotencyKeyReused",
    "SERVER_UNREACHABLE": "ServerUnreachable",
    "REQUEST_REFUSED": "RequestRefused",
    "TOO_MANY_OPERATIONS": "TooManyOperations",
    "OPERATION_TIMEOUT": "OperationTimeout",
}
RETRYABLE = {
    "STORE_UNAVAILABLE", "EMBEDDING_FAILED", "CHAT_FAILED", "RERANKING_FAILED", "RATE_LIMITED",
    "SERVER_UNREACHABLE", "FEEDBACK_LIMIT", "IDEMPOTENCY_KEY_IN_USE",
    "TOO_MANY_OPERATIONS", "OPERATION_TIMEOUT",
}  # fmt: skip


def test_codes_are_stable():
    assert {kind.code: kind.__name__ for kind in OURS} == CODES


def test_codes_are_unique_everywhere():
    codes = [kind.code for kind in error_classes()]
    assert len(set(codes)) == len(codes)


def test_what_may_be_tried_again():
    assert {kind.code for kind in OURS if kind.retryable} == RETRYABLE


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.code)
def test_every_error_says_what_happened_and_what_to_do(kind):
    assert {"code", "__doc__"} <= vars(kind).keys()
    assert "remedy" in vars(kind)
    assert kind.__doc__.strip().endswith(".")
    assert kind.remedy.strip().endswith((".", "`"))
    assert kind.code == kind.code.upper()


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.code)
@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), copy.copy])  # noqa: S301
def test_a_copy_keeps_class_message_and_path(kind, copied):
    error = copied(kind("订单 1", path=("items", 3)))
    assert type(error) is kind
    assert (error.message, str(error), error.path) == ("订单 1", "订单 1", ("items", 3))


def test_seen_from_further_out():
    inner = TextEmpty("empty", path=("text",))
    outer = inner.at("items", 3).at("input")
    assert type(outer) is TextEmpty
    assert (outer.message, outer.path) == ("empty", ("input", "items", 3, "text"))
    assert inner.path == ("text",)


def test_parents_come_before_children_and_catch_them():
    kinds = list(error_classes())
    assert kinds[0] is EcphoriaError
    assert len(set(kinds)) == len(kinds)
    for kind in kinds[1:]:
        assert kinds.index(kind.__base__) < kinds.index(kind)
    with pytest.raises(InvalidInput):
        raise TextEmpty("empty")


def test_all_errors_of_the_module_are_in_the_tree():
    defined = {
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, Exception)
    }
    assert defined == set(OURS)
