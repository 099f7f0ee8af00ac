"""Fusion: the rankings of several channels become one.

A method is a function and a line in :data:`METHODS`. It sees ranks and scores by item, never the
texts, so that recorded candidates can be fused again without searching.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kebab_eval.config import Fusion

Ranking = Mapping[str, tuple[int, float]]
"""A channel's candidates: item id -> (rank from 1, score)."""


@dataclass(frozen=True, slots=True)
class Fused:
    """An item of the fused ranking; its place in the list is its rank."""

    item_id: str
    score: float


FusionMethod = Callable[[Mapping[str, Ranking], Fusion], list[Fused]]


def reciprocal_rank(channels: Mapping[str, Ranking], fusion: Fusion) -> list[Fused]:
    """Return the items by the weighted sum of 1 / (rrf_k + rank) over the channels that hold them.

    The score is divided by the highest possible one, the sum of weights / (rrf_k + 1), so that 1.0
    is rank 1 in every channel. A channel of weight 0 brings in no items. Equal scores are ordered
    by id.

    Scores are not rounded: ranks are whole numbers, so there is no noise to round away, and for a
    large rrf_k neighbours differ by less than 1e-6. ``fsum`` rounds the exact sum once, so equal
    sums are equal whatever the order of the channels.

    Args:
        channels: the ranking of each channel; its name is looked up in ``fusion.weights``.

    Source: Cormack, Clarke & Büttcher 2009; normalised as kebab reports it.
    """
    weights = {name: float(getattr(fusion.weights, name)) for name in channels}
    highest = math.fsum(weight / (fusion.rrf_k + 1) for weight in weights.values())
    terms: dict[str, list[float]] = {}
    for name, ranking in channels.items():
        if weights[name] > 0:
            for item_id, (rank, _) in ranking.items():
                terms.setdefault(item_id, []).append(weights[name] / (fusion.rrf_k + rank))
    fused = [Fused(item_id, math.fsum(parts) / highest) for item_id, parts in terms.items()]
    return sorted(fused, key=lambda item: (-item.score, item.item_id))


METHODS: dict[str, FusionMethod] = {"rrf": reciprocal_rank}
