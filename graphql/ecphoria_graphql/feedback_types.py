"""What was said of memories, and what is missing in them."""

import enum
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import enum_value

from ecphoria.model import (
    Before,
    CompletionTask,
    Feedback,
    FeedbackFilter,
    FeedbackInput,
    FeedbackReceipt,
    TaskStatus,
    Verdict,
)
from ecphoria_graphql.connection_types import connection_type
from ecphoria_graphql.enums import plain
from ecphoria_graphql.inputs import SHARED, USER_ID, owner
from ecphoria_graphql.write_faults import WriteFaultNode


@strawberry.enum(name="FeedbackVerdict", description="What is said of a memory; it acts at once.")
class VerdictValue(enum.Enum):
    """Verdicts; the values are the engine's."""

    EXPIRED = enum_value("EXPIRED", description="It is over: it ends now, or at `at`.")
    WRONG_TOPIC = enum_value(
        "WRONG_TOPIC",
        description="It is filed wrong: it gets `topics`, or is looked at again without the wrong.",
    )
    MISSING_INFO = enum_value(
        "MISSING_INFO", description="Something is missing, as `note` says: that opens a task."
    )
    WRONG = enum_value(
        "WRONG",
        description=(
            "It is not so: it and its source are believed less, within bounds. Nothing is deleted;"
            " who knows better uses `correct` or `retract`."
        ),
    )
    HELPFUL = enum_value("HELPFUL", description="It helped: that counts as a use.")


@strawberry.enum(name="FeedbackStatus", description="What became of feedback.")
class FeedbackStatusValue(enum.Enum):
    """Status; the values are the engine's, but for REJECTED."""

    GIVEN = enum_value("GIVEN", description="It is kept, and has acted.")
    DUPLICATE = enum_value(
        "DUPLICATE", description="The key has said the same of the memory before; nothing changed."
    )
    UNDONE = enum_value("UNDONE", description="All is as it would be without it.")
    UNCHANGED = enum_value("UNCHANGED", description="It had been taken back before.")
    REJECTED = enum_value("REJECTED", description="Nothing was done: `error` says why.")


@strawberry.enum(name="CompletionTaskStatus", description="Where a completion task stands.")
class TaskStatusValue(enum.Enum):
    """Status; the values are the engine's."""

    OPEN = enum_value("open", description="Something is still missing.")
    DONE = enum_value(
        "done", description="Somebody said so, or the memory was replaced or taken back."
    )


@strawberry.type(name="FeedbackBefore", description="What feedback found where it changed it.")
class BeforeNode:
    """What was before."""

    valid_until: datetime | None = strawberry.field(
        description="End of an EXPIRED memory; null = open."
    )
    topic: str | None = strawberry.field(description="Main topic of one with a WRONG_TOPIC.")
    tags: list[str] = strawberry.field(description="Topics of one with a WRONG_TOPIC.")
    reliability: float | None = strawberry.field(
        description="How far the source of a WRONG memory was trusted, 0 to 1."
    )
    doubt: float | None = strawberry.field(
        description="What feedback had taken from that for a WRONG memory, 0 to 1."
    )
    access_count: int | None = strawberry.field(description="Uses of a HELPFUL memory.")

    @classmethod
    def of(cls, before: Before, verdict: Verdict) -> "BeforeNode":
        """Return it as its GraphQL type."""
        topics, used = before.topics, before.use.get("access_count")
        return cls(
            valid_until=before.valid_until,
            topic=None if topics is None else topics.main,
            tags=[] if topics is None else list(topics.tags),
            reliability=before.reliability,
            doubt=before.doubt,
            access_count=int(used or 0) if verdict is Verdict.HELPFUL else None,
        )


