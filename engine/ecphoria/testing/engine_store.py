"""The four verbs over a real engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ecphoria.engine import Engine
from ecphoria.errors import EcphoriaError, InternalError, error_classes
from ecphoria.model import EntityRef, MemoryInput, RecallRequest, Receipt, ReceiptStatus, Scope
from ecphoria.testing.store import StoredMemory, facts_of

_PAGE = 500


class EngineStore:
    """A `MemoryStore` that keeps everything in an engine, within one scope."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        """Use an open engine.

        Args:
            engine: It stays open; its clock is the store's.
            scope: For whom; its roles must allow to remember, recall and forget.
        """
        self._engine = engine
        self._scope = scope

    async def write_memory(
        self,
        user_id: str,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - what it is called everywhere
        entity: EntityRef | None = None,
        attribute: str | None = None,
        value: str | None = None,
        valid_from: datetime | None = None,
        expires_at: datetime | None = None,
    ) -> str:
        """See `MemoryStore.write_memory`."""
        # to the engine no user means everybody
        self._scope.user(user_id)
        item = MemoryInput(
            text=text,
            user_id=user_id,
            id=id,
            valid_from=valid_from,
            expires_at=expires_at,
            facts=facts_of(self._engine.domain, user_id, entity, attribute, value),
        )
        (receipt,) = await self._engine.remember(self._scope, [item])
        if receipt.status is ReceiptStatus.REJECTED or receipt.id is None:
            raise _error(receipt)
        return receipt.id

    async def recall(
        self, user_id: str, question: str, *, limit: int = 5
    ) -> tuple[StoredMemory, ...]:
        """See `MemoryStore.recall`."""
        result = await self._engine.recall(
            self._scope, RecallRequest(question, user_id, limit=limit)
        )
        return tuple(StoredMemory.of(item.memory) for item in result.memories)

    async def forget(self, user_id: str, ids: Sequence[str]) -> int:
        """See `MemoryStore.forget`."""
        report = await self._engine.forget(self._scope, user_id, ids, "asked for")
        return len(set(ids)) - len(report.unknown)

    async def clean_expired(self) -> int:
        """See `MemoryStore.clean_expired`; counts the scope's tenant, but cleans all of them."""
        # a use that was noted but not written yet may keep a memory out of the archive
        await self._engine.access.flush()
        due = await self._due()
        await self._engine.age()
        return due

    async def _due(self) -> int:
        now = self._engine.clock.now()
        due, after = 0, ""
        while page := await self._engine.graph.scan_memories(after, _PAGE, self._scope.tenant):
            after = page[-1].key
            due += sum(
                memory.expires_at is not None and memory.expires_at <= now for memory in page
            )
        return due


def _error(receipt: Receipt) -> EcphoriaError:
    kinds = {kind.code: kind for kind in error_classes()}
    kind = kinds.get(receipt.code or "", InternalError)
    return kind(receipt.reason or f"the write came back as {receipt.status}", path=receipt.path)
