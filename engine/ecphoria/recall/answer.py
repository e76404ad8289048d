"""Put an answer together from what was ranked and judged; or a FALLBACK, or a SKIP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ecphoria.governance.access import MASK, readable_privacy
from ecphoria.model import (
    Action,
    Confidence,
    Entity,
    PropertyValue,
    RecalledEntity,
    RecalledMemory,
    RecallRequest,
    RecallResult,
    Scope,
    SessionContext,
)
from ecphoria.recall.assemble import context_block, recalled_entities, recalled_relations
from ecphoria.recall.judge import advisory, conflicts, disagreeing, joint, memory_confidence
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.rank import Candidate, for_everybody
from ecphoria.recall.understand import Understanding
from ecphoria.settings import Settings
from ecphoria.stores.ports import Expansion
from ecphoria_schema.domain import Domain

# What the graph alone can vouch for: what was asked about is named and the answer's entity is
# there; nothing is named, but the user has entities of that type; a thing of his is named, but
# nothing that is recorded of it answers, or what is asked was not understood.
NAMED_AND_FOUND, OWN_AND_FOUND, NAMED_ALONE = 0.85, 0.75, 0.5
# How many memories and how many entities an answer's confidence is about.
CARRYING = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A checked request, for whom and for when it is, what it wants, and what was said before."""

    request: RecallRequest
    scope: Scope
    user_id: str
    as_of: datetime
    wanted: Understanding
    session: SessionContext | None = None


def graph_support(near: Neighbourhood, wanted: Understanding) -> float:
    """Return how far the graph alone answers, 0..1."""
    if near.lost:
        return 0.0
    held = wanted.is_recorded and any(
        _holds_answer(entity, wanted)
        and (not near.has_mentions or near.distance([entity.key]) is not None)
        for entity in near.entities.values()
    )
    if not held:
        return NAMED_ALONE if near.named else 0.0
    return NAMED_AND_FOUND if near.has_mentions else OWN_AND_FOUND


def _holds_answer(entity: Entity, wanted: Understanding) -> bool:
    return entity.type in wanted.answer_types or any(
        type_ == entity.type and entity.props.get(name) is not None
        for type_, name in wanted.answer_properties
    )


def no_answer(
    action: Action, question: Question, degradations: tuple[str, ...] = ()
) -> RecallResult:
    """Return a FALLBACK or a SKIP: nothing that could be taken for an answer."""
    language = question.wanted.language
    fallback = action is Action.FALLBACK
    result = RecallResult(
        action=action,
        as_of=question.as_of,
        language=language,
        topics=question.wanted.topics,
        memories=(),
        entities=(),
        relations=(),
        confidence=None,
        advisory=advisory(None, language, 0.0, fallback=True) if fallback else None,
        context="",
        degradations=degradations,
        trace=(),
        session=question.session,
    )
    if question.session is None:
        return result
    return replace(result, context=context_block(result, question.request.context_tokens))


def answer(
    ranked: Sequence[Candidate],
    near: Neighbourhood,
    question: Question,
    expansion: Expansion,
    domain: Domain,
    settings: Settings,
    degradations: tuple[str, ...],
) -> RecallResult:
    """Return the joined context, or a FALLBACK when nothing passes the relevance gate."""
    support = graph_support(near, question.wanted)
    best = max(
        (item.relevance for item in ranked if _may_answer(item, question.wanted)), default=0.0
    )
    if max(best, support) < settings.relevance_gate:
        return no_answer(Action.FALLBACK, question, degradations)
    memories = _recalled_memories(ranked, expansion, domain, question.as_of)
    entities = _entities(ranked, near, question, domain, anchored=support > 0)
    trust = _trust(memories, entities, question.wanted, graph_carries=support > 0)
    result = RecallResult(
        action=Action.ANSWER,
        as_of=question.as_of,
        language=question.wanted.language,
        topics=question.wanted.topics,
        memories=memories,
        entities=entities,
        relations=recalled_relations(
            expansion.edges, {item.entity.key: (item.entity, item.confidence) for item in entities}
        ),
        confidence=trust,
        advisory=advisory(trust, question.wanted.language, settings.advisory_below, fallback=False),
        context="",
        degradations=degradations,
        trace=(),
        session=question.session,
    )
    return replace(result, context=context_block(result, question.request.context_tokens))


