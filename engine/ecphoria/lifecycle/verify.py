"""Compare the graph with the vector index in full, and mend what differs.

Both are streamed, a page at a time: the graph by key, to find rows that are missing or behind,
and the index by id, to find rows without a memory. What looks wrong is looked at again at the end
of its page; what changes meanwhile, and what is queued anyway, is no fault.
"""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Literal

import structlog

from ecphoria.errors import EmbeddingFailed, InvalidVector
from ecphoria.model import Memory
from ecphoria.parts import EngineParts
from ecphoria.remember.indexing import index_pending, is_indexed, row_fields
from ecphoria.stores.ports import (
    GraphStore,
    IndexedRow,
    MemoryState,
    PendingMemory,
    RowFields,
    VectorRows,
)
from ecphoria_schema.domain import KINDS, Kind

log = structlog.get_logger(__name__)

PAGE = 1_000
MAX_EXAMPLES = 20
# Memories embedded at once: as many as the reconciler takes.
_BATCH = 200
# What the graph says of a row, but the row does not hold.
MODEL = "embedding_model"


class Fault(enum.StrEnum):
    """What is wrong with a row of the index."""

    MISSING = "missing"
    ORPHANED = "orphaned"
    STALE_TEXT = "stale text"
    STALE_FIELDS = "stale fields"


@dataclass(frozen=True, slots=True)
class Difference:
    """A memory whose row is not what it should be.

    Attributes:
        fields: Filter fields that differ, of a row with `STALE_FIELDS`.
    """

    fault: Fault
    key: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A difference as a person reads it."""

    fault: Fault
    memory_id: str
    tenant: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found.

    Attributes:
        checked: Memories of the graph that were compared.
        missing: Memories without a row.
        orphaned: Rows without a memory, or in the collection of another kind.
        stale_text: Rows whose vector was made from another text.
        stale_fields: Rows with other filter fields, or made with another model as far as the
            graph knows.
        repaired: How many of these were mended.
        examples: The first ones of all.
    """

    checked: int = 0
    missing: int = 0
    orphaned: int = 0
    stale_text: int = 0
    stale_fields: int = 0
    repaired: int = 0
    examples: tuple[Example, ...] = ()

    @property
    def found(self) -> int:
        """Return how many differences there were."""
        return self.missing + self.orphaned + self.stale_text + self.stale_fields

    @property
    def left(self) -> int:
        """Return how many differences there still are."""
        return self.found - self.repaired


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """How far a run is.

    Attributes:
        stage: Which of the two is streamed.
        done: Memories and rows read so far.
        total: How many there are, as far as is known.
        report: What was found so far; that of the last progress is the result.
    """

    stage: Literal["graph", "index"]
    done: int
    total: int
    report: VerifyReport


@dataclass(slots=True)
class _Tally:
    checked: int = 0
    repaired: int = 0
    faults: dict[Fault, int] = field(default_factory=lambda: dict.fromkeys(Fault, 0))
    examples: list[Example] = field(default_factory=list)

    def add(self, differences: Sequence[Difference], repaired: int) -> None:
        self.repaired += repaired
        for each in differences:
            self.faults[each.fault] += 1
            if len(self.examples) < MAX_EXAMPLES:
                tenant, _, memory_id = each.key.split("|", 2)
                self.examples.append(Example(each.fault, memory_id, tenant, each.fields))

    def report(self) -> VerifyReport:
        return VerifyReport(
            checked=self.checked,
            missing=self.faults[Fault.MISSING],
            orphaned=self.faults[Fault.ORPHANED],
            stale_text=self.faults[Fault.STALE_TEXT],
            stale_fields=self.faults[Fault.STALE_FIELDS],
            repaired=self.repaired,
            examples=tuple(self.examples),
        )


