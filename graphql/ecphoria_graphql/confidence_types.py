"""Confidence and its three parts."""

import strawberry

from ecphoria.model import Confidence, ConfidencePart
from ecphoria_graphql.enums import FreshnessLevel


@strawberry.type(name="ConfidencePart", description="One part of a confidence, and why.")
class ConfidencePartNode:
    """A part of a confidence."""

    score: float = strawberry.field(description="0 to 1.")
    reason: str = strawberry.field(description="Why, in a sentence.")

    @classmethod
    def of(cls, part: ConfidencePart) -> "ConfidencePartNode":
        """Return the part as its GraphQL type."""
        return cls(score=part.score, reason=part.reason)


@strawberry.type(name="Timeliness", description="How fresh it is, and why.")
class TimelinessNode:
    """The part of a confidence that is about time."""

    score: float = strawberry.field(description="0 to 1.")
    level: FreshnessLevel | None = strawberry.field(description="The score in a word.")
    reason: str = strawberry.field(description="Why, in a sentence.")

    @classmethod
    def of(cls, part: ConfidencePart) -> "TimelinessNode":
        """Return the part as its GraphQL type."""
        level = None if part.level is None else FreshnessLevel(part.level)
        return cls(score=part.score, level=level, reason=part.reason)


@strawberry.type(
    name="Confidence",
    description=(
        "How far to trust something: `overall = 0.40 timeliness + 0.35 source + 0.25 consistency`."
    ),
)
class ConfidenceNode:
    """A confidence."""

    overall: float = strawberry.field(description="0 to 1; below 0.6 a recall adds an advisory.")
    timeliness: TimelinessNode = strawberry.field(description="Whether it is still true.")
    source: ConfidencePartNode = strawberry.field(description="Whether its source is reliable.")
    consistency: ConfidencePartNode = strawberry.field(
        description="Whether other memories disagree."
    )

    @classmethod
    def of(cls, confidence: Confidence) -> "ConfidenceNode":
        """Return a confidence as its GraphQL type."""
        return cls(
            overall=confidence.overall,
            timeliness=TimelinessNode.of(confidence.timeliness),
            source=ConfidencePartNode.of(confidence.source),
            consistency=ConfidencePartNode.of(confidence.consistency),
        )
