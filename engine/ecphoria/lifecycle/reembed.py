"""Change the vector index over to another model, or build it anew, while the old one serves.

A new generation of collections is filled by comparing it with the graph, over and over until
little is left that was written meanwhile; then the aliases are switched, and one more comparison
finds the rest. Where a run is can be told from the collections and aliases alone, so whatever
ends it, the same call goes on. What served before is kept, to go back to.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import structlog

from ecphoria.errors import (
    EmbeddingFailed,
    EmbeddingMismatch,
    InvalidVector,
    NotFound,
    ReembedInProgress,
    StoreUnavailable,
)
from ecphoria.lifecycle.reconcile import reconcile
from ecphoria.lifecycle.verify import (
    compared,
    graph_pages,
    index_pages,
    verify,
    without_memory,
)
from ecphoria.model import EmbeddingSpec, Memory
from ecphoria.parts import EngineParts
from ecphoria.remember.indexing import contexts_of, index_memories
from ecphoria.stores.ports import Generation, VectorRows
from ecphoria_schema.domain import KINDS, Kind

log = structlog.get_logger(__name__)

LEASE = "reembed"
# A pass that writes no more than this many rows is followed by the switch.
LITTLE = 100
# Writers that are quicker than the model would put the switch off for ever.
MAX_PASSES = 10
# More memories than this, and than this share of all, that cannot be embedded: no switch.
MAX_FAILED, MAX_FAILED_SHARE = 10, 0.01
_BATCH = 200
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

Stage = Literal["filling", "switching", "checking", "done", "unchanged"]


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """How far a run is.

    Attributes:
        stage: What it does: fill a generation, switch the aliases, check what serves now; `done`
            and `unchanged` (it served before) come last.
        generation: Name of the generation that will serve, or does.
        passes: In which pass over the graph it is, from 1.
        done: Memories and rows compared in this pass.
        total: How many there are, as far as is known.
        written: Rows written or deleted in all passes so far.
        failed: Memories that the model failed on in this pass; in the end, those whose rows are
            not right.
    """

    stage: Stage
    generation: str
    passes: int = 0
    done: int = 0
    total: int = 0
    written: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ReembedStatus:
    """Which generations of the index there are, the oldest first.

    Attributes:
        rows: Rows of those that serve or are being filled, by name.
        running: Whether a run is under way, or ended less than a lease ago without saying so.
    """

    generations: tuple[Generation, ...]
    rows: Mapping[str, int]
    running: bool


async def reembed(
    parts: EngineParts, *, force: bool = False, rollback: bool = False
) -> AsyncIterator[ReembedProgress]:
    """Have the index made by the parts' model, reporting after each batch.

    The index of the parts need not be prepared; in the end it is.

    Args:
        parts: The stores, and the model to change over to.
        force: Build a new generation although one of this model serves or was kept.
        rollback: Go back to what served before, which must be of the parts' model.

    Raises:
        ReembedInProgress: When another run is under way.
        NotFound: When there is nothing to go back to.
        EmbeddingMismatch: When what there is to go back to is of another model.
        EmbeddingFailed: When the model fails on too many memories; nothing was switched.
        StoreUnavailable: When a store does not answer; the same call goes on.
    """
    async with _claimed(parts) as claim:
        generations = await parts.index.generations()
        spec = parts.embedder.spec
        if rollback:
            target = _to_go_back_to(generations, spec)
        else:
            target = await _to_fill(parts, generations, force=force)
        run = _Run(target.name)
        if target.serving == frozenset(KINDS) and not target.filling:
            await parts.index.prepare(spec)
            yield run.progress("unchanged")
            return
        if rollback:
            # into memory before anybody searches it
            await parts.index.at(target)
        elif not target.serving:
            # what serves is written by others, too: it is only checked, row by row
            serving = frozenset[Kind]().union(*(item.serving for item in generations))
            served = await parts.index.count() if serving == frozenset(KINDS) else 0
            async for progress in _filled(parts, target, run, served):
                claim.check()
                yield progress
        yield run.progress("switching")
        claim.check()
        await parts.index.serve(target)
        await parts.index.prepare(spec)
        async for progress in _checked(parts, run):
            claim.check()
            yield progress
        await parts.index.finish(target)
        yield run.progress("done")


async def drop_old(parts: EngineParts, *, unfinished: bool = False) -> tuple[Generation, ...]:
    """Drop the generations that do not serve; return them.

    Args:
        parts: The stores.
        unfinished: Also those that a run has not filled yet.

    Raises:
        ReembedInProgress: When a run is under way.
    """
    async with _claimed(parts) as claim:
        dropped = []
        for generation in await parts.index.generations():
            if not generation.serving and (unfinished or not generation.filling):
                claim.check()
                await parts.index.drop_generation(generation)
                dropped.append(generation)
        return tuple(dropped)


async def reembed_status(parts: EngineParts) -> ReembedStatus:
    """Return which generations of the index there are, and whether a run is under way."""
    running = False
    try:
        async with _claimed(parts):
            pass
    except ReembedInProgress:
        running = True
    generations = await parts.index.generations()
    # what is only kept is not in memory, and stays out of it
    rows = {
        item.name: await (await parts.index.at(item)).count()
        for item in generations
        if item.spec is not None
        and item.kinds == frozenset(KINDS)
        and (item.serving or item.filling)
    }
    return ReembedStatus(generations, rows, running=running)


# --- which generation ----------------------------------------------------------------------


def _is_of(generation: Generation, spec: EmbeddingSpec) -> bool:
    found = generation.spec
    return found is not None and (found.model, found.version, found.dimension) == (
        spec.model,
        spec.version,
        spec.dimension,
    )


async def _to_fill(
    parts: EngineParts, generations: Sequence[Generation], *, force: bool
) -> Generation:
    spec = parts.embedder.spec
    # one that could find its rows by their terms, too, is made anew
    own = [item for item in generations if _is_of(item, spec) and not item.outdated]
    # the work of an earlier run comes first: with `force`, too, or it could never be resumed
    unfinished = [item for item in own if item.filling]
    if unfinished:
        return await parts.index.make_generation(spec, unfinished[-1].number)
    whole = [item for item in own if item.kinds == frozenset(KINDS)]
    if whole and not force:
        # what serves, or at least one of its kinds, before what was only kept
        return max(whole, key=lambda item: (len(item.serving), item.number))
    number = max((item.number for item in generations), default=0)
    # number 1 is what a first start makes
    return await parts.index.make_generation(spec, max(number, 1) + 1)


def _to_go_back_to(generations: Sequence[Generation], spec: EmbeddingSpec) -> Generation:
    serving = [item for item in generations if item.serving]
    numbers = {item.name: item.number for item in generations}
    for item in serving:
        # on the way back, which was interrupted after the switch
        back = item.number < numbers.get(item.replaces, 0)
        if item.filling and back and _is_of(item, spec):
            return item
    before = {item.replaces for item in serving}
    candidates = [
        item
        for item in generations
        # two of them serve where a switch was interrupted
        if item.name in before or (len(serving) > 1 and item in serving)
    ]
    usable = [
        item
        for item in candidates
        if item.spec is not None and item.kinds == frozenset(KINDS) and not item.filling
    ]
    own = [item for item in usable if _is_of(item, spec)]
    if own:
        return own[0]
    if not usable:
        msg = "there is no earlier index to go back to: it was dropped, or there never was one"
        raise NotFound(msg)
    kept = usable[0].spec
    if kept is None:  # for the type checker: `usable` have one
        raise AssertionError
    msg = (
        f"the index to go back to was made with model {kept.model!r}, version {kept.version!r}, "
        f"but the settings name {spec.model!r}, version {spec.version!r}: set "
        "ECPHORIA_EMBEDDING_* back first, or name it with `--model`"
    )
    raise EmbeddingMismatch(msg)


# --- filling -------------------------------------------------------------------------------


@dataclass(slots=True)
class _Run:
    generation: str
    passes: int = 0
    done: int = 0
    total: int = 0
    written: int = 0
    failed: int = 0

    def progress(self, stage: Stage) -> ReembedProgress:
        total = max(self.total, self.done)
        return ReembedProgress(
            stage, self.generation, self.passes, self.done, total, self.written, self.failed
        )


async def _filled(
    parts: EngineParts,
    target: Generation,
    run: _Run,
    served: int,
) -> AsyncIterator[ReembedProgress]:
    rows = await parts.index.at(target)
    for number in range(1, MAX_PASSES + 1):
        before = run.written
        there = await rows.count()
        run.passes, run.done, run.failed = number, 0, 0
        run.total = max(served, there) + there
        async for progress in _pass(parts, rows, run):
            yield progress
        _check_failed(run, parts.embedder.spec)
        if run.written - before <= LITTLE:
            return


async def _pass(parts: EngineParts, rows: VectorRows, run: _Run) -> AsyncIterator[ReembedProgress]:
    """Bring a generation's rows in line with the graph, once; it may change meanwhile."""
    async for memories in graph_pages(parts.graph):
        by_key = {memory.key: memory for memory in memories}
        behind = [by_key[each.key] for each in await compared(rows, memories)]
        run.done += len(memories) - len(behind)
        yield run.progress("filling")
        for start in range(0, len(behind), _BATCH):
            batch = behind[start : start + _BATCH]
            kept = await _embedded(parts, rows, batch)
            run.written += kept
            run.failed += len(batch) - kept
            run.done += len(batch)
            run.total += kept
            yield run.progress("filling")
    async for found in index_pages(rows):
        orphaned = await without_memory(parts.graph, found)
        if orphaned:
            await rows.delete(orphaned)
        run.written += len(orphaned)
        run.done += len(found)
        yield run.progress("filling")


