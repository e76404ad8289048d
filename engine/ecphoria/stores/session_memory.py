"""Conversations kept in this process: for one replica, and for tests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from ecphoria.errors import IdConflict
from ecphoria.model import EntityRef, SessionKey, Turn, utc
from ecphoria.sealed import compared
from ecphoria.stores.ports import ServerInfo
from ecphoria.stores.session_port import (
    KEPT_DAYS,
    FlushLease,
    NewTurn,
    SessionState,
    Summary,
    UserSessions,
    id_taken,
)

log = structlog.get_logger(__name__)

_KEPT = timedelta(days=KEPT_DAYS)


@dataclass(slots=True)
class _Session:
    """Turns `first` to `last`, of which those from `start` are the present conversation.

    Attributes:
        silent_since: Last turn of the oldest conversation.
        entities: By type: the number of the turn that named it last, and the entity.
    """

    series: str
    last_at: datetime
    silent_since: datetime
    first: int = 1
    start: int = 1
    turns: list[Turn] = field(default_factory=list)
    ids: dict[str, Turn] = field(default_factory=dict)
    entities: dict[str, tuple[int, EntityRef]] = field(default_factory=dict)
    summary: Summary | None = None
    flush_upto: int | None = None
    lease: tuple[str, datetime] | None = None

    @property
    def last(self) -> int:
        return self.first + len(self.turns) - 1

    def after(self, number: int) -> list[Turn]:
        return self.turns[max(0, number + 1 - self.first) :]

    def said(self) -> Summary:
        return self.summary or Summary("", self.start - 1, self.start - 1)


class InProcessSessions:
    """`SessionStore` in the memory of this process.

    No method waits for anything, so each is atomic in its event loop.
    """

    outlives_process = False

    def __init__(self, ttl_s: float) -> None:
        """Begin without sessions.

        Args:
            ttl_s: Seconds after its last turn that a conversation is over.
        """
        self._ttl = timedelta(seconds=ttl_s)
        # the session that was longest without a turn comes first
        self._sessions: OrderedDict[SessionKey, _Session] = OrderedDict()
        self._aside: OrderedDict[SessionKey, tuple[datetime, list[Turn]]] = OrderedDict()

    async def ping(self) -> ServerInfo:
        """See `SessionStore.ping`."""
        return ServerInfo("in this process", "")

    async def close(self) -> None:
        """Forget everything, and say so when turns are lost by that."""
        if self._sessions:
            turns = sum(len(session.turns) for session in self._sessions.values())
            log.error("turns are lost with this process", turns=turns, sessions=len(self._sessions))
        self._sessions.clear()
        self._aside.clear()

    async def append(self, key: SessionKey, turn: NewTurn, *, series: str, now: datetime) -> int:
        """See `SessionStore.append`."""
        now = utc(now)
        self._give_up(now)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = _Session(series, last_at=now, silent_since=now)
        elif self._is_over(session, now):
            session.start = session.last + 1
            session.summary = None
            session.ids.clear()
            session.entities.clear()
        known = session.ids.get(turn.id)
        if known is not None:
            if (known.speaker, compared(known.text)) != (turn.speaker, compared(turn.text)):
                raise IdConflict(id_taken(turn.id), path=("turn_id",))
            return known.number
        number = session.last + 1
        kept = Turn(number, turn.speaker, turn.text, utc(turn.said_at), turn.entities)
        session.turns.append(kept)
        session.ids[turn.id] = kept
        for ref in turn.entities:
            session.entities.pop(ref.type, None)
            session.entities[ref.type] = (number, ref)
        session.last_at = max(session.last_at, now)
        if session.start == session.first:
            session.silent_since = session.last_at
        self._sessions.move_to_end(key)
        return number

    async def read(self, key: SessionKey, now: datetime) -> SessionState | None:
        """See `SessionStore.read`."""
        session = self._sessions.get(key)
        if session is None or self._is_over(session, utc(now)):
            return None
        summary = session.said()
        return SessionState(
            series=session.series,
            start=session.start,
            last=session.last,
            last_at=session.last_at,
            summary=summary,
            turns=tuple(session.after(summary.upto)),
            entities=tuple(ref for _, ref in reversed(session.entities.values())),
        )

    async def keep_summary(self, key: SessionKey, state: SessionState, summary: Summary) -> bool:
        """See `SessionStore.keep_summary`."""
        session = self._sessions.get(key)
        if (
            session is None
            or (session.series, session.start) != (state.series, state.start)
            or _made(session.said()) != _made(state.summary)
        ):
            return False
        session.summary = summary
        return True

    async def idle(self, before: datetime, limit: int, skip: int = 0) -> tuple[SessionKey, ...]:
        """See `SessionStore.idle`."""
        before = utc(before)
        silent = sorted(
            (session.silent_since, key.tenant, key.user_id, key.session_id)
            for key, session in self._sessions.items()
            if session.silent_since <= before
        )
        return tuple(SessionKey(*names) for _, *names in silent[skip : skip + limit])

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
        now = utc(now)
        session = self._sessions.get(key)
        if session is None:
            return None
        if session.lease is not None:
            holder, until = session.lease
            if holder != token and until > now:
                return None
        if session.flush_upto is None:
            if session.start > session.first:
                session.flush_upto = session.start - 1
            elif idle_before is None or session.last_at <= utc(idle_before):
                session.flush_upto = session.last
            else:
                return None
        session.lease = (token, now + timedelta(seconds=lease_s))
        return FlushLease(session.series, session.first, session.flush_upto, session.last)

    async def turns(self, key: SessionKey, series: str, after: int, limit: int) -> tuple[Turn, ...]:
        """See `SessionStore.turns`."""
        session = self._sessions.get(key)
        if session is None or session.series != series:
            return ()
        return tuple(session.after(after)[:limit])

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
        session = self._sessions.get(key)
        if session is None or session.series != series or upto < session.first:
            return
        dropped, session.turns = session.turns[: upto + 1 - session.first], session.after(upto)
        session.first += len(dropped)
        refused = [turn for turn in dropped if turn.number in set_aside]
        if refused:
            _, kept = self._aside.pop(key, (now, []))
            self._aside[key] = (utc(now), kept + refused)
        if not session.turns:
            del self._sessions[key]
            return
        if session.flush_upto is not None and session.flush_upto < session.first:
            session.flush_upto = None
        if session.start < session.first:
            session.start = session.first
            session.summary = None
            session.ids = {id_: turn for id_, turn in session.ids.items() if turn.number > upto}
            session.entities = {
                type_: named for type_, named in session.entities.items() if named[0] > upto
            }
        if session.start == session.first:
            session.silent_since = session.last_at

    async def end_flush(self, key: SessionKey, token: str) -> None:
        """See `SessionStore.end_flush`."""
        session = self._sessions.get(key)
        if session is not None and session.lease is not None and session.lease[0] == token:
            session.lease = None

    async def set_aside(self, key: SessionKey) -> tuple[Turn, ...]:
        """See `SessionStore.set_aside`."""
        return tuple(self._aside.get(key, (None, ()))[1])

    async def of_user(self, tenant: str, user_id: str) -> UserSessions:
        """See `SessionStore.of_user`."""
        keys = self._of_user(tenant, user_id)
        turns = sum(len(self._sessions[key].turns) for key in keys if key in self._sessions)
        aside = sum(len(self._aside[key][1]) for key in keys if key in self._aside)
        return UserSessions(len(keys), turns + aside)

    async def drop_user(self, tenant: str, user_id: str) -> UserSessions:
        """See `SessionStore.drop_user`."""
        dropped = await self.of_user(tenant, user_id)
        for key in self._of_user(tenant, user_id):
            self._sessions.pop(key, None)
            self._aside.pop(key, None)
        return dropped

    def _of_user(self, tenant: str, user_id: str) -> set[SessionKey]:
        return {
            key
            for key in (*self._sessions, *self._aside)
            if (key.tenant, key.user_id) == (tenant, user_id)
        }

    def _is_over(self, session: _Session, now: datetime) -> bool:
        return now - session.last_at >= self._ttl

    def _give_up(self, now: datetime) -> None:
        while self._sessions:
            key, session = next(iter(self._sessions.items()))
            if now - session.last_at < _KEPT:
                break
            del self._sessions[key]
            log.error("turns were never flushed", turns=len(session.turns), tenant=key.tenant)
        while self._aside and next(iter(self._aside.values()))[0] + _KEPT <= now:
            self._aside.popitem(last=False)


def _made(summary: Summary) -> tuple[int, int]:
    # its text may be sealed here and clear there
    return summary.upto, summary.made_at