@strawberry.type(
    name="Feedback", description="What somebody said of a memory, and what that changed."
)
class FeedbackNode:
    """A record of feedback."""

    id: strawberry.ID = strawberry.field(description="Its id, to take it back by.")
    memory_id: strawberry.ID = strawberry.field(description="Id of the memory.")
    user_id: strawberry.ID | None = strawberry.field(
        description="Whose memory it is; null = shared knowledge."
    )
    verdict: VerdictValue = strawberry.field(description="What is said of it.")
    note: str | None = strawberry.field(
        description="Why. What identifies a person is hidden from who may not read it."
    )
    by: strawberry.ID = strawberry.field(description="Id of the key that said it.")
    at: datetime = strawberry.field(description="When.")
    ends_at: datetime | None = strawberry.field(
        description="When the memory ends by it, if EXPIRED."
    )
    topics: list[str] = strawberry.field(
        description="What the memory is about by it, if WRONG_TOPIC; the main one first."
    )
    task_id: strawberry.ID | None = strawberry.field(
        description="The task that it opened, if MISSING_INFO."
    )
    before: BeforeNode = strawberry.field(description="What was before.")
    standing: bool = strawberry.field(description="Whether it counts.")
    undone_at: datetime | None = strawberry.field(
        description="When it was taken back; null while it stands."
    )
    undone_by: strawberry.ID | None = strawberry.field(description="Id of the key that did so.")

    @classmethod
    def of(cls, said: Feedback) -> "FeedbackNode":
        """Return it as its GraphQL type."""
        topics = said.topics
        return cls(
            id=strawberry.ID(said.id),
            memory_id=strawberry.ID(said.memory_id),
            user_id=_id(said.user_id),
            verdict=VerdictValue(said.verdict.value),
            note=said.note,
            by=strawberry.ID(said.by),
            at=said.at,
            ends_at=said.ends_at,
            topics=[] if topics is None else list(topics.tags),
            task_id=_id(said.task_id),
            before=BeforeNode.of(said.before, said.verdict),
            standing=said.undone_at is None,
            undone_at=said.undone_at,
            undone_by=_id(said.undone_by),
        )


@strawberry.type(name="CompletionTask", description="That something is missing in a memory.")
class TaskNode:
    """A completion task."""

    id: strawberry.ID = strawberry.field(description="Its id.")
    memory_id: strawberry.ID = strawberry.field(description="Id of the memory.")
    user_id: strawberry.ID | None = strawberry.field(
        description="Whose memory it is; null = shared knowledge."
    )
    note: str | None = strawberry.field(
        description="What is missing. What identifies a person is hidden from who may not read it."
    )
    by: strawberry.ID = strawberry.field(description="Id of the key that misses it.")
    at: datetime = strawberry.field(description="Since when.")
    status: TaskStatusValue = strawberry.field(description="Where it stands.")
    done_at: datetime | None = strawberry.field(
        description="When somebody said that it is done; null when the memory's end did it."
    )
    done_by: strawberry.ID | None = strawberry.field(description="Id of the key that said so.")
    completed_by: strawberry.ID | None = strawberry.field(
        description="Id of the memory that has what was missing, where that is known."
    )

    @classmethod
    def of(cls, task: CompletionTask) -> "TaskNode":
        """Return it as its GraphQL type."""
        return cls(
            id=strawberry.ID(task.id),
            memory_id=strawberry.ID(task.memory_id),
            user_id=_id(task.user_id),
            note=task.note,
            by=strawberry.ID(task.by),
            at=task.at,
            status=TaskStatusValue(task.status.value),
            done_at=task.done_at,
            done_by=_id(task.done_by),
            completed_by=_id(task.completed_by),
        )


