"""Logging for programs: structlog to stderr, secrets taken out. Libraries don't call this."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import structlog

if TYPE_CHECKING:
    from structlog.types import EventDict, Processor, WrappedLogger

Level: TypeAlias = Literal["debug", "info", "warning", "error"]

HIDDEN: Final = "•••"

_SECRET_NAMES: Final = re.compile(
    r"passw|secret|token(?!s)|authori[sz]ation|api_?key|credential", re.IGNORECASE
)
# An API key keeps its id, which is no secret and says which key it was.
_SECRETS: Final = (
    (re.compile(r"(ecph_[0-9a-f]{16}_)[A-Za-z0-9_-]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)(bearer\s+)(?!ecph_)\S+"), rf"\1{HIDDEN}"),
    (re.compile(r"(\w+://[^/\s:@]*:)[^/\s@]+(@)"), rf"\1{HIDDEN}\2"),
)
# They report on their own what reaches users as a typed error anyway.
_NOISY: Final = ("pymilvus", "neo4j", "stamina", "asyncio", "httpx", "httpcore", "filelock")


def configure_logging(level: Level, *, as_json: bool = False) -> None:
    """Send structlog's and the standard library's records to stderr in one form.

    Args:
        level: Least severe level of ecphoria's own records; libraries log warnings and worse,
            and everything only at ``debug``.
        as_json: One JSON object a line instead of text.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendering: list[Processor] = (
        [
            structlog.processors.format_exc_info,
            hide_secrets,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
        if as_json
        else [
            structlog.processors.format_exc_info,
            hide_secrets,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ]
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    own = getattr(logging, level.upper())
    debugging = level == "debug"
    root.setLevel(own if debugging else max(own, logging.WARNING))
    for name in ("ecphoria", "ecphoria_graphql", "uvicorn"):
        logging.getLogger(name).setLevel(own)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.NOTSET if debugging else logging.CRITICAL)


def hide_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Take passwords, tokens and API keys out of a record, however they got in."""
    return {key: _hidden(key, value) for key, value in event.items()}


def _hidden(key: object, value: Any) -> Any:  # noqa: ANN401 - whatever is logged
    if isinstance(key, str) and _SECRET_NAMES.search(key):
        return HIDDEN
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {name: _hidden(name, inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_hidden(None, inner) for inner in value]
    return value


def without_secrets(text: str) -> str:
    """Return a text with whatever looks like an API key or a password in a URI taken out."""
    for pattern, substitute in _SECRETS:
        text = pattern.sub(substitute, text)
    return text
