"""What pymilvus raises, as errors of ecphoria."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import NoReturn

import grpc
from pymilvus import MilvusException

from ecphoria.errors import StoreAuthenticationFailed, StoreError, StoreUnavailable

# Codes of Milvus, the same since 2.3 and on Milvus Lite.
NOT_FOUND = frozenset({100, 1600})
NOT_LOADED = 101
# unavailable, out of memory, overloaded, out of disk, rate limited, quota, time ticks late, partly
# loaded, recovering, no replica, no channel, no node: all pass once it has come up or calmed down
_PASSING = frozenset({2, 3, 4, 7, 8, 9, 11, 103, 106, 400, 401, 500, 501, 503, 901, 902, 903, 905})
# 2.3 hides some of these in errors of other codes
_PASSING_TEXT = re.compile(r"\b(channel|node) not (found|available|match)|service not ready")
_NO_CONNECTION = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
_REFUSED = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise what the block raises as an error of ecphoria, chained to it.

    Args:
        doing: What the block does, for the message.
    """
    try:
        yield
    except TimeoutError as error:
        msg = f"the vector store did not answer in time while {doing}"
        raise StoreUnavailable(msg) from error
    except (MilvusException, grpc.RpcError) as error:
        _raise_translated(error, doing)


def _raise_translated(error: Exception, doing: str) -> NoReturn:
    if _grpc_status(error) in _REFUSED:
        msg = "the vector store refused the token"
        raise StoreAuthenticationFailed(msg) from error
    if is_passing(error):
        msg = f"the vector store is unavailable while {doing}: {first_line(error)}"
        raise StoreUnavailable(msg) from error
    msg = f"the vector store failed while {doing}: {first_line(error)}"
    raise StoreError(msg) from error


def is_passing(error: Exception) -> bool:
    """Tell whether the same call may succeed a moment later."""
    status = _grpc_status(error)
    if status is not None:
        return status in _NO_CONNECTION
    return isinstance(error, MilvusException) and (
        error.retriable or error.code in _PASSING or _PASSING_TEXT.search(error.message) is not None
    )


def _grpc_status(error: BaseException) -> grpc.StatusCode | None:
    """Return the state of the connection that an error reports, if it is about one."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        code = getattr(cause, "code", None)
        code = code() if callable(code) else code
        if isinstance(code, grpc.StatusCode):
            return code
        # pymilvus raises errors from themselves
        cause = cause.__context__ if cause.__cause__ in seen else cause.__cause__
    return None


def error_code(error: StoreError) -> int | None:
    """Return Milvus' own code of an error that was translated."""
    cause = error.__cause__
    return cause.code if isinstance(cause, MilvusException) else None


def first_line(error: BaseException) -> str:
    """Return what an error says, shortened."""
    text = str(getattr(error, "message", "") or error)
    return next(iter(text.strip().splitlines()), type(error).__name__)[:300]


async def all_done(calls: Iterable[Awaitable[None]]) -> None:
    """Await calls at once; raise the first error after all have ended."""
    # Each runs to its end: when one fails, the others must not go on unseen.
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if result is not None:
            raise result


async def settled(do: Callable[[], Awaitable[None]], done: Callable[[], Awaitable[bool]]) -> None:
    """Do something that another process may do at the same time.

    Stores differ in how they tell that it is done: an error counts only when it still is not.
    """
    try:
        await do()
    except StoreError:
        if not await done():
            raise
