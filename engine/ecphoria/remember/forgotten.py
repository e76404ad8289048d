"""Users of whom nothing is taken, because they were forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ecphoria.errors import UserForgotten
from ecphoria.governance.pseudonyms import tombstone_keys
from ecphoria.parts import EngineParts


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Whose tombstones are in force.

    Attributes:
        keys: Of those that could still be put there: a write must find none of them.
        forgotten: The users who were forgotten.
    """

    keys: tuple[str, ...]
    forgotten: frozenset[str | None]

    @staticmethod
    def refusal() -> UserForgotten:
        """Return the error for what is about a forgotten user."""
        # without his id: logs, and the progress of an import, keep what it says
        msg = "this user was forgotten, and nothing of him is kept"
        return UserForgotten(msg, path=("user_id",))


async def tombstones(parts: EngineParts, tenant: str, users: Iterable[str | None]) -> Tombstones:
    """Look for the tombstones of users, all in one round trip.

    Raises:
        StoreUnavailable: When the graph does not answer.
    """
    named = [user for user in users if user is not None]
    keys = await tombstone_keys(parts.pseudonyms, tenant, named)
    every = [key for its in keys.values() for key in its]
    stones = await parts.graph.forgotten_users(every)
    in_force = {key for key, stone in stones.items() if stone.lifted_at is None}
    forgotten = frozenset(user for user, its in keys.items() if not in_force.isdisjoint(its))
    open_ = tuple(key for user, its in keys.items() if user not in forgotten for key in its)
    return Tombstones(open_, forgotten)
