"""The part of a domain file that tells which statements and answers are facts."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from ecphoria_schema.words import (
    BoundedRegexes,
    FieldName,
    Model,
    Title,
    Vocabulary,
    placeholders,
)

Guard: TypeAlias = Literal["question", "hypothetical", "negation", "hearsay", "third_person"]
GUARDS: tuple[Guard, ...] = ("question", "hypothetical", "negation", "hearsay", "third_person")

# What a template may name beside slots and entity types.
BUILT_IN = frozenset({"question", "answer", "value", "subject", "said_on", "said_at"})

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")


def template_names(template: str) -> tuple[str, ...] | None:
    """Return the names in braces of a template; nothing when it is none."""
    bare = _OPTIONAL.sub("", template)
    if "[" in bare or "]" in bare:
        return None
    found = [placeholders(part) for part in (bare, *_OPTIONAL.findall(template))]
    if any(names is None for names in found) or [] in found[1:]:
        return None
    return tuple(name for names in found if names is not None for name in names)


def _template(value: str) -> str:
    if template_names(value) is None:
        msg = (
            f"{value!r} is no template: plain {{name}} in braces, and [parts] with at least "
            "one of them, which are left out when nothing is known for it"
        )
        raise ValueError(msg)
    return value


Template = Annotated[str, Field(min_length=1), AfterValidator(_template)]


class Patterns(Model):
    """Patterns in both languages; the first that fits is taken."""

    en: BoundedRegexes = ()
    zh: BoundedRegexes = ()

    @property
    def all(self) -> tuple[str, ...]:
        """The patterns of both languages."""
        return (*self.en, *self.zh)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.all:
            msg = "at least one pattern is needed"
            raise ValueError(msg)
        return self


class Slot(Patterns):
    """A thing that can be found in a text, e.g. a tracking number: the pattern's first group."""

    title: Title


class Templates(Model):
    """A sentence in both languages, filled from what was found."""

    en: Template
    zh: Template


class Cue(Model):
    """Words of which one must be there, and words of which none may."""

    any: Vocabulary = Vocabulary()
    none: Vocabulary = Vocabulary()


class _Rule(Model):
    """What every fact rule may have.

    Attributes:
        attribute: The domain's attribute whose value the fact gives.
        value: Slot that holds the value; without it the words of the attribute's values tell.
        subject: Slot that holds what a keyed attribute is about.
        topic: First topic of the fact.

    """

    title: Title
    attribute: str | None = None
    value: FieldName | None = None
    subject: FieldName | None = None
    topic: FieldName | None = None
    intent: FieldName | None = None
    urgency: Literal["low", "normal", "high"] | None = None

    @model_validator(mode="after")
    def _value_is_of_an_attribute(self) -> Self:
        if self.attribute is None and (self.value or self.subject):
            msg = "`value` and `subject` need an `attribute`"
            raise ValueError(msg)
        return self


class StatementRule(_Rule):
    """A fact that one sentence states.

    Attributes:
        any: Words of which one must stand in the sentence.
        none: Words that keep it from being this fact.
        says: What the whole sentence looks like; named groups are slots.
        despite: Cues that do not keep a sentence from being this fact, as others do.

    """

    type: Literal["statement"]
    any: Vocabulary = Vocabulary()
    none: Vocabulary = Vocabulary()
    says: Patterns
    despite: Annotated[tuple[Guard, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _groups_are_slots(self) -> Self:
        for pattern in self.says.all:
            groups = set(re.compile(pattern).groupindex)
            for slot in (self.value, self.subject):
                if slot is not None and slot not in groups:
                    msg = f"{pattern!r} has no group {slot!r}"
                    raise ValueError(msg)
            if odd := sorted(
                group for group in groups if not re.fullmatch("[a-z][a-z0-9_]*", group)
            ):
                msg = f"{pattern!r} has a group {odd[0]!r}: lower case letters, digits and _ only"
                raise ValueError(msg)
        return self


class ExchangeRule(_Rule):
    """A fact that a customer's question and the service's answer give together.

    Attributes:
        question: Words that must, or may not, stand in what the customer says.
        answer: The same for what the service says.
        needs: Slots and entity types that must be known, or ``value``.
        text: The fact, whole on its own.

    """

    type: Literal["exchange"]
    question: Cue = Cue()
    answer: Cue = Cue()
    needs: Annotated[tuple[str, ...], Field(strict=False)] = ()
    text: Templates

    @model_validator(mode="after")
    def _is_about_something(self) -> Self:
        if not (self.question.any.all or self.answer.any.all or self.needs):
            msg = "an exchange needs words in `question` or `answer`, or `needs`"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _value_is_needed_where_it_is_told(self) -> Self:
        if "value" in self.needs and self.attribute is None:
            msg = "`needs: [value]` needs an `attribute`"
            raise ValueError(msg)
        return self


FactRule = Annotated[StatementRule | ExchangeRule, Field(discriminator="type")]
