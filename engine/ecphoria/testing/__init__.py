"""What tests of an agent with a memory need: four verbs, stores to hand it, a clock to set.

Nothing in ecphoria itself imports this package.
"""

from __future__ import annotations

from ecphoria.testing.engine_store import EngineStore
from ecphoria.testing.in_memory import InMemoryStore
from ecphoria.testing.manual_clock import ManualClock
from ecphoria.testing.store import MemoryStore, StoredMemory

__all__ = ["EngineStore", "InMemoryStore", "ManualClock", "MemoryStore", "StoredMemory"]
