"""Stage 1: what a question wants. Pure: no I/O but the names handed in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ecphoria.language.folding import Compact, language_of
from ecphoria.language.lexicon import IdMention, Lexicon
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
        answer_types: Entity types that hold the answer in the graph, those of the likeliest topic
            first.
        pronouns: Entity types of which "it" means the last one that was talked about.
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


@dataclass(frozen=True, slots=True)
class Named:
    """Entities that a question names.

    Attributes:
        refs: Candidates by id and by name, the root left out.
        root: Whether the user himself is named.
        names: The names met.
    """

    refs: tuple[EntityRef, ...]
    root: bool
    names: tuple[str, ...] = ()


def understand(request: RecallRequest, domain: Domain, lexicon: Lexicon) -> Understanding:
    """Read a question; what the caller fixes wins over what is understood."""
    question = request.question
    topics = request.topics if request.topics is not None else lexicon.topics(question)
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
        answer_types=tuple(
            dict.fromkeys(
                type_
                for topic in topics
                if topic in domain.topics
                for type_ in domain.topics[topic].entities
            )
        ),
    )


def named_entities(
    question: str,
    understanding: Understanding,
    names: Sequence[NamedEntity],
    domain: Domain,
    lexicon: Lexicon,
) -> Named:
    """Return the entities that a question names, by id or by one of the user's names."""
    refs: dict[EntityRef, None] = {}
    for mention in understanding.ids:
        refs.update(dict.fromkeys(mention.candidates))
    root = False
    met = lexicon.name_mentions(question, names)
    for name in met:
        for ref in name.refs:
            if ref.type == domain.root:
                root = True
            else:
                refs[ref] = None
    return Named(tuple(refs), root, tuple(name.text for name in met))


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
