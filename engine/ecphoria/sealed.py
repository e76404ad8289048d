"""What a sealed text looks like from outside: ``enc1:owner:mark:body``."""

from __future__ import annotations

from typing import Final

SEALED: Final = "enc1:"


def is_sealed(value: object) -> bool:
    """Whether a stored value is a sealed text."""
    return isinstance(value, str) and value.startswith(SEALED)


def same_value(first: object, second: object) -> bool:
    """Whether two stored values are equal; sealed ones when owner and mark are."""
    return compared(first) == compared(second)


def compared(value: object) -> object:
    """Return what a stored value is compared by: of a sealed one, owner and mark."""
    return value.rpartition(":")[0] if isinstance(value, str) and is_sealed(value) else value
