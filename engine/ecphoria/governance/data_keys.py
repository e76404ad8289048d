"""Data keys: one a user, one for what a tenant shares, and one that values are compared by.

They are kept in the graph, wrapped by a master key. Who destroys a user's key makes all that was
encrypted under it unreadable, in backups, too.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from ecphoria.clock import Clock
from ecphoria.errors import DataKeyDestroyed, EncryptionKeyMissing, EncryptionKeyWrong
from ecphoria.governance.key_ring import KEY_BYTES, KeyRing
from ecphoria.model import Scope, utc
from ecphoria.stores.ports import DataKeyRow, GraphStore

log = structlog.get_logger(__name__)

# Another replica may destroy a key: for so long this one may still know it (seconds).
CACHE_S = 3.0
MAX_CACHED = 10_000
PAGE = 500
_MISSING = (
    "no master key is set, so nothing sensitive can be kept: "
    "set ECPHORIA_MASTER_KEYS or ECPHORIA_MASTER_KEY_FILE"
)


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """Whose data key it is.

    Attributes:
        user_id: None = what the tenant shares.
        compares: The key by which a tenant's hidden values are compared; it is not any user's.
    """

    tenant: str
    user_id: str | None = None
    compares: bool = False

    @property
    def key(self) -> str:
        """The graph key; of a user it holds a hash, since it stays when the user is forgotten."""
        if self.compares:
            return f"{self.tenant}|DataKey|compares"
        if self.user_id is None:
            return f"{self.tenant}|DataKey|shared"
        return f"{self.tenant}|DataKey|{hashlib.sha256(self.user_id.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class RotationProgress:
    """How far a rotation is: how many data keys were wrapped anew, of how many."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class EncryptionStatus:
    """Which master key is current, and how many data keys each one wraps.

    Attributes:
        current: None without master keys.
        wrapped: Master key's id -> data keys.
        destroyed: How many data keys were destroyed.
    """

    current: str | None
    wrapped: Mapping[str, int]
    destroyed: int


