"""The read path: understand, seed, expand, rank, judge, assemble."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ecphoria.embedding.vectors import best_cosines
from ecphoria.errors import EcphoriaError, EmbeddingFailed, StoreError
from ecphoria.governance.access import readable_privacy
from ecphoria.language.clauses import clauses
from ecphoria.model import Action, RecallRequest, RecallResult, Scope, SessionContext, utc
from ecphoria.parts import EngineParts
from ecphoria.recall.answer import Question, answer, dropped_below_gate, no_answer
from ecphoria.recall.as_known import as_then
from ecphoria.recall.focus import described, focus, may_be_described
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.rank import Asked, Candidate, candidates, diversified, scaled, trusted_first
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

Watch: TypeAlias = Callable[[Question, tuple[Candidate, ...]], None]

# Below this a memory is noise, even when others carry the answer.
MIN_RELEVANCE = 0.05


async def recall(
    parts: EngineParts, scope: Scope, request: RecallRequest, watch: Watch | None = None
) -> RecallResult:
    """Answer a question; see `Engine.recall`.

    Args:
        parts: What to work with.
        scope: Who asks.
        request: The question.
        watch: Called with all candidates, the best first, before any is left out.
    """
    try:
        user_id = scope.user(request.user_id)
    except EcphoriaError as error:
        raise error.at("user_id") from error
    request = checked_request(request, parts.settings, parts.domain)
    trace = Trace()
    # what was known then was an answer for then, unless another moment is asked for
    as_of = request.as_of or request.known_at or utc(parts.clock.now())
    wanted = understand(request, parts.domain, parts.lexicon, as_of)
    session, degradations = await _session(parts, scope, user_id, request)
    question = Question(request, scope, user_id, as_of, wanted, session)
    trace.step("understand", len(wanted.ids), note=_note(wanted))
    if wanted.is_smalltalk:
        return replace(no_answer(Action.SKIP, question), trace=tuple(trace.steps))
    seeds, names = await asyncio.gather(
        _seeds(parts, question), parts.graph.names(scope.tenant, user_id)
    )
    trace.step("seed", len(seeds.found), note=seeds.note)
    named = named_entities(request.question, wanted, names, parts.domain, parts.lexicon)
    foreign = await _not_his(parts, scope, request.question, wanted, named)
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
    near = _neighbourhood(parts, expansion, wanted, named, lost=foreign is not None)
    near, meant = await _focused(parts, question, near)
    trace.step("focus", len(near.mentions), note=foreign or meant)
    scored, dropped = _rank(parts, question, seeds, expansion, near)
    if watch is not None:
        watch(question, scored)
    ranked = _chosen(question, scored, dropped)
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
    notes += [f"time {window}" for window in wanted.windows]
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
        parts.settings.seed,
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
        newest=() if named.refs else _newest(parts, question.wanted),
        as_of=question.as_of,
        privacy=tuple(sorted(readable_privacy(question.scope))),
        # as it stood then is told from the rows themselves: more of them must come back
        memories_per_entity=settings.memories_per_entity if known_at is None else settings.scan_cap,
        scan_cap=settings.scan_cap,
        include_history=question.wanted.wants_history or known_at is not None,
        include_retracted=known_at is not None,
    )


def _newest(parts: EngineParts, wanted: Understanding) -> tuple[str, ...]:
    """Return the types of which the newest are looked at, since nothing is named."""
    types = (*wanted.answer_types, *(type_ for type_, _ in wanted.answer_properties))
    if types and (wanted.windows or wanted.order):
        # what happened then, or last, may be of another type than what is asked for
        types += parts.domain.walks[wanted.path].types
    return tuple(dict.fromkeys(type_ for type_ in types if type_ in parts.domain.newest_by))


async def _not_his(
    parts: EngineParts, scope: Scope, question: str, wanted: Understanding, named: Named
) -> str | None:
    """Return the name of something that a question calls his own, though he has none."""
    if named.refs or not wanted.speaks_of_own:
        return None
    shared = await parts.graph.names(scope.tenant, None)
    met = named_entities(question, wanted, shared, parts.domain, parts.lexicon)
    return f"{met.names[0]} is not the customer's" if met.names else None


async def _focused(
    parts: EngineParts, question: Question, near: Neighbourhood
) -> tuple[Neighbourhood, str]:
    """Return the neighbourhood of what the question means, and by what it tells."""
    fits: Mapping[str, float] = {}
    if not near.lost and may_be_described(near):
        texts = described(near.entities.values(), parts.domain)
        fits = await _fits(parts, question.request.question, texts) if texts else {}
    keys, how = focus(near, question.wanted, fits, domain=parts.domain, as_of=question.as_of)
    if not keys:
        return near, ""
    return near.around(near.entities[key].ref for key in keys), how


async def _fits(parts: EngineParts, question: str, texts: Mapping[str, str]) -> Mapping[str, float]:
    """Return how well descriptions fit the best clause of a question, by key."""
    try:
        asked = await asyncio.gather(
            *(parts.embedder.embed_query(clause) for clause in clauses(question))
        )
        known = tuple(dict.fromkeys(texts.values()))
        vectors = await parts.embedder.embed_passages(known)
    except EmbeddingFailed:
        # the search has said so already
        return {}
    best = dict(zip(known, best_cosines(asked, vectors), strict=True))
    return {key: scaled(best[text], parts.embedder.spec) for key, text in texts.items()}


def _neighbourhood(
    parts: EngineParts,
    expansion: Expansion,
    wanted: Understanding,
    named: Named,
    *,
    lost: bool,
) -> Neighbourhood:
    mentioned = frozenset(expansion.mentioned)
    # an id that leads to nothing of this user's: nothing else may take its place
    missing = lost_ids(wanted, named, mentioned)
    if missing:
        # one whose entity has yet to come may be spoken of already
        told = {
            ref
            for memory in expansion.seeds
            for mention in parts.lexicon.id_mentions(memory.text)
            for ref in mention.candidates
        }
        lost = lost or not all(told.intersection(mention.candidates) for mention in missing)
    return Neighbourhood(
        expansion.entities, expansion.edges, mentioned, domain=parts.domain, lost=lost
    )


def _rank(
    parts: EngineParts,
    question: Question,
    seeds: Seeds,
    expansion: Expansion,
    near: Neighbourhood,
) -> tuple[tuple[Candidate, ...], dict[str, int]]:
    sources = {source.id: source for source in expansion.sources}
    disabled = {source.id for source in expansion.sources if source.disabled}
    found = [*expansion.seeds, *expansion.others]
    trusted = [memory for memory in found if memory.source_id not in disabled]
    asked = [
        memory
        for memory in trusted
        if memory.kind in question.wanted.kinds
        and memory.importance >= question.request.min_importance
    ]
    compared = Asked(
        question.request.question,
        question.wanted,
        near,
        sources,
        parts.domain,
        parts.embedder.spec,
        question.as_of,
    )
    found_by = {seed.key: seed for seed in seeds.found}
    scored = candidates(asked, found_by, compared, parts.settings.rank)
    return scored, {
        "source disabled": len(found) - len(trusted),
        "kind or importance": len(trusted) - len(asked),
    }


def _chosen(
    question: Question, scored: Sequence[Candidate], dropped: dict[str, int]
) -> tuple[Candidate, ...]:
    relevant = [item for item in scored if item.relevance >= MIN_RELEVANCE]
    kept = trusted_first(
        diversified(relevant, question.request.limit, wants_rule=question.wanted.wants_procedure)
    )
    dropped["not relevant"] = len(scored) - len(relevant)
    dropped["near-equal or over the limit"] = len(relevant) - len(kept)
    return kept
