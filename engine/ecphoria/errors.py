"""Every error ecphoria raises, in one tree.

A class is one kind of failure. Its ``code`` is stable: GraphQL returns it as
``extensions.code``, the command line prints it, receipts carry it. Its docstring says what
happened and its ``remedy`` what to do; the reference in ``docs/`` is made from both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar


class EcphoriaError(Exception):
    """Something went wrong in ecphoria; catch this to catch everything."""

    code: ClassVar[str] = "ECPHORIA_ERROR"
    remedy: ClassVar[str] = "Read the message; it names what is wrong."
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, path: tuple[str | int, ...] = ()) -> None:
        """Keep the sentence and the place in the input it is about.

        Args:
            message: One sentence a person can act on.
            path: Where in the input the fault is, outermost first, e.g. ``("items", 3, "text")``.
        """
        super().__init__(message)
        self.message = message
        self.path = path

    def at(self, *prefix: str | int) -> EcphoriaError:
        """Return the same error seen from further out: ``prefix`` goes before its path."""
        return type(self)(self.message, path=(*prefix, *self.path))

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling (process pools), path included."""
        return (_rebuild, (type(self), self.message, self.path))


def _rebuild(kind: type[EcphoriaError], message: str, path: tuple[str | int, ...]) -> EcphoriaError:
    return kind(message, path=path)


# --- bad input -----------------------------------------------------------------------------


class InvalidInput(EcphoriaError):
    """A value has the wrong type, form or range. Nothing was written."""

    code = "INVALID_INPUT"
    remedy = "Correct the value named in the message and send it again."


class TextEmpty(InvalidInput):
    """A text is empty or holds nothing but blanks and control characters."""

    code = "TEXT_EMPTY"
    remedy = "Send a text with at least one visible character."


class TextTooLong(InvalidInput):
    """A text or an id is longer than the limit named in the message."""

    code = "TEXT_TOO_LONG"
    remedy = "Shorten it, or split it into several memories."


class InvalidTime(InvalidInput):
    """A time cannot be read, has no time zone, or an interval ends before it starts."""

    code = "INVALID_TIME"
    remedy = "Send ISO 8601 with a zone, e.g. 2025-06-15T08:00:00Z, and an end after the start."


class UnknownType(InvalidInput):
    """An entity type is not in the domain file."""

    code = "UNKNOWN_ENTITY_TYPE"
    remedy = "Use a type the domain file declares, or add it there."


class UnknownRelation(InvalidInput):
    """A relation is not in the domain file, or not between these two types."""

    code = "UNKNOWN_RELATION"
    remedy = "Use a relation the domain file declares, in its direction."


class UnknownProperty(InvalidInput):
    """An entity has a property that its type does not declare."""

    code = "UNKNOWN_PROPERTY"
    remedy = "Use the properties the domain file declares for the type, or add it there."


class CardinalityViolated(InvalidInput):
    """A relation would give an entity a second partner where the domain allows one."""

    code = "CARDINALITY_VIOLATED"
    remedy = "Check which of the two partners is right; the domain file sets the cardinality."


class DuplicateId(InvalidInput):
    """One batch holds the same id twice with different content."""

    code = "DUPLICATE_ID"
    remedy = "Keep one of the two, or give them different ids."


class IdConflict(InvalidInput):
    """The id is taken by a memory with other content."""

    code = "ID_CONFLICT"
    remedy = "Use a new id; to replace the old memory, send the new one with `supersedes`."


class MemoryForgotten(InvalidInput):
    """The id belongs to a memory that was forgotten; it does not come back."""

    code = "MEMORY_FORGOTTEN"
    remedy = "Use a new id, if it may be kept again."


class UserForgotten(InvalidInput):
    """The user was forgotten: nothing of him is kept any more."""

    code = "USER_FORGOTTEN"
    remedy = "Leave it; if he has come back, allow him first (`ecphoria user allow`)."


class LessReliable(InvalidInput):
    """A memory cannot be replaced or taken back on the word of a less reliable source."""

    code = "LESS_RELIABLE"
    remedy = "Name a source at least as reliable, or use a key with the role operator or admin."


class NotCurrent(InvalidInput):
    """A memory that was replaced or taken back before cannot be changed again."""

    code = "NOT_CURRENT"
    remedy = "Change the memory that took its place; the message names it."


class IdempotencyKeyReused(InvalidInput):
    """The idempotency key came before, with another request."""

    code = "IDEMPOTENCY_KEY_REUSED"
    remedy = "Make a new key for every write; send the same one only with the very same request."


class IdempotencyKeyInUse(InvalidInput):
    """A call with the same idempotency key is under way."""

    code = "IDEMPOTENCY_KEY_IN_USE"
    remedy = "Wait a moment and send the same call again: it brings the answer of the first one."
    retryable = True


class InvalidCursor(InvalidInput):
    """A cursor is damaged, or it was handed out for another list, filter, user or tenant."""

    code = "INVALID_CURSOR"
    remedy = "Send `endCursor` or `cursor` of the same list unchanged, or begin without `after`."


