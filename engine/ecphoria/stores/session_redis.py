"""Conversations kept in Redis, for several replicas.

Every change is one Lua script in ``redis_scripts/``: atomic, one round trip, and harmless when it
is sent again after a lost answer. The scripts touch keys of one session and the index of all, so
they want a Redis that is no Cluster.

A session has five keys, named by its exact, percent-encoded ids: ``…:head`` (a hash with numbers,
summary and lease), ``…:turns`` (a list), ``…:ids`` and ``…:entities`` (hashes), and ``…:aside``
(a list of refused turns). ``<prefix>:sessions`` is the index: sessions with turns, by silence.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote, unquote

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    BusyLoadingError,
    NoPermissionError,
    ReadOnlyError,
    RedisError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ecphoria.errors import (
    ConfigurationInvalid,
    IdConflict,
    StoreAuthenticationFailed,
    StoreError,
    StoreUnavailable,
)
from ecphoria.model import EntityRef, SessionKey, Turn
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

_SCHEMES = ("redis://", "rediss://", "unix://")
_CONNECTIONS = 32
_RETRIES = 3
_IDLE_CHECK_S = 30
# Names looked at in one round trip.
_SCANNED = 1_000
_KEPT_MS = int(timedelta(days=KEPT_DAYS) / timedelta(milliseconds=1))
_PASSING = (RedisConnectionError, BusyLoadingError, ReadOnlyError, OSError)
_REFUSED = (AuthenticationError, AuthenticationWrongNumberOfArgsError, NoPermissionError)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class RedisSessions:
    """`SessionStore` over redis-py. It belongs to the event loop that first uses it."""

    outlives_process = True

    def __init__(self, url: str, *, prefix: str, ttl_s: float, timeout_s: float) -> None:
        """Keep where to connect to; nothing is sent before the first call.

        Args:
            url: `redis://`, `rediss://` (TLS) or `unix://`, with user and password if need be.
            prefix: Beginning of the names of all keys.
            ttl_s: Seconds after its last turn that a conversation is over.
            timeout_s: Seconds that one operation may take, attempts included.

        Raises:
            ConfigurationInvalid: When the URL is none.
        """
        # the URL may hold a password: no message has it
        if not url.startswith(_SCHEMES):
            msg = f"ECPHORIA_REDIS_URL must begin with {', '.join(_SCHEMES)}"
            raise ConfigurationInvalid(msg)
        try:
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=_CONNECTIONS,
                timeout=timeout_s,
                socket_timeout=timeout_s,
                socket_connect_timeout=min(10.0, timeout_s),
                socket_keepalive=True,
                health_check_interval=_IDLE_CHECK_S,
                retry=Retry(ExponentialBackoff(cap=0.5, base=0.01), _RETRIES),
            )
            # finds out whether it knows all parameters of the URL; connects to nothing
            pool.connection_class(**pool.connection_kwargs)
        except (ValueError, TypeError) as error:
            msg = "ECPHORIA_REDIS_URL is no URL of a Redis: check its port and parameters"
            raise ConfigurationInvalid(msg) from error
        self._redis = Redis.from_pool(pool)
        self._prefix = prefix
        self._ttl_ms = _milliseconds(timedelta(seconds=ttl_s))
        self._timeout_s = timeout_s
        self._scripts = {
            name: self._redis.register_script(_script(name))
            for name in (
                "append",
                "read",
                "keep_summary",
                "begin_flush",
                "turns",
                "drop_turns",
                "end_flush",
                "drop_session",
            )
        }

    async def ping(self) -> ServerInfo:
        """See `SessionStore.ping`."""
        async with self._translated("pinging"):
            info = await self._redis.info("server")
        return ServerInfo("Redis", str(info.get("redis_version", "")))

    async def close(self) -> None:
        """See `SessionStore.close`."""
        await self._redis.aclose()

    async def append(self, key: SessionKey, turn: NewTurn, *, series: str, now: datetime) -> int:
        """See `SessionStore.append`."""
        member = _member(key)
        named = [part for ref in turn.entities for part in (ref.type, ref.id)]
        answer = await self._run(
            "append",
            self._keys(member, "head", "turns", "ids", "entities", "index"),
            [
                member,
                _since_epoch(now),
                self._ttl_ms,
                _KEPT_MS,
                series,
                turn.id,
                _fingerprint(turn),
                _encoded(turn),
                *named,
            ],
        )
        if answer == [0]:
            raise IdConflict(id_taken(turn.id), path=("turn_id",))
        return int(answer[1])

    async def read(self, key: SessionKey, now: datetime) -> SessionState | None:
        """See `SessionStore.read`."""
        answer = await self._run(
            "read",
            self._keys(_member(key), "head", "turns", "entities"),
            [_since_epoch(now), self._ttl_ms],
        )
        if not answer:
            return None
        series, start, last, last_at, text, upto, made_at, turns, entities = answer
        summary = Summary(text.decode(), int(upto), int(made_at))
        return SessionState(
            series=series.decode(),
            start=int(start),
            last=int(last),
            last_at=_moment(last_at),
            summary=summary,
            turns=_decoded(turns, summary.upto + 1),
            entities=_latest(entities),
        )

    async def keep_summary(self, key: SessionKey, state: SessionState, summary: Summary) -> bool:
        """See `SessionStore.keep_summary`."""
        before = state.summary
        answer = await self._run(
            "keep_summary",
            self._keys(_member(key), "head"),
            [
                state.series,
                state.start,
                before.upto,
                before.made_at,
                summary.text,
                summary.upto,
                summary.made_at,
            ],
        )
        return bool(answer)

    async def idle(self, before: datetime, limit: int, skip: int = 0) -> tuple[SessionKey, ...]:
        """See `SessionStore.idle`."""
        async with self._translated("listing"):
            members: Any = await self._redis.zrangebyscore(
                f"{self._prefix}:sessions", "-inf", _since_epoch(before), start=skip, num=limit
            )
        return tuple(_key(member) for member in members)

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
        member = _member(key)
        answer = await self._run(
            "begin_flush",
            self._keys(member, "head", "index"),
            [
                member,
                token,
                _since_epoch(now),
                _since_epoch(now + timedelta(seconds=lease_s)),
                "" if idle_before is None else _since_epoch(idle_before),
            ],
        )
        if answer == [b"gone"]:
            log.error("turns were never flushed", tenant=key.tenant)
            return None
        if not answer:
            return None
        series, first, upto, last = answer
        return FlushLease(series.decode(), int(first), int(upto), int(last))

    async def turns(self, key: SessionKey, series: str, after: int, limit: int) -> tuple[Turn, ...]:
        """See `SessionStore.turns`."""
        answer = await self._run(
            "turns", self._keys(_member(key), "head", "turns"), [series, after, limit]
        )
        return _decoded(answer[1], int(answer[0])) if answer else ()

    async def drop_turns(
        self,
        key: SessionKey,
        series: str,
        upto: int,
        *,
        now: datetime,  # noqa: ARG002 - keys expire by the server's clock
        set_aside: Collection[int] = (),
    ) -> None:
        """See `SessionStore.drop_turns`."""
        member = _member(key)
        await self._run(
            "drop_turns",
            self._keys(member, "head", "turns", "ids", "entities", "aside", "index"),
            [member, series, upto, _KEPT_MS, *sorted(set(set_aside))],
        )

    async def end_flush(self, key: SessionKey, token: str) -> None:
        """See `SessionStore.end_flush`."""
        await self._run("end_flush", self._keys(_member(key), "head"), [token])

    async def set_aside(self, key: SessionKey) -> tuple[Turn, ...]:
        """See `SessionStore.set_aside`."""
        (name,) = self._keys(_member(key), "aside")
        async with self._translated("reading refused turns"):
            items: Any = await self._redis.lrange(name, 0, -1)
        numbered = (item.split(b":", 1) for item in items)
        return tuple(turn for number, raw in numbered for turn in _decoded([raw], int(number)))

    async def of_user(self, tenant: str, user_id: str) -> UserSessions:
        """See `SessionStore.of_user`."""
        members = await self._members_of(tenant, user_id)
        turns = 0
        async with self._translated("counting turns of a user"):
            for member in members:
                for name in self._keys(member, "turns", "aside"):
                    length: Any = self._redis.llen(name)
                    turns += await length
        return UserSessions(len(members), turns)

    async def drop_user(self, tenant: str, user_id: str) -> UserSessions:
        """See `SessionStore.drop_user`."""
        members = await self._members_of(tenant, user_id)
        turns = 0
        for member in members:
            keys = self._keys(member, "head", "turns", "ids", "entities", "aside", "index")
            turns += int(await self._run("drop_session", keys, [member]))
        return UserSessions(len(members), turns)

    async def _members_of(self, tenant: str, user_id: str) -> list[str]:
        """Return the names of a user's sessions: those with turns, and those with refused ones."""
        # `quote` leaves nothing that means more than itself in a pattern; a prefix may
        own = ":".join(quote(part, safe="") for part in (tenant, user_id))
        head = f"{self._prefix}:session:"
        members: set[str] = set()
        async with self._translated("looking for sessions of a user"):
            pattern = f"{_literally(head)}{own}:*"
            async for name in self._redis.scan_iter(match=pattern, count=_SCANNED):
                members.add(name.decode().removeprefix(head).rpartition(":")[0])
        return sorted(members)

    def _keys(self, member: str, *parts: str) -> list[str]:
        return [
            f"{self._prefix}:sessions"
            if part == "index"
            else f"{self._prefix}:session:{member}:{part}"
            for part in parts
        ]

    async def _run(self, name: str, keys: list[str], args: Sequence[str | int]) -> Any:  # noqa: ANN401
        async with self._translated(name.replace("_", " ")):
            return await self._scripts[name](keys=keys, args=args)

    @contextlib.asynccontextmanager
    async def _translated(self, doing: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except (TimeoutError, RedisTimeoutError) as error:
            msg = f"the session store did not answer within {self._timeout_s:g} s ({doing})"
            raise StoreUnavailable(msg) from error
        except (RedisError, OSError) as error:
            if _is_refused(error):
                msg = "the session store refused the user or password in ECPHORIA_REDIS_URL"
                raise StoreAuthenticationFailed(msg) from error
            if not isinstance(error, _PASSING):
                msg = f"the session store failed ({doing}): {_first_line(error)}"
                raise StoreError(msg) from error
            msg = f"the session store is unavailable ({doing}): {_first_line(error)}"
            raise StoreUnavailable(msg) from error


@cache
def _script(name: str) -> str:
    return (resources.files("ecphoria.stores") / "redis_scripts" / f"{name}.lua").read_text("utf-8")


def _member(key: SessionKey) -> str:
    # `quote` leaves no colon: whatever the ids hold, two sessions have two names
    return ":".join(quote(part, safe="") for part in (key.tenant, key.user_id, key.session_id))


def _literally(text: str) -> str:
    """Return a text as a pattern that only it matches."""
    return re.sub(r"([\\*?\[\]^])", r"\\\1", text)


def _key(member: bytes) -> SessionKey:
    tenant, user_id, session_id = (unquote(part) for part in member.decode().split(":"))
    return SessionKey(tenant, user_id, session_id)


def _milliseconds(duration: timedelta) -> int:
    return duration // _MS


def _since_epoch(moment: datetime) -> int:
    return _milliseconds(moment - _EPOCH)


def _moment(milliseconds: bytes | int) -> datetime:
    return _EPOCH + int(milliseconds) * _MS


def _fingerprint(turn: NewTurn) -> str:
    return hashlib.sha256(f"{turn.speaker}:{compared(turn.text)}".encode()).hexdigest()[:32]


def _encoded(turn: NewTurn) -> str:
    # ASCII by escapes: whatever the text holds comes back
    return json.dumps(
        {
            "speaker": turn.speaker,
            "text": turn.text,
            "said_at": _since_epoch(turn.said_at),
            "entities": [[ref.type, ref.id] for ref in turn.entities],
        }
    )


def _decoded(items: Sequence[bytes], first: int) -> tuple[Turn, ...]:
    found: list[Turn] = []
    for number, item in enumerate(items, first):
        try:
            turn = json.loads(item)
            found.append(
                Turn(
                    number,
                    turn["speaker"],
                    turn["text"],
                    _moment(turn["said_at"]),
                    tuple(EntityRef(type_, id_) for type_, id_ in turn["entities"]),
                )
            )
        except (ValueError, KeyError, TypeError) as error:
            msg = f"turn {number} of a session cannot be read: {_first_line(error)}"
            raise StoreError(msg) from error
    return tuple(found)


def _latest(entities: Sequence[bytes]) -> tuple[EntityRef, ...]:
    # scripts answer a hash as a flat list, whatever the protocol
    flat = [item.decode() for item in entities]
    named = []
    for type_, value in zip(flat[::2], flat[1::2], strict=True):
        number, place, id_ = value.split(":", 2)
        named.append((int(number), int(place), EntityRef(type_, id_)))
    named.sort(key=lambda item: item[:2], reverse=True)
    return tuple(ref for _, _, ref in named)


def _is_refused(error: Exception) -> bool:
    # a long command before any password is called a protocol error
    return isinstance(error, _REFUSED) or "unauthenticated" in str(error)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
