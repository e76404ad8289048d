"""The four verbs in plain Python: no stores, no model. The rules are the engine's own functions.

What differs from an engine is how well it finds: by words in common, not by meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from ecphoria.clock import Clock
from ecphoria.decay import archive_at, refreshed
from ecphoria.errors import IdConflict, MemoryForgotten
from ecphoria.extraction.port import Extraction, SourceText
from ecphoria.extraction.rules import RuleExtractor
from ecphoria.language.folding import fold, is_han, language_of
from ecphoria.language.lexicon import Lexicon
from ecphoria.language.sameness import content
from ecphoria.model import (
    EmbeddingSpec,
    EntityRef,
    EveryUser,
    Memory,
    MemoryInput,
    RecallRequest,
    Role,
    Scope,
    Standing,
    Status,
    checked_id,
    memory_key,
    utc,
)
from ecphoria.recall.as_known import HELD, holds
from ecphoria.recall.request import checked_request
from ecphoria.recall.understand import Understanding, understand
from ecphoria.remember.claims import claim_of
from ecphoria.remember.compare import better_text, is_duplicate, is_news
from ecphoria.remember.link import GIVEN_CERTAINTY, Draft, wanted_refs
from ecphoria.remember.normalise import CleanMemory, clean_memory
from ecphoria.remember.tag import given_facts, tagged, whole_of
from ecphoria.settings import Settings
from ecphoria.stores.ports import Mention
from ecphoria.testing.store import StoredMemory, facts_of
from ecphoria.timeline import Claimant, places
from ecphoria_schema.domain import Domain, shipped_domain

_TENANT = "in-memory"
_NO_MODEL = EmbeddingSpec("none", "0", 1)


class InMemoryStore:
    """A `MemoryStore` in this process; gone with it."""

    def __init__(self, clock: Clock | None = None, domain: Domain | None = None) -> None:
        """Begin empty.

        Args:
            clock: Where time comes from; a `ManualClock` makes it stand still.
            domain: Whose attributes, words and policies; the shipped one without it.
        """
        self._clock = clock or Clock()
        self._domain = domain or shipped_domain()
        self._lexicon = Lexicon(self._domain)
        # defaults alone: what stands in the environment must not change a test
        self._settings = Settings.model_construct()
        self._extractor = RuleExtractor(
            self._domain,
            self._lexicon,
            self._settings.chunk_chars,
            self._settings.chunk_overlap,
        )
        self._scope = Scope(_TENANT, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
        self._memories: dict[str, Memory] = {}
        self._forgotten: set[str] = set()
        self._counts: Counter[str] = Counter()
        # key -> key of the memory that ended it
        self._ended_by: dict[str, str | None] = {}

    async def write_memory(
        self,
        user_id: str,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - what it is called everywhere
        entity: EntityRef | None = None,
        attribute: str | None = None,
        value: str | None = None,
        valid_from: datetime | None = None,
        expires_at: datetime | None = None,
    ) -> str:
        """See `MemoryStore.write_memory`."""
        now = self._clock.now()
        # only shared knowledge has no user, and none is written here
        self._scope.user(user_id)
        clean = clean_memory(
            MemoryInput(
                text=text,
                user_id=user_id,
                id=id,
                valid_from=valid_from,
                expires_at=expires_at,
                facts=facts_of(self._domain, user_id, entity, attribute, value),
            ),
            scope=self._scope,
            domain=self._domain,
            now=now,
            max_chars=self._settings.max_text_chars,
        )
        extraction = await self._extracted(clean)
        made = [
            self._linked(
                tagged(
                    clean,
                    fact,
                    number,
                    scope=self._scope,
                    domain=self._domain,
                    spec=_NO_MODEL,
                    now=now,
                ),
                clean,
                number,
            )
            for number, fact in enumerate(extraction.facts)
        ]
        kept = [self._same(memory) if id is None else None for memory in made]
        self._check_ids(memory for memory, same in zip(made, kept, strict=True) if same is None)
        ids = [self._keep(*pair) for pair in zip(made, kept, strict=True)]
        return ids[0]

    async def _extracted(self, clean: CleanMemory) -> Extraction:
        item = clean.item
        if item.facts:
            return given_facts(clean, self._domain)
        lang = item.lang or language_of(item.text)
        return await self._extractor.extract(
            SourceText(item.text, lang, item.kind, clean.occurred_at)
        )

    def _linked(self, memory: Memory, clean: CleanMemory, number: int) -> Memory:
        # there are no entities here: ids stand for what they name
        facts = clean.item.facts
        draft = Draft(memory, of=facts[number].entity if facts else None)
        mentions = [
            Mention(text, ref, GIVEN_CERTAINTY)
            for text, refs in wanted_refs(draft, self._lexicon, (), self._domain).ids
            for ref in refs
        ]
        return replace(memory, claim=claim_of(memory, (), mentions, self._domain))

    def _same(self, new: Memory) -> Memory | None:
        """Return a memory that says the same; an engine asks its index for those to look at."""
        window = timedelta(days=self._settings.duplicate_window_days)
        held = [memory for memory in self._memories.values() if memory.status in HELD]
        rivals = [old for old in held if old.claim == new.claim]
        return next(
            (
                old
                for old in held
                if is_duplicate(new, old, window)
                and not (new.claim is not None and is_news(new, old, rivals))
            ),
            None,
        )

    def _check_ids(self, memories: Iterable[Memory]) -> None:
        for memory in memories:
            if memory.key in self._forgotten:
                msg = f"{memory.id!r} was forgotten and does not come back"
                raise MemoryForgotten(msg, path=("id",))
            there = self._memories.get(memory.key)
            if there is None:
                continue
            if there.user_id != memory.user_id:
                msg = "the id belongs to a memory of another user"
                raise IdConflict(msg, path=("id",))
            if there.content_hash != memory.content_hash:
                msg = "the id belongs to a memory with other content"
                raise IdConflict(msg, path=("id",))

    def _keep(self, memory: Memory, same: Memory | None) -> str:
        there = same or self._memories.get(memory.key)
        if there is not None:
            better = better_text(memory, there) if same is not None else None
            self._memories[there.key] = replace(
                there, reinforced=there.reinforced + 1, text=better or there.text
            )
            return there.id
        if memory.claim is not None:
            self._counts[memory.claim] += 1
            memory = replace(memory, claim_number=self._counts[memory.claim])
        self._memories[memory.key] = memory
        self._put_in_order(memory.claim, {memory.key})
        return memory.id

    def _put_in_order(self, claim: str | None, fresh: set[str]) -> None:
        if claim is None:
            return
        now = self._clock.now()
        members = [memory for memory in self._memories.values() if memory.claim == claim]
        for key, place in places(_claimant(memory) for memory in members).items():
            memory = self._memories[key]
            self._ended_by[key] = place.superseded_by
            if (memory.status, memory.valid_until) == (place.status, place.valid_until):
                continue
            past = memory.past
            if key not in fresh:
                past = (*past, Standing(now, memory.status, memory.valid_until))
            self._memories[key] = replace(
                memory,
                status=place.status,
                valid_until=place.valid_until,
                invalidated_at=now if place.status is Status.SUPERSEDED else None,
                past=past,
            )

    async def recall(
        self, user_id: str, question: str, *, limit: int = 5
    ) -> tuple[StoredMemory, ...]:
        """See `MemoryStore.recall`."""
        self._scope.user(user_id)
        request = checked_request(
            RecallRequest(question, user_id, limit=limit), self._settings, self._domain
        )
        now = utc(self._clock.now())
        wanted = understand(request, self._domain, self._lexicon, now)
        if wanted.is_smalltalk:
            return ()
        asked = _terms(request.question)
        scored = [
            (_in_common(memory, asked, wanted.topics), memory)
            for memory in self._memories.values()
            if memory.user_id == user_id and _may_be_shown(memory, wanted, now)
        ]
        found = sorted(
            (pair for pair in scored if pair[0] > 0),
            key=lambda pair: (-pair[0], -pair[1].valid_from.timestamp(), pair[1].id),
        )
        shown = [memory for _, memory in found[:limit]]
        for memory in shown:
            self._use(memory, now)
        return tuple(StoredMemory.of(memory) for memory in shown)

    def _use(self, memory: Memory, now: datetime) -> None:
        decay = self._domain.kinds[memory.kind].decay
        since = memory.freshness_at or memory.recorded_at
        fresh = 1.0 if decay is None else refreshed(memory.freshness, since, now, decay, 1)
        last = max(since, now)
        self._memories[memory.key] = replace(
            memory,
            access_count=memory.access_count + 1,
            last_accessed_at=now,
            freshness=fresh,
            freshness_at=last,
            archive_at=None if decay is None else archive_at(fresh, last, decay),
            tier="hot",
        )

    async def forget(self, user_id: str, ids: Sequence[str]) -> int:
        """See `MemoryStore.forget`."""
        self._scope.user(user_id)
        keys = [memory_key(_TENANT, checked_id(id_, "memory id")) for id_ in dict.fromkeys(ids)]
        own = [
            key for key in keys if key in self._memories and self._memories[key].user_id == user_id
        ]
        wanted = {self._memories[key].id: self._memories[key] for key in own}
        cut = [
            memory.key
            for memory in self._memories.values()
            if (first := wanted.get(whole_of(memory.id) or "")) is not None
            and (first.user_id, first.content_hash) == (memory.user_id, memory.content_hash)
        ]
        self._erase(list(dict.fromkeys((*own, *cut))))
        return len(own)

    async def clean_expired(self) -> int:
        """See `MemoryStore.clean_expired`; also moves what nobody uses to the archive."""
        now = self._clock.now()
        due = [
            memory.key
            for memory in self._memories.values()
            if memory.expires_at is not None and memory.expires_at <= now
        ]
        self._erase(due)
        for key, memory in self._memories.items():
            if memory.archive_at is not None and memory.archive_at <= now:
                self._memories[key] = replace(memory, tier="archive", archive_at=None)
        return len(due)

    def _erase(self, keys: Sequence[str]) -> None:
        claims: set[str | None] = set()
        for key in keys:
            # what it had ended must not begin again only because nobody may know why
            for other, by in self._ended_by.items():
                if by == key and other in self._memories:
                    ended = self._memories[other]
                    self._memories[other] = replace(ended, fixed_until=ended.valid_until)
            claims.add(self._memories.pop(key).claim)
            self._ended_by.pop(key, None)
            self._forgotten.add(key)
        for claim in claims:
            self._put_in_order(claim, set())


def _claimant(memory: Memory) -> Claimant:
    return Claimant(
        key=memory.key,
        value=fold(memory.value or ""),
        valid_from=memory.valid_from,
        stated_until=memory.stated_until,
        fixed_until=memory.fixed_until,
        reliability=memory.reliability,
        number=memory.claim_number,
    )


def _may_be_shown(memory: Memory, wanted: Understanding, now: datetime) -> bool:
    if memory.status not in HELD or memory.valid_from > now:
        return False
    if memory.expires_at is not None and memory.expires_at <= now:
        return False
    return wanted.wants_history or (memory.tier == "hot" and holds(memory, now))


def _in_common(memory: Memory, asked: frozenset[str], topics: Sequence[str]) -> int:
    said = _terms(f"{memory.text} {memory.evidence or ''}")
    return len(asked & said) + len({memory.topic, *memory.tags} & set(topics))


def _terms(text: str) -> frozenset[str]:
    """Return the words, numbers and names of a text, of Chinese its pairs of characters."""
    words = content(text)
    terms: set[str] = set()
    for place, word in enumerate(words):
        if not is_han(word):
            terms.add(word)
        elif place + 1 < len(words) and is_han(words[place + 1]):
            terms.add(word + words[place + 1])
    return frozenset(terms)
