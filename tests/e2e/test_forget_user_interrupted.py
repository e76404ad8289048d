"""What is left half done when a user is forgotten, and who did what, page by page."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ecphoria.errors import StoreUnavailable, UserForgotten
from ecphoria.model import MemoryInput
from ecphoria.testing.manual_clock import ManualClock
from engines import with_clock

pytestmark = pytest.mark.asyncio(loop_scope="session")


class NoDeletions:
    """An index that cannot be reached when a user's rows are to go."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    async def delete_user(self, *_of_whom):
        msg = "the index does not answer"
        raise StoreUnavailable(msg)


async def test_a_worker_finishes_what_an_outage_interrupted(engine, admin):
    texts = ["手机屏幕碎了", "The screen was replaced", "保修到六月"]
    await engine.remember(
        admin, [MemoryInput(text, "u1", id=f"m{at}") for at, text in enumerate(texts)]
    )
    with pytest.raises(StoreUnavailable):
        await replace(engine, index=NoDeletions(engine.index)).forget_user(admin, "u1", "he asked")
    # hidden in the graph, so nobody sees it, though every row is still there
    assert not (await engine.list_memories(admin, "u1")).items
    assert await engine.memories(admin, "u1", ["m0", "m1", "m2"]) == {}
    check = await engine.verify_forgotten(admin, "u1")
    assert check.left["memories"] == check.left["vectors"] == 3
    with pytest.raises(UserForgotten):
        await engine.remember_turn(admin, "u1", "s", "customer", "在吗")

    later = ManualClock(engine.clock.now() + timedelta(seconds=engine.settings.lease_s + 60))
    assert (await with_clock(engine, later).work_once("w")).forgotten >= 1

    done = await engine.verify_forgotten(admin, "u1")
    assert done.clean, done.left
    assert done.receipt.id == check.receipt.id
    assert done.receipt.counts["memories"] == 3


async def test_the_audit_log_is_read_page_by_page(engine, admin):
    for number in range(5):
        await engine.audit.record(admin, f"op-{number}")
    found, after = [], None
    while True:
        page = await engine.audit_log(admin, first=2, after=after)
        found += [entry.operation for entry in page.items]
        if not page.has_next:
            break
        after = page.cursors[-1]
    assert sorted(found) == [f"op-{number}" for number in range(5)]
