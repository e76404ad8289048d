"""The read path: understand, seed, expand, rank, judge, assemble."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from ecphoria.errors import EcphoriaError, StoreError
from ecphoria.governance.access import readable_privacy
from ecphoria.model import Action, RecallRequest, RecallResult, Scope, SessionContext, utc
from ecphoria.parts import EngineParts
from ecphoria.recall.answer import Question, answer, dropped_below_gate, no_answer
from ecphoria.recall.as_known import as_then
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.rank import Candidate, candidates, diversified
from ecphoria.recall.request import checked_request
from ecphoria.recall.seed import Seeds, find_seeds, seed_filter
from ecphoria.recall.trace import Trace
from ecphoria.recall.understand import (
    Named,
    Understanding,
    lost_ids,
    named_entities,
    understand,
    with_pronouns,
)
from ecphoria.session.turns import session_context
from ecphoria.stores.ports import ExpandQuery, Expansion

# Below this a memory is noise, even when others carry the answer.
MIN_RELEVANCE = 0.35


async def recall(parts: EngineParts, scope: Scope, request: RecallRequest) -> RecallResult:
    """Answer a question; see `Engine.recall`."""
    try:
        user_id = scope.user(request.user_id)
    except EcphoriaError as error:
        raise error.at("user_id") from error
    request = checked_request(request, parts.settings, parts.domain)
    trace = Trace()
    wanted = understand(request, parts.domain, parts.lexicon)
    # what was known then was an answer for then, unless another moment is asked for
    as_of = request.as_of or request.known_at or utc(parts.clock.now())
    session, degradations = await _session(parts, scope, user_id, request)
    question = Question(request, scope, user_id, as_of, wanted, session)
    trace.step("understand", len(wanted.ids), note=_note(wanted))
    if wanted.is_smalltalk:
        return replace(no_answer(Action.SKIP, question), trace=tuple(trace.steps))
    seeds, names = await asyncio.gather(
        _seeds(parts, question), parts.graph.names(scope.tenant, user_id)
    )
    trace.step("seed", len(seeds.found))
    named = named_entities(request.question, wanted, names, parts.domain, parts.lexicon)
    if session is not None:
        named = with_pronouns(named, wanted, session.entities)
    expansion = as_then(
        await parts.graph.expand(_expand_query(parts, question, seeds, named)),
        request.known_at,
        as_of,
        history=wanted.wants_history,
    )
    trace.step(
        "expand",
        len(expansion.entities),
        {
            "not current or not visible": len(seeds.found) - len(expansion.seeds),
            "named but another user's": expansion.hidden,
        },
    )
    near = _neighbourhood(parts, expansion, wanted, named)
    ranked, dropped = _rank(parts, question, seeds, expansion, near)
    trace.step("rank", len(ranked), dropped)
    degradations += seeds.degradations
    if expansion.scanned_out:
        degradations += ("an entity has more memories than were looked at",)
    result = answer(ranked, near, question, expansion, parts.domain, parts.settings, degradations)
    trace.step("judge", len(result.memories), dropped_below_gate(result, ranked))
    trace.step("assemble", len(result.memories) + len(result.entities))
    if request.known_at is None:
        parts.access.note((item.memory.key for item in result.memories), parts.clock.now())
    return replace(result, trace=tuple(trace.steps))


async def _session(
    parts: EngineParts, scope: Scope, user_id: str, request: RecallRequest
) -> tuple[SessionContext | None, tuple[str, ...]]:
    """Return the conversation that a question is part of; without its store, say so."""
    if request.session_id is None:
        return None, ()
    try:
        return await session_context(parts, scope, user_id, request.session_id), ()
    except StoreError as error:
        return None, (f"session unavailable: {error.message}",)


def _note(wanted: Understanding) -> str:
    notes = [f"language {wanted.language}"]
    if wanted.topics:
        notes.append(f"topics {', '.join(wanted.topics)}")
    if wanted.ids:
        notes.append(f"ids {', '.join(mention.text for mention in wanted.ids)}")
    if wanted.wants_history:
        notes.append("history asked for")
    return "; ".join(notes)


async def _seeds(parts: EngineParts, question: Question) -> Seeds:
    return await find_seeds(
        parts.index,
        parts.embedder,
        question.request.question,
        question.wanted.kinds,
        seed_filter(
            question.wanted,
            tenant=question.scope.tenant,
            user_id=question.user_id,
            as_of=question.as_of,
            privacy=readable_privacy(question.scope),
            min_importance=question.request.min_importance,
            known_at=question.request.known_at,
        ),
        parts.settings.seed_limit,
    )


def _expand_query(
    parts: EngineParts, question: Question, seeds: Seeds, named: Named
) -> ExpandQuery:
    settings = parts.settings
    known_at = question.request.known_at
    return ExpandQuery(
        tenant=question.scope.tenant,
        user_id=question.user_id,
        path=question.wanted.path,
        seeds=tuple(seed.key for seed in seeds.found),
        anchors=settings.expand_seeds,
        mentions=named.refs,
        from_root=not named.refs,
        as_of=question.as_of,
        privacy=tuple(sorted(readable_privacy(question.scope))),
        # as it stood then is told from the rows themselves: more of them must come back
        memories_per_entity=settings.memories_per_entity if known_at is None else settings.scan_cap,
        scan_cap=settings.scan_cap,
        include_history=question.wanted.wants_history or known_at is not None,
        include_retracted=known_at is not None,
    )


def _neighbourhood(
    parts: EngineParts, expansion: Expansion, wanted: Understanding, named: Named
) -> Neighbourhood:
    mentioned = frozenset(expansion.mentioned)
    # an id that leads to nothing of this user's: nothing else may take its place
    lost = bool(lost_ids(wanted, named, mentioned))
    return Neighbourhood(
        expansion.entities, expansion.edges, mentioned, domain=parts.domain, lost=lost
    )


def _rank(
    parts: EngineParts,
    question: Question,
    seeds: Seeds,
    expansion: Expansion,
    near: Neighbourhood,
) -> tuple[tuple[Candidate, ...], Mapping[str, int]]:
    disabled = {source.id for source in expansion.sources if source.disabled}
    found = [*expansion.seeds, *expansion.others]
    trusted = [memory for memory in found if memory.source_id not in disabled]
    asked = [
        memory
        for memory in trusted
        if memory.kind in question.wanted.kinds
        and memory.importance >= question.request.min_importance
    ]
    scored = candidates(
        asked,
        {seed.key: seed.similarity for seed in seeds.found},
        question.wanted,
        near,
        domain=parts.domain,
        spec=parts.embedder.spec,
        weights=parts.settings.rank,
        as_of=question.as_of,
    )
    relevant = [item for item in scored if item.relevance >= MIN_RELEVANCE]
    kept = diversified(relevant, question.request.limit)
    return kept, {
        "source disabled": len(found) - len(trusted),
        "kind or importance": len(trusted) - len(asked),
        "not relevant": len(asked) - len(relevant),
        "near-equal or over the limit": len(relevant) - len(kept),
    }
