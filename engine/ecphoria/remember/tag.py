"""Second stage of a write: what a text is about, in which language, how long it matters."""

from __future__ import annotations

import contextlib
import hashlib
from datetime import datetime, timedelta

from ecphoria.language.folding import language_of
from ecphoria.language.lexicon import Lexicon
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
from ecphoria_schema.domain import Domain


def memory_id(clean: CleanMemory, tenant: str) -> str:
    """Return the id of a memory that came without one: the same input gives the same id."""
    item = clean.item
    parts = (
        tenant,
        item.user_id or "",
        item.kind,
        item.session_id or "",
        content_hash(item.text),
        clean.occurred_at.isoformat() if item.occurred_at is not None else "",
    )
    # lengths keep the parts apart, whatever they hold
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return f"mem-{hashlib.sha256(joined.encode()).hexdigest()[:24]}"


def tagged(
    clean: CleanMemory,
    *,
    scope: Scope,
    domain: Domain,
    lexicon: Lexicon,
    spec: EmbeddingSpec,
    now: datetime,
) -> Memory:
    """Return the memory as it will be stored, not yet linked."""
    item = clean.item
    policy = domain.kinds[item.kind]
    recorded_at = utc(now)
    id_ = item.id or memory_id(clean, scope.tenant)
    tags = lexicon.topics(item.text)
    expires_at = item.expires_at
    if expires_at is None and policy.expires_after_days is not None:
        # a policy that ends after the year 9999 never ends
        with contextlib.suppress(OverflowError):
            expires_at = recorded_at + timedelta(days=policy.expires_after_days)
    return Memory(
        key=memory_key(scope.tenant, id_),
        id=id_,
        tenant=scope.tenant,
        user_id=item.user_id,
        kind=item.kind,
        topic=item.topic or (tags[0] if tags else None),
        text=item.text,
        lang=item.lang or language_of(item.text),
        importance=policy.importance if item.importance is None else item.importance,
        source_id=item.source or domain.default_source,
        privacy=item.privacy,
        occurred_at=clean.occurred_at,
        valid_from=clean.valid_from,
        valid_until=item.valid_until,
        expires_at=expires_at,
        recorded_at=recorded_at,
        status=Status.ACTIVE,
        tier="hot",
        content_hash=content_hash(item.text),
        embedding_model=spec.model,
        index_state=IndexState.PENDING,
        tags=tags,
        session_id=item.session_id,
        agent_id=item.agent_id,
        supersedes=item.supersedes,
    )