@strawberry.type(name="FeedbackPayload", description="What became of feedback, or why nothing did.")
class FeedbackPayloadNode:
    """What became of feedback."""

    status: FeedbackStatusValue = strawberry.field(description="What became of it.")
    feedback: FeedbackNode | None = strawberry.field(
        description="The record that stands, or was taken back; null when nothing was done."
    )
    task: TaskNode | None = strawberry.field(description="The task that it opened.")
    indexed: bool = strawberry.field(
        description=(
            "Whether vector search knows what changed; if not, background work sees to it soon."
        )
    )
    error: WriteFaultNode | None = strawberry.field(
        description="Why nothing was done; null when something was."
    )

    @classmethod
    def of(cls, receipt: FeedbackReceipt) -> "FeedbackPayloadNode":
        """Return it as its GraphQL type."""
        return cls(
            status=FeedbackStatusValue(receipt.status.value),
            feedback=FeedbackNode.of(receipt.feedback),
            task=None if receipt.task is None else TaskNode.of(receipt.task),
            indexed=receipt.indexed,
            error=None,
        )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "FeedbackPayloadNode":
        """Return the payload of a call that did nothing."""
        status = FeedbackStatusValue.REJECTED
        return cls(status=status, feedback=None, task=None, indexed=False, error=fault)


@strawberry.type(name="CompleteTaskPayload", description="The task that is done, or why not.")
class CompleteTaskNode:
    """What became of a task."""

    task: TaskNode | None = strawberry.field(description="The task; null when nothing was done.")
    error: WriteFaultNode | None = strawberry.field(
        description="Why nothing was done; null when it is done."
    )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "CompleteTaskNode":
        """Return the payload of a call that did nothing."""
        return cls(task=None, error=fault)


def _id(value: str | None) -> strawberry.ID | None:
    return None if value is None else strawberry.ID(value)


@strawberry.input(name="FeedbackInput", description="What is said of a memory.")
class FeedbackData:
    """Feedback."""

    memory_id: strawberry.ID = strawberry.field(description="Id of the memory.")
    verdict: VerdictValue = strawberry.field(description="What is said of it.")
    user_id: strawberry.ID | None = strawberry.field(default=None, description=USER_ID)
    shared: bool = strawberry.field(default=False, description=SHARED)
    note: str | None = strawberry.field(
        default=None, description="Why, in a sentence; with MISSING_INFO what is missing."
    )
    topics: list[str] | None = strawberry.field(
        default=None,
        description=(
            "With WRONG_TOPIC: the right ones, as the domain names them, the main one first."
            " Looked for again when not given."
        ),
    )
    at: datetime | None = strawberry.field(
        default=None, description="With EXPIRED: when it ended, or will; now when not given."
    )

    def feedback(self) -> FeedbackInput:
        """Return it as the engine takes it.

        Raises:
            InvalidScope: When it is neither one user's memory nor shared, or both.
        """
        return FeedbackInput(
            memory_id=self.memory_id,
            user_id=owner(self.user_id, shared=self.shared),
            verdict=Verdict(plain(self.verdict)),
            note=self.note,
            topics=tuple(self.topics or ()),
            at=self.at,
        )


@strawberry.input(name="FeedbackFilter", description="Which; those that meet all that is given.")
class FeedbackFilterData:
    """A filter."""

    memory_id: strawberry.ID | None = strawberry.field(default=None, description="On this memory.")
    verdict: VerdictValue | None = strawberry.field(default=None, description="That says this.")
    standing: bool | None = strawberry.field(
        default=None, description="Only what counts, or only what was taken back."
    )

    def filter(self) -> FeedbackFilter:
        """Return it as the engine takes it."""
        return FeedbackFilter(
            memory_id=self.memory_id,
            verdict=None if self.verdict is None else Verdict(plain(self.verdict)),
            standing=self.standing,
        )


FeedbackArgument = Annotated[FeedbackData, strawberry.argument(description="What is said.")]
FilterArgument = Annotated[
    FeedbackFilterData | None,
    strawberry.argument(description="Which of it; all when not given."),
]
StatusArgument = Annotated[
    TaskStatusValue | None, strawberry.argument(description="Where they stand; any if not given.")
]


def status_of_tasks(status: TaskStatusValue | None) -> TaskStatus | None:
    """Return a status as the engine takes it."""
    return None if status is None else TaskStatus(plain(status))


FEEDBACK_CONNECTION = connection_type("Feedback", FeedbackNode, "feedback")
TASK_CONNECTION = connection_type("CompletionTask", TaskNode, "completion tasks")
