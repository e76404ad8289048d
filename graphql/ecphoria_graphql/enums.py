"""Enums that are the same in every domain."""

import enum

import strawberry
from strawberry import enum_value


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
    DISABLED = enum_value("disabled", description="Switched off, with its source or by itself.")
    FORGOTTEN = enum_value("forgotten", description="Taken out.")


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


@strawberry.enum(name="ReceiptStatus", description="What became of one item of a write.")
class WriteStatus(enum.Enum):
    """Status of a receipt; the values are the engine's."""

    CREATED = enum_value("CREATED", description="New, and durable.")
    UPDATED = enum_value("UPDATED", description="Known, and changed.")
    DUPLICATE = enum_value("DUPLICATE", description="The same memory was there already.")
    UNCHANGED = enum_value("UNCHANGED", description="Known, with nothing new.")
    REJECTED = enum_value("REJECTED", description="Not written; `code` and `reason` say why.")
