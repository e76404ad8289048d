"""`ecphoria keys`: API keys for the GraphQL API."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ecphoria.cli.common import (
    AsJson,
    Tenant,
    cli_scope,
    err,
    id_column,
    moment,
    open_engine,
    out,
    print_json,
    with_settings,
)
from ecphoria.governance.keys import create_key, revoke_key, rotate_key
from ecphoria.model import EveryUser, Role
from ecphoria.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Collection

    from ecphoria.model import ApiKey


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Make, list, rotate and revoke API keys.", no_args_is_help=True)
    group.command("create")(create)
    group.command("list")(list_keys)
    group.command("rotate")(rotate)
    group.command("revoke")(revoke)
    app.add_typer(group, name="keys")


@with_settings()
def create(
    settings: Settings,
    name: Annotated[str, typer.Argument(help="What the key is for, e.g. `chat-agent`.")],
    tenant: Tenant,
    role: Annotated[
        list[Role] | None, typer.Option("--role", help="What it may do; may be repeated.")
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option("--user", help="A user whose memory it may use; may be repeated."),
    ] = None,
    *,
    every_user: Annotated[
        bool, typer.Option("--every-user", help="It may use every user's memory.")
    ] = False,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=36_500, help="Days until it expires.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it: this once, since only its hash is kept."""
    if bool(user) == every_user:
        msg = "name users with --user, or say --every-user"
        raise typer.BadParameter(msg, param_hint="--user")
    users: Collection[str] | EveryUser = EveryUser.OF_TENANT if every_user else user or ()
    lifetime = None if days is None else timedelta(days=days)

    async def make() -> tuple[ApiKey, str]:
        async with (
            open_engine(settings) as engine,
            engine.audit.doing(cli_scope(tenant), "createKey"),
        ):
            return await create_key(
                engine.graph,
                engine.clock,
                tenant=tenant,
                name=name,
                roles=role or [Role.AGENT],
                users=users,
                lifetime=lifetime,
            )

    key, secret = asyncio.run(make())
    _show_secret(key, secret, as_json=as_json)


@with_settings()
def list_keys(settings: Settings, tenant: Tenant, *, as_json: AsJson = False) -> None:
    """List a tenant's keys, without their secrets."""
    scope = cli_scope(tenant)

    async def read() -> tuple[ApiKey, ...]:
        async with open_engine(settings) as engine:
            return await engine.graph.api_keys(scope.tenant)

    keys = asyncio.run(read())
    if as_json:
        print_json([_view(key) for key in keys])
        return
    if not keys:
        err().print("No keys yet: make one with [bold]ecphoria keys create[/].")
        return
    table = Table(id_column(), "name", "roles", "users", "made", "state", box=None, pad_edge=False)
    for key in keys:
        made = f"{key.created_at:%Y-%m-%d %H:%M}"
        cells = (key.id, key.name, _roles(key), _users(key), made, _state(key))
        table.add_row(*(escape(cell) for cell in cells))
    out().print(table)


@with_settings()
def rotate(
    settings: Settings,
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it.")],
    tenant: Tenant,
    *,
    grace: Annotated[
        str,
        typer.Option(
            "--grace", help="How long the old secret counts beside the new one: 90s, 15m, 1h, 7d."
        ),
    ] = "0s",
    days: Annotated[
        int | None,
        typer.Option(
            "--days",
            min=1,
            max=36_500,
            help="Days until it expires, from now on.",
            show_default="its end stays",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give a key a new secret and print it; id, roles and users stay."""
    scope = cli_scope(tenant)
    while_both_count = _duration(grace)
    lifetime = None if days is None else timedelta(days=days)

    async def renew() -> tuple[ApiKey, str]:
        async with (
            open_engine(settings) as engine,
            engine.audit.doing(scope, "rotateKey"),
        ):
            return await rotate_key(
                engine.graph,
                engine.clock,
                tenant=scope.tenant,
                key_id=key_id,
                grace=while_both_count,
                lifetime=lifetime,
            )

    key, secret = asyncio.run(renew())
    _show_secret(key, secret, as_json=as_json)


@with_settings()
def revoke(
    settings: Settings,
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it.")],
    tenant: Tenant,
    *,
    as_json: AsJson = False,
) -> None:
    """Revoke a key at once."""
    scope = cli_scope(tenant)

    async def end() -> ApiKey:
        async with (
            open_engine(settings) as engine,
            engine.audit.doing(scope, "revokeKey"),
        ):
            return await revoke_key(engine.graph, engine.clock, tenant=scope.tenant, key_id=key_id)

    key = asyncio.run(end())
    if as_json:
        print_json(_view(key))
    else:
        out().print(f"Key {key.id} ({escape(key.name)}) is revoked.")


def _duration(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,9})([smhd])", text.strip())
    if found is None:
        msg = f"{text!r:.40} is no duration: write e.g. 90s, 15m, 1h or 7d"
        raise typer.BadParameter(msg, param_hint="--grace")
    unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[found[2]]
    return timedelta(**{unit: int(found[1])})


def _show_secret(key: ApiKey, secret: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**_view(key), "key": secret})
        return
    # The key alone goes to standard output, so that a script can take it from there, too.
    typer.echo(secret)
    also = ""
    if key.previous_until is not None:
        also = f" The secret before it counts until {key.previous_until:%Y-%m-%d %H:%M:%S} UTC."
    err().print(
        f"Key [bold]{key.id}[/] ({escape(key.name)}) of tenant {escape(key.tenant)}: "
        f"{_roles(key)}; {escape(_users(key))}; {_state(key)}.{also}\n"
        "Keep it now: it is not shown again. Send it as [bold]Authorization: Bearer <key>[/].",
        soft_wrap=True,
    )


def _view(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "roles": sorted(key.roles),
        "everyUser": isinstance(key.users, EveryUser),
        "users": [] if isinstance(key.users, EveryUser) else sorted(key.users),
        "createdAt": moment(key.created_at),
        "expiresAt": moment(key.expires_at),
        "revokedAt": moment(key.revoked_at),
        "previousSecretUntil": moment(key.previous_until),
    }


def _roles(key: ApiKey) -> str:
    return ", ".join(sorted(key.roles))


def _users(key: ApiKey) -> str:
    return "every user" if isinstance(key.users, EveryUser) else ", ".join(sorted(key.users))


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    return "no end" if key.expires_at is None else f"until {key.expires_at:%Y-%m-%d}"
