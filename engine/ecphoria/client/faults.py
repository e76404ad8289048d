"""Errors of the API as the classes that their codes have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ecphoria.errors import EcphoriaError, RateLimited, RequestRefused, error_classes


def error_from(
    code: str, message: str, path: tuple[str | int, ...] = (), retry_after_s: float = 1.0
) -> EcphoriaError:
    """Return an error as the class that its code has; `RequestRefused` when none has it."""
    kinds = {kind.code: kind for kind in error_classes()}
    kind = kinds.get(code)
    if kind is None:
        return RequestRefused(f"{code}: {message}", path=path)
    if issubclass(kind, RateLimited):
        return kind(message, path=path, retry_after_s=retry_after_s)
    return kind(message, path=path)


def fault_from(found: Mapping[str, Any] | None) -> EcphoriaError | None:
    """Return the `error` of a payload or of a receipt; None when there is none."""
    if found is None:
        return None
    return error_from(found["code"], found["message"], tuple(found["path"]))


def raise_fault(found: Mapping[str, Any]) -> None:
    """Raise the `error` of a payload, if it has one."""
    fault = fault_from(found["error"])
    if fault is not None:
        raise fault
