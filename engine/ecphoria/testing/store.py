"""The least that an agent asks of a memory: four verbs, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from ecphoria.errors import InvalidInput
from ecphoria.model import EntityRef, FactInput, Memory
from ecphoria_schema.domain import Domain


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory as a store gives it back; times are UTC.

    Attributes:
        attribute: The domain's attribute that it gives the `value` of, if it does.
        subject: What a keyed attribute is about.
        valid_until: When it stops, or stopped, to be true; None = open.
        expires_at: When it is dropped; None = never.
    """

    id: str
    user_id: str | None
    text: str
    attribute: str | None
    value: str | None
    subject: str | None
    valid_from: datetime
    valid_until: datetime | None
    expires_at: datetime | None

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """Return what a store shows of a memory."""
        return cls(
            id=memory.id,
            user_id=memory.user_id,
            text=memory.text,
            attribute=memory.attribute,
            value=memory.value,
            subject=memory.subject,
            valid_from=memory.valid_from,
            valid_until=memory.valid_until,
            expires_at=memory.expires_at,
        )


class MemoryStore(Protocol):
    """Keeps what is known about users. Write an agent against this, and test it with any of them.

    Every store keeps the same rules: what is written is found at once; a repeated write makes
    nothing new; a newer value of an attribute takes the older one's place; what is forgotten or
    has expired is never found again; no user finds another's.
    """

    async def write_memory(
        self,
        user_id: str,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - what it is called everywhere
        entity: EntityRef | None = None,
        attribute: str | None = None,
        value: str | None = None,
        valid_from: datetime | None = None,
        expires_at: datetime | None = None,
    ) -> str:
        """Keep a memory; return the id under which it is kept.

        Args:
            user_id: Whose it is.
            text: What to remember; may be empty where an attribute says everything.
            id: The caller's own id; without one, equal texts of the same ten minutes are one.
            entity: Whose attribute it gives; the user himself without it.
            attribute: One of the domain's, with its `value`.
            value: Of the attribute.
            valid_from: When it began to be true; now if None.
            expires_at: When it is dropped; as the kind's policy says if None.

        Raises:
            InvalidInput: When something is missing or malformed, or the id is taken by another
                memory (`IdConflict`) or belonged to a forgotten one (`MemoryForgotten`).
            InvalidScope: When the user is missing, empty or ``*``.
        """
        ...

    async def recall(
        self, user_id: str, question: str, *, limit: int = 5
    ) -> tuple[StoredMemory, ...]:
        """Return what is known now that answers a question, the most useful first.

        What is no longer true comes back only when the question asks for history.

        Raises:
            InvalidInput: For an empty question or a bad limit.
            InvalidScope: When the user is missing, empty or ``*``.
        """
        ...

    async def forget(self, user_id: str, ids: Sequence[str]) -> int:
        """Erase memories of a user for good; return how many there were.

        Unknown ids, and those of other users, are left alone and not counted.
        """
        ...

    async def clean_expired(self) -> int:
        """Erase what has expired, of all users; return how many."""
        ...


def facts_of(
    domain: Domain,
    user_id: str,
    entity: EntityRef | None,
    attribute: str | None,
    value: str | None,
) -> tuple[FactInput, ...]:
    """Return what `MemoryStore.write_memory` was told that a text says; nothing for a mere text.

    Raises:
        InvalidInput: When only a part of what makes a fact was given.
    """
    if attribute is not None and value is not None:
        return (FactInput(entity or EntityRef(domain.root, user_id), attribute, value),)
    if entity is None and attribute is None and value is None:
        return ()
    msg = "entity, attribute and value say one thing together: give attribute and value"
    raise InvalidInput(msg, path=("attribute" if attribute is None else "value",))
