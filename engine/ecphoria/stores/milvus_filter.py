"""Filters of the vector index as Milvus expressions: the only place that escapes a literal.

The expressions use what Milvus Lite, 2.3 and 2.6 read alike: comparisons, `in` and `and`.
Filter templates would be the better protection, but neither Milvus Lite nor 2.3 knows them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from ecphoria.errors import InvalidInput, InvalidScope
from ecphoria.stores.ports import VectorFilter

# The first millisecond that no datetime can name: an open end is later than every moment.
OPEN_END = 253_402_300_800_000

# A forgotten memory never comes back, whoever asks.
_MAY_BE_FOUND = frozenset({"active", "superseded", "disabled"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def literal(value: str) -> str:
    r"""Return a text as a literal that cannot end early.

    Milvus reads JSON's escapes of quotes and backslashes the way they are meant. A control
    character (no id holds one) is a syntax error to some servers: it fails, it never leaks.

    Raises:
        InvalidInput: When it holds a lone surrogate, which no store can keep.
    """
    try:
        value.encode()
    except UnicodeEncodeError as error:
        msg = f"the value {value!r} holds a lone surrogate"
        raise InvalidInput(msg) from error
    return json.dumps(value, ensure_ascii=False)


def literals(values: Iterable[str]) -> str:
    """Return texts as a list for ``in``."""
    return f"[{', '.join(literal(value) for value in values)}]"


def milliseconds(moment: datetime) -> int:
    """Return milliseconds since 1970, rounded down, by whole numbers (floats lose some)."""
    return (moment - _EPOCH) // _MILLISECOND


def moment(value: int) -> datetime:
    """Return the moment so many milliseconds after 1970."""
    return _EPOCH + value * _MILLISECOND


def stored_user(user_id: str | None) -> str:
    """Return a user as stored: the empty text is what all users of the tenant share.

    Raises:
        InvalidScope: When the id is empty: stored, it would mean everybody.
    """
    if user_id is None:
        return ""
    if not user_id:
        msg = "the user id is empty; what all users share has none"
        raise InvalidScope(msg)
    return user_id


def tenant_expression(tenant: str) -> str:
    """Return the expression for all rows of a tenant.

    Raises:
        InvalidScope: When the tenant is empty; that never means "all".
    """
    if not tenant:
        msg = "the filter names no tenant"
        raise InvalidScope(msg)
    return f"tenant == {literal(tenant)}"


def user_expression(tenant: str, user_id: str) -> str:
    """Return the expression for all rows of one user.

    Raises:
        InvalidScope: When tenant or user is empty; that never means "all".
    """
    return f"{tenant_expression(tenant)} and user_id == {literal(stored_user(user_id))}"


def expression(filter_: VectorFilter) -> str:
    """Return the expression of a filter.

    Raises:
        InvalidScope: When tenant, user or privacy levels are missing; that never means "all".
        InvalidInput: When no tier is named, a status may not be asked for, or the least
            importance is no number.
    """
    if not filter_.user_id:
        msg = "the filter names no user"
        raise InvalidScope(msg)
    if not filter_.privacy:
        msg = "the filter allows no privacy level"
        raise InvalidScope(msg)
    if not filter_.tiers:
        msg = "the filter names no tier"
        raise InvalidInput(msg)
    if not filter_.statuses or not _MAY_BE_FOUND.issuperset(filter_.statuses):
        msg = f"the filter asks for the statuses {filter_.statuses}"
        raise InvalidInput(msg)
    clauses = [
        tenant_expression(filter_.tenant),
        f"user_id in {literals((filter_.user_id, stored_user(None)))}",
        f"privacy in {literals(filter_.privacy)}",
        f"tier in {literals(filter_.tiers)}",
        f"status in {literals(filter_.statuses)}",
    ]
    if filter_.as_of is not None:
        moment = milliseconds(filter_.as_of)
        clauses += [
            f"valid_from <= {moment}",
            f"valid_until > {moment}",
            f"expires_at > {moment}",
        ]
    if filter_.topics:
        clauses.append(f"topic in {literals(filter_.topics)}")
    if filter_.min_importance != 0:
        clauses.append(f"importance >= {_float32(filter_.min_importance)}")
    return " and ".join(clauses)


def _float32(value: float) -> str:
    # Rows hold 32-bit floats: 0.7 is stored as 0.699999988, which is not >= 0.7 but >= itself.
    # In full and without an exponent, since rounding up again would lose the row.
    if not 0 <= value <= 1:
        msg = f"the least importance {value!r} is not between 0 and 1"
        raise InvalidInput(msg)
    (stored,) = struct.unpack("<f", struct.pack("<f", value))
    return f"{Decimal(stored):f}"
