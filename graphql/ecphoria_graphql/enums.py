"""Enums that are the same in every domain."""

import enum
from typing import Any

import strawberry
from strawberry import enum_value


def plain(member: enum.Enum) -> Any:  # noqa: ANN401 - one of the engine's literals
    """Return a value as the engine takes it."""
    return member.value


@strawberry.enum(description="What kind of memory it is.")
class MemoryKind(enum.Enum):
    """Kinds of memory; the values are the engine's."""

    EPISODIC = enum_value("episodic", description="Something that happened.")
    SEMANTIC = enum_value("semantic", description="Something that is so: a fact, a preference.")
    PROCEDURAL = enum_value("procedural", description="How something is done: a rule, a policy.")


@strawberry.enum(name="Privacy", description="Who may read it.")
class PrivacyLevel(enum.Enum):
    """Privacy levels; the values are the engine's."""

    PUBLIC = enum_value("public", description="Every role.")
    INTERNAL = enum_value("internal", description="Agents, analysts and admins.")
    SENSITIVE = enum_value("sensitive", description="Admins.")


@strawberry.enum(name="Language", description="A language that ecphoria understands.")
class TextLanguage(enum.Enum):
    """Languages; the values are the engine's."""

    EN = enum_value("en", description="English.")
    ZH = enum_value("zh", description="Chinese.")


@strawberry.enum(name="MemoryStatus", description="Where a memory stands in its life.")
class MemoryStatus(enum.Enum):
    """Status of a memory; the values are the engine's."""

    ACTIVE = enum_value("active", description="In use.")
    SUPERSEDED = enum_value("superseded", description="A newer memory took its place.")
    DISABLED = enum_value("disabled", description="Taken back; shown for what was known before.")
    FORGOTTEN = enum_value("forgotten", description="Erased.")


@strawberry.enum(name="Tier", description="Where a memory is kept.")
class StorageTier(enum.Enum):
    """Tiers; the values are the engine's."""

    HOT = enum_value("hot", description="Searched by default.")
    ARCHIVE = enum_value("archive", description="Old; searched when history is asked for.")


@strawberry.enum(name="Action", description="What to do with the result of a recall.")
class RecallAction(enum.Enum):
    """Actions; the values are the engine's."""

    ANSWER = enum_value("ANSWER", description="Answer from it.")
    FALLBACK = enum_value("FALLBACK", description="It does not fit well enough: ask, or say so.")
    SKIP = enum_value("SKIP", description="The question needs no memory, e.g. a greeting.")


@strawberry.enum(name="TimelinessLevel", description="How fresh a fact is.")
class FreshnessLevel(enum.Enum):
    """Levels of timeliness; the values are the engine's."""

    STABLE = enum_value("STABLE", description="Valid for long, or fresh.")
    NORMAL = enum_value("NORMAL", description="In between.")
    HIGH_RISK = enum_value("HIGH_RISK", description="About to expire.")
    EXPIRED = enum_value("EXPIRED", description="No longer valid.")


@strawberry.enum(
    name="ReceiptStatus",
    description="What became of one item of a write, and what is left to do.",
)
class WriteStatus(enum.Enum):
    """Status of a receipt; the values are the engine's."""

    CREATED = enum_value("CREATED", description="New, and durable. Nothing is left to do.")
    UPDATED = enum_value("UPDATED", description="An entity that was known, and changed.")
    DUPLICATE = enum_value(
        "DUPLICATE",
        description=(
            "The same memory was there already: it is kept, and counts as said again. `id` is its"
            " id."
        ),
    )
    SUPERSEDED = enum_value(
        "SUPERSEDED",
        description=(
            "New, and durable; it ended older memories, which `supersedes` names. They are history"
            " now."
        ),
    )
    HISTORICAL = enum_value(
        "HISTORICAL",
        description=(
            "Kept as history: a memory that is true from later on, `supersededBy`, holds now. To"
            " make this one hold, write it with a later `validFrom`."
        ),
    )
    CONFLICT = enum_value(
        "CONFLICT",
        description=(
            "Kept, but a more reliable source says otherwise: `conflictsWith`. Both stay until"
            " somebody who knows uses `correct`, `supersede` or `retract`."
        ),
    )
    RETRACTED = enum_value("RETRACTED", description="Taken back; it is not shown any more.")
    UNCHANGED = enum_value("UNCHANGED", description="An entity that was known, with nothing new.")
    REJECTED = enum_value(
        "REJECTED", description="Not written: `code`, `reason` and `path` say what to mend."
    )


@strawberry.enum(name="LinkMethod", description="How a memory came to be about an entity.")
class LinkedBy(enum.Enum):
    """Ways to link; the values are the engine's."""

    GIVEN = enum_value("given", description="The writer said so.")
    ID = enum_value("id", description="The text has the entity's id.")
    NAME = enum_value("name", description="The text has a name of the entity.")
    PRONOUN = enum_value(
        "pronoun", description="The text says `it`, or 「那台」, after the entity was named."
    )
    ARRIVED = enum_value(
        "arrived", description="The text had its id before the entity was known; linked later."
    )


@strawberry.enum(name="LineageMethod", description="What put two memories into relation.")
class RelatedBy(enum.Enum):
    """Ways to relate; the values are the engine's."""

    ATTRIBUTE = enum_value(
        "attribute", description="Both give the value of one attribute; time and source decided."
    )
    STATED = enum_value("stated", description="The writer of the newer one said so.")
    HAND = enum_value("hand", description="Somebody did it by hand: `by` and `reason` say more.")


@strawberry.enum(name="Urgency", description="How urgent what was said is.")
class UrgencyLevel(enum.Enum):
    """Levels of urgency; the values are the engine's."""

    LOW = enum_value("low", description="It can wait.")
    NORMAL = enum_value("normal", description="Nothing speaks for haste.")
    HIGH = enum_value("high", description="It should be looked at soon.")


@strawberry.enum(name="ChangeKind", description="What happened to a memory.")
class Happening(enum.Enum):
    """Kinds of change; the values are the engine's."""

    CREATED = enum_value("CREATED", description="It is new.")
    SUPERSEDED = enum_value("SUPERSEDED", description="A newer memory took its place.")
    RETRACTED = enum_value("RETRACTED", description="It was taken back.")
    FORGOTTEN = enum_value("FORGOTTEN", description="It was erased on request.")
    EXPIRED = enum_value("EXPIRED", description="It was erased when its time was over.")
    ARCHIVED = enum_value("ARCHIVED", description="Nobody used it: it moved to the archive.")


@strawberry.enum(name="Speaker", description="Who said something in a conversation.")
class WhoSpoke(enum.Enum):
    """Speakers; the values are the engine's."""

    CUSTOMER = enum_value("customer", description="The customer.")
    SERVICE = enum_value("service", description="The service, a person or an agent.")
