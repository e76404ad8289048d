"""Cursors: where an item stands in one certain list, as a text that is handed out.

A cursor holds the place by values that never change (a moment and a key), so pages stay whole
while others write. What it must not be is the caller's to make up: it carries a digest of the list
that it belongs to. That is no secret, since nobody gains by forging one: every page is filtered
by the scope anew.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from ecphoria.errors import InvalidCursor, InvalidInput
from ecphoria.model import Page

DEFAULT_FIRST = 20
MAX_FIRST = 200
MAX_CURSOR_CHARS = 2_048

_VERSION = 1
_DIGEST_BYTES = 12

Item = TypeVar("Item")


def checked_first(first: int) -> int:
    """Return how many items a page may have.

    Raises:
        InvalidInput: When it is not 1 to `MAX_FIRST`.
    """
    if not 1 <= first <= MAX_FIRST:
        msg = f"first must be 1 to {MAX_FIRST}, not {first}"
        raise InvalidInput(msg, path=("first",))
    return first


def _digest(of: Sequence[object], payload: bytes) -> bytes:
    # lists of lists, so that no two lists of a different make come out as the same text
    text = json.dumps([_VERSION, *of], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode() + b"\n" + payload).digest()[:_DIGEST_BYTES]


def cursor_of(of: Sequence[object], place: Sequence[str | int]) -> str:
    """Return the cursor of a place.

    Args:
        of: Which list it is a place of: its name, tenant, user and all that narrows it.
        place: By what the list is ordered.
    """
    payload = json.dumps(list(place), ensure_ascii=True, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_digest(of, payload) + payload).decode().rstrip("=")


def place_of(of: Sequence[object], cursor: str) -> list[str | int]:
    """Return the place that a cursor of this list holds.

    Raises:
        InvalidCursor: When it is damaged, or of another list.
    """
    fault = InvalidCursor(
        "the cursor is damaged, or of another list, filter, user or tenant", path=("after",)
    )
    if len(cursor) > MAX_CURSOR_CHARS:
        msg = f"the cursor has {len(cursor)} characters; {MAX_CURSOR_CHARS} are allowed"
        raise InvalidCursor(msg, path=("after",))
    if not cursor.isascii():
        raise fault
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise fault from error
    digest, payload = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
    if digest != _digest(of, payload):
        raise fault
    place: list[str | int] = json.loads(payload)
    # the same bytes may be written in several ways, only one of which was handed out
    if cursor != cursor_of(of, place):
        raise fault
    return place


def page_of(
    found: Sequence[Item],
    first: int,
    of: Sequence[object],
    place: Callable[[Item], Sequence[str | int]],
) -> Page[Item]:
    """Return a page of what was found: one more than its size tells that there is a next."""
    kept = tuple(found[:first])
    cursors = tuple(cursor_of(of, place(item)) for item in kept)
    return Page(kept, cursors, len(found) > first)