async def _embedded(parts: EngineParts, rows: VectorRows, memories: Sequence[Memory]) -> int:
    try:
        contexts = await contexts_of(parts.graph, memories)
        return len(await index_memories(rows, parts.embedder, memories, contexts=contexts))
    except (EmbeddingFailed, InvalidVector):
        # each of them was named in the log
        return 0


def _check_failed(run: _Run, spec: EmbeddingSpec) -> None:
    if run.failed > max(MAX_FAILED, MAX_FAILED_SHARE * run.done) or 0 < run.failed == run.done:
        msg = (
            f"the model {spec.model!r} failed on {run.failed:,} memories; the log names them. "
            "The index was not changed over"
        )
        raise EmbeddingFailed(msg)


# --- checking ------------------------------------------------------------------------------


async def _checked(parts: EngineParts, run: _Run) -> AsyncIterator[ReembedProgress]:
    before = run.written
    async for progress in verify(parts, repair=True):
        report = progress.report
        run.done, run.total, run.failed = progress.done, progress.total, report.left
        # the graph is told the model of every row; only other differences mean written rows
        run.written = before + report.missing + report.orphaned + report.stale_text
        yield run.progress("checking")
    # what was written just before the switch, and could not be indexed after it
    await reconcile(parts)


# --- one run at a time ---------------------------------------------------------------------