async def verify(
    parts: EngineParts, *, repair: bool = False, tenant: str | None = None
) -> AsyncIterator[VerifyProgress]:
    """Compare graph and index, reporting after each page.

    Args:
        parts: The stores and the model.
        repair: Mend what differs: queue it and index it at once.
        tenant: Of this tenant only; None = of all.

    Raises:
        StoreUnavailable: When a store does not answer; what was mended stays mended.
        EmbeddingMismatch: When the index belongs to another model by now.
    """
    tally = _Tally()
    rows = await parts.index.count(tenant)
    done, total = 0, 2 * rows
    model = parts.embedder.spec.model
    async for memories in graph_pages(parts.graph, tenant):
        suspects = await compared(parts.index, memories, model)
        wrong = await _confirmed(parts, suspects, model, repair=repair)
        wrong = [each for each in wrong if each.fault is not Fault.ORPHANED]
        tally.checked += len(memories)
        tally.add(wrong, len(await mended(parts, wrong)) if repair and wrong else 0)
        done += len(memories)
        total = max(total, done + rows)
        yield VerifyProgress("graph", done, total, tally.report())
    async for found in index_pages(parts.index, tenant):
        keys = await without_memory(parts.graph, found)
        suspects = [Difference(Fault.ORPHANED, key) for key in keys]
        wrong = await _confirmed(parts, suspects, model, repair=repair)
        wrong = [each for each in wrong if each.fault is Fault.ORPHANED]
        tally.add(wrong, len(await mended(parts, wrong)) if repair and wrong else 0)
        done += len(found)
        total = max(total, done)
        yield VerifyProgress("index", done, total, tally.report())
    yield VerifyProgress("index", done, done, tally.report())


# --- comparing -----------------------------------------------------------------------------


async def graph_pages(
    graph: GraphStore, tenant: str | None = None
) -> AsyncIterator[tuple[Memory, ...]]:
    """Yield all memories that are not forgotten, by key, a page at a time."""
    after = ""
    while page := await graph.scan_memories(after, PAGE, tenant):
        after = page[-1].key
        yield page


async def index_pages(
    index: VectorRows, tenant: str | None = None
) -> AsyncIterator[tuple[IndexedRow, ...]]:
    """Yield all rows of the index, kind by kind, a page at a time."""
    for kind in KINDS:
        after = ""
        while page := await index.rows(kind, after, PAGE, tenant):
            after = page[-1].id
            yield page


async def compared(
    index: VectorRows, memories: Sequence[Memory], model: str | None = None
) -> list[Difference]:
    """Return those of a page of memories whose row is not what it should be.

    Args:
        index: Where the rows are.
        memories: A page.
        model: The model that the graph should name; None = whichever it names.
    """
    by_kind: dict[Kind, list[str]] = defaultdict(list)
    for memory in memories:
        by_kind[memory.kind].append(memory.key)
    rows: dict[str, IndexedRow] = {}
    for kind, keys in by_kind.items():
        rows |= await index.rows_of(kind, keys)
    found = (_difference(memory, rows.get(memory.key), model) for memory in memories)
    return [each for each in found if each is not None]


async def without_memory(graph: GraphStore, rows: Sequence[IndexedRow]) -> list[str]:
    """Return the keys of those of a page of rows that no memory of their kind has."""
    kinds = await graph.kinds([row.key for row in rows])
    return [row.key for row in rows if kinds.get(row.key) != row.kind]


def _difference(memory: Memory, row: IndexedRow | None, model: str | None) -> Difference | None:
    if not is_indexed(memory):
        return None
    if row is None:
        return Difference(Fault.MISSING, memory.key)
    wanted = row_fields(memory)
    if wanted.hash != row.hash:
        return Difference(Fault.STALE_TEXT, memory.key)
    other = [
        item.name
        for item in fields(RowFields)
        if not _same(getattr(wanted, item.name), getattr(row, item.name))
    ]
    if model is not None and memory.embedding_model != model:
        other.append(MODEL)
    return Difference(Fault.STALE_FIELDS, memory.key, tuple(other)) if other else None