def _may_answer(item: Candidate, wanted: Understanding) -> bool:
    # what holds for everybody tells nothing of what is this customer's own
    return not for_everybody(item.memory) or wanted.wants_procedure or not wanted.speaks_of_own


def _recalled_memories(
    ranked: Sequence[Candidate], expansion: Expansion, domain: Domain, as_of: datetime
) -> tuple[RecalledMemory, ...]:
    sources = {source.id: source for source in expansion.sources}
    disabled = {source.id for source in expansion.sources if source.disabled}
    pool = [
        memory
        for memory in (*expansion.seeds, *expansion.others)
        if memory.source_id not in disabled
    ]
    shown = [item.memory for item in ranked]
    within = conflicts(shown)
    # what did not make it into the answer may disagree as well
    against = disagreeing(shown, pool)
    return reliable_first(
        tuple(
            RecalledMemory(
                memory=item.memory,
                relevance=item.relevance,
                score=item.score,
                similarity=item.similarity,
                confidence=memory_confidence(item.memory, pool, against, sources, domain, as_of),
                because=item.because,
                conflicts_with=within[item.memory.id],
            )
            for item in ranked
        )
    )


def _entities(
    ranked: Sequence[Candidate],
    near: Neighbourhood,
    question: Question,
    domain: Domain,
    *,
    anchored: bool,
) -> tuple[RecalledEntity, ...]:
    if near.has_mentions:
        anchors = near.mentions
    else:
        anchors = frozenset(key for item in ranked for key in item.memory.about)
    if anchored and not anchors:
        anchors = near.roots
    shown = recalled_entities(
        near,
        anchors,
        question.wanted.answer_types,
        domain,
        question.as_of,
        question.request.entity_limit,
    )
    return tuple(
        replace(item, entity=masked(item.entity, domain, question.scope)) for item in shown
    )


def _trust(
    memories: Sequence[RecalledMemory],
    entities: Sequence[RecalledEntity],
    wanted: Understanding,
    *,
    graph_carries: bool,
) -> Confidence | None:
    parts = [(item.relevance, item.confidence) for item in memories[:CARRYING]]
    if graph_carries:
        held = [item for item in entities if _holds_answer(item.entity, wanted)]
        parts += [(item.relevance, item.confidence) for item in held[:CARRYING]]
    return joint(parts)


def reliable_first(memories: tuple[RecalledMemory, ...]) -> tuple[RecalledMemory, ...]:
    """Return the memories in order, but of those that disagree the most trusted first."""
    order = list(memories)
    place = {item.memory.id: number for number, item in enumerate(order)}
    for item in memories:
        others = (place[other] for other in item.conflicts_with if other in place)
        group = sorted({place[item.memory.id], *others})
        members = sorted(
            (order[number] for number in group), key=lambda one: -one.confidence.overall
        )
        for number, member in zip(group, members, strict=True):
            order[number] = member
            place[member.memory.id] = number
    return tuple(order)


def masked(entity: Entity, domain: Domain, scope: Scope) -> Entity:
    """Return an entity without what the scope's roles may not read: strings become a mask."""
    allowed = readable_privacy(scope)
    declared = domain.entities[entity.type].properties
    props: dict[str, PropertyValue] = {}
    for name, value in entity.props.items():
        if declared[name].privacy in allowed:
            props[name] = value
        elif isinstance(value, str):
            props[name] = MASK
    return replace(entity, props=props)


def dropped_below_gate(result: RecallResult, ranked: Sequence[Candidate]) -> Mapping[str, int]:
    """Return, for the trace, how many memories a FALLBACK holds back."""
    return {"below the relevance gate": len(ranked)} if result.action is Action.FALLBACK else {}
