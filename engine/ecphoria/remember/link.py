"""Fourth stage of a write: connect memories to entities, within each memory's own scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ecphoria.errors import EcphoriaError, MissingEntity
from ecphoria.language.lexicon import Lexicon
from ecphoria.model import EntityRef, Link, LinkMethod, Memory, NamedEntity, entity_key
from ecphoria.parts import EngineParts
from ecphoria.remember.claims import claim_of
from ecphoria.stores.ports import Mention
from ecphoria_schema.domain import Domain

# A name that fits more of a user's entities than this says nothing about which one is meant.
MAX_MEANT = 3
# How certain a link is by how it was found; a name shared by several is less certain.
GIVEN_CERTAINTY, ID_CERTAINTY, NAME_CERTAINTY, PRONOUN_CERTAINTY = 1.0, 0.95, 0.9, 0.6
# So many memories of a session are looked back at for what "it" means.
LOOK_BACK = 20


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that is to be linked.

    Attributes:
        about: Entities that the caller says it is about; they must exist.
        of: The entity whose attribute the caller says it gives; it may not exist yet.
        said: Its words where those that are stored are no text any more: names are read in them.
    """

    memory: Memory
    about: tuple[EntityRef, ...] = ()
    of: EntityRef | None = None
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Linked:
    """A memory with its links, or the error that rejects it.

    Attributes:
        mentions: Ids in it that wait for their entity.
    """

    memory: Memory
    links: tuple[Link, ...] = ()
    mentions: tuple[Mention, ...] = ()
    error: EcphoriaError | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a memory may be about: by its text, as (text, alternatives, certainty, how)."""

    given: tuple[EntityRef, ...]
    ids: tuple[tuple[str, tuple[EntityRef, ...]], ...]
    named: tuple[tuple[EntityRef, ...], ...]

    @property
    def refs(self) -> tuple[EntityRef, ...]:
        return tuple(
            dict.fromkeys(
                (
                    *self.given,
                    *(ref for _, refs in self.ids for ref in refs),
                    *(ref for refs in self.named for ref in refs),
                )
            )
        )


def wanted_refs(
    draft: Draft, lexicon: Lexicon, names: Sequence[NamedEntity], domain: Domain
) -> _Wanted:
    """Return the entities a memory may be about: given ones, then ids and names in its text.

    Where the caller says what a memory is about, names in the text do not add to it: they are
    less certain than his word. Ids do.
    """
    memory = draft.memory
    found = set(memory.details.values())
    ids = tuple(
        (mention.text, mention.candidates)
        for mention in lexicon.id_mentions(memory.text)
        # what a rule has recognised as something else, e.g. a tracking number, is no id
        if mention.text not in found
    )
    if draft.of is not None:
        ids = ((draft.of.id, (draft.of,)), *ids)
    named: list[tuple[EntityRef, ...]] = []
    if not draft.about and draft.of is None:
        for name in lexicon.name_mentions(draft.said or memory.text, names):
            meant = [ref for ref in name.refs if ref.type != domain.root]
            own = [ref for ref in meant if ref.type in domain.owned_types]
            clear = meant if len(own) <= MAX_MEANT else [ref for ref in meant if ref not in own]
            named.append(tuple(dict.fromkeys(clear)))
    return _Wanted(draft.about, ids, tuple(named))


async def link(parts: EngineParts, tenant: str, drafts: Sequence[Draft]) -> tuple[Linked, ...]:
    """Return the memories linked; explicit links that are not visible are errors."""
    graph = parts.graph
    by_user: dict[str | None, list[int]] = defaultdict(list)
    for place, draft in enumerate(drafts):
        by_user[draft.memory.user_id].append(place)
    users = list(by_user)
    # names are read from a text only where the caller does not say what it is about
    silent = {draft.memory.user_id for draft in drafts if not draft.about}
    asked = [user for user in users if user in silent]
    names_of = await graph.names_of(tenant, asked) if asked else {}
    wanted: dict[int, _Wanted] = {}
    for user in users:
        names = names_of.get(user, ())
        for place in by_user[user]:
            wanted[place] = wanted_refs(drafts[place], parts.lexicon, names, parts.domain)
    seen = await graph.visible_refs(
        tenant,
        {user: [ref for place in by_user[user] for ref in wanted[place].refs] for user in users},
    )
    linked = [
        _linked(draft, wanted[place], seen[draft.memory.user_id])
        for place, draft in enumerate(drafts)
    ]
    linked = await _pronouns(parts, tenant, linked)
    return tuple(_finished(item, parts.domain, tenant) for item in linked)


def _linked(draft: Draft, wanted: _Wanted, known: frozenset[EntityRef]) -> Linked:
    for index, ref in enumerate(wanted.given):
        if ref not in known:
            msg = f"there is no {ref.type} {ref.id!r} in the scope of this memory"
            return Linked(draft.memory, error=MissingEntity(msg, path=("about", index)))
    links: dict[EntityRef, Link] = {
        ref: Link(ref, GIVEN_CERTAINTY, LinkMethod.GIVEN) for ref in wanted.given
    }
    mentions: list[Mention] = []
    for text, candidates in wanted.ids:
        there = [ref for ref in candidates if ref in known]
        given = candidates == (draft.of,)
        how = LinkMethod.GIVEN if given else LinkMethod.ID
        certainty = GIVEN_CERTAINTY if given else ID_CERTAINTY
        for ref in there:
            links.setdefault(ref, Link(ref, certainty / len(there), how))
        if not there:
            mentions += [Mention(text, ref, certainty) for ref in candidates]
    for meant in wanted.named:
        there = [ref for ref in meant if ref in known]
        for ref in there:
            links.setdefault(ref, Link(ref, NAME_CERTAINTY / _rivals(ref, there), LinkMethod.NAME))
    return Linked(draft.memory, tuple(links.values()), tuple(mentions))


def _rivals(ref: EntityRef, others: Sequence[EntityRef]) -> int:
    # a product and the device that is one of it do not rival, two devices do
    return sum(other.type == ref.type for other in others)


async def _pronouns(parts: EngineParts, tenant: str, linked: Sequence[Linked]) -> list[Linked]:
    """Link "it" to the last entity of its type in the session, with less certainty."""
    here: dict[tuple[str, str], tuple[EntityRef, ...]] = {}
    before: dict[tuple[str, str], tuple[EntityRef, ...]] = {}
    result: list[Linked] = []
    for item in linked:
        memory = item.memory
        if item.error is not None or memory.session_id is None or memory.user_id is None:
            result.append(item)
            continue
        session = (memory.user_id, memory.session_id)
        links = item.links
        types = _meant_types(item, parts.lexicon)
        if types:
            meant = _last(types, here.get(session, ()))
            if not meant:
                if session not in before:
                    before[session] = await parts.graph.session_entities(
                        tenant, *session, LOOK_BACK
                    )
                meant = _last(types, before[session])
            links = (*links, *meant)
        result.append(replace(item, links=links))
        refs = (link.entity for link in links)
        here[session] = tuple(dict.fromkeys((*refs, *here.get(session, ()))))
    return result


def _meant_types(item: Linked, lexicon: Lexicon) -> list[str]:
    # where the caller says what it is about, "it" is that
    if any(link.how is LinkMethod.GIVEN for link in item.links):
        return []
    own = {link.entity.type for link in item.links}
    own |= {mention.entity.type for mention in item.mentions}
    return [type_ for type_ in lexicon.pronouns(item.memory.text) if type_ not in own]


def _last(types: Sequence[str], earlier: Sequence[EntityRef]) -> list[Link]:
    for type_ in types:
        last = next((ref for ref in earlier if ref.type == type_), None)
        if last is not None:
            return [Link(last, PRONOUN_CERTAINTY, LinkMethod.PRONOUN)]
    return []


def _finished(item: Linked, domain: Domain, tenant: str) -> Linked:
    if item.error is not None:
        return item
    keys = tuple(sorted(entity_key(tenant, link.entity) for link in item.links))
    memory = replace(
        item.memory,
        about=keys,
        claim=claim_of(item.memory, item.links, item.mentions, domain),
    )
    return replace(item, memory=memory)


def by_text(mentions: Sequence[Mention]) -> tuple[str, ...]:
    """Return the texts of mentions, each once."""
    return tuple(dict.fromkeys(mention.text for mention in mentions))
