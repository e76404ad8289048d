"""Write in the background what was noted meanwhile, so that nobody who notes has to wait."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

import structlog

from ecphoria.errors import EcphoriaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

log = structlog.get_logger(__name__)

EVERY_S: Final = 1.0


@contextlib.asynccontextmanager
async def flushed(flush: Callable[[], Awaitable[object]], what: str) -> AsyncIterator[None]:
    """Call `flush` every second, and once more on leaving.

    A failure is logged, and what was not written is tried again with the next: it is no reason to
    fail those who noted it.

    Args:
        flush: Writes what was noted; what it could not write stays noted.
        what: For the log, e.g. ``uses``.
    """

    async def try_flush() -> None:
        try:
            await flush()
        except EcphoriaError as error:
            log.warning("not written yet", what=what, code=error.code, reason=error.message)
        except Exception:
            # one bug must not end the writing for as long as the process lives
            log.exception("not written", what=what)

    async def for_ever() -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await try_flush()

    writer = asyncio.create_task(for_ever(), name=f"writing {what}")
    try:
        yield
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
        await try_flush()
