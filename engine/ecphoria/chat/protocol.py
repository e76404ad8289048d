"""What goes to an OpenAI-compatible chat API and what comes back. Pure functions, no I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from ecphoria.language.tokens import estimated_tokens

Answer = TypeVar("Answer", bound=BaseModel)

MAX_WORDS_CHARS = 200
# What chat formats put around a message, in tokens.
_MESSAGE_TOKENS = 8
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
# Nobody's own words are that alike by chance: a run of Han characters or digits, or any 12 signs.
_TELLING_RUN = re.compile(r"[\u3400-\u9fff\d]{4}")
_TELLING_CHARS = 12
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a chat model."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Form(Generic[Answer]):
    """The form that an answer must have.

    Attributes:
        name: Letters, digits and ``_``.
        schema: JSON schema of one object, in the subset of strict structured output: every
            property required, no further ones.
        model: Reads the answer; what breaks it is no answer.
    """

    name: str
    schema: Mapping[str, JsonValue]
    model: type[Answer]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What of the protocol a server takes; the rest is learnt from what it refuses.

    Attributes:
        schema: Structured output by JSON schema, not just some JSON object.
        limit: Name of the limit to the answer's tokens.
        temperature: Another temperature than the model's own.
    """

    schema: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True

    def without(self, refusal: str) -> Dialect | None:
        """Return the dialect without what a refusal names; None when it names nothing of it."""
        if self.limit == "max_tokens" and "max_completion_tokens" in refusal:
            return replace(self, limit="max_completion_tokens")
        if self.temperature and "temperature" in refusal:
            return replace(self, temperature=False)
        if self.schema and ("response_format" in refusal or "json_schema" in refusal):
            return replace(self, schema=False)
        return None


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's good answer.

    Attributes:
        content: The model's words; empty when there are none.
        finish: Why the model stopped, e.g. ``stop`` or ``length``; empty when it isn't told.
        refused: Whether the model declined to answer.
        tokens: What it cost by the server's count; None when it isn't told.
    """

    content: str
    finish: str
    refused: bool
    tokens: int | None


def request_body(
    model: str, messages: Sequence[Message], form: Form[Answer], max_tokens: int, dialect: Dialect
) -> bytes:
    """Return the body of a request, as JSON in ASCII (a lone surrogate must not break it)."""
    schema = json.dumps(form.schema, ensure_ascii=False)
    hint = f"\n\nAnswer with one JSON object of this JSON schema and nothing else:\n{schema}"
    told = [{"role": message.role, "content": message.content} for message in messages]
    if not dialect.schema:
        told[0]["content"] += hint
    body: dict[str, object] = {
        "model": model,
        "messages": told,
        "stream": False,
        dialect.limit: max_tokens,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": form.name, "strict": True, "schema": form.schema},
        }
        if dialect.schema
        else {"type": "json_object"},
    }
    if dialect.temperature:
        body["temperature"] = 0
    return json.dumps(body).encode("ascii")


def prompt_tokens(messages: Sequence[Message], form: Form[Answer]) -> int:
    """Return about how many tokens a request costs before anything is answered."""
    schema = json.dumps(form.schema, ensure_ascii=False)
    return estimated_tokens(schema) + sum(
        _MESSAGE_TOKENS + estimated_tokens(message.content) for message in messages
    )


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: tuple[_Choice, ...]
    usage: JsonValue = None


def read_reply(body: bytes) -> Reply | None:
    """Read the body of a good answer; None when it is not what the protocol says."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        return None
    if not completion.choices:
        return None
    choice = completion.choices[0]
    return Reply(
        content=choice.message.content or "",
        finish=choice.finish_reason or "",
        refused=bool(choice.message.refusal),
        tokens=_tokens(completion.usage),
    )


def _tokens(usage: JsonValue) -> int | None:
    if not isinstance(usage, dict):
        return None
    parts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    total = usage.get("total_tokens")
    if total is None and None not in parts:
        total = sum(part for part in parts if isinstance(part, int))
    return total if isinstance(total, int) and total > 0 else None


def read_content(content: str, form: Form[Answer]) -> Answer | str:
    """Read the model's words into the form; else return what is wrong with them.

    Thoughts before the object and fences or words around it are passed over. What is wrong is
    said without the words themselves.
    """
    content = _THOUGHTS.sub("", content)
    start, end = content.find("{"), content.rfind("}") + 1
    if start < 0 or end <= start:
        return "is not JSON"
    try:
        return form.model.model_validate_json(content[start:end])
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False, include_context=False)[0]
        if fault["type"] == "json_invalid":
            return "is not JSON"
        place = ".".join(str(part) for part in fault["loc"]) or "answer"
        return f"breaks the schema at {place}: {fault['msg']}"


def server_words(body: bytes, private: Sequence[str]) -> str:
    """Return the first line of what a server says about an error; empty when it says nothing.

    Args:
        body: Its answer.
        private: Texts that must not be told. A line that repeats part of one is left out.
    """
    text = body.decode("utf-8", errors="replace").strip()
    try:
        told = _message(_JSON.validate_json(body))
    except ValidationError:
        told = "" if text.startswith("<") else text
    line = next((line.strip() for line in told.splitlines() if line.strip()), "")
    line = "".join(char if char.isprintable() else " " for char in line)
    if any(_repeats(line, item) for item in private):
        return "(its words repeat what was sent)"
    return line if len(line) <= MAX_WORDS_CHARS else f"{line[:MAX_WORDS_CHARS]}…"


def _message(value: JsonValue) -> str:
    # {"error": {"message": …}}, {"error": "…"}, {"message": …}, {"detail": …}, [{"error": …}]
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _message(value[0]) if value else ""
    if isinstance(value, dict):
        for name in ("error", "message", "detail", "msg"):
            if value.get(name):
                return _message(value[name])
    return ""


def _repeats(line: str, private: str) -> bool:
    if not private:
        return False
    if len(private) < _TELLING_CHARS:
        return private in line
    runs = {line[at : at + _TELLING_CHARS] for at in range(len(line) - _TELLING_CHARS + 1)}
    runs.update(line[at : at + 4] for at in range(len(line)) if _TELLING_RUN.match(line, at))
    return any(run in private for run in runs)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a ``Retry-After`` asks to wait; None when it says nothing useful.

    Args:
        value: Seconds, or an HTTP date.
        now: The present moment.
    """
    if value is None:
        return None
    value = value.strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
