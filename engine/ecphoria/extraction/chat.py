"""Facts by a chat model, checked against the text; by rules where it fails."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import structlog

from ecphoria.chat.client import ChatClient
from ecphoria.errors import ChatFailed
from ecphoria.extraction.chat_answer import checked_facts
from ecphoria.extraction.chat_prompt import facts_form, system_message, text_message
from ecphoria.extraction.chunks import chunks
from ecphoria.extraction.port import Extraction, Fact, FactExtractor, SourceText
from ecphoria.language.lexicon import Lexicon
from ecphoria.language.tokens import estimated_tokens
from ecphoria_schema.domain import Domain, Language

# An answer says everything twice, once as a statement and once as evidence, in JSON.
_ANSWER_TOKENS = 800
_ANSWER_TIMES = 4
# What is shown of the part before, so that "it" can be understood.
_BEFORE_CHARS = 300
_WORD_START = re.compile(r"\A[0-9A-Za-z]+")

log = structlog.get_logger(__name__)


class ChatExtractor:
    """Cuts a text into facts with a chat model.

    Whatever the model does wrong, the rules read the text instead, and the extraction's note says
    so. Long texts are read in parts, each by itself.
    """

    def __init__(
        self,
        client: ChatClient,
        rules: FactExtractor,
        domain: Domain,
        lexicon: Lexicon,
        *,
        chunk_chars: int,
    ) -> None:
        """Prepare what the model is told.

        Args:
            client: Asks the model; stays its owner's.
            rules: Reads what the model does not.
            domain: The domain that facts belong to.
            lexicon: The domain's words.
            chunk_chars: Longest part of a text, in characters.
        """
        self._client = client
        self._rules = rules
        self._domain = domain
        self._lexicon = lexicon
        self._chunk_chars = chunk_chars
        self._form = facts_form(domain)
        languages: tuple[Language, ...] = ("en", "zh")
        self._system = {lang: system_message(domain, lang) for lang in languages}

    async def extract(self, source: SourceText) -> Extraction:
        """Return the facts of a text, in its order."""
        if source.kind == "procedural":
            # an instruction is kept whole
            return await self._rules.extract(source)
        # without overlap: nothing is to be a fact twice
        parts = chunks(source.text, self._chunk_chars, 0)
        befores = ["", *map(_tail, parts[:-1])]
        answers = await asyncio.gather(
            *(
                self._read(replace(source, text=part), before)
                for part, before in zip(parts, befores, strict=True)
            )
        )
        faults = [answer for answer in answers if isinstance(answer, str)]
        if len(faults) == len(parts):
            return await self._by_rules(source, faults)
        facts: list[Fact] = []
        for part, answer in zip(parts, answers, strict=True):
            if isinstance(answer, str):
                facts.extend((await self._rules.extract(replace(source, text=part))).facts)
            else:
                facts.extend(answer)
        note = (
            f"{faults[0]}; {len(faults)} of {len(parts)} parts were read by rules" if faults else ""
        )
        return Extraction(tuple(facts), "chat", note)

    async def close(self) -> None:
        """Close the rules; the client stays its owner's."""
        await self._rules.close()

    async def _by_rules(self, source: SourceText, faults: list[str]) -> Extraction:
        by_rules = await self._rules.extract(source)
        return replace(by_rules, by="rules", note=f"{faults[0]}; facts were read by rules")

    async def _read(self, source: SourceText, before: str) -> tuple[Fact, ...] | str:
        """Return the facts of a part, at least one; or why the model cannot be used for it."""
        text = source.text
        try:
            answer = await self._client.complete(
                [self._system[source.lang], text_message(text, before, source.lang)],
                self._form,
                max_tokens=_ANSWER_TOKENS + _ANSWER_TIMES * estimated_tokens(text),
            )
            facts = checked_facts(text, before, answer.facts, self._domain, self._lexicon)
        except ChatFailed as failed:
            log.debug("chat model not used", reason=failed.message)
            return failed.message
        # no fact in it: what it is about, the rules know
        return facts or (await self._rules.extract(source)).facts


def _tail(part: str) -> str:
    tail = part[-_BEFORE_CHARS:]
    # half an id is another id
    return tail if tail == part else _WORD_START.sub("", tail)
