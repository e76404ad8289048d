"""Turn what speaks for a memory into the probability that it answers the question.

Logistic regression; its weights are data, fitted by ``python -m benchmarks.tune`` on a development
split and never on what is reported. ``calibration.json`` tells on what and with which model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ecphoria.recall.features import Features

_FILE = "calibration.json"
# exp() beyond this is infinite
_FAR = 500.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights of a logistic regression over `Features`.

    Attributes:
        model: Embedding model that it was fitted with.
        bias: What is added to the weighted sum.
        weights: Weight of each feature, by name; products as ``first*second``.
    """

    model: str
    bias: float
    weights: Mapping[str, float]

    def probability(self, found: Features) -> float:
        """Return the probability, 0..1, that a memory with these features answers."""
        total = self.bias + math.fsum(
            weight * math.prod(getattr(found, part) for part in name.split("*"))
            for name, weight in self.weights.items()
        )
        return 1 / (1 + math.exp(-min(_FAR, max(-_FAR, total))))


@cache
def shipped_calibration() -> Calibration:
    """Return the calibration that ecphoria ships."""
    text = resources.files("ecphoria.recall").joinpath(_FILE).read_text(encoding="utf-8")
    data = json.loads(text)
    return Calibration(data["model"], data["bias"], data["weights"])
