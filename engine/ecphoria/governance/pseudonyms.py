"""Users by a name that nobody can guess them from: for what outlives their data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from ecphoria.governance.data_keys import DataKeys, KeyOwner, no_data_keys
from ecphoria.governance.sealing import keyed_hash

_WHAT: Final = "user"
_HASH_CHARS: Final = 32


class Pseudonyms:
    """Keyed hashes of user ids, by each tenant's own key for hashes.

    That key is never destroyed, so it is read once for each tenant. Without a master key there is
    none: then the hash is a plain one, which whoever can read the graph may try ids against.
    """

    def __init__(self, vault: DataKeys) -> None:
        """Use the keys of a vault."""
        self._vault = vault
        self._keys: dict[str, bytes] = {}

    async def of(self, tenant: str, users: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return, for each user, the hash to write, then others that he may be known by.

        The others are from a time without a master key.

        Raises:
            StoreUnavailable: When the graph does not answer for the tenant's key.
        """
        wanted = tuple(dict.fromkeys(users))
        if not wanted:
            return {}
        plain = {user: _plain_hash(tenant, user) for user in wanted}
        key = await self._key(tenant)
        if key is None:
            return {user: (plain[user],) for user in wanted}
        return {user: (keyed_hash(key, _WHAT, user), plain[user]) for user in wanted}

    async def _key(self, tenant: str) -> bytes | None:
        if self._vault.ring is None:
            return None
        if tenant not in self._keys:
            owner = KeyOwner(tenant, compares=True)
            self._keys[tenant] = (await self._vault.to_write([owner]))[owner]
        return self._keys[tenant]


def no_pseudonyms() -> Pseudonyms:
    """Return pseudonyms of an engine without keys."""
    return Pseudonyms(no_data_keys())


def tombstone_key(tenant: str, pseudonym: str) -> str:
    """Return the graph key of the tombstone of a user."""
    return f"{tenant}|Forgotten|{pseudonym}"


async def tombstone_keys(
    pseudonyms: Pseudonyms, tenant: str, users: Iterable[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return, for each user, the keys that a tombstone of his may have; new ones get the first."""
    found = await pseudonyms.of(tenant, users)
    return {
        user: tuple(tombstone_key(tenant, name) for name in names) for user, names in found.items()
    }


def _plain_hash(tenant: str, user: str) -> str:
    text = f"{len(tenant)}:{tenant}{user}"
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]
