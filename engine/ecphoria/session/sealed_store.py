"""Conversations whose turns rest sealed where they hold what identifies a person.

Around any session store. What comes out is in clear, as it was said: whoever shows it looks at the
reader's role.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ecphoria.governance.data_keys import DataKeys, KeyOwner
from ecphoria.governance.redaction import PLACEHOLDERS, Redactor, redactor
from ecphoria.governance.sealing import (
    SealingKeys,
    keyed_hash,
    owner_of,
    sealed_text,
    unsealed_text,
)
from ecphoria.model import SessionKey, Turn
from ecphoria.sealed import is_sealed
from ecphoria.stores.ports import ServerInfo
from ecphoria.stores.session_port import (
    FlushLease,
    NewTurn,
    SessionState,
    SessionStore,
    Summary,
    UserSessions,
)
from ecphoria_schema.domain import Domain


class SealedSessions:
    """`SessionStore` that seals turns and summaries on their way into another one."""

    def __init__(self, store: SessionStore, keys: DataKeys, domain: Domain) -> None:
        """Keep conversations in a store.

        Args:
            store: Where they are kept.
            keys: The users' data keys.
            domain: Its patterns tell what identifies a person.
        """
        self._store = store
        self._keys = keys
        self._redactor: Redactor = redactor(domain)

    @property
    def outlives_process(self) -> bool:
        """See `SessionStore.outlives_process`."""
        return self._store.outlives_process

    async def ping(self) -> ServerInfo:
        """See `SessionStore.ping`."""
        return await self._store.ping()

    async def close(self) -> None:
        """See `SessionStore.close`."""
        await self._store.close()

    async def append(self, key: SessionKey, turn: NewTurn, *, series: str, now: datetime) -> int:
        """See `SessionStore.append`.

        Raises:
            EncryptionKeyMissing: When there is something to hide, and no master key is set.
            DataKeyDestroyed: Likewise, when the user's data key was destroyed.
        """
        text = await self._sealed(key, turn.text, f"turn|{turn.speaker}")
        return await self._store.append(key, replace(turn, text=text), series=series, now=now)

    async def read(self, key: SessionKey, now: datetime) -> SessionState | None:
        """See `SessionStore.read`."""
        state = await self._store.read(key, now)
        if state is None:
            return None
        found = await self._keys_of(key, [state.summary.text, *(turn.text for turn in state.turns)])
        summary = self._unsealed(key, state.summary.text, "summary", found)
        return replace(
            state,
            summary=replace(state.summary, text=summary),
            turns=self._turns(key, state.turns, found),
        )

    async def keep_summary(self, key: SessionKey, state: SessionState, summary: Summary) -> bool:
        """See `SessionStore.keep_summary`."""
        text = await self._sealed(key, summary.text, "summary")
        return await self._store.keep_summary(key, state, replace(summary, text=text))

    async def idle(self, before: datetime, limit: int, skip: int = 0) -> tuple[SessionKey, ...]:
        """See `SessionStore.idle`."""
        return await self._store.idle(before, limit, skip)

    async def begin_flush(
        self,
        key: SessionKey,
        *,
        token: str,
        now: datetime,
        lease_s: float,
        idle_before: datetime | None = None,
    ) -> FlushLease | None:
        """See `SessionStore.begin_flush`."""
        return await self._store.begin_flush(
            key, token=token, now=now, lease_s=lease_s, idle_before=idle_before
        )

    async def turns(self, key: SessionKey, series: str, after: int, limit: int) -> tuple[Turn, ...]:
        """See `SessionStore.turns`."""
        turns = await self._store.turns(key, series, after, limit)
        return self._turns(key, turns, await self._keys_of(key, (turn.text for turn in turns)))

    async def drop_turns(
        self,
        key: SessionKey,
        series: str,
        upto: int,
        *,
        now: datetime,
        set_aside: Collection[int] = (),
    ) -> None:
        """See `SessionStore.drop_turns`."""
        await self._store.drop_turns(key, series, upto, now=now, set_aside=set_aside)

    async def end_flush(self, key: SessionKey, token: str) -> None:
        """See `SessionStore.end_flush`."""
        await self._store.end_flush(key, token)

    async def set_aside(self, key: SessionKey) -> tuple[Turn, ...]:
        """See `SessionStore.set_aside`."""
        turns = await self._store.set_aside(key)
        return self._turns(key, turns, await self._keys_of(key, (turn.text for turn in turns)))

    async def of_user(self, tenant: str, user_id: str) -> UserSessions:
        """See `SessionStore.of_user`."""
        return await self._store.of_user(tenant, user_id)

    async def drop_user(self, tenant: str, user_id: str) -> UserSessions:
        """See `SessionStore.drop_user`."""
        return await self._store.drop_user(tenant, user_id)

    async def _sealed(self, key: SessionKey, text: str, what: str) -> str:
        # what looks like a sealed text must not be taken for one
        if not is_sealed(text) and not self._redactor.find(text):
            return text
        owner, compares = KeyOwner(key.tenant, key.user_id), KeyOwner(key.tenant, compares=True)
        keys = await self._keys.to_write([owner, compares])
        # a turn that is sent again must be known again
        mark = keyed_hash(keys[compares], f"{_place(key)}|{what}", text)
        sealing = SealingKeys(owner, keys[owner], keys[compares])
        return sealed_text(sealing, text, f"{_place(key)}|{what}", mark)

    async def _keys_of(self, key: SessionKey, texts: Iterable[str]) -> Mapping[KeyOwner, bytes]:
        owners = (owner_of(text, key.tenant) for text in texts if is_sealed(text))
        return await self._keys.to_read(owner for owner in owners if owner is not None)

    def _turns(
        self, key: SessionKey, turns: Sequence[Turn], keys: Mapping[KeyOwner, bytes]
    ) -> tuple[Turn, ...]:
        return tuple(
            replace(turn, text=self._unsealed(key, turn.text, f"turn|{turn.speaker}", keys))
            for turn in turns
        )

    def _unsealed(
        self, key: SessionKey, text: str, what: str, keys: Mapping[KeyOwner, bytes]
    ) -> str:
        if not is_sealed(text):
            return text
        owner = owner_of(text, key.tenant)
        data = None if owner is None else keys.get(owner)
        plain = None if data is None else unsealed_text(data, text, f"{_place(key)}|{what}")
        # its key was destroyed: that something was said is all that is left of it
        return PLACEHOLDERS["sensitive"]["en"] if plain is None else plain


def _place(key: SessionKey) -> str:
    # lengths keep the parts apart, whatever they hold
    return "|".join(f"{len(part)}:{part}" for part in (key.tenant, key.user_id, key.session_id))
