"""Check a recall request before anything is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ecphoria.embedding.text import clean
from ecphoria.errors import EcphoriaError, InvalidInput, InvalidTime, TextTooLong
from ecphoria.model import RecallRequest, checked_id, parse_time
from ecphoria.settings import Settings, is_time_zone
from ecphoria_schema.domain import KINDS, Domain

MAX_LIMIT = 100
MAX_CONTEXT_TOKENS = 100_000


def checked_request(request: RecallRequest, settings: Settings, domain: Domain) -> RecallRequest:
    """Return the request cleaned.

    Raises:
        InvalidInput: For an empty or over-long question, unknown kinds or topics, bad limits, an
            unknown time zone.
        InvalidTime: When a time has no zone, or `until` is not after `since`.
    """
    if not isinstance(request.question, str):
        msg = "the question must be a string"
        raise InvalidInput(msg, path=("question",))
    if len(request.question) > settings.max_question_chars:
        msg = (
            f"the question has {len(request.question)} characters; "
            f"{settings.max_question_chars} are allowed"
        )
        raise TextTooLong(msg, path=("question",))
    try:
        question = clean(request.question)
        as_of = None if request.as_of is None else parse_time(request.as_of, "as_of")
    except EcphoriaError as error:
        where = "as_of" if error.code == "INVALID_TIME" else "question"
        raise error.at(where) from error
    for name, values, known in (
        ("kinds", request.kinds, KINDS),
        ("topics", request.topics, tuple(domain.topics)),
    ):
        for value in values or ():
            if value not in known:
                msg = f"{value!r} is none of {', '.join(known)}"
                raise InvalidInput(msg, path=(name,))
    if request.kinds is not None and not request.kinds:
        msg = "kinds is empty: leave it out to ask all kinds"
        raise InvalidInput(msg, path=("kinds",))
    _check_limits(request)
    since, until = _time(request.since, "since"), _time(request.until, "until")
    if since is not None and until is not None and until <= since:
        msg = f"until ({until.isoformat()}) must be after since ({since.isoformat()})"
        raise InvalidTime(msg, path=("until",))
    return replace(
        request,
        question=question,
        as_of=as_of,
        known_at=_time(request.known_at, "known_at"),
        session_id=_session_id(request),
        time_zone=_time_zone(request, settings),
        since=since,
        until=until,
    )


def _time(value: datetime | None, name: str) -> datetime | None:
    try:
        return None if value is None else parse_time(value, name)
    except EcphoriaError as error:
        raise error.at(name) from error


def _time_zone(request: RecallRequest, settings: Settings) -> str:
    if request.time_zone is None:
        return settings.time_zone
    if not is_time_zone(request.time_zone):
        msg = f"{request.time_zone!s:.60} is no IANA time zone, e.g. Asia/Shanghai"
        raise InvalidInput(msg, path=("time_zone",))
    return request.time_zone


def _session_id(request: RecallRequest) -> str | None:
    try:
        return None if request.session_id is None else checked_id(request.session_id, "session id")
    except EcphoriaError as error:
        raise error.at("session_id") from error


def _check_limits(request: RecallRequest) -> None:
    for name, value, low, high in (
        ("limit", request.limit, 1, MAX_LIMIT),
        ("entity_limit", request.entity_limit, 0, 2 * MAX_LIMIT),
        ("context_tokens", request.context_tokens, 0, MAX_CONTEXT_TOKENS),
        ("min_importance", request.min_importance, 0, 1),
    ):
        kinds = int | float if name == "min_importance" else int
        if isinstance(value, bool) or not isinstance(value, kinds):
            msg = f"{name} must be a number, not {type(value).__name__}"
            raise InvalidInput(msg, path=(name,))
        if not low <= value <= high:
            msg = f"{name} is {value!s:.20}; it must be {low} to {high}"
            raise InvalidInput(msg, path=(name,))
