"""Writes that may be sent again: the same idempotency key brings the first answer.

A call is put on record in the graph before it acts, and its answer after it has acted. Both are
transactions of their own, so a crash can fall between them. It never makes a second write, since
what acts again does so as the first attempt would have:

- A memory without an id gets one from its content and the moment it happened in. That moment is the
  time of the *first* attempt, so the id is the same, and what is there is a DUPLICATE.
- A memory that was replaced or taken back cannot be replaced or taken back again. Where the first
  attempt did it, the answer is made from what it left in the graph (`done_before`).
- What was forgotten stays so, and a conversation that was brought to long-term memory is empty.

So after a crash the state is that of one write; of the answer the status may differ (DUPLICATE for
CREATED). While one acts, others with the key are told to come back; a process that died in the
middle keeps them waiting for the length of a lease. One that only seemed dead goes on beside the
next: then the rules above, which hold in the graph's own transactions, keep it to one write.

Nothing of a call can be read from its record: the key is there as a hash, the request as a keyed
hash, the answer sealed, both under the idempotency key itself. It goes when its time is over, or
when a user whom it is about is forgotten.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import enum
import functools
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import structlog
from pydantic import TypeAdapter

from ecphoria.errors import (
    EcphoriaError,
    Forbidden,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    InvalidInput,
    InvalidScope,
    NotCurrent,
    NotFound,
    StoreError,
    UserForgotten,
)
from ecphoria.governance.key_ring import decrypt, encrypt
from ecphoria.model import Receipt, ReceiptStatus, Scope, Status, checked_id, utc
from ecphoria.parts import EngineParts
from ecphoria.remember.forgotten import tombstones
from ecphoria.stores.ports import KeyedCall

log = structlog.get_logger(__name__)

BATCH: Final = 500
# After these nothing was written, and nothing need be kept: the same call may be mended.
_NOTHING_DONE: Final = (InvalidInput, InvalidScope, NotFound, Forbidden)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A write that its caller may send again.

    Attributes:
        key: The caller's idempotency key.
        operation: What is asked for, e.g. ``supersede``.
        arguments: With what: plain values and dataclasses.
        users: Whose data it is about.
    """

    key: str
    operation: str
    arguments: tuple[object, ...]
    users: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a call.

    Attributes:
        since: When the first one was made: what happens "now" happened then.
        again: Whether an earlier one may have acted without leaving its answer.
    """

    since: datetime
    again: bool


@dataclass(frozen=True, slots=True)
class _Secrets:
    """What is made of an idempotency key: a name, a hash of the request, a key for the answer."""

    name: str
    request: str
    seal: bytes


async def once(
    parts: EngineParts,
    scope: Scope,
    request: KeyedRequest,
    act: Callable[[Attempt], Awaitable[_T]],
    answer: type[_T],
    keep: Callable[[_T], _T | None],
) -> _T:
    """Act, or return the answer of the same call before; see `Engine.once`."""
    try:
        checked_id(request.key, "idempotency key")
    except InvalidInput as error:
        raise error.at("idempotency_key") from error
    now = utc(parts.clock.now())
    users = _allowed(scope, request.users)
    if users and (await tombstones(parts, scope.tenant, users)).forgotten:
        # it will be refused, and leaves nothing
        return await act(Attempt(now, again=False))
    secrets = _secrets(scope, request)
    token = parts.clock.token()
    settings = parts.settings
    found = await parts.graph.claim_call(
        KeyedCall(
            key=f"{scope.tenant}|KeyedCall|{secrets.name}",
            request=secrets.request,
            begun_at=now,
            users=tuple(sorted(users)),
            tenant=scope.tenant,
        ),
        token,
        until=now + timedelta(seconds=settings.operation_timeout_s + settings.lease_s),
        oldest=now - timedelta(hours=settings.idempotency_hours),
    )
    if found.request != secrets.request:
        msg = "this idempotency key came with another request before"
        raise IdempotencyKeyReused(msg, path=("idempotency_key",))
    if found.answer is not None:
        return _opened(secrets, found.answer, answer)
    if found.holder != token:
        msg = "a call with this idempotency key is under way"
        raise IdempotencyKeyInUse(msg, path=("idempotency_key",))

    def record(done: _T) -> str | None:
        kept = keep(done)
        return None if kept is None else _sealed(secrets, kept, answer)

    return await _acted(parts, found, token, act, record)


async def _acted(
    parts: EngineParts,
    call: KeyedCall,
    token: str,
    act: Callable[[Attempt], Awaitable[_T]],
    record: Callable[[_T], str | None],
) -> _T:
    graph, again = parts.graph, call.attempts > 1
    # where an earlier attempt may have acted, its time must not be lost
    nothing_done = graph.release_call if again else graph.drop_call
    try:
        done = await act(Attempt(call.begun_at, again=again))
    except _NOTHING_DONE:
        await _quietly(nothing_done(call.key, token))
        raise
    except EcphoriaError:
        # who knows whether it acted: the next one may try at once
        await _quietly(graph.release_call(call.key, token))
        raise
    answer = record(done)
    if answer is None:
        await _quietly(nothing_done(call.key, token))
    else:
        await _quietly(graph.finish_call(call.key, token, answer))
    return done


async def _quietly(work: Awaitable[None]) -> None:
    """Put on record what became of a call; what was done is done, whether it is or not."""
    try:
        await work
    except StoreError as error:
        log.warning("a call is not on record", code=error.code, reason=error.message)


def wrote_something(receipts: Iterable[Receipt]) -> bool:
    """Whether receipts tell of a write, and of nobody who was forgotten."""
    every = list(receipts)
    return any(item.status is not ReceiptStatus.REJECTED for item in every) and not any(
        item.code == UserForgotten.code for item in every
    )


async def done_before(
    parts: EngineParts, scope: Scope, memory_id: str, attempt: Attempt | None
) -> Receipt | None:
    """Return what an earlier attempt did to a memory; None when it did nothing.

    Args:
        parts: What to work with.
        scope: For whom; only what the same key did by hand counts.
        memory_id: The memory that was to be replaced or taken back.
        attempt: From when on it may have been.
    """
    if attempt is None or not attempt.again:
        return None
    lineage = (await parts.graph.lineage(scope.tenant, [memory_id])).get(memory_id, ())
    for other in lineage:
        if (
            other.type == "SUPERSEDES"
            and not other.outgoing
            and other.by == scope.principal
            and other.at is not None
            and other.at >= attempt.since
        ):
            return Receipt(0, ReceiptStatus.SUPERSEDED, other.other, supersedes=(memory_id,))
    found = await parts.graph.memories(scope.tenant, [memory_id])
    if any(
        memory.status is Status.DISABLED
        and memory.invalidated_at is not None
        and memory.invalidated_at >= attempt.since
        for memory in found
    ):
        return Receipt(0, ReceiptStatus.RETRACTED, memory_id)
    return None


async def by_hand(
    parts: EngineParts,
    scope: Scope,
    memory_id: str,
    attempt: Attempt | None,
    work: Awaitable[Receipt],
) -> Receipt:
    """Return what a change of a memory did, or what an earlier attempt at it has done.

    Raises:
        NotCurrent: When somebody else was first.
    """
    try:
        return await work
    except NotCurrent:
        done = await done_before(parts, scope, memory_id, attempt)
        if done is None:
            raise
        return done


async def drop_old_calls(parts: EngineParts) -> int:
    """Remove the calls whose time is over, for the worker; return how many.

    Raises:
        StoreUnavailable: When the graph does not answer.
    """
    oldest = utc(parts.clock.now()) - timedelta(hours=parts.settings.idempotency_hours)
    dropped = 0
    while number := await parts.graph.drop_calls_before(oldest, BATCH):
        dropped += number
    return dropped


# --- what is on record ---------------------------------------------------------------------


def _allowed(scope: Scope, users: Iterable[str]) -> set[str]:
    allowed: set[str] = set()
    for user in users:
        # the call itself says what is wrong with the others
        with contextlib.suppress(EcphoriaError):
            allowed.add(scope.user(user))
    return allowed


def _hashed(key: bytes, *parts: str) -> bytes:
    # lengths keep the parts apart, whatever they hold
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hmac.new(key, joined.encode(), hashlib.sha256).digest()


def _secrets(scope: Scope, request: KeyedRequest) -> _Secrets:
    key = _hashed(b"ecphoria keyed call", scope.tenant, scope.principal, request.key)
    asked = json.dumps([request.operation, _plain(request.arguments)], sort_keys=True)
    return _Secrets(
        name=_hashed(key, "name").hex()[:32],
        request=_hashed(key, "request", asked).hex()[:32],
        seal=_hashed(key, "seal"),
    )


def _plain(value: object) -> object:
    """Return a value as JSON has it; a field that has its default is as good as none."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {field.name: _plain(getattr(value, field.name)) for field in _fields(value)}
        return {name: found for name, found in given.items() if found not in (None, [], False)}
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat() if value.tzinfo is None else value.astimezone(UTC).isoformat()
    return value


def _fields(value: Any) -> tuple[dataclasses.Field[Any], ...]:  # noqa: ANN401 - any dataclass
    return dataclasses.fields(value)


@functools.cache
def _adapter(answer: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    return TypeAdapter(answer)


def _sealed(secrets: _Secrets, done: object, answer: object) -> str:
    plain = _adapter(answer).dump_json(done)
    return base64.b64encode(encrypt(secrets.seal, plain, secrets.name)).decode()


def _opened(secrets: _Secrets, sealed: str, answer: type[_T]) -> _T:
    plain = decrypt(secrets.seal, base64.b64decode(sealed), secrets.name)
    if plain is None:
        msg = "the answer to a call is on record in a form that cannot be read"
        raise StoreError(msg)
    kind: Any = answer
    found: _T = _adapter(kind).validate_json(plain)
    return found
