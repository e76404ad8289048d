"""The checklist: what is asked of a model and a domain, read from YAML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from ecphoria.errors import EcphoriaError, InvalidInput
from ecphoria.model import Urgency, parse_time
from ecphoria_schema.domain import Kind, Language
from ecphoria_schema.words import Model
from ecphoria_schema.yaml_reader import YamlFault, line_of, read_yaml

_FILE = "checklist.yaml"

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]
# A mean over pairs needs a pair.
Phrasings = Annotated[tuple[Text, ...], Field(strict=False, min_length=2)]


class PhrasingGroup(Model):
    """One thing that is asked, in words that mean the same.

    Attributes:
        topics: Topics of the domain of which the first one found must be one.
        intents: Intents of which the one found must be one.
    """

    name: Text
    topics: Annotated[Texts, Field(min_length=1)]
    intents: Annotated[Texts, Field(min_length=1)]
    urgency: Urgency = "normal"
    en: Phrasings
    zh: Phrasings

    def of(self, language: Language) -> tuple[str, ...]:
        """Return the phrasings in a language."""
        return self.en if language == "en" else self.zh


class ExpectedFact(Model):
    """A fact that must be cut from a dialogue.

    Attributes:
        rule: Fact rule of the domain; None where none speaks.
        value: Of the attribute; None = whatever was said.
        ids: That it names, as they are written.
    """

    rule: str | None = None
    attribute: str | None = None
    value: str | None = None
    ids: Texts = ()


class Dialogue(Model):
    """A short text, and the facts that it holds."""

    name: Text
    text: Text
    facts: Annotated[tuple[ExpectedFact, ...], Field(strict=False, min_length=1)]


class ShelfEntity(Model):
    """Something that the customer has; `under` is what it belongs to, None = himself."""

    type: Text
    id: Text
    name: Text
    name_zh: Text | None = None
    under: Text | None = None


class ShelfMemory(Model):
    """A memory about the customer, or one that everybody shares.

    Attributes:
        about: Ids of entities of the shelf.
        days: How long ago it was said.
        until: How many days ago it ended.
    """

    id: Text
    text: Text
    kind: Kind = "episodic"
    about: Texts = ()
    source: Text = "dialogue"
    shared: bool = False
    days: float = Field(ge=0)
    until: float | None = Field(default=None, ge=0)


class ShelfQuestion(Model):
    """A question, which memories must come back, and which must not."""

    ask: Text
    keep: Texts = ()
    drop: Texts = ()


class Shelf(Model):
    """One customer, what he has, memories, and what is asked about them.

    Attributes:
        disabled: Ids of sources that are not believed.
    """

    as_of: Annotated[datetime, Field(strict=False)]
    entities: Annotated[tuple[ShelfEntity, ...], Field(strict=False)]
    memories: Annotated[tuple[ShelfMemory, ...], Field(strict=False, min_length=1)]
    disabled: Texts = ()
    questions: Annotated[tuple[ShelfQuestion, ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        parse_time(self.as_of, "as_of")
        entities = [each.id for each in self.entities]
        memories = [each.id for each in self.memories]
        for ids in (entities, memories):
            for id_, count in Counter(ids).items():
                if count > 1:
                    msg = f"the id {id_!r} stands there {count} times"
                    raise ValueError(msg)
        for known, named in (
            (entities, [each.under for each in self.entities if each.under is not None]),
            (entities, [id_ for each in self.memories for id_ in each.about]),
            (memories, [id_ for each in self.questions for id_ in (*each.keep, *each.drop)]),
        ):
            for id_ in named:
                if id_ not in known:
                    msg = f"{id_!r} is nowhere on the shelf"
                    raise ValueError(msg)
        return self


class Checklist(Model):
    """What is asked of a model and a domain.

    Attributes:
        domain: Name of the domain that its topics, intents and facts are of.
    """

    version: Literal[1]
    domain: Text
    phrasings: Annotated[tuple[PhrasingGroup, ...], Field(strict=False, min_length=2)]
    dialogues: Annotated[tuple[Dialogue, ...], Field(strict=False, min_length=1)]
    shelf: Shelf

    def said(self, languages: tuple[Language, ...]) -> Iterator[tuple[PhrasingGroup, str]]:
        """Yield every phrasing in the languages, each with its group."""
        for group in self.phrasings:
            for language in languages:
                for text in group.of(language):
                    yield group, text


def parse_checklist(text: str, file: str = _FILE) -> Checklist:
    """Read a checklist from YAML text.

    Args:
        text: The file's content.
        file: Its name, for messages.

    Raises:
        InvalidInput: With every fault found, each with its line.
    """
    try:
        data, lines = read_yaml(text)
    except YamlFault as error:
        faults = [f"{file}:{line}: {message}" for line, message in error.faults]
        raise InvalidInput("\n".join(faults)) from error
    try:
        return Checklist.model_validate(data)
    except ValidationError as error:
        faults = [
            f"{file}:{line_of(lines, item['loc'])}: "
            f"{'.'.join(str(part) for part in item['loc']) or 'file'}: "
            f"{item['msg'].removeprefix('Value error, ')}"
            for item in error.errors()
        ]
        raise InvalidInput("\n".join(faults)) from error
    except EcphoriaError as error:
        # a time without a zone
        msg = f"{file}:{line_of(lines, ('shelf', 'as_of'))}: {error.message}"
        raise InvalidInput(msg) from error


def load_checklist(file: Path | None) -> Checklist:
    """Read a checklist file; None = the one that comes with ecphoria.

    Raises:
        InvalidInput: When it cannot be read, or breaks a rule.
    """
    if file is None:
        text = resources.files("ecphoria.quality").joinpath(_FILE).read_text(encoding="utf-8")
        return parse_checklist(text)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{file} cannot be read: {error}"
        raise InvalidInput(msg) from error
    return parse_checklist(text, file.name)
