"""The read path: understand, seed, expand, rank, judge, assemble."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ecphoria.embedding.port import Embedder
from ecphoria.embedding.vectors import best_cosines
from ecphoria.errors import EcphoriaError, EmbeddingFailed, InvalidVector, StoreError
from ecphoria.governance.access import readable_privacy
from ecphoria.language.clauses import clauses
from ecphoria.language.lexicon import IdMention
from ecphoria.model import (
    Action,
    NamedEntity,
    RecallRequest,
    RecallResult,
    Scope,
    SessionContext,
    Vector,
    utc,
)
from ecphoria.parts import EngineParts
from ecphoria.recall.answer import Question, answer, dropped_below_gate, no_answer
from ecphoria.recall.as_known import as_then
from ecphoria.recall.explain import (
    ANOTHER_USERS,
    APART,
    GATE,
    LOST,
    NOT_SEEN,
    SAME_OR_OVER,
    explained,
    irrelevant,
    looked_at,
    not_expanded,
    unfit,
)
from ecphoria.recall.focus import described, focus, may_be_described, may_describe
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.rank import Asked, Candidate, candidates, diversified, scaled, trusted_first
from ecphoria.recall.request import checked_request
from ecphoria.recall.rerank import reranked
from ecphoria.recall.reveal import revealed, revealed_steps
from ecphoria.recall.seed import Seeds, find_seeds, seed_filter
from ecphoria.recall.trace import Trace, told
from ecphoria.recall.understand import (
    Named,
    Understanding,
    lost_ids,
    named_entities,
    owned_types_by_digits,
    understand,
    with_prefixes,
    with_pronouns,
)
from ecphoria.session.turns import session_context
from ecphoria.stores.ports import ExpandQuery, Expansion

Watch: TypeAlias = Callable[[Question, tuple[Candidate, ...]], None]

# So many of the likeliest topics are told.
_TOPICS_TOLD = 3
# Below this a memory is noise, even when others carry the answer.
MIN_RELEVANCE = 0.03
# Of a question on none of the topics there is less to tell noise by.
MIN_RELEVANCE_OPEN = 0.015


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
    asked = request.question
    request = replace(request, question=parts.lexicon.spelling.corrected(asked))
    trace = Trace()
    # what was known then was an answer for then, unless another moment is asked for
    as_of = request.as_of or request.known_at or utc(parts.clock.now())
    wanted = understand(request, parts.domain, parts.lexicon, as_of)
    session, degradations = await _session(parts, scope, user_id, request)
    question = Question(request, scope, user_id, as_of, wanted, session)
    trace.step(
        "understand",
        len(wanted.ids),
        note=_note(wanted, None if request.question == asked else request.question),
        came=told(questions=1, turns=len(session.turns) if session else 0),
        went=told(topics=len(wanted.topics), ids=len(wanted.ids), kinds=len(wanted.kinds)),
    )
    if wanted.is_smalltalk:
        return replace(no_answer(Action.SKIP, question), trace=tuple(trace.steps))
    seeds, names, ids = await asyncio.gather(
        _seeds(parts, question),
        parts.graph.names(scope.tenant, user_id),
        _ids_in_full(parts, scope, user_id, wanted),
    )
    wanted = replace(
        wanted, ids=ids, topic_odds=await _topic_odds(parts, request, wanted, seeds.vector)
    )
    question = replace(question, wanted=wanted)
    trace.step(
        "seed",
        len(seeds.found),
        note="; ".join(filter(None, (seeds.note, _likeliest(wanted)))),
        came=told(questions=1, kinds=len(wanted.kinds)),
        went=told(seeds=len(seeds.found)),
    )
    named = named_entities(request.question, wanted, names, parts.domain, parts.lexicon)
    foreign = await _not_his(parts, scope, request.question, wanted, names, named)
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
            NOT_SEEN: len(seeds.found) - len(expansion.seeds),
            ANOTHER_USERS: expansion.hidden,
        },
        came=told(seeds=len(seeds.found), named=len(named.names) + len(wanted.ids)),
        went=told(
            memories=len(expansion.seeds) + len(expansion.others), entities=len(expansion.entities)
        ),
    )
    near = _neighbourhood(parts, expansion, wanted, named, lost=foreign is not None)
    near, meant = await _focused(parts, question, near)
    trace.step(
        "focus",
        len(near.mentions),
        note=foreign or meant or (LOST if near.lost else ""),
        came=told(entities=len(near.entities)),
        went=told(meant=len(near.mentions)),
    )
    scored, dropped = _rank(parts, question, seeds, expansion, near)
    if watch is not None:
        watch(question, scored)
    ordered = await _reranked(parts, question, scored, dropped, trace)
    scored, dropped = ordered.candidates, ordered.dropped
    degradations += ordered.degradations
    ranked = _chosen(question, scored, dropped)
    trace.step(
        ordered.stage,
        len(ranked),
        dropped,
        ordered.note,
        came=told(memories=len(ranked) + sum(dropped.values())),
        went=told(memories=len(ranked)),
    )
    degradations += seeds.degradations
    if expansion.scanned_out:
        degradations += ("an entity has more memories than were looked at",)
    result = answer(ranked, near, question, expansion, parts.domain, parts.settings, degradations)
    result = await revealed(parts, scope, result, request.context_tokens)
    trace.step(
        "judge",
        len(result.memories),
        dropped_below_gate(result, ranked),
        _judged(result, ranked, parts.settings.relevance_gate),
        came=told(memories=len(ranked)),
        went=told(memories=len(result.memories)),
    )
    trace.step(
        "assemble",
        len(result.memories) + len(result.entities),
        {
            APART if result.action is Action.ANSWER else GATE: len(near.entities)
            - len(result.entities)
        },
        came=told(memories=len(result.memories), entities=len(near.entities)),
        went=told(
            memories=len(result.memories),
            entities=len(result.entities),
            relations=len(result.relations),
            context_characters=len(result.context),
        ),
    )
    if request.known_at is None:
        parts.access.note((item.memory.key for item in result.memories), parts.clock.now())
    if not request.explain:
        return replace(result, trace=tuple(trace.steps))
    held = await not_expanded(parts.graph, question, seeds.found, expansion)
    weights = parts.settings.rank
    looked = looked_at(question, expansion, scored, ranked, result, weights, _least(question))
    steps = await revealed_steps(parts, scope, explained(trace.steps, held, looked))
    return replace(result, trace=steps)


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


def _judged(result: RecallResult, ranked: Sequence[Candidate], gate: float) -> str:
    best = max((item.relevance for item in ranked), default=0.0)
    told_best = f"{result.action.value}: best relevance {best:.2f}, gate {gate:g}"
    if result.action is Action.ANSWER and best < gate:
        return f"{told_best}; a record answers"
    return told_best


def _note(wanted: Understanding, read_as: str | None) -> str:
    notes = [f"language {wanted.language}"]
    if read_as is not None:
        notes.append(f"read as {read_as!r}")
    if wanted.topics:
        notes.append(f"topics {', '.join(wanted.topics)}")
    if wanted.ids:
        notes.append(f"ids {', '.join(mention.text for mention in wanted.ids)}")
    if wanted.wants_history:
        notes.append("history asked for")
    notes += [f"time {window}" for window in wanted.windows]
    return "; ".join(notes)


def _likeliest(wanted: Understanding) -> str:
    best = sorted(wanted.topic_odds.items(), key=lambda item: -item[1])[:_TOPICS_TOLD]
    told_best = ", ".join(f"{topic} {chance:.0%}" for topic, chance in best)
    return f"by words and sense: {told_best}" if best else ""


async def _seeds(parts: EngineParts, question: Question) -> Seeds:
    return await find_seeds(
        parts.index,
        _embedder(parts, question),
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


async def _ids_in_full(
    parts: EngineParts, scope: Scope, user_id: str, wanted: Understanding
) -> tuple[IdMention, ...]:
    """Return a question's ids; of one said by its digits alone, what it is in full."""
    said: dict[str, list[str]] = {}
    for mention in wanted.ids:
        for type_ in owned_types_by_digits(mention, parts.domain):
            said.setdefault(type_, []).append(mention.text)
    known = {
        type_: await parts.graph.ids_ending(scope.tenant, user_id, type_, ends)
        for type_, ends in said.items()
    }
    return tuple(with_prefixes(mention, known) for mention in wanted.ids) if known else wanted.ids