class InvalidNodeId(InvalidInput):
    """A node id is damaged, or of a type that the domain no longer has."""

    code = "INVALID_NODE_ID"
    remedy = "Send a `nodeId` as it was handed out, unchanged."


class BatchTooLarge(InvalidInput):
    """A batch holds more items than the limit named in the message."""

    code = "BATCH_TOO_LARGE"
    remedy = "Send it in several batches, or use `ecphoria import`."


class RequestTooLarge(InvalidInput):
    """A request body is larger than the limit named in the message."""

    code = "REQUEST_TOO_LARGE"
    remedy = "Send less in one request, or use `ecphoria import`."


class MalformedLine(InvalidInput):
    """A line of an import file is not JSON of one of the exchange format's shapes."""

    code = "MALFORMED_LINE"
    remedy = "Mend the line named in the message; docs/reference/exchange-format.md has the shapes."


class InvalidVector(InvalidInput):
    """A vector is empty, all zeros, has the wrong dimension, or holds NaN or infinity."""

    code = "INVALID_VECTOR"
    remedy = "Check the embedding model; `ecphoria doctor` embeds a test sentence."


class DomainFileInvalid(InvalidInput):
    """The domain file breaks a rule; the message gives file and line of each fault."""

    code = "DOMAIN_FILE_INVALID"
    remedy = "Mend the lines named in the message; docs/reference/domain-file.md has the rules."


# --- who may do what -----------------------------------------------------------------------


class InvalidScope(EcphoriaError):
    """A tenant or user is missing, empty, `*` or malformed. It never means "all"."""

    code = "INVALID_SCOPE"
    remedy = "Name exactly one tenant and one user."


class Unauthenticated(EcphoriaError):
    """The request carries no API key, or one that is unknown, expired or revoked."""

    code = "UNAUTHENTICATED"
    remedy = "Send `Authorization: Bearer <key>`; make a key with `ecphoria keys create`."


class Forbidden(EcphoriaError):
    """The API key is good, but its role or its users do not allow this."""

    code = "FORBIDDEN"
    remedy = "Use a key with the role and users named in the message."


class RateLimited(EcphoriaError):
    """The key has asked more often than the limit named in the message."""

    code = "RATE_LIMITED"
    remedy = "Wait as long as the message (and the header Retry-After) says, then go on slower."
    retryable = True

    def __init__(
        self, message: str, *, path: tuple[str | int, ...] = (), retry_after_s: float = 1.0
    ) -> None:
        """Keep also when to try again.

        Args:
            message: One sentence a person can act on.
            path: As in every error.
            retry_after_s: Seconds after which the next try may succeed.
        """
        super().__init__(message, path=path)
        self.retry_after_s = retry_after_s

    def at(self, *prefix: str | int) -> RateLimited:
        """Return the same error seen from further out."""
        path = (*prefix, *self.path)
        return type(self)(self.message, path=path, retry_after_s=self.retry_after_s)

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling, path and time included."""
        made = partial(type(self), path=self.path, retry_after_s=self.retry_after_s)
        return (made, (self.message,))


class FeedbackLimit(RateLimited):
    """The key has given as much feedback in 24 hours as the limit named in the message."""

    code = "FEEDBACK_LIMIT"
    remedy = "Wait until the time named in the message, or ask for a higher limit."


class TooManyOperations(EcphoriaError):
    """The key has as many operations under way as the limit named in the message."""

    code = "TOO_MANY_OPERATIONS"
    remedy = "Let some of them end, then try again; several keys have a limit each."
    retryable = True


class OperationTimeout(EcphoriaError):
    """The operation took longer than the limit named in the message, and was stopped."""

    code = "OPERATION_TIMEOUT"
    remedy = "Ask for less at once; a write may be sent again: what is there already is kept once."
    retryable = True


# --- what is (not) there -------------------------------------------------------------------


class NotFound(EcphoriaError):
    """There is no such thing in this scope (or it belongs to another user)."""

    code = "NOT_FOUND"
    remedy = "Check the id and the scope; another user's data look the same as none."


class MissingEntity(NotFound):
    """A relation or an `about` link names an entity that does not exist in this scope."""

    code = "MISSING_ENTITY"
    remedy = "Upsert the entity first, or in the same call."


# --- secrets -------------------------------------------------------------------------------


class EncryptionKeyMissing(EcphoriaError):
    """Something sensitive cannot be kept: no master key is set."""

    code = "ENCRYPTION_KEY_MISSING"
    remedy = (
        "Set ECPHORIA_MASTER_KEYS or ECPHORIA_MASTER_KEY_FILE; docs/how-to/privacy.md says how."
    )


class EncryptionKeyWrong(EcphoriaError):
    """What is stored was encrypted under a master key that is not set, or is set to other bytes."""

    code = "ENCRYPTION_KEY_WRONG"
    remedy = (
        "Set the master key named in the message to what it was; keep it until `rotate` is done."
    )


class DataKeyDestroyed(InvalidInput):
    """The user's data key was destroyed: nothing sensitive of him is kept any more."""

    code = "DATA_KEY_DESTROYED"
    remedy = "Leave it; or allow the user a new key first, if he has come back."


