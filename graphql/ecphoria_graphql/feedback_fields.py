"""Mutations and queries about feedback.

None of the mutations needs an idempotency key: sent again, each answers that it was done before.
"""

from typing import Annotated, Any

import strawberry

from ecphoria.reading.paging import DEFAULT_FIRST
from ecphoria_graphql.connection_types import After, First, Listed, connected
from ecphoria_graphql.context import Info
from ecphoria_graphql.error_codes import input_path
from ecphoria_graphql.feedback_types import (
    FEEDBACK_CONNECTION,
    TASK_CONNECTION,
    CompleteTaskNode,
    FeedbackArgument,
    FeedbackNode,
    FeedbackPayloadNode,
    FilterArgument,
    StatusArgument,
    TaskNode,
    status_of_tasks,
)
from ecphoria_graphql.fields import typed_field
from ecphoria_graphql.inputs import SHARED, USER_ID, owner
from ecphoria_graphql.write_faults import or_fault

Owner = Annotated[strawberry.ID | None, strawberry.argument(description=USER_ID)]
Shared = Annotated[bool, strawberry.argument(description=SHARED)]
ForUser = Annotated[
    strawberry.ID, strawberry.argument(description="On whose memories: exactly one user.")
]
OnShared = Annotated[
    bool,
    strawberry.argument(description="On the memories that he shares with every user, instead."),
]
FeedbackId = Annotated[strawberry.ID, strawberry.argument(description="Id of the feedback.")]
TaskId = Annotated[strawberry.ID, strawberry.argument(description="Id of the task.")]
Completing = Annotated[
    strawberry.ID | None,
    strawberry.argument(description="The memory that has what was missing, if there is one."),
]


def _spoken_of(info: Info, user_id: str, *, shared: bool) -> str | None:
    """Return on whose memories feedback is asked for; None = on shared ones.

    Raises:
        InvalidScope: When the user is missing, empty or ``*``.
        Forbidden: When the key may not name him.
    """
    user = info.context.scope.user(user_id)
    return None if shared else user


def feedback_mutations() -> dict[str, object]:
    """Return the mutations."""

    async def feedback(info: Info, input: FeedbackArgument) -> FeedbackPayloadNode:  # noqa: A002 - GraphQL's name
        async def work() -> FeedbackPayloadNode:
            with input_path("input"):
                receipt = await info.context.engine.feedback(info.context.scope, input.feedback())
            return FeedbackPayloadNode.of(receipt)

        return await or_fault(work(), FeedbackPayloadNode.refused)

    async def undo_feedback(
        info: Info,
        feedback_id: FeedbackId,
        user_id: Owner = None,
        shared: Shared = False,  # noqa: FBT002 - an argument of the schema
    ) -> FeedbackPayloadNode:
        async def work() -> FeedbackPayloadNode:
            whose = owner(user_id, shared=shared)
            return FeedbackPayloadNode.of(
                await info.context.engine.undo_feedback(info.context.scope, whose, feedback_id)
            )

        return await or_fault(work(), FeedbackPayloadNode.refused)

    async def complete_task(
        info: Info,
        id: TaskId,  # noqa: A002 - GraphQL's name
        user_id: Owner = None,
        shared: Shared = False,  # noqa: FBT002 - an argument of the schema
        memory_id: Completing = None,
    ) -> CompleteTaskNode:
        async def work() -> CompleteTaskNode:
            whose = owner(user_id, shared=shared)
            task = await info.context.engine.complete_task(info.context.scope, whose, id, memory_id)
            return CompleteTaskNode(task=TaskNode.of(task), error=None)

        return await or_fault(work(), CompleteTaskNode.refused)

    return {
        "feedback": strawberry.field(
            resolver=feedback,
            description=(
                "Say of a memory that it is over, filed wrong, incomplete, wrong or helpful. That"
                " acts at once, within bounds, and can be taken back. A key that says the same"
                " again changes nothing; one that says too much in a day gets FEEDBACK_LIMIT."
            ),
        ),
        "undo_feedback": strawberry.field(
            resolver=undo_feedback,
            description=(
                "Take feedback back: all is as it would be without it, and the record stays. What"
                " other keys have said only operators and admins take back."
            ),
        ),
        "complete_task": strawberry.field(
            resolver=complete_task,
            description="Say that what was missing in a memory is there now.",
        ),
    }


def feedback_queries() -> dict[str, Any]:
    """Return the queries."""

    async def feedback(
        info: Info,
        user_id: ForUser,
        shared: OnShared = False,  # noqa: FBT002 - an argument of the schema
        filter: FilterArgument = None,  # noqa: A002 - GraphQL's name
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> Any:  # noqa: ANN401 - made at run time
        page = await info.context.engine.list_feedback(
            info.context.scope,
            _spoken_of(info, user_id, shared=shared),
            None if filter is None else filter.filter(),
            first=first,
            after=after,
        )
        nodes = [FeedbackNode.of(said) for said in page.items]
        return connected(FEEDBACK_CONNECTION, Listed(page, nodes, after))

    async def completion_tasks(
        info: Info,
        user_id: ForUser,
        shared: OnShared = False,  # noqa: FBT002 - an argument of the schema
        status: StatusArgument = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> Any:  # noqa: ANN401 - as above
        page = await info.context.engine.completion_tasks(
            info.context.scope,
            _spoken_of(info, user_id, shared=shared),
            status=status_of_tasks(status),
            first=first,
            after=after,
        )
        nodes = [TaskNode.of(task) for task in page.items]
        return connected(TASK_CONNECTION, Listed(page, nodes, after))

    return {
        "feedback": typed_field(
            feedback,
            FEEDBACK_CONNECTION,
            "What was said of a user's, or of shared, memories, the newest first, page by page.",
        ),
        "completion_tasks": typed_field(
            completion_tasks,
            TASK_CONNECTION,
            "What is missing in a user's, or in shared, memories, the newest first, page by page.",
        ),
    }
