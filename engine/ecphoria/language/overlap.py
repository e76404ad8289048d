"""How many of a question's words a text has, the rare ones counting more.

Words are weighted by their inverse document frequency among the texts that compete for one
question (Spärck Jones 1972, with the smoothing of BM25: ``ln(1 + (N - n + 0.5) / (n + 0.5))``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from ecphoria.language.terms import terms

# Among a handful of texts nothing can be told to be rare.
_FEW = 20


def rarity(having: int, total: int) -> float:
    """Return how much a term counts that so many of all texts have."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def overlaps(question: str, texts: Sequence[str]) -> tuple[float, ...]:
    """Return for each text the weighted share of the question's words that it has, 0..1."""
    wanted = frozenset(terms(question))
    held = [wanted.intersection(terms(text)) for text in texts]
    counts = Counter(term for some in held for term in some)
    total = max(len(texts), _FEW)
    weights = {term: rarity(counts[term], total) for term in wanted}
    # exact sums: the order of a set is another one in every run
    whole = math.fsum(weights.values())
    if whole <= 0:
        return (0.0,) * len(texts)
    return tuple(min(1.0, math.fsum(weights[term] for term in some) / whole) for some in held)