async def _topic_odds(
    parts: EngineParts, request: RecallRequest, wanted: Understanding, vector: Vector | None
) -> Mapping[str, float]:
    """Return how likely a question is on each topic; nothing when the caller fixes them."""
    if request.topics is not None or vector is None:
        return {}
    try:
        return await parts.topic_sense.odds(parts.embedder, vector, wanted.topics)
    except (EmbeddingFailed, InvalidVector):
        # the search says so
        return {}


def _embedder(parts: EngineParts, question: Question) -> Embedder:
    return parts.queries.embedder(parts.embedder, question.scope.tenant, question.user_id)


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
    parts: EngineParts,
    scope: Scope,
    question: str,
    wanted: Understanding,
    names: Sequence[NamedEntity],
    named: Named,
) -> str | None:
    """Return, as a note, that a question calls something his own of which he has none."""
    # part of the name of a thing of his may be part of the whole name of another thing
    if not wanted.speaks_of_own or not named.partial.issuperset(named.refs):
        return None
    shared = await parts.graph.names(scope.tenant, None)
    met = named_entities(question, wanted, (*names, *shared), parts.domain, parts.lexicon)
    if not set(named.refs).isdisjoint(met.refs):
        return None
    others = {ref for name in shared for ref in name.refs}
    return None if others.isdisjoint(met.refs) else f"{met.names[-1]} is not the customer's"


