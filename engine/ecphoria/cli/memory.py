"""`ecphoria memory`: look at memories, and put right by hand what is not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

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
from ecphoria.cli.memory_view import (
    history_of,
    memory_of,
    page_of,
    receipt_of,
    related_of,
    show_history,
    show_memory,
    show_page,
    show_receipt,
)
from ecphoria.errors import EcphoriaError, InvalidInput, error_classes
from ecphoria.model import (
    EntityRef,
    FactInput,
    MemoryFilter,
    MemoryInput,
    ReceiptStatus,
    Status,
    parse_time,
)
from ecphoria.reading.paging import DEFAULT_FIRST
from ecphoria.settings import Settings
from ecphoria_schema.domain import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from ecphoria.cli.memory_view import View
    from ecphoria.engine import Engine
    from ecphoria.lifecycle.history import AttributeHistory
    from ecphoria.model import Memory, Page, Receipt, Scope

R = TypeVar("R")

MemoryId = Annotated[str, typer.Argument(help="Id of the memory.", metavar="ID")]
User = Annotated[str, typer.Option("--user", "-u", help="User whose memories to look at.")]
Owner = Annotated[str | None, typer.Option("--user", "-u", help="User whose memory it is.")]
Shared = Annotated[
    bool, typer.Option("--shared", help="It is shared by all users; in the place of --user.")
]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why, in a sentence; it is kept.")]
NewText = Annotated[str | None, typer.Argument(help="What to remember instead.", metavar="TEXT")]
Value = Annotated[
    str | None,
    typer.Option(
        "--value", help="New value of the attribute that the old memory gives the value of."
    ),
]
Source = Annotated[
    str | None,
    typer.Option("--source", help="Where it is known from.", show_default="the domain's default"),
]
NewId = Annotated[
    str | None, typer.Option("--id", help="Id of the new memory.", show_default="made from content")
]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        help="List and look at memories; supersede, correct and retract them by hand.",
        no_args_is_help=True,
    )
    group.command("list")(list_memories)
    group.command("show")(show)
    group.command("history")(history)
    group.command("supersede")(supersede)
    group.command("correct")(correct)
    group.command("retract")(retract)
    app.add_typer(group, name="memory")


# --- look ----------------------------------------------------------------------------------


@with_settings()
def list_memories(  # noqa: PLR0913, PLR0917 - an option each
    settings: Settings,
    tenant: Tenant,
    user: User,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help=f"Of this kind: {', '.join(KINDS)}.")
    ] = None,
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Of this topic.")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="From this source.")] = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status", help="`active`, `superseded` or `disabled`.", show_default="active"
        ),
    ] = None,
    about: Annotated[
        tuple[str, str] | None,
        typer.Option("--about", help="About this entity.", metavar="TYPE ID"),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="That happened then or later, e.g. 2026-11-30T09:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="That happened before then.")] = None,
    valid_at: Annotated[str | None, typer.Option(help="That are true at this time.")] = None,
    first: Annotated[int, typer.Option(help="How many at most.")] = DEFAULT_FIRST,
    after: Annotated[
        str | None, typer.Option(help="The cursor that the page before ended with.")
    ] = None,
    *,
    shared: Annotated[
        bool, typer.Option("--shared", help="Also what all users of the tenant share.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List a user's memories, newest first. Several values of one option are alternatives."""
    scope = cli_scope(tenant)
    wanted = MemoryFilter(
        kinds=tuple(_kind(name) for name in kind or ()),
        topics=tuple(topic or ()),
        entity=None if about is None else EntityRef(*about),
        sources=tuple(source or ()),
        statuses=tuple(_status(name) for name in status or (Status.ACTIVE,)),
        occurred_since=_time(since, "--since"),
        occurred_until=_time(until, "--until"),
        valid_at=_time(valid_at, "--valid-at"),
        include_shared=shared,
    )

    async def read(engine: Engine) -> tuple[Page[Memory], int]:
        page = await engine.list_memories(scope, user, wanted, first=first, after=after)
        return page, await engine.count_memories(scope, user, wanted)

    page, count = asyncio.run(_with_engine(settings, "Reading …", read))
    view = page_of(page, count)
    if as_json:
        print_json(view)
    else:
        show_page(out(), view)


