"""The port behind which conversations under way are kept.

A session has one row of numbered turns. Turns wait in it until they are in long-term memory:
neither silence nor a new conversation under the same id makes them go. What a reader sees is the
present conversation only; it is over when `ttl_s` have passed since its last turn.

Every change is atomic, also between replicas. Moments come from the caller, so that all replicas
and all tests go by their own clock.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ecphoria.model import EntityRef, SessionKey, Speaker, Turn
from ecphoria.stores.ports import ServerInfo

# What nobody brings to long-term memory in this time is given up, so that no store fills for ever.
KEPT_DAYS = 7.0


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn before the store has numbered it.

    Attributes:
        id: The caller's own, or made up: the same id is the same turn, sent again.
    """

    id: str
    speaker: Speaker
    text: str
    said_at: datetime
    entities: tuple[EntityRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What a conversation was about so far.

    Attributes:
        upto: Number of the last turn in it.
        made_at: Number of the last turn there was when it was made.
    """

    text: str
    upto: int
    made_at: int


@dataclass(frozen=True, slots=True)
class SessionState:
    """The present conversation of a session.

    Attributes:
        series: Token of the numbering: another one begins when all turns have been flushed.
        start: Number of its first turn. Turns before it belong to a conversation that is over.
        last: Number of its last turn.
        last_at: When the last turn was kept.
        summary: Of the turns from `start`; empty, up to the turn before `start`, without one.
        turns: The turns after the summary, oldest first.
        entities: Last named entity of each type, the latest first.
    """

    series: str
    start: int
    last: int
    last_at: datetime
    summary: Summary
    turns: tuple[Turn, ...]
    entities: tuple[EntityRef, ...]


@dataclass(frozen=True, slots=True)
class FlushLease:
    """The right to bring turns of a session to long-term memory; nobody else has it meanwhile.

    Attributes:
        series: Token of the numbering.
        first: Number of the first turn that is still kept.
        upto: Number of the last turn to flush. It stays the same until it is flushed, whoever
            tries: what is made of the turns is then the same after a crash.
        last: Number of the last turn of all.
    """

    series: str
    first: int
    upto: int
    last: int


@dataclass(frozen=True, slots=True)
class UserSessions:
    """How many sessions of a user are kept, and how many turns in them."""

    sessions: int
    turns: int


class SessionStore(Protocol):
    """Conversations under way, each under its exact key."""

    @property
    def outlives_process(self) -> bool:
        """Whether turns are still there when this process has ended."""
        ...

    async def ping(self) -> ServerInfo:
        """Answer a trivial call.

        Raises:
            StoreUnavailable: When nothing answers.
            StoreAuthenticationFailed: When it refuses the credentials.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...

    async def append(self, key: SessionKey, turn: NewTurn, *, series: str, now: datetime) -> int:
        """Keep a turn and return its number; a turn that is there already keeps its number.

        When the session is over, a new conversation begins: without summary and entities, and
        with turn ids of its own. Numbers go on while older turns wait to be flushed.

        Args:
            key: The session.
            turn: What was said.
            series: Token for the numbering, should this be its first turn.
            now: The present moment.

        Raises:
            IdConflict: When the conversation has another turn under this id.
        """
        ...

    async def read(self, key: SessionKey, now: datetime) -> SessionState | None:
        """Return the present conversation; None when there is none, or it is over."""
        ...

    async def keep_summary(self, key: SessionKey, state: SessionState, summary: Summary) -> bool:
        """Keep a summary made from a state; False, and no change, when it is out of date.

        That is: another one was kept since, or the conversation is another one.
        """
        ...

    async def idle(self, before: datetime, limit: int, skip: int = 0) -> tuple[SessionKey, ...]:
        """Return sessions with turns to flush whose last turn was kept at `before` or earlier.

        The longest silent first, after `skip` others. A session counts as silent since the last
        turn of its oldest conversation.
        """
        ...

    async def begin_flush(
        self,
        key: SessionKey,
        *,
        token: str,
        now: datetime,
        lease_s: float,
        idle_before: datetime | None = None,
    ) -> FlushLease | None:
        """Take, or prolong, the lease for flushing a session.

        Conversations that are over come first: the present one is flushed when no older turn is
        left.

        Args:
            key: The session.
            token: Who takes it.
            now: The present moment.
            lease_s: Seconds until somebody else may take it.
            idle_before: Leave the present conversation alone if it has a later turn; None =
                flush it in any case.

        Returns:
            None when there is nothing to flush, or somebody else has the lease.
        """
        ...

    async def turns(self, key: SessionKey, series: str, after: int, limit: int) -> tuple[Turn, ...]:
        """Return kept turns of a numbering by number, beginning after one."""
        ...

    async def drop_turns(
        self,
        key: SessionKey,
        series: str,
        upto: int,
        *,
        now: datetime,
        set_aside: Collection[int] = (),
    ) -> None:
        """Drop turns up to a number; later ones stay. Without any turn left the session is gone.

        A conversation that loses turns is over: what comes after is another one.

        Args:
            key: The session.
            series: Token of the numbering; of another one nothing is dropped.
            upto: Number of the last turn to drop.
            now: The present moment.
            set_aside: Numbers of dropped turns to keep for a person, see `set_aside`.
        """
        ...

    async def end_flush(self, key: SessionKey, token: str) -> None:
        """Give the lease back; harmless without one."""
        ...

    async def set_aside(self, key: SessionKey) -> tuple[Turn, ...]:
        """Return turns that long-term memory refused, in the order of their refusal.

        They are kept for `KEPT_DAYS` after the last of them.
        """
        ...

    async def of_user(self, tenant: str, user_id: str) -> UserSessions:
        """Count what is kept of a user, refused turns included."""
        ...

    async def drop_user(self, tenant: str, user_id: str) -> UserSessions:
        """Drop all that is kept of a user, whatever it waits for; return what there was."""
        ...


def id_taken(turn_id: str) -> str:
    """Return the sentence for a turn id that belongs to another turn."""
    return f"turn {turn_id!r} of this session is kept with another text or speaker"