# --- stores and models ---------------------------------------------------------------------


class StoreError(EcphoriaError):
    """A store refused or failed in a way that trying again will not mend."""

    code = "STORE_ERROR"
    remedy = "Run `ecphoria doctor`; the store's own log has the cause."


class StoreUnavailable(StoreError):
    """A store cannot be reached, or went away in the middle of a request."""

    code = "STORE_UNAVAILABLE"
    remedy = "Check that it runs and that the URI is right (`ecphoria doctor`), then try again."
    retryable = True


class StoreAuthenticationFailed(StoreError):
    """A store refused the user name and password."""

    code = "STORE_AUTHENTICATION_FAILED"
    remedy = (
        "Set ECPHORIA_NEO4J_PASSWORD, ECPHORIA_MILVUS_TOKEN or the password in ECPHORIA_REDIS_URL "
        "to what the server expects."
    )


class StoreLocked(StoreError):
    """Another process uses this data directory."""

    code = "STORE_LOCKED"
    remedy = "Stop the process named in the message, talk to it over GraphQL, or use `--data-dir`."


class DataDirectoryUnusable(StoreError):
    """The data directory cannot be created, written, or is full."""

    code = "DATA_DIRECTORY_UNUSABLE"
    remedy = "Free space or change permissions, or choose another with `--data-dir`."


class StoreStartFailed(StoreError):
    """An embedded store did not start; the message has its last words."""

    code = "STORE_START_FAILED"
    remedy = "Read the log named in the message; `ecphoria doctor` checks the usual causes."


class MigrationFailed(StoreError):
    """A change of the graph schema failed, or a recorded one was altered afterwards."""

    code = "MIGRATION_FAILED"
    remedy = "Restore the altered file, or run this version against a graph of its own."


class EmbeddingMismatch(StoreError):
    """The vector index was built with another model, version or dimension."""

    code = "EMBEDDING_MISMATCH"
    remedy = "Set ECPHORIA_EMBEDDING_* back, or change the index over with `ecphoria reembed`."


class ModelUnavailable(EcphoriaError):
    """A model, or the package that runs it, is not installed or cannot be loaded."""

    code = "MODEL_UNAVAILABLE"
    remedy = "Install the extra named in the message, or name a model that exists locally."


class EmbeddingFailed(EcphoriaError):
    """The embedding model failed on a text."""

    code = "EMBEDDING_FAILED"
    remedy = "The memory is kept and indexed later; `ecphoria doctor` tests the model."
    retryable = True


class RerankingFailed(EcphoriaError):
    """The reranker failed on a question, or did not answer in time."""

    code = "RERANKING_FAILED"
    remedy = "The answer comes in the order without it; `ecphoria doctor` tests the model."
    retryable = True


class ChatFailed(EcphoriaError):
    """The chat model did not answer in time, or not in the form asked for."""

    code = "CHAT_FAILED"
    remedy = "Check ECPHORIA_CHAT_URL and ECPHORIA_CHAT_MODEL; facts are read by rules meanwhile."
    retryable = True


class ReembedInProgress(StoreError):
    """Another run fills the vector index for a new model."""

    code = "REEMBED_IN_PROGRESS"
    remedy = "Wait for it, or stop it: a run that ended early can be continued by the same command."


# --- running it ----------------------------------------------------------------------------


class ConfigurationInvalid(EcphoriaError):
    """A setting is missing, malformed or contradicts another."""

    code = "CONFIGURATION_INVALID"
    remedy = "Correct the setting named in the message; docs/reference/settings.md lists all."


class PortInUse(EcphoriaError):
    """The port to listen on is taken."""

    code = "PORT_IN_USE"
    remedy = "Stop the other program or choose another port with `--port`."


class ServerUnreachable(EcphoriaError):
    """The client got no answer from the server, or none of this API."""

    code = "SERVER_UNREACHABLE"
    remedy = "Check the URL, and that `ecphoria serve` runs there; then try again."
    retryable = True


class RequestRefused(EcphoriaError):
    """The server refused what the client sent; the message begins with the server's code."""

    code = "REQUEST_REFUSED"
    remedy = "Mend the request; docs/reference/error-codes.md has the faults of a GraphQL request."


class InternalError(EcphoriaError):
    """A fault in ecphoria itself; the log has it under the id in the message."""

    code = "INTERNAL_ERROR"
    remedy = "Report it with the id; the input need not be changed."


def error_classes() -> Iterator[type[EcphoriaError]]:
    """Yield every class of the tree, parents before children."""
    todo: list[type[EcphoriaError]] = [EcphoriaError]
    while todo:
        kind = todo.pop(0)
        yield kind
        todo.extend(kind.__subclasses__())
