"""`ecphoria feedback`: say what is wrong with a memory, look at what was said, take it back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from ecphoria.cli.common import (
    AsJson,
    Tenant,
    cli_scope,
    err,
    moment,
    open_engine,
    out,
    print_json,
    with_settings,
)
from ecphoria.cli.memory_view import shortened
from ecphoria.errors import InvalidTime
from ecphoria.model import FeedbackFilter, FeedbackInput, Verdict, parse_time
from ecphoria.reading.paging import DEFAULT_FIRST
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from datetime import datetime

    from ecphoria.model import CompletionTask, Feedback, FeedbackReceipt, Page

_VERDICTS = "|".join(verdict.lower() for verdict in Verdict)

Owner = Annotated[str | None, typer.Option("--user", "-u", help="User whose memory it is.")]
Shared = Annotated[
    bool, typer.Option("--shared", help="It is shared by all users; in the place of --user.")
]


def _verdict(text: str) -> Verdict:
    name = text.upper().replace("-", "_")
    if name not in Verdict.__members__:
        msg = f"{text!r} is none of {_VERDICTS.replace('|', ', ')}"
        raise typer.BadParameter(msg)
    return Verdict(name)


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        help="Say of a memory that it is over, misfiled, incomplete, wrong or helpful.",
        no_args_is_help=True,
    )
    group.command("give")(give)
    group.command("list")(list_feedback)
    group.command("undo")(undo)
    app.add_typer(group, name="feedback")


@with_settings()
def give(  # noqa: PLR0913, PLR0917 - an option each
    settings: Settings,
    memory: Annotated[str, typer.Argument(help="Id of the memory.", metavar="ID")],
    verdict: Annotated[str, typer.Argument(help="What is said of it.", metavar=_VERDICTS)],
    tenant: Tenant,
    user: Owner = None,
    note: Annotated[
        str | None, typer.Option("--note", "-n", help="Why; or what is missing.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="With wrong_topic: the right one; may be repeated, the main one first.",
            show_default="looked for again",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", help="With expired: when it ended, or will.", show_default="now"),
    ] = None,
    *,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Say something of a memory; that acts at once, and can be taken back."""
    item = FeedbackInput(
        memory_id=memory,
        user_id=_whose(user, shared=shared),
        verdict=_verdict(verdict),
        note=note,
        topics=tuple(topic or ()),
        at=_time(at),
    )

    async def act() -> FeedbackReceipt:
        async with open_engine(settings) as engine:
            return await engine.feedback(cli_scope(tenant), item)

    _show_receipt(asyncio.run(act()), as_json=as_json)


@with_settings()
def list_feedback(  # noqa: PLR0913 - an option each
    settings: Settings,
    tenant: Tenant,
    user: Owner = None,
    memory: Annotated[str | None, typer.Option("--memory", help="On this memory.")] = None,
    verdict: Annotated[
        str | None, typer.Option("--verdict", help="That says this.", metavar=_VERDICTS)
    ] = None,
    first: Annotated[int, typer.Option(help="How many at most.")] = DEFAULT_FIRST,
    after: Annotated[
        str | None, typer.Option(help="The cursor that the page before ended with.")
    ] = None,
    *,
    shared: Shared = False,
    standing: Annotated[
        bool, typer.Option("--standing", help="Only what was not taken back.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what was said of a user's memories, the newest first."""
    whose = _whose(user, shared=shared)
    said_so = None if verdict is None else _verdict(verdict)
    wanted = FeedbackFilter(memory, said_so, True if standing else None)

    async def act() -> Page[Feedback]:
        async with open_engine(settings) as engine:
            return await engine.list_feedback(
                cli_scope(tenant), whose, wanted, first=first, after=after
            )

    page = asyncio.run(act())
    if as_json:
        cursor = page.cursors[-1] if page.has_next else None
        print_json({"items": [_view(said) for said in page.items], "next": cursor})
        return
    # an id is too long for a table to have room for the rest
    for said in page.items:
        out().print(Text(said.id, style="bold"), soft_wrap=True)
        undone = f", undone {moment(said.undone_at)}" if said.undone_at else ""
        line = (
            f"  {said.verdict.lower()} of {said.memory_id}, {moment(said.at)} by {said.by}{undone}"
        )
        out().print(Text(line), soft_wrap=True)
        if said.note:
            out().print(Text(f"  {shortened(said.note)}", style="dim"), soft_wrap=True)
    if page.has_next:
        err().print(f"There is more: --after {page.cursors[-1]}", soft_wrap=True)


@with_settings()
def undo(
    settings: Settings,
    feedback: Annotated[str, typer.Argument(help="Id of the feedback.", metavar="ID")],
    tenant: Tenant,
    user: Owner = None,
    *,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Take feedback back: all is as it would be without it."""
    whose = _whose(user, shared=shared)

    async def act() -> FeedbackReceipt:
        async with open_engine(settings) as engine:
            return await engine.undo_feedback(cli_scope(tenant), whose, feedback)

    _show_receipt(asyncio.run(act()), as_json=as_json)


def _whose(user: str | None, *, shared: bool) -> str | None:
    if shared == (user is not None):
        msg = "say whose memory it is: --user, or --shared"
        raise typer.BadParameter(msg, param_hint="--user")
    return user


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except InvalidTime as error:
        raise typer.BadParameter(error.message, param_hint="--at") from error


def _show_receipt(receipt: FeedbackReceipt, *, as_json: bool) -> None:
    if as_json:
        task = None if receipt.task is None else _task(receipt.task)
        print_json(
            {
                "status": receipt.status.value,
                "feedback": _view(receipt.feedback),
                "task": task,
                "indexed": receipt.indexed,
            }
        )
        return
    said = receipt.feedback
    what = f"[bold]{receipt.status}[/] {escape(said.id)}"
    out().print(f"{what} ({said.verdict.lower()} of {escape(said.memory_id)})", soft_wrap=True)
    if receipt.task is not None:
        out().print(f"  Task {escape(receipt.task.id)} is {receipt.task.status}.", soft_wrap=True)


def _view(said: Feedback) -> dict[str, Any]:
    before, topics = said.before, said.topics
    return {
        "id": said.id,
        "memoryId": said.memory_id,
        "userId": said.user_id,
        "verdict": said.verdict.value,
        "note": said.note,
        "by": said.by,
        "at": moment(said.at),
        "endsAt": moment(said.ends_at),
        "topics": [] if topics is None else list(topics.tags),
        "taskId": said.task_id,
        "before": {
            "validUntil": moment(before.valid_until),
            "topic": None if before.topics is None else before.topics.main,
            "reliability": before.reliability,
            "doubt": before.doubt,
        },
        "undoneAt": moment(said.undone_at),
        "undoneBy": said.undone_by,
    }


def _task(task: CompletionTask) -> dict[str, Any]:
    return {
        "id": task.id,
        "status": task.status.name,
        "note": task.note,
        "completedBy": task.completed_by,
    }