def _same(wanted: object, found: object) -> bool:
    # rows hold 32-bit floats and milliseconds
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(wanted, found, abs_tol=1e-6)
    if isinstance(wanted, datetime) and isinstance(found, datetime):
        cut = wanted.replace(microsecond=wanted.microsecond // 1000 * 1000)
        return cut == found
    return wanted == found


async def _confirmed(
    parts: EngineParts, suspects: Sequence[Difference], model: str, *, repair: bool
) -> list[Difference]:
    # mending looks again, so what is only said of a row in the graph need not be looked at here
    certain = [each for each in suspects if repair and each.fields == (MODEL,)]
    keys = [each.key for each in suspects if each not in certain]
    if not keys:
        return certain
    before = await parts.graph.states(keys)
    rows = await _rows_of_all(parts.index, keys)
    after = {state.key: state for state in await parts.graph.states(keys)}
    for state in before:
        # between two equal states of the graph the row must have been in line with both
        if _is_at_rest(state, after[state.key]):
            difference = _difference_of_all(after[state.key], rows[state.key], model)
            if difference is not None:
                certain.append(difference)
    return certain


def _is_at_rest(before: MemoryState, after: MemoryState) -> bool:
    if before.pending or after.pending:
        return False
    one, other = before.memory, after.memory
    if one is None or other is None:
        return one is other
    return row_fields(one) == row_fields(other) and one.embedding_model == other.embedding_model


async def _rows_of_all(
    index: VectorRows, keys: Sequence[str]
) -> Mapping[str, Mapping[Kind, IndexedRow]]:
    found: dict[str, dict[Kind, IndexedRow]] = {key: {} for key in keys}
    for kind in KINDS:
        for key, row in (await index.rows_of(kind, keys)).items():
            found[key][kind] = row
    return found


def _difference_of_all(
    state: MemoryState, rows: Mapping[Kind, IndexedRow], model: str | None
) -> Difference | None:
    memory = state.memory
    if memory is None or not is_indexed(memory):
        return Difference(Fault.ORPHANED, state.key) if rows else None
    difference = _difference(memory, rows.get(memory.kind), model)
    if difference is None and rows.keys() - {memory.kind}:
        return Difference(Fault.ORPHANED, state.key)
    return difference


# --- mending -------------------------------------------------------------------------------


async def mended(parts: EngineParts, wrong: Sequence[Difference]) -> frozenset[str]:
    """Queue memories and bring their rows in line at once; return the keys of those that are.

    Whatever cannot be done now, and what changes meanwhile, stays queued.

    Raises:
        StoreUnavailable: When a store does not answer.
        EmbeddingMismatch: When the index belongs to another model by now.
    """
    keys = list(dict.fromkeys(each.key for each in wrong))
    token = parts.clock.token()
    await parts.graph.requeue(keys, token)
    orphaned = [each.key for each in wrong if each.fault is Fault.ORPHANED]
    if orphaned:
        # one in the collection of another kind would outlive the writing of the right one
        await parts.index.delete(orphaned)
    states = await parts.graph.states(keys)
    told = {each.key for each in wrong if each.fields == (MODEL,)}
    memories = [state.memory for state in states if state.memory and state.key in told]
    behind = {each.key for each in await compared(parts.index, memories)}
    right = {memory.key: token for memory in memories if memory.key not in behind}
    done: frozenset[str] = frozenset()
    if right:
        # the row is as it should be: no need to embed the text again
        done |= await parts.graph.mark_indexed(right, parts.embedder.spec.model)
    todo = [
        PendingMemory(state.key, token, state.memory) for state in states if state.key not in right
    ]
    for batch in _batches(todo):
        try:
            done |= await index_pending(parts, batch)
        except (EmbeddingFailed, InvalidVector) as error:
            log.warning("rows not mended", code=error.code, reason=error.message, rows=len(batch))
    left = [key for key in keys if key not in done]
    return done | await _in_line(parts, left) if left else done


async def _in_line(parts: EngineParts, keys: Sequence[str]) -> frozenset[str]:
    # another worker may have been quicker to mark them as done
    rows = await _rows_of_all(parts.index, keys)
    return frozenset(
        state.key
        for state in await parts.graph.states(keys)
        if _difference_of_all(state, rows[state.key], None) is None
    )


def _batches(items: Sequence[PendingMemory]) -> Iterator[Sequence[PendingMemory]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
