"""Global ids: what `node` finds again. An opaque text of type, user and the caller's own id."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass

import strawberry

from ecphoria.errors import InvalidNodeId

MEMORY_TYPE = "Memory"
# Type and two ids of 256 characters, of which each may take 12 bytes in JSON.
MAX_CHARS = 9_000

_DIGEST_BYTES = 3
_PARTS = 3


@dataclass(frozen=True, slots=True)
class NodeRef:
    """What a node id stands for.

    Attributes:
        type: ``Memory`` or an entity type.
        user_id: For whom it was handed out; whoever sends it must be allowed to name him.
        id: The caller's own id.
    """

    type: str
    user_id: str
    id: str


def node_id(ref: NodeRef) -> strawberry.ID:
    """Return the global id."""
    payload = json.dumps([ref.type, ref.user_id, ref.id], separators=(",", ":")).encode()
    raw = hashlib.sha256(payload).digest()[:_DIGEST_BYTES] + payload
    return strawberry.ID(base64.urlsafe_b64encode(raw).decode().rstrip("="))


def node_ref(given: str) -> NodeRef:
    """Return what a global id stands for.

    Raises:
        InvalidNodeId: When it is not one that was handed out.
    """
    fault = InvalidNodeId("the node id is damaged", path=("node_id",))
    if len(given) > MAX_CHARS:
        msg = f"the node id has {len(given)} characters; {MAX_CHARS} are allowed"
        raise InvalidNodeId(msg, path=("node_id",))
    if not given.isascii():
        raise fault
    try:
        raw = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise fault from error
    payload = raw[_DIGEST_BYTES:]
    if raw[:_DIGEST_BYTES] != hashlib.sha256(payload).digest()[:_DIGEST_BYTES]:
        raise fault
    try:
        parts = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise fault from error
    if (
        not isinstance(parts, list)
        or len(parts) != _PARTS
        or not all(isinstance(part, str) for part in parts)
    ):
        raise fault
    ref = NodeRef(*parts)
    # one thing has one id
    if node_id(ref) != given:
        raise fault
    return ref
