"""The exchange format: entities, relations and memories as JSON lines.

This module only reads. What a line may hold is described for people in
``docs/reference/exchange-format.md``; what the domain says about it is checked on writing.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Final,
    Literal,
    NoReturn,
    TypeAlias,
    TypeVar,
    get_args,
)

from ecphoria.errors import EcphoriaError, InvalidInput, MalformedLine
from ecphoria.model import (
    EntityInput,
    EntityRef,
    FactInput,
    MemoryInput,
    RelationInput,
    checked_id,
    checked_user,
    parse_time,
)
from ecphoria_schema.domain import KINDS, Language, Privacy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Item: TypeAlias = EntityInput | RelationInput | MemoryInput
Shape: TypeAlias = Literal["entity", "relation", "memory"]

SHAPES: Final[tuple[Shape, ...]] = get_args(Shape)

# The longest text that is allowed fits, even when every character of it is escaped.
MAX_LINE_BYTES: Final = 2 * 1024 * 1024
_SKIP_BYTES: Final = 64 * 1024
_SHOWN_CHARS: Final = 40
_BOM: Final = b"\xef\xbb\xbf"

_ENTITY_KEYS: Final = frozenset({"type", "id", "props", "observed_at"})
_RELATION_KEYS: Final = frozenset({"type", "from", "to"})
_REF_KEYS: Final = frozenset({"type", "id"})
_FACT_KEYS: Final = frozenset({"entity", "attribute", "value", "subject", "text"})
_MEMORY_TIMES: Final = ("occurred_at", "valid_from", "valid_until", "expires_at")
_MEMORY_IDS: Final = ("id", "source", "session_id", "agent_id", "supersedes")
_MEMORY_KEYS: Final = frozenset(
    {
        "user_id",
        "text",
        "kind",
        "topic",
        "lang",
        "importance",
        "privacy",
        "about",
        "facts",
        *_MEMORY_TIMES,
        *_MEMORY_IDS,
    }
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file: what it holds, or why it cannot be used.

    Attributes:
        number: Counted from 1.
        start: Where it begins, in bytes.
        end: Where the next one begins.
        item: None for a blank line and for a bad one.
        error: Why a bad line is bad; its path names the key.
    """

    number: int
    start: int
    end: int
    item: Item | None = None
    error: EcphoriaError | None = None


def shape_of(item: Item) -> Shape:
    """Return which of the three shapes an item has."""
    if isinstance(item, EntityInput):
        return "entity"
    return "relation" if isinstance(item, RelationInput) else "memory"


def read_lines(
    stream: BinaryIO, *, number: int = 0, offset: int = 0, limit: int = MAX_LINE_BYTES
) -> Iterator[Line]:
    """Read a stream line by line, holding one line at a time; a bad line does not end it.

    Args:
        stream: Where to read, standing at the beginning of a line.
        number: How many lines came before.
        offset: How many bytes came before.
        limit: Longest line, in bytes; what is longer is passed over unread.
    """
    while raw := stream.readline(limit + 1):
        start = offset
        offset += len(raw)
        number += 1
        if len(raw) > limit and not raw.endswith(b"\n"):
            offset += _pass_over(stream)
            error = MalformedLine(f"the line has {offset - start:,} bytes; {limit:,} are allowed")
            yield Line(number, start, offset, error=error)
            continue
        try:
            item = parse_line(raw.removeprefix(_BOM) if start == 0 else raw)
        except EcphoriaError as error:
            yield Line(number, start, offset, error=error)
        else:
            yield Line(number, start, offset, item=item)


def _pass_over(stream: BinaryIO) -> int:
    """Skip the rest of a line; return how long it was."""
    skipped = 0
    while chunk := stream.readline(_SKIP_BYTES):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return skipped


def parse_line(raw: bytes) -> Item | None:
    """Read one line.

    Returns:
        What it holds; None when it is blank.

    Raises:
        MalformedLine: When it is not UTF-8, not JSON, or has not exactly the keys of a shape.
        InvalidTime: When a time cannot be read or has no zone.
        InvalidScope: When `user_id` is a string that names no user.
        InvalidInput: When a value has the wrong type. The path names the key.
    """
    if not raw.strip():
        return None
    line = _object(_json(raw), "the line")
    # The keys that only one shape has decide, so that the message about a slip fits the line.
    if line.keys() & {"text", "user_id"}:
        return _memory(line)
    if line.keys() & {"from", "to"}:
        return _relation(line)
    if "props" in line:
        return _entity(line)
    msg = (
        'the line is no entity {"type", "id", "props"}, no relation {"type", "from", "to"} '
        'and no memory {"user_id", "text", …}'
    )
    raise MalformedLine(msg)


def _json(raw: bytes) -> object:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"the line is not UTF-8: byte {error.start + 1} is {raw[error.start]:#04x}"
        raise MalformedLine(msg) from error
    try:
        return json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_distinct,
        )
    except json.JSONDecodeError as error:
        msg = f"the line is not JSON: {error.msg} at character {error.pos + 1}"
        raise MalformedLine(msg) from error
    except RecursionError as error:
        msg = "the line is nested too deeply"
        raise MalformedLine(msg) from error
    except ValueError as error:  # a number with thousands of digits
        msg = "the line holds a number that is too long"
        raise MalformedLine(msg) from error


