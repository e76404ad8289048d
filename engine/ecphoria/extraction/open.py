"""Choose and open the fact extractor and the chat client that the settings name."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from ecphoria.chat.budget import TokenBudget
from ecphoria.chat.client import ChatClient
from ecphoria.clock import Clock
from ecphoria.extraction.chat import ChatExtractor
from ecphoria.extraction.port import FactExtractor
from ecphoria.extraction.rules import RuleExtractor
from ecphoria.language.lexicon import Lexicon
from ecphoria.settings import Settings
from ecphoria_schema.domain import Domain


def open_chat(settings: Settings, clock: Clock) -> ChatClient | None:
    """Return a client for the chat model of these settings, None without one; the caller closes it.

    Nothing is sent: a model that is away is noticed, and said, when it is needed.

    Raises:
        ConfigurationInvalid: When the URL is none, or the key cannot be sent.
    """
    if settings.chat_url is None or settings.chat_model is None:
        return None
    return ChatClient(
        url=settings.chat_url,
        model=settings.chat_model,
        api_key=settings.chat_api_key,
        timeout_s=settings.chat_timeout_s,
        budget=TokenBudget(settings.chat_tokens_per_day, clock),
        clock=clock,
    )


@contextlib.asynccontextmanager
async def open_extractor(
    settings: Settings, domain: Domain, lexicon: Lexicon, client: ChatClient | None
) -> AsyncIterator[FactExtractor]:
    """Yield the fact extractor of these settings: by chat model if there is one, else by rules.

    Args:
        settings: Sizes of chunks.
        domain: The domain whose facts are found.
        lexicon: Its words.
        client: From `open_chat`; it stays open.
    """
    rules = RuleExtractor(domain, lexicon, settings.chunk_chars, settings.chunk_overlap)
    extractor: FactExtractor = (
        rules
        if client is None
        else ChatExtractor(client, rules, domain, lexicon, chunk_chars=settings.chunk_chars)
    )
    try:
        yield extractor
    finally:
        await extractor.close()
