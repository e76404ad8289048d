"""`ecphoria recall`: ask one question."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from ecphoria.cli.answer import answer_of, show_answer
from ecphoria.cli.common import (
    AsJson,
    Tenant,
    cli_scope,
    err,
    open_engine,
    out,
    print_json,
    with_settings,
)
from ecphoria.model import RecallRequest, parse_time
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from ecphoria.model import RecallResult, Scope


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(recall)


@with_settings()
def recall(  # noqa: PLR0913, PLR0917 - an option each
    settings: Settings,
    question: Annotated[str, typer.Argument(help="What to ask, in Chinese or English.")],
    tenant: Tenant,
    user: Annotated[str, typer.Option("--user", "-u", help="User who asks, or is asked about.")],
    as_of: Annotated[
        str | None, typer.Option(help="Answer as of this time, e.g. 2026-11-30T09:00:00Z.")
    ] = None,
    known_at: Annotated[
        str | None,
        typer.Option(help="Answer from what was known at this time, as it stood then."),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(
            help='Time zone in which the question says "yesterday", e.g. Asia/Shanghai.',
            show_default="that of the settings",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Ask for what happened from this time on.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Ask for what happened before this time.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(help="Conversation that the question is part of: its turns come first."),
    ] = None,
    *,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show why each part is there, what each stage did, and why each memory that was "
            "looked at is, or is not, in the answer.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a question and show the joined answer."""
    scope = cli_scope(tenant)
    request = RecallRequest(
        question=question,
        user_id=scope.user(user),
        as_of=None if as_of is None else parse_time(as_of, "--as-of"),
        known_at=None if known_at is None else parse_time(known_at, "--known-at"),
        session_id=session,
        time_zone=time_zone,
        since=None if since is None else parse_time(since, "--since"),
        until=None if until is None else parse_time(until, "--until"),
        explain=explain,
    )
    answer = answer_of(asyncio.run(_ask(settings, scope, request)))
    if as_json:
        print_json(answer)
    else:
        show_answer(out(), answer, explain=explain)


async def _ask(settings: Settings, scope: Scope, request: RecallRequest) -> RecallResult:
    async with open_engine(settings) as engine:
        with err().status("Recalling …"):
            return await engine.recall(scope, request)