async def _focused(
    parts: EngineParts, question: Question, near: Neighbourhood
) -> tuple[Neighbourhood, str]:
    """Return the neighbourhood of what the question means, and by what it tells."""
    fits: Mapping[str, float] = {}
    if not near.lost and may_be_described(near):
        texts = described(
            (each for each in near.entities.values() if may_describe(each, question.wanted, near)),
            parts.domain,
        )
        fits = await _fits(parts, question, texts) if texts else {}
    keys, how = focus(near, question.wanted, fits, domain=parts.domain, as_of=question.as_of)
    if not keys:
        return near, ""
    return near.around(near.entities[key].ref for key in keys), how


async def _fits(
    parts: EngineParts, question: Question, texts: Mapping[str, str]
) -> Mapping[str, float]:
    """Return how well descriptions fit the best clause of a question, by key."""
    embedder = _embedder(parts, question)
    try:
        asked = await asyncio.gather(
            *(embedder.embed_query(clause) for clause in clauses(question.request.question))
        )
        known = tuple(dict.fromkeys(texts.values()))
        vectors = await embedder.embed_passages(known)
    except (EmbeddingFailed, InvalidVector):
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
        expansion.entities,
        expansion.edges,
        mentioned,
        domain=parts.domain,
        lost=lost,
        named=mentioned - named.partial,
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
    rules = [
        (memory, unfit(memory, question, disabled))
        for memory in (*expansion.seeds, *expansion.others)
    ]
    asked = [memory for memory, rule in rules if rule is None]
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
    return scored, dict(Counter(rule for _, rule in rules if rule is not None))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Candidates in their last order, and what is yet to be traced of the stage that made it."""

    stage: str
    candidates: tuple[Candidate, ...]
    dropped: dict[str, int]
    note: str = ""
    degradations: tuple[str, ...] = ()


async def _reranked(
    parts: EngineParts,
    question: Question,
    scored: tuple[Candidate, ...],
    dropped: dict[str, int],
    trace: Trace,
) -> _Ordered:
    """Return the candidates in the order that a reranker gives them, where there is one."""
    if parts.reranker is None:
        return _Ordered("rank", scored, dropped)
    trace.step(
        "rank",
        len(scored),
        dropped,
        came=told(memories=len(scored) + sum(dropped.values())),
        went=told(memories=len(scored)),
    )
    again = await reranked(
        parts.reranker, question.request.question, scored, parts.settings, least=_least(question)
    )
    note = f"{again.read} read by {parts.reranker.name}"
    return _Ordered("rerank", again.candidates, {}, note, again.degradations)


def _least(question: Question) -> float:
    return MIN_RELEVANCE if question.wanted.topics else MIN_RELEVANCE_OPEN


def _chosen(
    question: Question, scored: Sequence[Candidate], dropped: dict[str, int]
) -> tuple[Candidate, ...]:
    least = _least(question)
    relevant = [item for item in scored if item.relevance >= least]
    kept = trusted_first(
        diversified(relevant, question.request.limit, wants_rule=question.wanted.wants_procedure)
    )
    dropped[irrelevant(least)] = len(scored) - len(relevant)
    dropped[SAME_OR_OVER] = len(relevant) - len(kept)
    return kept