class DataKeys:
    """The data keys in the graph, by the master keys of this process.

    Keys are remembered for `CACHE_S` seconds, `MAX_CACHED` at most.
    """

    def __init__(self, graph: GraphStore | None, ring: KeyRing | None, clock: Clock) -> None:
        """Use a graph; without a ring it is never asked."""
        self._graph = graph
        self._ring = ring
        self._clock = clock
        # None = destroyed
        self._known: OrderedDict[KeyOwner, tuple[bytes | None, datetime]] = OrderedDict()
        self._told: Callable[[Scope, str | None, int], None] | None = None

    def watch_reads(self, told: Callable[[Scope, str | None, int], None]) -> None:
        """Have somebody told who was shown how many sealed values of whom; None = shared ones."""
        self._told = told

    def tell_read(self, scope: Scope, owners: Iterable[KeyOwner]) -> None:
        """Tell that a scope was shown sealed values, one an owner each."""
        if self._told is None:
            return
        for owner, count in Counter(owners).items():
            self._told(scope, owner.user_id, count)

    @property
    def ring(self) -> KeyRing | None:
        """The master keys; None when none is set."""
        return self._ring

    async def check(self) -> None:
        """Return when the ring has every master key that is in use.

        Raises:
            EncryptionKeyWrong: Naming the one that is missing, or has other bytes.
        """
        if self._graph is None:
            return
        for master_id, value in (await self._graph.master_keys()).items():
            (self._ring or KeyRing({})).check(master_id, value)

    async def to_write(self, owners: Iterable[KeyOwner]) -> Mapping[KeyOwner, bytes]:
        """Return the keys of owners, made where there were none; one round trip if none is new.

        Raises:
            EncryptionKeyMissing: When no master key is set.
            DataKeyDestroyed: When one was destroyed.
            EncryptionKeyWrong: When one is wrapped by a master key that the ring lacks.
        """
        wanted = list(dict.fromkeys(owners))
        if not wanted:
            return {}
        ring, graph = self._ring, self._graph
        if ring is None or graph is None:
            raise EncryptionKeyMissing(_MISSING)
        found = await self._read(wanted, ring, graph)
        missing = [owner for owner in wanted if owner not in found]
        if missing:
            now = utc(self._clock.now())
            # whoever was first has made the one that counts
            rows = await graph.make_data_keys(
                [_new_row(owner, ring, now) for owner in missing], ring.current, ring.check_value()
            )
            found |= self._unwrapped(missing, rows, ring)
        keys: dict[KeyOwner, bytes] = {}
        for owner in wanted:
            key = found.get(owner)
            if key is None:
                msg = f"the data key of the user {owner.user_id!r} was destroyed"
                raise DataKeyDestroyed(msg, path=("user_id",))
            keys[owner] = key
        return keys

    async def to_read(self, owners: Iterable[KeyOwner]) -> Mapping[KeyOwner, bytes]:
        """Return the keys of owners that there are, in one round trip; none for no owner.

        What is destroyed, was never made, or cannot be unwrapped here is left out.
        """
        wanted = list(dict.fromkeys(owners))
        if not wanted or self._ring is None or self._graph is None:
            return {}
        try:
            found = await self._read(wanted, self._ring, self._graph)
        except EncryptionKeyWrong as error:
            # another replica may have gone on to a newer master key
            log.warning("sealed values are not shown", code=error.code, reason=error.message)
            return {}
        return {owner: key for owner, key in found.items() if key is not None}

    async def _read(
        self, wanted: Collection[KeyOwner], ring: KeyRing, graph: GraphStore
    ) -> dict[KeyOwner, bytes | None]:
        now = self._clock.now()
        found: dict[KeyOwner, bytes | None] = {}
        for owner in wanted:
            known = self._known.get(owner)
            if known is not None and known[1] > now:
                found[owner] = known[0]
        missing = [owner for owner in wanted if owner not in found]
        if missing:
            rows = await graph.data_keys([owner.key for owner in missing])
            found |= self._unwrapped(missing, rows, ring)
        return found

    def _unwrapped(
        self, owners: Collection[KeyOwner], rows: Collection[DataKeyRow], ring: KeyRing
    ) -> dict[KeyOwner, bytes | None]:
        by_key = {owner.key: owner for owner in owners}
        until = self._clock.now() + timedelta(seconds=CACHE_S)
        found: dict[KeyOwner, bytes | None] = {}
        for row in rows:
            key = None
            if row.wrapped is not None and row.master_id is not None:
                key = ring.unwrap(row.master_id, row.wrapped, row.key)
            owner = by_key[row.key]
            found[owner] = key
            self._known[owner] = (key, until)
            self._known.move_to_end(owner)
        while len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)
        return found

    async def destroy(self, tenant: str, user_id: str) -> bool:
        """Destroy a user's data key: what was encrypted under it can be read by nobody any more.

        He gets no new one until `allow_again`. It is harmless to do it twice, or where there was
        no key: then none is made.

        Returns:
            Whether there was one.
        """
        if self._graph is None:
            return False
        owner = KeyOwner(tenant, user_id)
        there = await self._graph.destroy_data_key(_row(owner, utc(self._clock.now())))
        self._known.pop(owner, None)
        return there

    async def allow_again(self, tenant: str, user_id: str) -> None:
        """Let a user whose data key was destroyed have a new one; what was lost stays lost."""
        if self._graph is None:
            return
        owner = KeyOwner(tenant, user_id)
        await self._graph.drop_destroyed_key(owner.key)
        self._known.pop(owner, None)

    async def status(self) -> EncryptionStatus:
        """Return which master keys are in use, and for how many data keys."""
        current = None if self._ring is None else self._ring.current
        if self._graph is None:
            return EncryptionStatus(current, {}, 0)
        counts = dict(await self._graph.count_data_keys())
        return EncryptionStatus(current, counts, counts.pop("", 0))

    async def rotate(self) -> AsyncIterator[RotationProgress]:
        """Wrap every data key by the current master key; report after each page.

        Interrupted, the same call goes on with what is left. A key that changes meanwhile is left
        to its writer. Master keys that wrap nothing any more are no longer asked for at the start.

        Raises:
            EncryptionKeyMissing: When no master key is set.
            EncryptionKeyWrong: When the ring lacks a master key that is in use.
        """
        ring, graph = self._ring, self._graph
        if ring is None or graph is None:
            raise EncryptionKeyMissing(_MISSING)
        counts = await graph.count_data_keys()
        total = sum(n for id_, n in counts.items() if id_ not in {"", ring.current})
        done, after = 0, ""
        yield RotationProgress(0, total)
        while rows := await graph.data_keys_not_under(ring.current, after, PAGE):
            after = rows[-1].key
            done += await graph.rewrap_data_keys(
                [(row, _rewrapped(row, ring)) for row in rows], ring.current, ring.check_value()
            )
            yield RotationProgress(done, max(total, done))
        await graph.drop_unused_master_keys(ring.current)


def no_data_keys() -> DataKeys:
    """Return data keys of an engine that keeps nothing: nothing can be sealed or unsealed."""
    return DataKeys(None, None, Clock())


def _row(owner: KeyOwner, now: datetime) -> DataKeyRow:
    return DataKeyRow(owner.key, owner.tenant, owner.user_id, None, None, now)


def _new_row(owner: KeyOwner, ring: KeyRing, now: datetime) -> DataKeyRow:
    wrapped = ring.wrap(secrets.token_bytes(KEY_BYTES), owner.key)
    return DataKeyRow(owner.key, owner.tenant, owner.user_id, wrapped, ring.current, now)


def _rewrapped(row: DataKeyRow, ring: KeyRing) -> str:
    return ring.wrap(ring.unwrap(row.master_id or "", row.wrapped or "", row.key), row.key)
