"""What there is, where it comes from, and who asks."""

from __future__ import annotations

from typing import get_args

from ecphoria.governance.access import readable_privacy
from ecphoria.model import EveryUser, Principal, Scope, SourceInfo
from ecphoria.parts import EngineParts
from ecphoria_schema.domain import Privacy


async def sources(parts: EngineParts, scope: Scope) -> tuple[SourceInfo, ...]:
    """Return the tenant's sources, and those of the domain that nothing has come from yet."""
    stored = {source.id: source for source in await parts.graph.sources(scope.tenant)}
    declared = {
        id_: SourceInfo(id_, source.title.en, source.reliability)
        for id_, source in parts.domain.sources.items()
    }
    return tuple((declared | stored)[id_] for id_ in sorted({*declared, *stored}))


async def me(parts: EngineParts, scope: Scope) -> Principal:
    """Return who asks; see `Engine.me`."""
    key = await parts.graph.api_key(scope.principal)
    readable = readable_privacy(scope)
    levels: tuple[Privacy, ...] = get_args(Privacy)
    return Principal(
        tenant=scope.tenant,
        id=scope.principal,
        roles=tuple(sorted(scope.roles)),
        users=None if isinstance(scope.users, EveryUser) else tuple(sorted(scope.users)),
        readable=tuple(level for level in levels if level in readable),
        # the command line, and a token, is no key that is kept here
        expires_at=key.expires_at if key is not None and key.tenant == scope.tenant else None,
    )
