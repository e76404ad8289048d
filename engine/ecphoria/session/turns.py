"""Keep what is said in a conversation, and give it back within a budget of tokens."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import get_args

import structlog

from ecphoria.embedding.text import clean
from ecphoria.errors import ChatFailed, EcphoriaError, InvalidInput, StoreError, TextTooLong
from ecphoria.governance.access import Operation, check_access
from ecphoria.governance.redaction import redactor
from ecphoria.governance.reveal import reads_sensitive
from ecphoria.language.folding import Compact, language_of
from ecphoria.language.tokens import estimated_tokens
from ecphoria.model import (
    EntityRef,
    NamedEntity,
    Scope,
    SessionContext,
    SessionKey,
    Speaker,
    checked_id,
    parse_time,
    utc,
)
from ecphoria.parts import EngineParts
from ecphoria.remember.forgotten import Tombstones, tombstones
from ecphoria.session.summary import LABELS, extract
from ecphoria.settings import Settings
from ecphoria.stores.session_port import NewTurn, SessionState, Summary

log = structlog.get_logger(__name__)

# Of the tokens kept word by word, how many a summary may have on top.
_SUMMARY_SHARE = 4
_LEAST_SUMMARY_TOKENS = 60
# Somebody else's summary came first so many times: then ours is used, and not kept.
_ATTEMPTS = 5


async def remember_turn(
    parts: EngineParts,
    scope: Scope,
    user_id: str,
    session_id: str,
    speaker: Speaker,
    text: str,
    *,
    said_at: datetime | None = None,
    turn_id: str | None = None,
) -> SessionContext:
    """Keep one message of a conversation and return what is now kept of it.

    Entities that it names by id or name are found among the user's own and shared ones. Without
    the graph the turn is kept all the same, without entities.

    Args:
        parts: The engine's parts.
        scope: For whom.
        user_id: Whose conversation it is.
        session_id: The caller's own id of the conversation.
        speaker: ``customer`` or ``service``.
        text: What was said.
        said_at: When; now if None.
        turn_id: The caller's own id: sent again within the conversation, it is the same turn.

    Raises:
        InvalidInput: When the text, an id, the speaker or the time is no good.
        InvalidScope: When the user is missing, empty or ``*``.
        Forbidden: When the scope's roles or users do not allow it.
        IdConflict: When the conversation has another turn of this id.
        UserForgotten: When the user was forgotten.
        StoreUnavailable: When the session store does not answer.
    """
    check_access(scope, Operation.SESSION)
    key = session_key(scope, user_id, session_id)
    now = parts.clock.now()
    said = _checked_turn(parts, speaker, text, said_at, turn_id, now)
    named, stones = await asyncio.gather(_named(parts, key, said.text), _tombstones(parts, key))
    if stones is not None and key.user_id in stones.forgotten:
        raise stones.refusal()
    turn = replace(said, entities=named)
    await parts.sessions.append(key, turn, series=parts.clock.token(), now=now)
    return _shown(parts, scope, key.user_id, await _context(parts, key))


async def session_context(
    parts: EngineParts, scope: Scope, user_id: str, session_id: str
) -> SessionContext:
    """Return what is kept of a conversation: the last turns, and a summary of those before.

    A conversation that is unknown or over is an empty one.

    Raises:
        InvalidInput: When the session id is none.
        InvalidScope: When the user is missing, empty or ``*``.
        Forbidden: When the scope's roles or users do not allow it.
        StoreUnavailable: When the session store does not answer.
    """
    check_access(scope, Operation.SESSION)
    key = session_key(scope, user_id, session_id)
    return _shown(parts, scope, key.user_id, await _context(parts, key))


def _shown(
    parts: EngineParts, scope: Scope, user_id: str, context: SessionContext
) -> SessionContext:
    """Return a conversation as a scope may see it: in clear, or redacted."""
    words = redactor(parts.domain)
    if reads_sensitive(scope):
        texts = (context.summary, *(turn.text for turn in context.turns))
        count = sum(1 for text in texts if words.find(text))
        if count:
            parts.audit.note_read(scope, user_id, count)
        return context
    return replace(
        context,
        summary=words.redacted(context.summary),
        turns=tuple(replace(turn, text=words.redacted(turn.text)) for turn in context.turns),
    )


def session_key(scope: Scope, user_id: str, session_id: str) -> SessionKey:
    """Return the key of a conversation that the scope may name.

    Raises:
        InvalidScope: When the user is missing, empty, ``*`` or malformed.
        Forbidden: When the scope may not name the user.
        InvalidInput: When the session id is none.
    """
    try:
        user = scope.user(user_id)
    except EcphoriaError as error:
        raise error.at("user_id") from error
    try:
        return SessionKey(scope.tenant, user, checked_id(session_id, "session id"))
    except EcphoriaError as error:
        raise error.at("session_id") from error


def _checked_turn(
    parts: EngineParts,
    speaker: object,
    text: object,
    said_at: datetime | None,
    turn_id: str | None,
    now: datetime,
) -> NewTurn:
    if speaker not in get_args(Speaker):
        msg = f"the speaker must be {' or '.join(get_args(Speaker))}"
        raise InvalidInput(msg, path=("speaker",))
    if not isinstance(text, str):
        msg = f"the text must be a string, not {type(text).__name__}"
        raise InvalidInput(msg, path=("text",))
    longest = parts.settings.max_text_chars
    if len(text) > longest:
        msg = f"the text has {len(text)} characters; {longest} are allowed"
        raise TextTooLong(msg, path=("text",))
    try:
        cleaned = clean(text)
    except EcphoriaError as error:
        raise error.at("text") from error
    try:
        moment = utc(now) if said_at is None else parse_time(said_at, "said_at")
    except EcphoriaError as error:
        raise error.at("said_at") from error
    try:
        id_ = parts.clock.token() if turn_id is None else checked_id(turn_id, "turn id")
    except EcphoriaError as error:
        raise error.at("turn_id") from error
    who: Speaker = "customer" if speaker == "customer" else "service"
    return NewTurn(id_, who, cleaned, moment)


# --- entities ------------------------------------------------------------------------------


async def _tombstones(parts: EngineParts, key: SessionKey) -> Tombstones | None:
    """Return the user's tombstones; None without the graph, which asks again at the end."""
    try:
        return await tombstones(parts, key.tenant, [key.user_id])
    except StoreError as error:
        log.warning("turn kept without a look for tombstones", code=error.code)
        return None


