"""What every part of a domain file is made of: names, words in two languages, patterns."""

from __future__ import annotations

import re
import string
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ecphoria_schema.patterns import unbounded


class Model(BaseModel):
    """A part of a domain file: unknown keys are faults, nothing is converted or changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _type_name(value: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]{0,49}", value):
        msg = f"{value!r} is no type name: a capital letter, then letters and digits, 50 at most"
        raise ValueError(msg)
    return value


def _relation_name(value: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,49}", value):
        msg = f"{value!r} is no relation name: capitals, digits and _, 50 at most"
        raise ValueError(msg)
    return value


def _field_name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,49}", value):
        msg = f"{value!r} is no field name: lower case letters, digits and _, 50 at most"
        raise ValueError(msg)
    return value


def _regex(value: str) -> str:
    try:
        re.compile(value)
        # it becomes part of a larger one, where flags for the whole are refused
        re.compile(f"(?:{value})")
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"{value!r} is no regular expression: {error}"
        raise ValueError(msg) from error
    return value


def _bounded_regex(value: str) -> str:
    fault = unbounded(_regex(value))
    if fault is not None:
        msg = f"{value!r} {fault}"
        raise ValueError(msg)
    if re.compile(value).match("") is not None:
        msg = f"{value!r} matches the empty text, so it would match everywhere"
        raise ValueError(msg)
    return value


def _word(value: str) -> str:
    if not value.strip().rstrip("*"):
        msg = f"{value!r} is no word: it would match everywhere"
        raise ValueError(msg)
    return value


def placeholders(template: str) -> list[str] | None:
    """Return the names in braces; nothing when the template has more than plain ``{name}``."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return None
    if any(name is not None and (spec or conversion) for _, name, spec, conversion in parts):
        return None
    return [name for _, name, _, _ in parts if name is not None]


TypeName = Annotated[str, AfterValidator(_type_name)]
RelationName = Annotated[str, AfterValidator(_relation_name)]
FieldName = Annotated[str, AfterValidator(_field_name)]
Regex = Annotated[str, AfterValidator(_regex)]
BoundedRegex = Annotated[str, AfterValidator(_bounded_regex)]
BoundedRegexes = Annotated[tuple[BoundedRegex, ...], Field(strict=False)]
Word = Annotated[str, AfterValidator(_word)]
Words = Annotated[tuple[Word, ...], Field(strict=False)]


class Title(Model):
    """A name for people, in both languages."""

    en: str = Field(min_length=1)
    zh: str = Field(min_length=1)


class Vocabulary(Model):
    """Words in both languages; English ones match whole words, a trailing ``*`` any ending."""

    en: Words = ()
    zh: Words = ()

    @property
    def all(self) -> tuple[str, ...]:
        """The words of both languages."""
        return (*self.en, *self.zh)
