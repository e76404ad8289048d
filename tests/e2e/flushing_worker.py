"""A worker that is killed while it flushes a session, for test_session.py.

    python flushing_worker.py TENANT SESSION

Brings the session to long-term memory and is killed (-9) when all is written and nothing dropped.
Stores come from the environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace

from ecphoria.engine import Engine
from ecphoria.model import EveryUser, Role, Scope
from ecphoria.session.flush import end_session
from ecphoria.settings import load_settings


class Deadly:
    """A session store that kills the process when turns are to be dropped."""

    def __init__(self, sessions):
        self._sessions = sessions

    def __getattr__(self, name):
        return getattr(self._sessions, name)

    async def drop_turns(self, *_, **__):
        os.kill(os.getpid(), signal.SIGKILL)


async def main(tenant, session):
    scope = Scope(tenant, "worker", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    async with Engine.open(load_settings()) as engine:
        await end_session(replace(engine, sessions=Deadly(engine.sessions)), scope, "u1", session)


asyncio.run(main(*sys.argv[1:]))