def _kind(name: str) -> Kind:
    found = next((kind for kind in KINDS if kind == name.lower()), None)
    if found is None:
        msg = f"{name!r} is no kind; there are {', '.join(KINDS)}"
        raise typer.BadParameter(msg, param_hint="--kind")
    return found


def _status(name: str) -> Status:
    try:
        return Status(name.lower())
    except ValueError as error:
        msg = f"{name!r} is no status; there are {', '.join(Status)}"
        raise typer.BadParameter(msg, param_hint="--status") from error


@with_settings()
def show(
    settings: Settings, memory_id: MemoryId, tenant: Tenant, user: User, *, as_json: AsJson = False
) -> None:
    """Show a memory: what it says, when it holds, what it is about, how it stands to others."""
    scope = cli_scope(tenant)

    async def read(engine: Engine) -> View:
        found = await engine.memory(scope, user, memory_id)
        links = await engine.links(scope, user, [found.id])
        lineage = await engine.lineage(scope, user, [found.id])
        return memory_of(found) | related_of(links.get(found.id, ()), lineage.get(found.id, ()))

    view = asyncio.run(_with_engine(settings, "Reading …", read))
    if as_json:
        print_json(view)
    else:
        show_memory(out(), view)


@with_settings()
def history(  # noqa: PLR0913, PLR0917 - an option each
    settings: Settings,
    entity_type: Annotated[str, typer.Argument(help="Type of the entity.", metavar="TYPE")],
    entity_id: Annotated[str, typer.Argument(help="Id of the entity.", metavar="ID")],
    attribute: Annotated[
        str, typer.Argument(help="Attribute, e.g. `order.status`.", metavar="ATTRIBUTE")
    ],
    tenant: Tenant,
    user: User,
    subject: Annotated[
        str | None,
        typer.Option(help="Of an attribute that is kept by subject, e.g. the thing liked."),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(help="The value at this time, e.g. 2026-11-30T09:00:00Z.")
    ] = None,
    known_at: Annotated[
        str | None, typer.Option(help="Only what was known at this time, as it stood then.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what the value of an attribute is, was, and was thought to be."""
    scope = cli_scope(tenant)
    entity = EntityRef(entity_type, entity_id)
    at, known = _time(as_of, "--as-of"), _time(known_at, "--known-at")

    async def read(engine: Engine) -> AttributeHistory:
        return await engine.attribute_history(
            scope, user, entity, attribute, subject=subject, as_of=at, known_at=known
        )

    view = history_of(asyncio.run(_with_engine(settings, "Reading …", read)))
    if as_json:
        print_json(view)
    else:
        show_history(out(), entity, attribute, view)


def _time(text: str | None, option: str) -> datetime | None:
    return None if text is None else parse_time(text, option)


async def _with_engine(settings: Settings, what: str, act: Callable[[Engine], Awaitable[R]]) -> R:
    async with open_engine(settings) as engine:
        with err().status(what):
            return await act(engine)


# --- put right -----------------------------------------------------------------------------


@with_settings()
def supersede(  # noqa: PLR0913, PLR0917 - an option each
    settings: Settings,
    memory_id: MemoryId,
    tenant: Tenant,
    reason: Reason,
    text: NewText = None,
    user: Owner = None,
    value: Value = None,
    source: Source = None,
    new_id: NewId = None,
    valid_from: Annotated[
        str | None,
        typer.Option(
            help="From when on the new one is true, e.g. 2026-11-30T09:00:00Z.", show_default="now"
        ),
    ] = None,
    *,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Put a new memory in an old one's place: the world has changed.

    The old one stays as history, with the reason.
    """
    since = _time(valid_from, "--valid-from")
    scope, owner = cli_scope(tenant), _owner(user, shared=shared)

    _check_new(owner, text, value)

    async def act(engine: Engine) -> Receipt:
        facts = await _facts(engine, scope, owner, memory_id, value, text)
        new = MemoryInput(
            text or "", owner, id=new_id, source=source, valid_from=since, facts=facts
        )
        return await engine.supersede(scope, memory_id, new, reason)

    _written(asyncio.run(_with_engine(settings, "Writing …", act)), as_json=as_json)


@with_settings()
def correct(  # noqa: PLR0913, PLR0917 - an option each
    settings: Settings,
    memory_id: MemoryId,
    tenant: Tenant,
    reason: Reason,
    text: NewText = None,
    user: Owner = None,
    value: Value = None,
    source: Source = None,
    new_id: NewId = None,
    *,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Put a memory in the place of one that was wrong all along.

    Who asks what was known before still gets the old one (--known-at).
    """
    scope, owner = cli_scope(tenant), _owner(user, shared=shared)

    _check_new(owner, text, value)

    async def act(engine: Engine) -> Receipt:
        facts = await _facts(engine, scope, owner, memory_id, value, text)
        new = MemoryInput(text or "", owner, id=new_id, source=source, facts=facts)
        return await engine.correct(scope, memory_id, new, reason)

    _written(asyncio.run(_with_engine(settings, "Writing …", act)), as_json=as_json)


@with_settings()
def retract(
    settings: Settings,
    memory_id: MemoryId,
    tenant: Tenant,
    reason: Reason,
    user: Owner = None,
    *,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Take a memory back: it was never true. What it had replaced holds again."""
    scope, owner = cli_scope(tenant), _owner(user, shared=shared)

    async def act(engine: Engine) -> Receipt:
        return await engine.retract(scope, owner, memory_id, reason)

    _written(asyncio.run(_with_engine(settings, "Writing …", act)), as_json=as_json)


def _owner(user: str | None, *, shared: bool) -> str | None:
    if shared == (user is not None):
        msg = "say whose memory it is with --user, or --shared"
        raise typer.BadParameter(msg, param_hint="--user")
    return user


def _check_new(owner: str | None, text: str | None, value: str | None) -> None:
    if not text and value is None:
        msg = "say what to remember instead: a TEXT, or --value"
        raise typer.BadParameter(msg)
    if owner is None and value is not None:
        msg = "shared memories are replaced by a TEXT"
        raise typer.BadParameter(msg, param_hint="--value")


async def _facts(
    engine: Engine,
    scope: Scope,
    owner: str | None,
    memory_id: str,
    value: str | None,
    text: str | None,
) -> tuple[FactInput, ...]:
    """Return the old memory's attribute with the new value; nothing without one."""
    if value is None or owner is None:
        return ()
    old = await engine.memory(scope, owner, memory_id)
    declared = engine.domain.attributes.get(old.attribute or "")
    if old.attribute is None or declared is None:
        msg = f"{memory_id!r} gives no attribute's value: say what to remember instead as a text"
        raise InvalidInput(msg)
    if declared.entity == engine.domain.root:
        entities = {EntityRef(declared.entity, owner)}
    else:
        links = (await engine.links(scope, owner, [old.id])).get(old.id, ())
        entities = {link.entity for link in links if link.entity.type == declared.entity}
    if len(entities) != 1:
        msg = (
            f"{memory_id!r} is about {len(entities)} entities of the type {declared.entity}:"
            " say what to remember instead as a text with the id"
        )
        raise InvalidInput(msg)
    (entity,) = entities
    return (FactInput(entity, old.attribute, value, old.subject, text or None),)


def _written(receipt: Receipt, *, as_json: bool) -> None:
    rejected = receipt.status is ReceiptStatus.REJECTED
    if as_json:
        print_json(receipt_of(receipt))
        if rejected:
            raise typer.Exit(1)
        return
    if rejected:
        kinds = {kind.code: kind for kind in error_classes()}
        kind = kinds.get(receipt.code or "", EcphoriaError)
        raise kind(receipt.reason or "", path=receipt.path)
    show_receipt(out(), receipt)
