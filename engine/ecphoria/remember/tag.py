"""Third stage of a write: make the memories of an item out of its facts.

What a text is about, in which language, how long it matters.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from datetime import datetime, timedelta

from ecphoria.decay import archive_at
from ecphoria.extraction.port import Extraction, Fact
from ecphoria.language.folding import language_of
from ecphoria.model import (
    EmbeddingSpec,
    IndexState,
    Memory,
    Scope,
    Status,
    memory_key,
    utc,
)
from ecphoria.remember.normalise import CleanMemory, content_hash
from ecphoria_schema.domain import Domain, KindPolicy

# Within so many seconds the same words are the same memory (source: the project's brief).
SAME_MOMENT_S = 600


def memory_id(clean: CleanMemory, tenant: str, key: bytes | None = None) -> str:
    """Return the id of an item that came without one: a repeated one gets the same id.

    From tenant, user, session, kind, content and the ten minutes it happened in; `key` as for
    `content_hash`.
    """
    item = clean.item
    parts = (
        tenant,
        "" if item.user_id is None else f"={item.user_id}",
        item.kind,
        item.session_id or "",
        content_hash(item.text, item.facts, key),
        str(int(clean.occurred_at.timestamp() // SAME_MOMENT_S)),
    )
    # lengths keep the parts apart, whatever they hold
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return f"mem-{hashlib.sha256(joined.encode()).hexdigest()[:24]}"


def part_id(id_: str, number: int) -> str:
    """Return the id of the n-th memory of an item, from 0; the first has the item's own."""
    return id_ if number == 0 else f"{id_}~{number + 1}"


def whole_of(id_: str) -> str | None:
    """Return the id of the item that a memory would be a later part of; None for a first part."""
    match = re.fullmatch(r"(.+)~[1-9][0-9]*", id_)
    return None if match is None else match[1]


def given_facts(clean: CleanMemory, domain: Domain) -> Extraction:
    """Return the facts that a caller handed over, as if they had been found in the text."""
    item = clean.item
    facts: list[Fact] = []
    for given in item.facts:
        title = domain.attributes[given.attribute].title
        about = f"{given.entity.type} {given.entity.id}"
        subject = f" ({given.subject})" if given.subject else ""
        made = (
            f"{about}：{title.zh}{subject}是{given.value}"
            if item.lang == "zh" or (item.lang is None and language_of(item.text) == "zh")
            else f"{about}: {title.en}{subject} is {given.value}"
        )
        alone = item.text if len(item.facts) == 1 else ""
        facts.append(
            Fact(
                text=given.text or alone or made,
                attribute=given.attribute,
                value=given.value,
                subject=given.subject,
                evidence=item.text or None,
            )
        )
    return Extraction(tuple(facts), "caller")


def tagged(
    clean: CleanMemory,
    fact: Fact,
    number: int,
    *,
    scope: Scope,
    domain: Domain,
    spec: EmbeddingSpec,
    now: datetime,
    key: bytes | None = None,
) -> Memory:
    """Return one fact as a memory, not yet linked; `key` as for `content_hash`."""
    item = clean.item
    policy = domain.kinds[item.kind]
    recorded_at = utc(now)
    id_ = part_id(item.id or memory_id(clean, scope.tenant, key), number)
    given = policy.importance if item.importance is None else item.importance
    importance = max(given, policy.importance_floor)
    source_id = item.source or domain.default_source
    declared = domain.facts.get(fact.fact_type) if fact.fact_type else None
    topic = item.topic or (declared.topic if declared else None)
    return Memory(
        key=memory_key(scope.tenant, id_),
        id=id_,
        tenant=scope.tenant,
        user_id=item.user_id,
        kind=item.kind,
        topic=topic or (fact.topics[0] if fact.topics else None),
        text=fact.text,
        lang=item.lang or language_of(fact.text),
        importance=importance,
        source_id=source_id,
        privacy=item.privacy,
        occurred_at=clean.occurred_at,
        valid_from=clean.valid_from,
        valid_until=item.valid_until,
        expires_at=item.expires_at or _expiry(policy, importance, recorded_at),
        recorded_at=recorded_at,
        status=Status.ACTIVE,
        tier="hot",
        content_hash=content_hash(item.text, item.facts, key),
        embedding_model=spec.model,
        index_state=IndexState.PENDING,
        tags=fact.topics,
        session_id=item.session_id,
        agent_id=item.agent_id,
        # one memory takes another's place, not every part of a text
        supersedes=item.supersedes if number == 0 else None,
        fact_type=fact.fact_type,
        intent=fact.intent,
        urgency=fact.urgency,
        evidence=fact.evidence,
        details=fact.details,
        attribute=fact.attribute,
        value=fact.value,
        subject=fact.subject,
        stated_until=item.valid_until,
        reliability=domain.sources[source_id].reliability,
        freshness_at=recorded_at,
        archive_at=None if policy.decay is None else archive_at(1.0, recorded_at, policy.decay),
    )


def _expiry(policy: KindPolicy, importance: float, recorded_at: datetime) -> datetime | None:
    days = policy.lifetime_days(importance)
    # a policy that ends after the year 9999 never ends
    with contextlib.suppress(OverflowError):
        return None if days is None else recorded_at + timedelta(days=days)
    return None
