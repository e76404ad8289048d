"""Stage of a write between tagging and linking: hide what identifies a person.

From here on a memory holds what may be shown to everybody who may read it: it is that which is
embedded, indexed, compared and linked. What was hidden is sealed. Of a sensitive memory nothing
but its topics and ids is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ecphoria.errors import (
    DataKeyDestroyed,
    EcphoriaError,
    EncryptionKeyMissing,
    EncryptionKeyWrong,
)
from ecphoria.extraction.port import Extraction, Fact
from ecphoria.governance.data_keys import KeyOwner
from ecphoria.governance.redaction import OF_PERSONS_ALONE, PLACEHOLDERS, Redactor, redactor
from ecphoria.governance.sealing import (
    SealingKeys,
    keyed_hash,
    sealed_memory,
    sealed_property,
)
from ecphoria.language.folding import fold, language_of
from ecphoria.model import EntityRef, Memory, Topics, entity_key
from ecphoria.parts import EngineParts
from ecphoria.remember.normalise import CleanMemory
from ecphoria.stores.ports import EntityRow, RelationRow
from ecphoria_schema.domain import Domain, Language

_SUBJECT_CHARS = 12


@dataclass(frozen=True, slots=True)
class Hiding:
    """How the texts of one item are redacted.

    Attributes:
        values: Values of sensitive attributes, as they stand in the text, with their placeholders.
        leave: Kinds of what identifies a person that are left alone.
        everything: Whether the item as a whole is sensitive.
    """

    redactor: Redactor
    values: tuple[tuple[str, str], ...]
    leave: frozenset[str]
    everything: bool

    def shown(self, text: str, lang: Language) -> str:
        """Return a text redacted."""
        return self.redactor.redacted(text, lang=lang, hidden=self.values, leave=self.leave)


def hiding(clean: CleanMemory, extraction: Extraction, domain: Domain) -> Hiding:
    """Return how the texts of an item are redacted."""
    item = clean.item
    values: dict[str, str] = {}
    for fact in extraction.facts:
        if fact.value and fact.attribute and domain.hides(fact.attribute):
            title = domain.attributes[fact.attribute].title
            lang = item.lang or language_of(item.text or fact.text)
            values[fact.value] = f"[{title.en if lang == 'en' else title.zh}]"
    return Hiding(
        redactor(domain),
        tuple(values.items()),
        OF_PERSONS_ALONE if item.user_id is None else frozenset(),
        item.privacy == "sensitive",
    )


def hides(clean: CleanMemory, extraction: Extraction, how: Hiding) -> bool:
    """Whether anything of an item is to be hidden; its ids are then made by keyed hashes."""
    if how.everything or how.values:
        return True
    texts = [clean.item.text, *(text for fact in extraction.facts for text in _texts(fact))]
    return any(how.redactor.find(text, how.leave) for text in dict.fromkeys(texts))


def _texts(fact: Fact) -> list[str]:
    texts = (fact.text, fact.evidence, fact.value, fact.subject, *fact.details.values())
    return [text for text in texts if text]


async def sealing_keys(
    parts: EngineParts, tenant: str, users: Iterable[str | None]
) -> Mapping[str | None, SealingKeys | EcphoriaError]:
    """Return the keys of users, in one round trip unless one is new; or why there are none.

    A user without keys does not keep the others from having theirs.

    Raises:
        StoreError: When the graph does not answer.
    """
    owners = {user: KeyOwner(tenant, user) for user in users}
    if not owners:
        return {}
    compares = KeyOwner(tenant, compares=True)
    found: dict[str | None, SealingKeys | EcphoriaError] = {}
    try:
        keys = await parts.vault.to_write([compares, *owners.values()])
    except (EncryptionKeyMissing, EncryptionKeyWrong) as error:
        return dict.fromkeys(owners, error)
    except DataKeyDestroyed as error:
        if len(owners) == 1:
            return dict.fromkeys(owners, error)
        # whose it was is found out one by one; the keys of most are known by now
        for user in owners:
            found |= await sealing_keys(parts, tenant, [user])
        return found
    return {user: SealingKeys(owner, keys[owner], keys[compares]) for user, owner in owners.items()}


def protected(memory: Memory, how: Hiding, keys: SealingKeys, ids: Sequence[str]) -> Memory:
    """Return a memory as it is stored: redacted, the original sealed; itself when nothing hides.

    Args:
        memory: In clear.
        how: How its item is redacted.
        keys: Its owner's.
        ids: The ids in its text that stay when everything else goes.
    """
    shown = _outline(memory, ids) if how.everything else _redacted(memory, how)
    if shown == memory:
        return memory
    if memory.subject is not None and shown.subject not in {None, memory.subject}:
        subject = hidden_subject(shown.subject or "", memory.subject, keys.compares)
        shown = replace(shown, subject=subject)
    return sealed_memory(memory, shown, keys)


def _redacted(memory: Memory, how: Hiding) -> Memory:
    def shown(text: str | None) -> str | None:
        return None if text is None else how.shown(text, memory.lang)

    return replace(
        memory,
        text=how.shown(memory.text, memory.lang),
        evidence=shown(memory.evidence),
        value=shown(memory.value),
        subject=shown(memory.subject),
        details={name: how.shown(value, memory.lang) for name, value in memory.details.items()},
    )


def _outline(memory: Memory, ids: Sequence[str]) -> Memory:
    mark = PLACEHOLDERS["sensitive"][memory.lang]
    return replace(
        memory,
        text=" ".join((_topic_words(memory, Topics(memory.topic, memory.tags)), *ids)),
        evidence=None,
        value=None if memory.value is None else mark,
        subject=None if memory.subject is None else mark,
        details={},
    )


def _topic_words(memory: Memory, topics: Topics) -> str:
    mark = PLACEHOLDERS["sensitive"][memory.lang]
    about = dict.fromkeys([topics.main, *topics.tags])
    return " ".join((mark, *(word.replace("_", " ") for word in about if word)))


def outlined(memory: Memory, topics: Topics) -> str:
    """Return the text of a memory under other topics: of a sensitive one they are part of it."""
    words = _topic_words(memory, Topics(memory.topic, memory.tags))
    if memory.privacy != "sensitive" or not memory.text.startswith(words):
        return memory.text
    return _topic_words(memory, topics) + memory.text.removeprefix(words)


def hidden_subject(shown: str, subject: str, compares: bytes) -> str:
    """Return what stands for a subject that is hidden: two of them remain two.

    Args:
        shown: What may be shown of it.
        subject: The subject.
        compares: The tenant's key for hashes.
    """
    folded = " ".join(fold(subject).split())
    return f"{shown}~{keyed_hash(compares, 'subject', folded)[:_SUBJECT_CHARS]}"


# --- entities ------------------------------------------------------------------------------


async def protected_entities(
    parts: EngineParts, tenant: str, rows: Sequence[EntityRow], relations: Sequence[RelationRow]
) -> list[EntityRow]:
    """Return entities with their sensitive properties sealed, each by its owner's data key.

    Raises:
        EncryptionKeyMissing: When no master key is set.
        DataKeyDestroyed: When the owner's data key was destroyed.
    """
    names = {
        type_: frozenset(
            name for name, item in declared.properties.items() if item.privacy == "sensitive"
        )
        for type_, declared in parts.domain.entities.items()
    }
    hiding_ = [row for row in rows if not names[row.ref.type].isdisjoint(row.props)]
    if not hiding_:
        return list(rows)
    owners = await _owners(parts, tenant, hiding_, relations)
    keys = await sealing_keys(parts, tenant, {owners.get(row.ref) for row in hiding_})
    sealed: list[EntityRow] = []
    for index, row in enumerate(rows):
        own = names[row.ref.type].intersection(row.props)
        if own:
            its = keys[owners.get(row.ref)]
            if isinstance(its, EcphoriaError):
                raise its.at("entities", index)
            key = entity_key(tenant, row.ref)
            props = {
                name: sealed_property(its, key, name, value) if name in own else value
                for name, value in row.props.items()
            }
            sealed.append(replace(row, props=props))
        else:
            sealed.append(row)
    return sealed


async def _owners(
    parts: EngineParts, tenant: str, rows: Sequence[EntityRow], relations: Sequence[RelationRow]
) -> Mapping[EntityRef, str | None]:
    """Return whose entities are, once the relations are written; one round trip at most."""
    domain = parts.domain
    owning = [
        row
        for row in relations
        if (declared := domain.relation(row.type, row.from_.type, row.to.type)) and declared.owns
    ]
    owned = [
        row.ref
        for row in rows
        if row.ref.type in domain.owned_types and row.ref.type != domain.root
    ]
    asked = dict.fromkeys([*owned, *(row.from_ for row in owning if row.from_.type != domain.root)])
    found = dict(await parts.graph.owners(tenant, list(asked))) if owned else {}
    owners = {ref: user for ref, user in found.items() if user is not None}
    roots = (row.ref for row in rows if row.ref.type == domain.root)
    above = (row.from_ for row in owning if row.from_.type == domain.root)
    owners |= {ref: ref.id for ref in (*roots, *above)}
    # an owner is handed on from level to level
    for _ in domain.entities:
        handed = {row.to: owners[row.from_] for row in owning if row.from_ in owners}
        if handed.items() <= owners.items():
            break
        owners |= handed
    return owners
