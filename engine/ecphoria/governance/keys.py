"""API keys: made, looked up, revoked. The secret is shown once and kept only as a hash."""

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


async def authenticate(graph: GraphStore, clock: Clock, presented: str | None) -> Scope:
    """Return the scope of an API key.

    Raises:
        Unauthenticated: Without saying which of missing, malformed, unknown, expired or revoked.
    """
    match = _KEY.fullmatch(presented or "")
    key = await graph.api_key(match[1]) if match else None
    # compared even when there is no key, so that the time tells nothing
    expected = key.secret_hash if key else _hash("")
    good = hmac.compare_digest(expected, _hash(match[2] if match else "-"))
    if key is None or not good or not _is_live(key, clock.now()):
        msg = "the API key is missing or not valid"
        raise Unauthenticated(msg)
    return Scope(key.tenant, key.id, key.roles, key.users)


async def revoke_key(graph: GraphStore, clock: Clock, *, tenant: str, key_id: str) -> ApiKey:
    """Revoke a key at once; revoking twice is no error.

    Raises:
        NotFound: When the tenant has no such key.
    """
    key = await graph.api_key(key_id)
    if key is None or key.tenant != tenant:
        msg = f"tenant {tenant!r} has no key {key_id!r}"
        raise NotFound(msg)
    if key.revoked_at is None:
        key = replace(key, revoked_at=clock.now())
        await graph.save_api_key(key)
    return key