class _Claim:
    """The right to change the index over, renewed for as long as the run lives."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._worker = parts.clock.token()
        self._until: datetime | None = None

    async def renew(self) -> None:
        now = self._parts.clock.now()
        until = now + timedelta(seconds=self._parts.settings.lease_s)
        taken = await self._parts.graph.take_lease(LEASE, self._worker, now, until)
        self._until = until if taken else None

    def check(self) -> None:
        if self._until is None or self._parts.clock.now() >= self._until:
            msg = (
                "another run changes the vector index over; one that was killed counts as running "
                f"for {self._parts.settings.lease_s:g} s"
            )
            raise ReembedInProgress(msg)

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(self._parts.settings.lease_s / 3)
            try:
                await self.renew()
            except StoreUnavailable as error:
                # there is time for another attempt; after that `check` ends the run
                log.warning("claim not renewed", code=error.code, reason=error.message)

    async def release(self) -> None:
        now = self._parts.clock.now()
        await self._parts.graph.take_lease(LEASE, self._worker, now, _LONG_AGO)


@contextlib.asynccontextmanager
async def _claimed(parts: EngineParts) -> AsyncIterator[_Claim]:
    claim = _Claim(parts)
    await claim.renew()
    claim.check()
    keeping = asyncio.create_task(claim.keep())
    try:
        yield claim
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        # it ends by itself when the graph does not answer
        with contextlib.suppress(StoreUnavailable):
            await claim.release()
