"""Feedback on memories: it acts at once, within bounds, is attributed, and can be taken back.

EXPIRED ends a memory, WRONG_TOPIC tags it anew, MISSING_INFO opens a task for who can complete it,
WRONG lowers how far the memory and its source are believed, HELPFUL counts as a use. None of it
deletes anything. What ends or re-tags a memory needs a source at least as reliable as the memory's
own, as `supersede` does: else feedback would be a way around that rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

import structlog

from ecphoria.embedding.text import clean
from ecphoria.errors import (
    EcphoriaError,
    Forbidden,
    InvalidInput,
    InvalidTime,
    NotFound,
    StoreError,
    TextEmpty,
)
from ecphoria.governance.access import (
    MASK,
    Operation,
    check_access,
    overrules_sources,
    readable_privacy,
)
from ecphoria.governance.data_keys import KeyOwner
from ecphoria.governance.redaction import OF_PERSONS_ALONE, PLACEHOLDERS, redactor
from ecphoria.governance.reveal import reads_sensitive
from ecphoria.governance.sealing import owner_of, sealed_text, unsealed_memory, unsealed_text
from ecphoria.language.folding import language_of
from ecphoria.model import (
    CompletionTask,
    Feedback,
    FeedbackFilter,
    FeedbackInput,
    FeedbackReceipt,
    FeedbackStatus,
    Memory,
    Page,
    Scope,
    TaskStatus,
    Topics,
    Verdict,
    checked_id,
    parse_time,
    utc,
)
from ecphoria.parts import EngineParts
from ecphoria.reading.paging import checked_first, page_of, place_of
from ecphoria.remember.by_hand import check_source, current_memory
from ecphoria.remember.indexing import index_pending
from ecphoria.remember.normalise import MAX_REASON_CHARS
from ecphoria.remember.protect import outlined, sealing_keys
from ecphoria.stores.ports import (
    FeedbackQuery,
    FeedbackRules,
    FeedbackWritten,
    NewFeedback,
    PendingMemory,
    TaskQuery,
)
from ecphoria.trust import TrustBounds

log = structlog.get_logger(__name__)

# They change what everybody sees of a memory.
_DECIDING: Final = frozenset({Verdict.EXPIRED, Verdict.WRONG_TOPIC})
_MOST_RETAGGED: Final = 100

Said = TypeVar("Said", Feedback, CompletionTask)


@dataclass(frozen=True, slots=True)
class _Note:
    """A note as it is kept: redacted, and sealed where that hides anything."""

    text: str | None = None
    sealed: str | None = None


async def give_feedback(parts: EngineParts, scope: Scope, item: FeedbackInput) -> FeedbackReceipt:
    """Keep feedback and do what it says; see `Engine.feedback`."""
    _check_parts(parts, item)
    user = _whose(scope, item.user_id)
    if user is None and item.verdict in _DECIDING:
        check_access(scope, Operation.REMEMBER_SHARED)
    memory = await _judged(parts, scope, user, item)
    now = utc(parts.clock.now())
    stamp = f"{int(now.timestamp() * 1000):015d}-{parts.clock.token()}"
    clear = await _in_clear(parts, memory)
    note = await _kept_note(parts, memory, clear, item.note, stamp)
    feedback = Feedback(
        id=f"feedback-{stamp}",
        tenant=scope.tenant,
        memory_id=memory.id,
        user_id=user,
        privacy=memory.privacy,
        source_id=memory.source_id,
        verdict=item.verdict,
        by=scope.principal,
        at=now,
        note=note.text,
        sealed=note.sealed,
        ends_at=_end(memory, item, now) if item.verdict is Verdict.EXPIRED else None,
        topics=(
            await _right_topics(parts, memory, clear, item)
            if item.verdict is Verdict.WRONG_TOPIC
            else None
        ),
        task_id=f"task-{stamp}" if item.verdict is Verdict.MISSING_INFO else None,
    )
    task = _task(feedback)
    written = await parts.graph.give_feedback(
        NewFeedback(feedback, task), parts.clock.token(), now, _rules(parts)
    )
    if written.feedback is None:
        msg = f"the memory {memory.id!r} was changed meanwhile, and is not current any more"
        raise NotFound(msg, path=("memory_id",))
    if written.outcome == "DUPLICATE" and written.feedback.task_id is not None:
        task = await parts.graph.completion_task(scope.tenant, written.feedback.task_id)
    return await _receipt(parts, scope, written, task)


async def undo_feedback(
    parts: EngineParts, scope: Scope, user_id: str | None, feedback_id: str
) -> FeedbackReceipt:
    """Take feedback back; see `Engine.undo_feedback`."""
    user = _whose(scope, user_id)
    id_ = _checked(feedback_id, "feedback id", "feedback_id")
    found = await parts.graph.feedback(scope.tenant, id_)
    if found is None or found.user_id != user:
        raise _no_feedback(id_)
    if found.by != scope.principal and not overrules_sources(scope):
        msg = "only who gave feedback, an operator or an admin may take it back"
        raise Forbidden(msg, path=("feedback_id",))
    written = await parts.graph.undo_feedback(
        scope.tenant,
        id_,
        parts.clock.token(),
        utc(parts.clock.now()),
        scope.principal,
        _rules(parts),
    )
    if written.feedback is None:
        raise _no_feedback(id_)
    return await _receipt(parts, scope, written, None)


async def list_feedback(
    parts: EngineParts,
    scope: Scope,
    user_id: str | None,
    filter_: FeedbackFilter,
    first: int,
    after: str | None,
) -> Page[Feedback]:
    """Return a page of feedback; see `Engine.list_feedback`."""
    user = _whose(scope, user_id)
    memory = filter_.memory_id
    if memory is not None:
        memory = _checked(memory, "memory id", "memory_id")
    size = checked_first(first)
    of = ["feedback", scope.tenant, user, memory, filter_.verdict, filter_.standing]
    found = await parts.graph.list_feedback(
        FeedbackQuery(
            tenant=scope.tenant,
            user_id=user,
            limit=size + 1,
            before="" if after is None else str(place_of(of, after)[0]),
            memory_id=memory,
            verdict=filter_.verdict,
            standing=filter_.standing,
        )
    )
    page = page_of(found, size, of, lambda one: (one.id,))
    return replace(page, items=await _shown(parts, scope, page.items))


async def completion_tasks(
    parts: EngineParts,
    scope: Scope,
    user_id: str | None,
    status: TaskStatus | None,
    first: int,
    after: str | None,
) -> Page[CompletionTask]:
    """Return a page of completion tasks; see `Engine.completion_tasks`."""
    user = _whose(scope, user_id)
    size = checked_first(first)
    of = ["completion tasks", scope.tenant, user, status]
    found = await parts.graph.completion_tasks(
        TaskQuery(
            tenant=scope.tenant,
            user_id=user,
            limit=size + 1,
            before="" if after is None else str(place_of(of, after)[0]),
            status=status,
        )
    )
    page = page_of(found, size, of, lambda one: (one.id,))
    return replace(page, items=await _shown(parts, scope, page.items))


async def complete_task(
    parts: EngineParts, scope: Scope, user_id: str | None, task_id: str, memory_id: str | None
) -> CompletionTask:
    """Note that a task is done; see `Engine.complete_task`."""
    user = _whose(scope, user_id)
    id_ = _checked(task_id, "task id", "id")
    task = await parts.graph.completion_task(scope.tenant, id_)
    if task is None or task.user_id != user:
        raise _no_task(id_)
    if memory_id is not None:
        completing = _checked(memory_id, "memory id", "memory_id")
        known = await parts.graph.memories(scope.tenant, [completing])
        if not any(memory.user_id in {None, user} for memory in known):
            msg = f"there is no memory {completing!r} in this scope"
            raise NotFound(msg, path=("memory_id",))
    now = utc(parts.clock.now())
    await parts.graph.complete_task(scope.tenant, id_, now, scope.principal, memory_id)
    task = await parts.graph.completion_task(scope.tenant, id_)
    if task is None:
        raise _no_task(id_)
    (shown,) = await _shown(parts, scope, [task])
    return shown


# --- checks --------------------------------------------------------------------------------


def _check_parts(parts: EngineParts, item: FeedbackInput) -> None:
    """Return when what is given fits the verdict."""
    if item.at is not None and item.verdict is not Verdict.EXPIRED:
        msg = f"a time of the end goes with {Verdict.EXPIRED}, not with {item.verdict}"
        raise InvalidInput(msg, path=("at",))
    if item.topics and item.verdict is not Verdict.WRONG_TOPIC:
        msg = f"the right topics go with {Verdict.WRONG_TOPIC}, not with {item.verdict}"
        raise InvalidInput(msg, path=("topics",))
    if item.verdict is Verdict.MISSING_INFO and item.note is None:
        msg = f"{Verdict.MISSING_INFO} needs a note that says what is missing"
        raise InvalidInput(msg, path=("note",))
    for index, topic in enumerate(item.topics):
        if topic not in parts.domain.topics:
            msg = f"the domain {parts.domain.name} has no topic {str(topic)[:60]!r}"
            raise InvalidInput(msg, path=("topics", index))
    if len(set(item.topics)) != len(item.topics):
        msg = "a topic comes twice"
        raise InvalidInput(msg, path=("topics",))


def _whose(scope: Scope, user_id: str | None) -> str | None:
    return None if user_id is None else scope.user(user_id)


def _checked(value: str, what: str, place: str) -> str:
    try:
        return checked_id(value, what)
    except EcphoriaError as error:
        raise error.at(place) from error


async def _judged(
    parts: EngineParts, scope: Scope, user: str | None, item: FeedbackInput
) -> Memory:
    """Return the current memory that is spoken of, if the scope may say this of it."""
    id_ = _checked(item.memory_id, "memory id", "memory_id")
    memory = await current_memory(parts, scope, user, id_)
    if memory.privacy not in readable_privacy(scope) and not overrules_sources(scope):
        # who may not read it must not find out that it is there
        msg = f"there is no memory {id_!r} in this scope"
        raise NotFound(msg)
    if item.verdict in _DECIDING:
        check_source(parts, scope, memory, None)
    return memory


def _end(memory: Memory, item: FeedbackInput, now: datetime) -> datetime:
    end = now if item.at is None else parse_time(item.at, "time of the end")
    if end <= memory.valid_from:
        msg = (
            f"the memory {memory.id!r} is true from {memory.valid_from.isoformat()} on: it cannot "
            "end before; what was never true is to be retracted"
        )
        raise InvalidTime(msg, path=("at",))
    return end


async def _right_topics(
    parts: EngineParts, memory: Memory, clear: Memory | None, item: FeedbackInput
) -> Topics:
    """Return what a memory is about, after somebody said that it is not what it was tagged as."""
    if item.topics:
        if item.topics[0] == memory.topic:
            msg = f"{memory.topic!r} is its main topic already"
            raise InvalidInput(msg, path=("topics", 0))
        return Topics(item.topics[0], item.topics)
    if memory.topic is None:
        msg = "the memory has no topic that could be wrong: say which is right"
        raise InvalidInput(msg, path=("topics",))
    before = await parts.graph.list_feedback(
        FeedbackQuery(
            memory.tenant,
            memory.user_id,
            _MOST_RETAGGED,
            memory_id=memory.id,
            verdict=Verdict.WRONG_TOPIC,
            standing=True,
        )
    )
    wrong = {memory.topic, *(one.before.topics.main for one in before if one.before.topics)}
    found = parts.lexicon.topics((clear or memory).text)
    left = tuple(dict.fromkeys(topic for topic in (*found, *memory.tags) if topic not in wrong))
    return Topics(left[0] if left else None, left)


# --- notes ---------------------------------------------------------------------------------


async def _in_clear(parts: EngineParts, memory: Memory) -> Memory | None:
    """Return a memory whose text hides something in clear, where its key is there."""
    owner = None if memory.sealed is None else owner_of(memory.sealed, memory.tenant)
    if owner is None:
        return None
    key = (await parts.vault.to_read([owner])).get(owner)
    return None if key is None else unsealed_memory(memory, key)


async def _kept_note(
    parts: EngineParts, memory: Memory, clear: Memory | None, given: str | None, stamp: str
) -> _Note:
    """Return a note as it is kept: with what identifies a person hidden, as in memories.

    Raises:
        InvalidInput: When it is empty or too long.
        EncryptionKeyMissing: When it holds what must be sealed, and no master key is set.
    """
    if given is None:
        return _Note()
    msg = f"a note has 1 to {MAX_REASON_CHARS} characters"
    if not isinstance(given, str) or len(given) > MAX_REASON_CHARS:
        raise InvalidInput(msg, path=("note",))
    try:
        note = clean(given)
    except TextEmpty as error:
        raise InvalidInput(msg, path=("note",)) from error
    lang = language_of(note)
    if memory.privacy == "sensitive":
        shown = PLACEHOLDERS["sensitive"][lang]
    else:
        hidden = _hidden_values(memory, clear)
        leave = OF_PERSONS_ALONE if memory.user_id is None else frozenset[str]()
        shown = redactor(parts.domain).redacted(note, lang=lang, hidden=hidden, leave=leave)
    if shown == note:
        return _Note(note)
    keys = (await sealing_keys(parts, memory.tenant, [memory.user_id]))[memory.user_id]
    if isinstance(keys, EcphoriaError):
        raise keys
    return _Note(shown, sealed_text(keys, note, _place(memory.tenant, stamp)))


def _hidden_values(memory: Memory, clear: Memory | None) -> tuple[tuple[str, str], ...]:
    """Return what is hidden in a memory, each with its placeholder: a note may repeat it."""
    if clear is None:
        return ()
    pairs = [(clear.value, memory.value), (clear.subject, memory.subject)]
    pairs += [(value, memory.details.get(name)) for name, value in clear.details.items()]
    return tuple((secret, shown) for secret, shown in pairs if secret and shown and secret != shown)


def _place(tenant: str, stamp: str) -> str:
    return f"{tenant}|note|{stamp}"


async def _shown(parts: EngineParts, scope: Scope, said: Sequence[Said]) -> tuple[Said, ...]:
    """Return records with their notes as a scope may see them: in clear, redacted or masked."""
    allowed = readable_privacy(scope)
    keys: Mapping[KeyOwner, bytes] = {}
    owners = {one.id: owner_of(one.sealed, one.tenant) for one in said if one.sealed is not None}
    if owners and reads_sensitive(scope):
        wanted = [owner for owner in owners.values() if owner is not None]
        keys = await parts.vault.to_read(wanted)
        parts.vault.tell_read(scope, (owner for owner in wanted if owner in keys))
    return tuple(_with_note(one, allowed, keys, owners.get(one.id)) for one in said)


def _with_note(
    said: Said, allowed: frozenset[str], keys: Mapping[KeyOwner, bytes], owner: KeyOwner | None
) -> Said:
    if said.note is None:
        return said
    if said.privacy not in allowed:
        return replace(said, note=MASK, sealed=None)
    key = None if owner is None else keys.get(owner)
    if key is None or said.sealed is None:
        return replace(said, sealed=None)
    clear = unsealed_text(key, said.sealed, _place(said.tenant, said.id.partition("-")[2]))
    if clear is None:
        log.error("a sealed note was refused: it is not what was sealed here", id=said.id)
    return replace(said, note=clear or said.note, sealed=None)


# --- outcome -------------------------------------------------------------------------------


def _task(feedback: Feedback) -> CompletionTask | None:
    if feedback.task_id is None:
        return None
    return CompletionTask(
        id=feedback.task_id,
        tenant=feedback.tenant,
        memory_id=feedback.memory_id,
        user_id=feedback.user_id,
        privacy=feedback.privacy,
        by=feedback.by,
        at=feedback.at,
        note=feedback.note,
        sealed=feedback.sealed,
    )


async def _receipt(
    parts: EngineParts, scope: Scope, written: FeedbackWritten, task: CompletionTask | None
) -> FeedbackReceipt:
    if written.feedback is None:
        raise _no_feedback("")
    indexed = await _indexed(parts, written.pending)
    (feedback,) = await _shown(parts, scope, [written.feedback])
    shown = await _shown(parts, scope, [task]) if task is not None else ()
    return FeedbackReceipt(
        FeedbackStatus(written.outcome), feedback, shown[0] if shown else None, indexed
    )


async def _indexed(parts: EngineParts, pending: Sequence[PendingMemory]) -> bool:
    if not pending:
        return True
    try:
        done = await index_pending(parts, pending)
    except StoreError as error:
        # the graph has it: recall asks the graph, and the reconciler finishes the index
        log.warning("feedback kept, index not yet", code=error.code, reason=error.message)
        return False
    return done.issuperset(item.key for item in pending)


def _rules(parts: EngineParts) -> FeedbackRules:
    settings = parts.settings
    return FeedbackRules(
        per_day=settings.feedback_per_day,
        bounds=TrustBounds(
            step=settings.feedback_trust_step,
            per_key=settings.feedback_trust_per_key,
            most=settings.feedback_trust_bound,
            doubt=settings.feedback_doubt_step,
            most_doubt=settings.feedback_doubt_bound,
        ),
        policies=parts.domain.kinds,
        outline=outlined,
    )


def _no_feedback(id_: str) -> NotFound:
    return NotFound(f"there is no feedback {id_!r} in this scope", path=("feedback_id",))


def _no_task(id_: str) -> NotFound:
    return NotFound(f"there is no task {id_!r} in this scope", path=("id",))
