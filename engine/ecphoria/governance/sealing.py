"""Seal what is hidden: AES-256-GCM under the owner's data key, bound to the very place it is for.

Pure functions. A sealed text says by whose key it was sealed, so that it can still be read when
the thing it belongs to has got another owner since.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from ecphoria.governance.data_keys import KeyOwner
from ecphoria.governance.key_ring import decrypt, encrypt
from ecphoria.language.folding import fold
from ecphoria.language.sameness import content
from ecphoria.model import Memory, PropertyValue
from ecphoria.sealed import SEALED

_HASH_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class SealingKeys:
    """What one owner's values are sealed by, and what they are compared by.

    Attributes:
        owner: Whose data key it is.
        data: The data key.
        compares: The tenant's key for hashes; it outlives every user's.
    """

    owner: KeyOwner
    data: bytes
    compares: bytes


def keyed_hash(key: bytes, what: str, value: str) -> str:
    """Return a hash that nobody without the key can guess a value by: 32 hex digits.

    Args:
        key: The tenant's key for hashes.
        what: What kind of value it is; equal values of two kinds have two hashes.
        value: The value.
    """
    text = f"{len(what)}:{what}{value}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:_HASH_CHARS]


def sealed_text(keys: SealingKeys, plain: str, about: str, mark: str = "") -> str:
    """Return a text sealed for one place.

    Args:
        keys: Whose.
        plain: What to seal.
        about: The place: it can be unsealed nowhere else.
        mark: Goes along in clear, and cannot be changed.
    """
    user = keys.owner.user_id
    owner = base64.urlsafe_b64encode(b"" if user is None else b"=" + user.encode()).decode()
    head = f"{SEALED}{owner}:{mark}:"
    sealed = encrypt(keys.data, plain.encode(), f"{about}|{head}")
    return head + base64.b64encode(sealed).decode()


def owner_of(sealed: str, tenant: str) -> KeyOwner | None:
    """Return by whose key a text was sealed; None when it is none."""
    try:
        _, owner, _, _ = sealed.split(":", 3)
        name = base64.b64decode(owner, altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        return None
    return KeyOwner(tenant, name[1:] if name.startswith("=") else None)


def unsealed_text(key: bytes, sealed: str, about: str) -> str | None:
    """Return what was sealed; None when the key, the place or the text is another one."""
    head, colon, body = sealed.rpartition(":")
    try:
        raw = base64.b64decode(body, validate=True)
    except (ValueError, binascii.Error):
        return None
    plain = decrypt(key, raw, f"{about}|{head}{colon}")
    return None if plain is None else plain.decode()


# --- memories ------------------------------------------------------------------------------


def sealed_memory(memory: Memory, shown: Memory, keys: SealingKeys) -> Memory:
    """Return what is stored of a memory: what may be shown to all, and the rest sealed.

    Args:
        memory: In clear.
        shown: The same, redacted.
        keys: Its owner's.
    """
    plain = {
        "text": memory.text,
        "evidence": memory.evidence,
        "value": memory.value,
        "subject": memory.subject,
        "details": dict(memory.details),
    }
    words = " ".join(content(memory.text)) or fold(memory.text)
    hides_value = memory.value is not None and shown.value != memory.value
    return replace(
        shown,
        sealed=sealed_text(keys, json.dumps(plain, ensure_ascii=False), _place(memory)),
        words_hash=keyed_hash(keys.compares, "words", words),
        value_hash=(
            keyed_hash(keys.compares, "value", fold(memory.value or "")) if hides_value else None
        ),
    )


def unsealed_memory(memory: Memory, key: bytes) -> Memory | None:
    """Return a memory in clear; None when it was sealed by another key, or for another one."""
    plain = unsealed_text(key, memory.sealed or "", _place(memory))
    if plain is None:
        return None
    values: dict[str, Any] = json.loads(plain)
    return replace(memory, **values)


def without_seal(memory: Memory) -> Memory:
    """Return a memory as it may be shown: without what only the store needs."""
    if memory.sealed is None and memory.words_hash is None:
        return memory
    return replace(memory, sealed=None, value_hash=None, words_hash=None)


def _place(memory: Memory) -> str:
    return f"{memory.key}|sealed"


# --- properties ----------------------------------------------------------------------------


def sealed_property(keys: SealingKeys, entity: str, name: str, value: PropertyValue) -> str:
    """Return a property's value sealed; two of one value are known as equal by their marks.

    Args:
        keys: The owner's.
        entity: Graph key of the entity.
        name: Of the property.
        value: Of any type that a property may have.
    """
    plain = json.dumps(_as_json(value), ensure_ascii=False, sort_keys=True)
    mark = keyed_hash(keys.compares, f"{entity}|{name}", plain)
    return sealed_text(keys, plain, f"{entity}|{name}", mark)


def unsealed_property(key: bytes, entity: str, name: str, sealed: str) -> PropertyValue | None:
    """Return a property's value; None when it was sealed by another key, or for another place."""
    plain = unsealed_text(key, sealed, f"{entity}|{name}")
    return None if plain is None else _from_json(json.loads(plain))


def _as_json(value: PropertyValue) -> object:
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    return list(value) if isinstance(value, tuple) else value


def _from_json(value: Any) -> PropertyValue:  # noqa: ANN401 - what JSON gives
    if isinstance(value, Mapping):
        return datetime.fromisoformat(value["time"])
    return tuple(value) if isinstance(value, list) else value
