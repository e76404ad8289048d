"""Figures for Prometheus: how often and how fast questions are answered, how the cache does.

They tell of the whole process: no tenant, no user, no text.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ecphoria.model import Action
from ecphoria.recall.query_cache import QueryCache

MEDIA_TYPE: Final = CONTENT_TYPE_LATEST
# What a recall is counted under when it ends with an error.
FAILED: Final = "ERROR"
# Seconds.
_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(slots=True)
class Asked:
    """A recall under way.

    Attributes:
        action: What came of it; set it before the block ends.
    """

    action: str = FAILED


class Metrics:
    """The figures of one application, in a registry of their own."""

    def __init__(self, cache: Callable[[], QueryCache]) -> None:
        """Begin at zero.

        Args:
            cache: Returns the query cache; called for each page.
        """
        self._registry = CollectorRegistry()
        self._recalls = Histogram(
            "ecphoria_recall_seconds",
            "Seconds that a recall took, by what came of it.",
            ["action"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        for action in (*Action, FAILED):
            # from the start, so that the first one is seen to be an increase
            self._recalls.labels(str(action))
        self._registry.register(_QueryCacheCollector(cache))

    @contextmanager
    def recall(self) -> Iterator[Asked]:
        """Count what is done in the block as one recall."""
        asked, start = Asked(), time.perf_counter()
        try:
            yield asked
        finally:
            self._recalls.labels(asked.action).observe(time.perf_counter() - start)

    def page(self) -> bytes:
        """Return all figures in the text format of Prometheus."""
        return generate_latest(self._registry)


class _QueryCacheCollector(Collector):
    def __init__(self, cache: Callable[[], QueryCache]) -> None:
        self._cache = cache

    def collect(self) -> Iterable[Metric]:
        found = self._cache().figures()
        name = "ecphoria_query_cache"
        yield CounterMetricFamily(f"{name}_hits", "Texts whose vector was kept.", found.hits)
        yield CounterMetricFamily(f"{name}_misses", "Texts that had to be embedded.", found.misses)
        yield GaugeMetricFamily(f"{name}_entries", "Vectors that are kept.", found.entries)
        yield GaugeMetricFamily(
            f"{name}_capacity",
            "Vectors that are kept at most; 0 = the cache is off.",
            found.capacity,
        )
