"""What a client wants to get, by its header ``Accept``, and what it sends."""

from __future__ import annotations

from dataclasses import dataclass
from email.message import Message
from typing import Final

RESPONSE_JSON: Final = "application/graphql-response+json"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What may be sent.

    Attributes:
        json: Media type of a single answer; None when the client takes none.
        events: Whether the client takes a stream of events.
        events_first: Whether it prefers that to a single answer.
    """

    json: str | None
    events: bool
    events_first: bool


def media_type(value: str) -> tuple[str, dict[str, str]]:
    """Return a media type in small letters, and its parameters."""
    message = Message()
    message["content-type"] = value
    # the first is the type itself
    parameters = message.get_params(failobj=[])[1:]
    return value.split(";", 1)[0].strip().lower(), {name.lower(): text for name, text in parameters}


def is_utf8(parameters: dict[str, str]) -> bool:
    """Whether a media type's charset is the one that JSON has."""
    return parameters.get("charset", "utf-8").lower() in {"utf-8", "utf8"}


def _quality(parameters: dict[str, str]) -> float:
    try:
        return min(1.0, max(0.0, float(parameters.get("q", "1"))))
    except ValueError:
        return 0.0


def accepted(header: str | None) -> Accepted:
    """Read a header ``Accept``.

    Who does not say (nothing, ``*/*``) gets ``application/json``, as clients that are older than
    the other type expect. A stream of events is for those who name it.
    """
    if header is None or not header.strip():
        return Accepted(JSON, events=False, events_first=False)
    ranges: dict[str, float] = {}
    for part in header.split(","):
        name, parameters = media_type(part)
        if is_utf8(parameters):
            ranges[name] = max(ranges.get(name, 0.0), _quality(parameters))

    def quality(name: str) -> float:
        for spelled in (name, f"{name.split('/', 1)[0]}/*", "*/*"):
            if spelled in ranges:
                return ranges[spelled]
        return 0.0

    new, old, events = quality(RESPONSE_JSON), quality(JSON), ranges.get(EVENTS, 0.0)
    best = max(new, old)
    if best == 0.0:
        chosen = None
    elif new == old:
        chosen = RESPONSE_JSON if RESPONSE_JSON in ranges else JSON
    else:
        chosen = RESPONSE_JSON if new > old else JSON
    return Accepted(chosen, events > 0, events > best)
