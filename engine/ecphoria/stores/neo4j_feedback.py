"""Feedback on memories in the graph: what was said, what it did, and how it is taken back.

What feedback changes is worked out anew from all that stands, each time: so the order in which it
came, and in which it is taken back, makes no difference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Literal

from neo4j import AsyncManagedTransaction

from ecphoria.decay import archive_at, faded, refreshed
from ecphoria.errors import FeedbackLimit
from ecphoria.model import (
    Before,
    CompletionTask,
    Feedback,
    Memory,
    Status,
    TaskStatus,
    Topics,
    Verdict,
    memory_key,
)
from ecphoria.stores.graph_rows import (
    memory_caption,
    memory_from,
    milliseconds,
    moment,
    native_props,
    source_key,
)
from ecphoria.stores.neo4j_connection import Row, records, run
from ecphoria.stores.neo4j_feedback_removal import FEEDBACK, TASK, feedback_owner
from ecphoria.stores.neo4j_memories import Neo4jMemories
from ecphoria.stores.ports import (
    FeedbackQuery,
    FeedbackRules,
    FeedbackWritten,
    NewFeedback,
    PendingMemory,
    TaskQuery,
)
from ecphoria.trust import doubt_of, lowered
from ecphoria_schema.queries import query

DAY: Final = timedelta(days=1)
# After every id.
_LAST = "~"


class Neo4jFeedback(Neo4jMemories):
    """The part of `GraphStore` that keeps feedback and does what it says."""

    async def give_feedback(
        self,
        new: NewFeedback,
        token: str,
        now: datetime,
        rules: FeedbackRules,
    ) -> FeedbackWritten:
        """See `GraphStore.give_feedback`."""
        given = new.feedback
        key = memory_key(given.tenant, given.memory_id)
        author = f"{given.tenant}|FeedbackAuthor|{given.by}"

        async def work(tx: AsyncManagedTransaction) -> FeedbackWritten:
            found = await run(
                tx, query("lock_author"), key=author, token=token, tenant=given.tenant
            )
            at, memory = await self._locked_memory(tx, key, given.verdict, token, now)
            if (
                memory is None
                or memory.user_id != given.user_id
                or memory.status is not Status.ACTIVE
            ):
                return FeedbackWritten("GONE", None)
            standing = await _standing(tx, key, given.verdict)
            same = next((one for one in standing if one.by == given.by), None)
            if same is not None:
                return FeedbackWritten("DUPLICATE", same)
            recent = _recent(found[0]["recent"], now)
            _check_limit(recent, rules.per_day, now)
            recent.append(milliseconds(now))
            await run(tx, query("note_author"), key=author, recent=json.dumps(recent))
            before = await self._before(tx, memory, given)
            kept = replace(given, at=at, before=before)
            await run(
                tx,
                query("make_feedback"),
                memory=key,
                key=_key(given.tenant, FEEDBACK, given.id),
                props=_feedback_props(kept),
            )
            if new.task is not None:
                await run(
                    tx,
                    query("make_task"),
                    memory=key,
                    key=_key(given.tenant, TASK, new.task.id),
                    props=_task_props(new.task),
                )
            changed = await self._act(tx, memory, kept, [*standing, kept], rules, at)
            return await self._written(tx, "GIVEN", kept, changed, token)

        async with self._locked([author, key]):
            return await self._write("keeping feedback", work)

    async def undo_feedback(
        self,
        tenant: str,
        feedback_id: str,
        token: str,
        now: datetime,
        by: str,
        rules: FeedbackRules,
    ) -> FeedbackWritten:
        """See `GraphStore.undo_feedback`."""
        known = await self.feedback(tenant, feedback_id)
        if known is None:
            return FeedbackWritten("GONE", None)
        key = memory_key(tenant, known.memory_id)

        async def work(tx: AsyncManagedTransaction) -> FeedbackWritten:
            at, memory = await self._locked_memory(tx, key, known.verdict, token, now)
            own = _key(tenant, FEEDBACK, feedback_id)
            rows = await run(tx, query("undo_feedback"), key=own, now=at, by=by)
            if not rows or memory is None:
                rows = await run(tx, query("feedback"), key=own)
                if not rows:
                    return FeedbackWritten("GONE", None)
                return FeedbackWritten("UNCHANGED", _feedback_from(rows[0]["props"]))
            undone = _feedback_from(rows[0]["props"])
            if undone.task_id is not None:
                await run(
                    tx,
                    query("remove_nodes", label=TASK),
                    keys=[_key(tenant, TASK, undone.task_id)],
                )
            if undone.verdict is Verdict.HELPFUL:
                changed = await _unused(tx, memory, undone, rules)
            else:
                standing = await _standing(tx, key, undone.verdict)
                changed = await self._act(tx, memory, undone, standing, rules, at)
            return await self._written(tx, "UNDONE", undone, changed, token)

        async with self._locked([key]):
            return await self._write("taking feedback back", work)

    async def _locked_memory(
        self, tx: AsyncManagedTransaction, key: str, verdict: Verdict, token: str, now: datetime
    ) -> tuple[datetime, Memory | None]:
        """Return a memory that nobody else changes until this is done, and what time it is."""
        at = now
        if verdict is Verdict.EXPIRED:
            _, at = await self._lock_claims(tx, await self._claims_of(tx, [key]), token, now)
        await self._lock_memories(tx, [key])
        rows = await run(tx, query("memories"), keys=[key])
        return at, memory_from(rows[0]["props"], rows[0]["about"]) if rows else None

    async def _before(self, tx: AsyncManagedTransaction, memory: Memory, given: Feedback) -> Before:
        match given.verdict:
            case Verdict.EXPIRED:
                return Before(valid_until=memory.valid_until)
            case Verdict.WRONG_TOPIC:
                return Before(topics=Topics(memory.topic, memory.tags))
            case Verdict.WRONG:
                rows = await run(tx, query("lock_source"), key=_source(given))
                reliability = float(rows[0]["reliability"]) if rows else None
                return Before(reliability=reliability, doubt=memory.doubt)
            case Verdict.HELPFUL:
                rows = await run(tx, query("use_of_memory"), key=memory.key)
                return Before(use=rows[0])
            case _:
                return Before()

    async def _act(
        self,
        tx: AsyncManagedTransaction,
        memory: Memory,
        said: Feedback,
        standing: list[Feedback],
        rules: FeedbackRules,
        at: datetime,
    ) -> Mapping[str, Memory]:
        """Make a memory, and its source, what standing feedback of one verdict makes of it.

        Returns:
            The memories whose rows in the index must be made again.
        """
        match said.verdict:
            case Verdict.EXPIRED:
                ends = [one.ends_at for one in standing if one.ends_at is not None]
                await run(tx, query("set_end"), key=memory.key, ended_at=min(ends, default=None))
                return (await self._put_in_order(tx, [memory.key], set(), at)).changed
            case Verdict.WRONG_TOPIC:
                return await _retag(tx, memory, standing, rules)
            case Verdict.WRONG:
                await _distrust(tx, memory, said, standing, rules)
            case Verdict.HELPFUL:
                return await _used(tx, memory, rules, at)
            case _:
                pass
        return {}

    async def _written(
        self,
        tx: AsyncManagedTransaction,
        outcome: Literal["GIVEN", "UNDONE"],
        feedback: Feedback,
        changed: Mapping[str, Memory],
        token: str,
    ) -> FeedbackWritten:
        if changed:
            await self._mark_pending(tx, changed, token)
        pending = tuple(PendingMemory(key, token, changed[key]) for key in sorted(changed))
        return FeedbackWritten(outcome, feedback, pending)

    # --- reading ---------------------------------------------------------------------------

    async def feedback(self, tenant: str, feedback_id: str) -> Feedback | None:
        """See `GraphStore.feedback`."""
        rows = await self._read(
            "reading feedback", records(query("feedback"), key=_key(tenant, FEEDBACK, feedback_id))
        )
        return _feedback_from(rows[0]["props"]) if rows else None

    async def list_feedback(self, query_: FeedbackQuery) -> tuple[Feedback, ...]:
        """See `GraphStore.list_feedback`."""
        memory = query_.memory_id
        rows = await self._read(
            "listing feedback",
            records(
                query("list_feedback"),
                p={
                    "owner": feedback_owner(query_.tenant, query_.user_id),
                    "before": _key(query_.tenant, FEEDBACK, query_.before or _LAST),
                    "memory": None if memory is None else memory_key(query_.tenant, memory),
                    "any_memory": memory is None,
                    "verdict": query_.verdict,
                    "any_verdict": query_.verdict is None,
                    "standing": query_.standing,
                    "any_standing": query_.standing is None,
                    "limit": query_.limit,
                },
            ),
        )
        return tuple(_feedback_from(row["props"]) for row in rows)

    async def completion_task(self, tenant: str, task_id: str) -> CompletionTask | None:
        """See `GraphStore.completion_task`."""
        rows = await self._read(
            "reading a task", records(query("task"), key=_key(tenant, TASK, task_id))
        )
        return _task_from(rows[0]) if rows else None

    async def completion_tasks(self, query_: TaskQuery) -> tuple[CompletionTask, ...]:
        """See `GraphStore.completion_tasks`."""
        rows = await self._read(
            "listing tasks",
            records(
                query("list_tasks"),
                p={
                    "owner": feedback_owner(query_.tenant, query_.user_id),
                    "before": _key(query_.tenant, TASK, query_.before or _LAST),
                    "any_status": query_.status is None,
                    "done": query_.status is TaskStatus.DONE,
                    "limit": query_.limit,
                },
            ),
        )
        return tuple(_task_from(row) for row in rows)

    async def complete_task(
        self, tenant: str, task_id: str, now: datetime, by: str, memory_id: str | None
    ) -> bool:
        """See `GraphStore.complete_task`."""
        key = _key(tenant, TASK, task_id)
        async with self._locked([key]):
            rows = await self._write(
                "completing a task",
                records(query("complete_task"), key=key, now=now, by=by, memory=memory_id),
            )
        return bool(rows)


# --- effects -------------------------------------------------------------------------------


async def _standing(tx: AsyncManagedTransaction, key: str, verdict: Verdict) -> list[Feedback]:
    rows = await run(tx, query("feedback_of_memory"), memory=key, verdict=verdict)
    return [_feedback_from(row["props"]) for row in rows]


async def _retag(
    tx: AsyncManagedTransaction,
    memory: Memory,
    standing: list[Feedback],
    rules: FeedbackRules,
) -> Mapping[str, Memory]:
    rows = await run(tx, query("written_topics"), key=memory.key)
    kept = rows[0]["written"]
    written = _topics_from(kept) if kept else Topics(memory.topic, memory.tags)
    # the last one that stands; ids are in order of time
    last = max(standing, key=lambda one: one.id, default=None)
    topics = (written if last is None else last.topics) or written
    changed = replace(
        memory, topic=topics.main, tags=topics.tags, text=rules.outline(memory, topics)
    )
    await run(
        tx,
        query("set_topics"),
        key=memory.key,
        topic=topics.main,
        tags=list(topics.tags),
        name=memory_caption(changed),
        shown=changed.text,
        written=_topics_text(written),
    )
    return {memory.key: changed}


async def _distrust(
    tx: AsyncManagedTransaction,
    memory: Memory,
    said: Feedback,
    standing: list[Feedback],
    rules: FeedbackRules,
) -> None:
    keys = len({one.by for one in standing})
    await run(tx, query("set_doubt"), key=memory.key, doubt=doubt_of(keys, rules.bounds))
    source = _source(said)
    locked = await run(tx, query("lock_source"), key=source)
    if locked:
        rows = await run(tx, query("wrong_of_source"), source=source, verdict=Verdict.WRONG)
        declared = float(locked[0]["declared"])
        reliability = lowered(declared, (row["count"] for row in rows), rules.bounds)
        await run(tx, query("set_trust"), key=source, reliability=reliability)


async def _used(
    tx: AsyncManagedTransaction, memory: Memory, rules: FeedbackRules, at: datetime
) -> Mapping[str, Memory]:
    """Count one use more, as if it had been in an answer."""
    row = (await run(tx, query("use_of_memory"), key=memory.key))[0]
    decay = rules.policies[memory.kind].decay
    since = moment(row["freshness_at"] or row["recorded_at"])
    freshness = _freshness(row)
    fresh = 1.0 if decay is None else refreshed(freshness, since, at, decay, 1)
    last = max(since, at)
    await run(
        tx,
        query("set_use"),
        key=memory.key,
        access_count=(row["access_count"] or 0) + 1,
        reinforced=(row["reinforced"] or 0) + 1,
        tier="hot",
        freshness=fresh,
        freshness_at=last,
        last_accessed_at=at,
        archive_at=None if decay is None else archive_at(fresh, last, decay),
    )
    return {memory.key: replace(memory, tier="hot")} if memory.tier != "hot" else {}


async def _unused(
    tx: AsyncManagedTransaction, memory: Memory, undone: Feedback, rules: FeedbackRules
) -> Mapping[str, Memory]:
    """Count one use less: as it was before, unless it was used since; then as without it."""
    row = (await run(tx, query("use_of_memory"), key=memory.key))[0]
    was = undone.before.use
    decay = rules.policies[memory.kind].decay
    values: Row = {
        "access_count": max(0, (row["access_count"] or 0) - 1),
        "reinforced": max(0, (row["reinforced"] or 0) - 1),
    }
    if row["last_accessed_at"] == milliseconds(undone.at):
        names = ("last_accessed_at", "freshness_at", "archive_at")
        values |= {name: moment(was.get(name)) for name in names}
        values |= {"tier": was["tier"], "freshness": was.get("freshness")}
    else:
        since = moment(row["freshness_at"] or row["recorded_at"])
        fresh = _freshness(row)
        if decay is not None:
            began = moment(was.get("freshness_at") or was.get("recorded_at"))
            share = refreshed(_freshness(was), began, undone.at, decay, 1) - faded(
                _freshness(was), began, undone.at, decay
            )
            fresh = max(0.0, fresh - faded(share, undone.at, since, decay))
        values |= {
            "tier": memory.tier,
            "freshness": fresh,
            "freshness_at": since,
            "last_accessed_at": moment(row["last_accessed_at"]),
            "archive_at": None
            if decay is None or memory.tier != "hot"
            else archive_at(fresh, since, decay),
        }
    await run(tx, query("set_use"), key=memory.key, **values)
    if values["tier"] == memory.tier:
        return {}
    return {memory.key: replace(memory, tier=values["tier"])}


def _freshness(row: Mapping[str, object]) -> float:
    found = row.get("freshness")
    return float(found) if isinstance(found, int | float) else 1.0


# --- limit ---------------------------------------------------------------------------------


def _recent(kept: str | None, now: datetime) -> list[int]:
    """Return when a key gave feedback in the last 24 hours, in milliseconds, in order."""
    since = milliseconds(now - DAY)
    return [at for at in json.loads(kept or "[]") if at > since]


def _check_limit(recent: list[int], per_day: int, now: datetime) -> None:
    if len(recent) < per_day:
        return
    again = moment(recent[-per_day]) + DAY
    msg = (
        f"a key may give feedback {per_day} times in 24 hours, and this one has: try again at "
        f"{again:%Y-%m-%dT%H:%M:%SZ}"
    )
    raise FeedbackLimit(msg, retry_after_s=max(1.0, (again - now).total_seconds()))


# --- rows ----------------------------------------------------------------------------------


def _key(tenant: str, label: str, id_: str) -> str:
    return f"{tenant}|{label}|{id_}"


def _source(said: Feedback) -> str:
    return source_key(said.tenant, said.source_id)


def _topics_text(topics: Topics) -> str:
    return json.dumps([topics.main, *topics.tags], ensure_ascii=False)


def _topics_from(text: str) -> Topics:
    main, *tags = json.loads(text)
    return Topics(main, tuple(tags))


def _before_text(before: Before) -> str:
    ended = before.valid_until
    values = {
        "valid_until": None if ended is None else milliseconds(ended),
        "topics": None if before.topics is None else _topics_text(before.topics),
        "reliability": before.reliability,
        "doubt": before.doubt,
        "use": dict(before.use) or None,
    }
    return json.dumps({name: value for name, value in values.items() if value is not None})


def _before_from(text: str | None) -> Before:
    values = json.loads(text or "{}")
    return Before(
        valid_until=moment(values.get("valid_until")),
        topics=_topics_from(values["topics"]) if "topics" in values else None,
        reliability=values.get("reliability"),
        doubt=values.get("doubt"),
        use=values.get("use") or {},
    )


def _feedback_props(said: Feedback) -> Row:
    return {
        "id": said.id,
        "name": said.verdict.replace("_", " ").lower(),
        "tenant": said.tenant,
        "memory": memory_key(said.tenant, said.memory_id),
        "memory_id": said.memory_id,
        "owner": feedback_owner(said.tenant, said.user_id),
        "user_id": said.user_id,
        "privacy": said.privacy,
        "source": _source(said),
        "source_id": said.source_id,
        "verdict": said.verdict,
        "by": said.by,
        "at": said.at,
        "note": said.note,
        "sealed": said.sealed,
        "ends_at": said.ends_at,
        "topics": None if said.topics is None else _topics_text(said.topics),
        "task_id": said.task_id,
        "before": _before_text(said.before),
        "standing": True,
    }


def _feedback_from(found: Mapping[str, object]) -> Feedback:
    props = native_props(found)
    return Feedback(
        id=props["id"],
        tenant=props["tenant"],
        memory_id=props["memory_id"],
        user_id=props.get("user_id"),
        privacy=props["privacy"],
        source_id=props["source_id"],
        verdict=Verdict(props["verdict"]),
        by=props["by"],
        at=props["at"],
        note=props.get("note"),
        sealed=props.get("sealed"),
        ends_at=props.get("ends_at"),
        topics=_topics_from(props["topics"]) if "topics" in props else None,
        task_id=props.get("task_id"),
        before=_before_from(props.get("before")),
        undone_at=props.get("undone_at"),
        undone_by=props.get("undone_by"),
    )


def _task_props(task: CompletionTask) -> Row:
    return {
        "id": task.id,
        "name": "to complete",
        "tenant": task.tenant,
        "memory": memory_key(task.tenant, task.memory_id),
        "memory_id": task.memory_id,
        "owner": feedback_owner(task.tenant, task.user_id),
        "user_id": task.user_id,
        "privacy": task.privacy,
        "by": task.by,
        "at": task.at,
        "note": task.note,
        "sealed": task.sealed,
    }


def _task_from(row: Row) -> CompletionTask:
    props = native_props(row["props"])
    newer = sorted(row["newer"])
    return CompletionTask(
        id=props["id"],
        tenant=props["tenant"],
        memory_id=props["memory_id"],
        user_id=props.get("user_id"),
        privacy=props["privacy"],
        by=props["by"],
        at=props["at"],
        note=props.get("note"),
        sealed=props.get("sealed"),
        status=TaskStatus.DONE if row["done"] else TaskStatus.OPEN,
        done_at=props.get("done_at"),
        done_by=props.get("done_by"),
        completed_by=props.get("completed_by") or (newer[0] if newer else None),
    )