async def _named(parts: EngineParts, key: SessionKey, text: str) -> tuple[EntityRef, ...]:
    graph = parts.graph
    try:
        mentions = _mentions(parts, text, await graph.names(key.tenant, key.user_id))
        wanted = tuple(dict.fromkeys(ref for _, refs in mentions for ref in refs))
        if not wanted:
            return ()
        visible = await graph.visible_entities(key.tenant, key.user_id, wanted)
    except StoreError as error:
        # what was said counts more than what it names
        log.warning("turn kept without entities", code=error.code, reason=error.message)
        return ()
    known = frozenset(entity.ref for entity in visible)
    named = [ref for _, refs in mentions for ref in _meant(refs, known)]
    # an entity named twice stands where it was named last
    return tuple(reversed(dict.fromkeys(reversed(named))))


def _mentions(
    parts: EngineParts, text: str, names: Sequence[NamedEntity]
) -> list[tuple[int, tuple[EntityRef, ...]]]:
    """Return what may be named, in the order of the text."""
    found = [(mention.text, mention.candidates) for mention in parts.lexicon.id_mentions(text)]
    found += [
        (mention.text, tuple(ref for ref in mention.refs if ref.type != parts.domain.root))
        for mention in parts.lexicon.name_mentions(text, names)
    ]
    compact = Compact(text)
    return sorted((_place(compact, name), refs) for name, refs in found)


def _place(text: Compact, name: str) -> int:
    spans = text.find(name)
    return spans[-1][0] if spans else text.text.find(Compact(name).text)


def _meant(refs: Sequence[EntityRef], known: frozenset[EntityRef]) -> list[EntityRef]:
    """Return those that exist; several of one type by one name are none: which, is not said."""
    there = [ref for ref in refs if ref in known]
    types = Counter(ref.type for ref in there)
    return [ref for ref in there if types[ref.type] == 1]


# --- window and summary --------------------------------------------------------------------


async def _context(parts: EngineParts, key: SessionKey) -> SessionContext:
    state = await parts.sessions.read(key, parts.clock.now())
    if state is None:
        return SessionContext(key.session_id, "", (), (), 0, None)
    state = await _summarised(parts, key, state)
    expires_at = None
    # a life that ends after the year 9999 never ends
    with contextlib.suppress(OverflowError):
        expires_at = state.last_at + timedelta(seconds=parts.settings.session_ttl_s)
    return SessionContext(
        session_id=key.session_id,
        summary=state.summary.text,
        turns=state.turns,
        entities=state.entities,
        turn_count=state.last - state.start + 1,
        expires_at=expires_at,
    )


async def _summarised(parts: EngineParts, key: SessionKey, state: SessionState) -> SessionState:
    """Return the state with a summary of all turns that are not kept word by word."""
    attempts = 0
    while (upto := summary_due(state, parts.settings)) is not None:
        summary = await _summary(parts, state, upto)
        attempts += 1
        kept = await parts.sessions.keep_summary(key, state, summary)
        newer = None
        if not kept and attempts < _ATTEMPTS:
            newer = await parts.sessions.read(key, parts.clock.now())
        if newer is None:
            later = tuple(turn for turn in state.turns if turn.number > upto)
            return replace(state, summary=summary, turns=later)
        state = newer
    return state


def summary_due(state: SessionState, settings: Settings) -> int | None:
    """Return up to which turn a summary must be made now, or None.

    It must when enough turns came since the last one, or when the turns after it no longer fit
    the tokens that are kept word by word. The latest turns stay word by word: half as many as
    make a summary due, within half of the tokens, but the very last in any case where it fits.
    """
    costs = [estimated_tokens(f"{LABELS['en'][turn.speaker]}{turn.text}") for turn in state.turns]
    budget = settings.session_tokens
    every = settings.session_summary_every
    if sum(costs) <= budget and state.last - state.summary.made_at < every:
        return None
    stay = 0
    used = 0
    for cost in reversed(costs[-(every // 2) :]):
        used += cost
        if used > (budget // 2 if stay else budget):
            break
        stay += 1
    return state.last - stay


async def _summary(parts: EngineParts, state: SessionState, upto: int) -> Summary:
    previous = state.summary.text
    turns = [turn for turn in state.turns if turn.number <= upto]
    lang = language_of("\n".join([previous, *(turn.text for turn in turns)]))
    budget = max(_LEAST_SUMMARY_TOKENS, parts.settings.session_tokens // _SUMMARY_SHARE)
    try:
        text = await parts.summarizer.summarize(previous, turns, lang=lang, max_tokens=budget)
    except ChatFailed as error:
        log.warning("summary made by rules", code=error.code, reason=error.message)
        text = extract(previous, turns, parts.lexicon, lang=lang, max_tokens=budget)
    return Summary(text, upto, state.last)
