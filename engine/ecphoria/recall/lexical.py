"""How well the words of a memory fit a question: BM25 over what was found, the same on every store.

Stores rank by BM25 too, but each counts how rare a word is over other rows: one over all tenants,
another over each file of rows, so that what was just written scores a fraction of what is older.
What they find is good; how good it is, is told here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from ecphoria.language.overlap import rarity
from ecphoria.stores.ports import TermHit

# Robertson and Zaragoza 2009. Memories are short, and a long one is no less to the point: length
# counts for less than in pages of text.
K1 = 1.2
B = 0.5
# What was said right before tells what a sentence is about, less than the sentence itself does.
CONTEXT = 0.5


def lexical_fit(asked: Sequence[str], hits: Sequence[TermHit]) -> Mapping[str, float]:
    """Return for each key how well its terms fit those of the question, 0..1; ones apart left out.

    1 is what a text of middle length has that holds each of the terms once. A term that few of the
    hits have counts for more; one that none has counts for most, and nothing makes up for it.
    """
    wanted = frozenset(asked)
    counts = {hit.key: _counts(hit) for hit in hits}
    total = len(counts)
    if not wanted or not total:
        return {}
    lengths = {key: math.fsum(held.values()) for key, held in counts.items()}
    mean = math.fsum(lengths.values()) / total
    weights = {
        term: rarity(sum(1 for held in counts.values() if held.get(term)), total) for term in wanted
    }
    whole = math.fsum(weights.values())
    fits: dict[str, float] = {}
    for key, held in counts.items():
        shorter = K1 * (1 - B + B * lengths[key] / mean) if mean else K1
        parts = [
            weights[term] * held[term] * (K1 + 1) / (held[term] + shorter)
            for term in wanted
            if held.get(term)
        ]
        if parts:
            fits[key] = min(1.0, math.fsum(parts) / whole)
    return fits


def _counts(hit: TermHit) -> Mapping[str, float]:
    counts = {term: float(count) for term, count in Counter(hit.terms).items()}
    for term, count in Counter(hit.context).items():
        counts[term] = counts.get(term, 0.0) + CONTEXT * count
    return counts
