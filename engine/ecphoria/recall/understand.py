"""Stage 1: what a question wants. Pure: no I/O but the names handed in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from ecphoria.language.event_words import Order, event_words
from ecphoria.language.folding import Compact, language_of
from ecphoria.language.lexicon import IdMention, Lexicon
from ecphoria.language.time_words import TimeWindow, time_windows
from ecphoria.model import EntityRef, NamedEntity, RecallRequest
from ecphoria_schema.domain import KINDS, Domain, Kind, Language


@dataclass(frozen=True, slots=True)
class Understanding:
    """What a question wants.

    Attributes:
        is_smalltalk: Memory need not be read at all.
        wants_history: What is no longer true is asked for, too.
        kinds: Kinds of memory to ask.
        ids: Ids in the question; they may belong to nothing, or to another user.
        path: Expansion path to walk.
        answer_types: Entity types whose records are the answer, those of the likeliest topic first.
        answer_properties: Type and property that are the answer where a record has them.
        is_recorded: The answer to the likeliest topic stands in records. What a record says on the
            other topics does not answer the question: a parcel's state is not where it may be left.
        speaks_of_own: The customer's own things are spoken of.
        wants_own_words: What the customer himself said is asked for.
        attributes: Attributes that are asked for by their titles.
        pronouns: Entity types of which "it" means the last one that was talked about.
        windows: Times that are spoken of, in the question's order; the caller's alone where he
            fixes one.
        order: Whether the last or the first of several is meant.
        order_types: Of what that is: entity types, the likeliest first.
        before_event: What was before something that happened, e.g. "before the repair".
        after_event: What was after it.
        topic_odds: How likely each topic of the domain is, by words and by sense, 0..1; empty when
            that is not known, or the caller fixes the topics.
    """

    language: Language
    is_smalltalk: bool
    wants_history: bool
    wants_procedure: bool
    topics: tuple[str, ...]
    kinds: tuple[Kind, ...]
    ids: tuple[IdMention, ...]
    path: str
    answer_types: tuple[str, ...]
    pronouns: tuple[str, ...] = ()
    answer_properties: tuple[tuple[str, str], ...] = ()
    is_recorded: bool = True
    speaks_of_own: bool = False
    wants_own_words: bool = False
    attributes: tuple[str, ...] = ()
    windows: tuple[TimeWindow, ...] = ()
    order: Order | None = None
    order_types: tuple[str, ...] = ()
    before_event: bool = False
    after_event: bool = False
    topic_odds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Named:
    """Entities that a question names.

    Attributes:
        refs: Candidates by id and by name, the root left out.
        root: Whether the user himself is named.
        names: The names met.
        partial: Of the candidates, those of which only a part of the name is said: one of them
            is meant, or several.
    """

    refs: tuple[EntityRef, ...]
    root: bool
    names: tuple[str, ...] = ()
    partial: frozenset[EntityRef] = frozenset()


def understand(
    request: RecallRequest, domain: Domain, lexicon: Lexicon, as_of: datetime
) -> Understanding:
    """Read a question; what the caller fixes wins over what is understood.

    Args:
        request: The question, checked.
        domain: Of the business.
        lexicon: Its words.
        as_of: The question's own time: what "yesterday" is counted from.
    """
    question = request.question
    events = event_words(question)
    topics = request.topics if request.topics is not None else lexicon.topics(question)
    likeliest = next((domain.topics[topic] for topic in topics if topic in domain.topics), None)
    return Understanding(
        language=language_of(question),
        is_smalltalk=request.topics is None and lexicon.is_smalltalk(question),
        wants_history=lexicon.wants_history(question),
        wants_procedure=lexicon.wants_procedure(question),
        topics=topics,
        kinds=request.kinds if request.kinds is not None else KINDS,
        ids=lexicon.id_mentions(question),
        path=domain.walk_for(topics),
        pronouns=lexicon.pronouns(question),
        speaks_of_own=lexicon.has_cue("own", question),
        wants_own_words=lexicon.has_cue("own_words", question),
        attributes=lexicon.attributes_named(question),
        windows=_windows(request, as_of),
        order=events.order,
        order_types=()
        if events.order_at is None
        else _types(lexicon.topics_near(question, events.order_at), domain),
        before_event=events.before_event,
        after_event=events.after_event,
        is_recorded=likeliest is not None and bool(likeliest.entities or likeliest.properties),
        answer_properties=tuple(
            dict.fromkeys(
                (type_, name)
                for topic in topics
                if topic in domain.topics
                for type_, _, name in (
                    place.partition(".") for place in domain.topics[topic].properties
                )
            )
        ),
        answer_types=_types(topics, domain),
    )


def _types(topics: Sequence[str], domain: Domain) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            type_
            for topic in topics
            if topic in domain.topics
            for type_ in domain.topics[topic].entities
        )
    )


def _windows(request: RecallRequest, as_of: datetime) -> tuple[TimeWindow, ...]:
    if request.since is not None or request.until is not None:
        return (TimeWindow(request.since, request.until),)
    return time_windows(request.question, as_of, ZoneInfo(request.time_zone or "UTC"))


def named_entities(
    question: str,
    understanding: Understanding,
    names: Sequence[NamedEntity],
    domain: Domain,
    lexicon: Lexicon,
    *,
    near: bool = True,
) -> Named:
    """Return the entities that a question names, by id or by one of the user's names.

    Args:
        question: The question.
        understanding: What it wants.
        names: What the user's things are called.
        domain: Of the business.
        lexicon: Its words.
        near: Also names with a typo, and parts of names; see `Lexicon.name_mentions`.
    """
    refs: dict[EntityRef, None] = {}
    for mention in understanding.ids:
        refs.update(dict.fromkeys(mention.candidates))
    root = False
    met = lexicon.name_mentions(question, names, near=near)
    sure = set(refs)
    for name in met:
        if not name.partial:
            sure.update(name.refs)
        for ref in name.refs:
            if ref.type == domain.root:
                root = True
            else:
                refs[ref] = None
    return Named(tuple(refs), root, tuple(name.text for name in met), frozenset(refs.keys() - sure))


def with_pronouns(
    named: Named, understanding: Understanding, earlier: Sequence[EntityRef]
) -> Named:
    """Return what a question names with what "it" means: the last such thing of the session.

    Args:
        named: What it names by id or name; that is what it is about, whatever "it" may mean.
        understanding: With the types that its pronouns may mean.
        earlier: Entities of the session, the latest first.
    """
    if named.refs:
        return named
    for type_ in understanding.pronouns:
        last = next((ref for ref in earlier if ref.type == type_), None)
        if last is not None:
            return replace(named, refs=(last,))
    return named


def owned_types_by_digits(mention: IdMention, domain: Domain) -> tuple[str, ...]:
    """Return the owned types that digits may be an id of, said without what stands before them."""
    if not mention.text.isdecimal():
        return ()
    types = dict.fromkeys(ref.type for ref in mention.candidates)
    return tuple(type_ for type_ in types if type_ in domain.owned_types)


def with_prefixes(mention: IdMention, known: Mapping[str, Sequence[str]]) -> IdMention:
    """Return a mention with the ids that have no digits but its own as candidates, too.

    Args:
        mention: What was said.
        known: Ids that end so, or as another mention does, by type.
    """
    more = [
        EntityRef(type_, id_)
        for type_, ids in known.items()
        for id_ in ids
        if mention.text.isdecimal()
        and id_.endswith(mention.text)
        and not any(sign.isdecimal() for sign in id_.removesuffix(mention.text))
    ]
    return replace(mention, candidates=tuple(dict.fromkeys((*mention.candidates, *more))))


def lost_ids(
    understanding: Understanding, named: Named, mentioned: Collection[EntityRef]
) -> tuple[IdMention, ...]:
    """Return the ids that lead to nothing of this user's.

    What looks like an id but stands in a name that was met (a serial number) is not one.
    """
    names = [Compact(name).text for name in named.names]
    return tuple(
        mention
        for mention in understanding.ids
        if not any(ref in mentioned for ref in mention.candidates)
        and not any(Compact(mention.text).text in name for name in names)
    )