def _no_constant(name: str) -> NoReturn:
    msg = f"{name} is no JSON number"
    raise MalformedLine(msg)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        msg = f"the number {digits[:_SHOWN_CHARS]} is out of range"
        raise MalformedLine(msg)
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json keeps the last of equal keys without a word; which one was meant nobody knows.
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        msg = f"the key {twice[:_SHOWN_CHARS]!r} stands twice"
        raise MalformedLine(msg)
    return found


def _entity(line: Mapping[str, object]) -> EntityInput:
    _check_keys(line, _ENTITY_KEYS, required=("type", "id", "props"))
    return EntityInput(
        type=_string(line, "type"),
        id=_string(line, "id", _id),
        props=_object(line["props"], "the value of 'props'", "props"),
        observed_at=_optional(line, "observed_at", parse_time),
    )


def _relation(line: Mapping[str, object]) -> RelationInput:
    _check_keys(line, _RELATION_KEYS, required=("type", "from", "to"))
    return RelationInput(
        type=_string(line, "type"), from_=_ref(line["from"], "from"), to=_ref(line["to"], "to")
    )


def _memory(line: Mapping[str, object]) -> MemoryInput:
    if "user_id" not in line:
        msg = "the memory has no 'user_id'; null, written out, is what makes it shared knowledge"
        raise MalformedLine(msg)
    facts = _list(line, "facts")
    _check_keys(line, _MEMORY_KEYS, required=("user_id",) if facts else ("user_id", "text"))
    given: dict[str, Any] = {
        "kind": _optional(line, "kind", _one_of(KINDS)),
        "lang": _optional(line, "lang", _one_of(get_args(Language))),
        "privacy": _optional(line, "privacy", _one_of(get_args(Privacy))),
        "topic": _optional(line, "topic", _text),
        "importance": _optional(line, "importance", _number),
        **{key: _optional(line, key, _id) for key in _MEMORY_IDS},
        **{key: _optional(line, key, parse_time) for key in _MEMORY_TIMES},
    }
    return MemoryInput(
        text=_optional(line, "text", _text) or "" if facts else _string(line, "text"),
        user_id=_optional(line, "user_id", lambda value, _: checked_user(value)),
        about=tuple(_ref(each, "about", index) for index, each in enumerate(_list(line, "about"))),
        facts=tuple(_fact(each, "facts", index) for index, each in enumerate(facts)),
        **{key: value for key, value in given.items() if value is not None},
    )


def _ref(value: object, *path: str | int) -> EntityRef:
    ref = _object(value, f"the value of {path[0]!r}", *path)
    try:
        _check_keys(ref, _REF_KEYS, required=("type", "id"))
        return EntityRef(_string(ref, "type"), _string(ref, "id", _id))
    except EcphoriaError as error:
        raise error.at(*path) from error


def _fact(value: object, *path: str | int) -> FactInput:
    fact = _object(value, f"the value of {path[0]!r}", *path)
    try:
        _check_keys(fact, _FACT_KEYS, required=("entity", "attribute", "value"))
        return FactInput(
            entity=_ref(fact["entity"], "entity"),
            attribute=_string(fact, "attribute"),
            value=_string(fact, "value"),
            subject=_optional(fact, "subject", _text),
            text=_optional(fact, "text", _text),
        )
    except EcphoriaError as error:
        raise error.at(*path) from error


def _check_keys(
    found: Mapping[str, object], known: frozenset[str], required: tuple[str, ...]
) -> None:
    for key in found:
        if key not in known:
            msg = f"unknown key {key[:_SHOWN_CHARS]!r}; known are {', '.join(sorted(known))}"
            raise MalformedLine(msg, path=(key,))
    for key in required:
        if key not in found:
            msg = f"the key {key!r} is missing"
            raise MalformedLine(msg, path=(key,))


def _object(value: object, what: str, *path: str | int) -> dict[str, Any]:
    if not isinstance(value, dict):
        msg = f"{what} must be an object, not {_json_type(value)}"
        raise MalformedLine(msg, path=path)
    return value


def _list(found: Mapping[str, object], key: str) -> list[Any]:
    value = found.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        msg = f"{key!r} must be a list, not {_json_type(value)}"
        raise InvalidInput(msg, path=(key,))
    return value


def _optional(
    found: Mapping[str, object], key: str, read: Callable[[object, str], _T]
) -> _T | None:
    value = found.get(key)
    if value is None:
        return None
    try:
        return read(value, key)
    except EcphoriaError as error:
        raise (error if error.path else error.at(key)) from error


def _string(
    found: Mapping[str, object], key: str, read: Callable[[object, str], str] | None = None
) -> str:
    value = found[key]
    try:
        return (read or _text)(value, key)
    except EcphoriaError as error:
        raise error.at(key) from error


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        msg = f"{what!r} must be a string, not {_json_type(value)}"
        raise InvalidInput(msg)
    return value


def _id(value: object, what: str) -> str:
    return checked_id(_text(value, what), what)


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"{what!r} must be a number, not {_json_type(value)}"
        raise InvalidInput(msg)
    try:
        return float(value)
    except OverflowError as error:
        msg = f"{what!r} is out of range"
        raise InvalidInput(msg) from error


def _one_of(allowed: tuple[str, ...]) -> Callable[[object, str], str]:
    def read(value: object, what: str) -> str:
        if value not in allowed:
            msg = f"{what!r} must be one of {', '.join(allowed)}"
            raise InvalidInput(msg)
        return str(value)

    return read


def _json_type(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a string", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, dict) else "a number")
