"""API keys: made, looked up, rotated, revoked. The secret is shown once and kept only as a hash."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from ecphoria.clock import Clock
from ecphoria.errors import InvalidInput, InvalidScope, NotFound, Unauthenticated
from ecphoria.model import ApiKey, EveryUser, Role, Scope
from ecphoria.stores.ports import GraphStore

_KEY = re.compile(r"ecph_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
MAX_NAME_CHARS = 100
MAX_GRACE = timedelta(days=30)


def _hash(secret: str) -> str:
    # SHA-256 is enough here: the secret is 256 random bits, so there is nothing to guess
    return hashlib.sha256(secret.encode()).hexdigest()


async def create_key(
    graph: GraphStore,
    clock: Clock,
    *,
    tenant: str,
    name: str,
    roles: Collection[Role],
    users: Collection[str] | EveryUser,
    lifetime: timedelta | None = None,
) -> tuple[ApiKey, str]:
    """Make an API key; return it and its secret form, which is not kept.

    Raises:
        InvalidScope: When tenant, roles or users are missing, empty or ``*``.
        InvalidInput: When the name is blank or too long, or the lifetime is not positive.
    """
    if not name.strip() or len(name) > MAX_NAME_CHARS:
        msg = f"a key needs a name of 1 to {MAX_NAME_CHARS} characters"
        raise InvalidInput(msg)
    if lifetime is not None and lifetime <= timedelta(0):
        msg = "a key's lifetime must be positive"
        raise InvalidInput(msg)
    if isinstance(users, str):
        msg = "users must be a collection of user ids, not one string"
        raise InvalidScope(msg)
    now = clock.now()
    try:
        expires_at = None if lifetime is None else now + lifetime
    except OverflowError as error:
        msg = "a key's lifetime ends after the year 9999"
        raise InvalidInput(msg) from error
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    scope = Scope(
        tenant,
        key_id,
        frozenset(roles),
        users if isinstance(users, EveryUser) else frozenset(users),
    )
    key = ApiKey(
        id=key_id,
        tenant=scope.tenant,
        name=name.strip(),
        secret_hash=_hash(secret),
        roles=scope.roles,
        users=scope.users,
        created_at=now,
        expires_at=expires_at,
    )
    await graph.save_api_key(key)
    return key, f"ecph_{key_id}_{secret}"


def _is_live(key: ApiKey, moment: datetime) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > moment)


def _in_grace(key: ApiKey, moment: datetime) -> bool:
    return key.previous_until is not None and key.previous_until > moment


async def authenticate(graph: GraphStore, clock: Clock, presented: str | None) -> Scope:
    """Return the scope of an API key.

    Raises:
        Unauthenticated: Without saying which of missing, malformed, unknown, expired or revoked.
    """
    match = _KEY.fullmatch(presented or "")
    key = await graph.api_key(match[1]) if match else None
    now = clock.now()
    given = _hash(match[2] if match else "-")
    # compared even when there is no key, so that the time tells nothing
    expected = key.secret_hash if key else _hash("")
    good = hmac.compare_digest(expected, given)
    before = key.previous_hash if key and _in_grace(key, now) else None
    good |= hmac.compare_digest(before or _hash(""), given) and before is not None
    if key is None or not good or not _is_live(key, now):
        msg = "the API key is missing or not valid"
        raise Unauthenticated(msg)
    return Scope(key.tenant, key.id, key.roles, key.users)


async def rotate_key(
    graph: GraphStore,
    clock: Clock,
    *,
    tenant: str,
    key_id: str,
    grace: timedelta = timedelta(0),
    lifetime: timedelta | None = None,
) -> tuple[ApiKey, str]:
    """Give a key a new secret; return it and its secret form, which is not kept.

    Id, tenant, roles and users stay. A secret from before the last rotation stops to count at
    once, also within the grace that it was given.

    Args:
        graph: Where the key is.
        clock: Where time comes from.
        tenant: Whose key it is.
        key_id: Its id.
        grace: How long the old secret counts beside the new one; 0 = not at all, 30 days at most.
        lifetime: How long the key counts from now on; its end stays when None.

    Raises:
        NotFound: When the tenant has no such key.
        InvalidInput: When it was revoked, has expired, or was changed by somebody else meanwhile;
            or when grace or lifetime are out of range.
    """
    if not timedelta(0) <= grace <= MAX_GRACE:
        msg = f"the grace must be 0 to {MAX_GRACE.days} days"
        raise InvalidInput(msg)
    if lifetime is not None and lifetime <= timedelta(0):
        msg = "a key's lifetime must be positive"
        raise InvalidInput(msg)
    key = await _key_of(graph, tenant, key_id)
    now, secret = clock.now(), secrets.token_urlsafe(32)
    if not _is_live(key, now):
        msg = f"key {key_id!r} was revoked or has expired: make a new one"
        raise InvalidInput(msg)
    try:
        expires_at = key.expires_at if lifetime is None else now + lifetime
    except OverflowError as error:
        msg = "a key's lifetime ends after the year 9999"
        raise InvalidInput(msg) from error
    rotated = replace(
        key,
        secret_hash=_hash(secret),
        previous_hash=key.secret_hash if grace else None,
        previous_until=now + grace if grace else None,
        expires_at=expires_at,
    )
    if not await graph.rotate_api_key(rotated, key.secret_hash):
        msg = f"key {key_id!r} was rotated or revoked by somebody else meanwhile"
        raise InvalidInput(msg)
    return rotated, f"ecph_{key_id}_{secret}"


async def _key_of(graph: GraphStore, tenant: str, key_id: str) -> ApiKey:
    key = await graph.api_key(key_id)
    if key is None or key.tenant != tenant:
        msg = f"tenant {tenant!r} has no key {key_id!r}"
        raise NotFound(msg)
    return key


async def revoke_key(graph: GraphStore, clock: Clock, *, tenant: str, key_id: str) -> ApiKey:
    """Revoke a key at once; revoking twice is no error.

    Raises:
        NotFound: When the tenant has no such key.
    """
    key = await _key_of(graph, tenant, key_id)
    if key.revoked_at is None:
        key = replace(key, revoked_at=clock.now())
        await graph.save_api_key(key)
    return key
