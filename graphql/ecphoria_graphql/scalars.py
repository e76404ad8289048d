"""Scalars: times that always carry a zone, dates, and whole numbers of 64 bits."""

from datetime import date, datetime
from typing import NewType

import strawberry
from strawberry.types.scalar import ScalarDefinition

from ecphoria.errors import InvalidInput
from ecphoria.model import parse_time, utc

Long = NewType("Long", int)

_LONG_BITS = 63


def _written_time(value: datetime) -> str:
    moment = utc(value)
    text = moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
    return text.removesuffix("+00:00") + "Z"


def _read_date(value: object) -> date:
    try:
        return date.fromisoformat(value)  # type: ignore[arg-type]  # what is no string fails too
    except (TypeError, ValueError) as error:
        msg = f"the date {str(value)[:60]!r} is not ISO 8601, e.g. 2025-06-15"
        raise InvalidInput(msg) from error


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value.bit_length() > _LONG_BITS:
        msg = f"{str(value)[:60]!r} is no whole number of 64 bits"
        raise InvalidInput(msg)
    return value


SCALARS: dict[object, ScalarDefinition] = {
    datetime: strawberry.scalar(
        name="DateTime",
        description=(
            "A moment: ISO 8601 with a time zone, e.g. `2025-06-15T08:00:00Z`. Without a zone it"
            " is refused with the code INVALID_TIME. Answers are in UTC."
        ),
        specified_by_url="https://datatracker.ietf.org/doc/html/rfc3339",
        serialize=_written_time,
        parse_value=parse_time,
    ),
    date: strawberry.scalar(
        name="Date",
        description="A day without a time: ISO 8601, e.g. `2025-06-15`.",
        serialize=date.isoformat,
        parse_value=_read_date,
    ),
    Long: strawberry.scalar(
        name="Long",
        description="A whole number of up to 64 bits, as a JSON number.",
        serialize=_whole,
        parse_value=_whole,
    ),
}
