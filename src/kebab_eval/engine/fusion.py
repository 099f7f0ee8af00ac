"""Fusion: the rankings of several channels become one.

A method is a function and a line in :data:`METHODS`. It sees ranks and scores by item, never the
texts, so that recorded candidates can be fused again without searching.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kebab_eval.config import Fusion
from kebab_eval.engine.ranking import SCORE_DECIMALS

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


def weighted(channels: Mapping[str, Ranking], fusion: Fusion) -> list[Fused]:
    """Return the items by the weighted mean of their normalised scores.

    ``min_max`` maps a channel's candidates to 0..1, its best to 1; where all score alike, all are
    1. ``z`` takes standard deviations from the channel's mean; where all score alike, all are 0.
    An item that a channel does not hold has what its worst candidate has: 0, or the lowest z. A
    channel of weight 0 brings in no items.

    Source: Fox & Shaw 1994 (CombSUM); Renda & Straccia 2003 on the two normalisations.
    """
    norms = _normalised(channels, fusion)
    total = math.fsum(fusion_weight(fusion, name) for name in norms)
    scores = {}
    for item_id in {item for found in norms.values() for item in found}:
        parts = []
        for name, found in norms.items():
            lowest = min(found.values()) if fusion.normalize == "z" else 0.0
            parts.append(fusion_weight(fusion, name) * found.get(item_id, lowest))
        scores[item_id] = math.fsum(parts) / total
    return _ordered(scores)


def combmnz(channels: Mapping[str, Ranking], fusion: Fusion) -> list[Fused]:
    """Return the items by CombMNZ: the sum of their 0..1 scores, times the channels that hold them.

    Divided by the number of channels and the sum of their weights, so that 1.0 is the best of every
    channel. A channel of weight 0 brings in no items.

    Source: Fox & Shaw 1994; Lee 1997.
    """
    norms = _normalised(channels, fusion)
    highest = len(norms) * math.fsum(fusion_weight(fusion, name) for name in norms)
    parts: dict[str, list[float]] = {}
    for name, found in norms.items():
        for item_id, value in found.items():
            parts.setdefault(item_id, []).append(fusion_weight(fusion, name) * value)
    scores = {item: len(own) * math.fsum(own) / highest for item, own in parts.items()}
    return _ordered(scores)


def fusion_weight(fusion: Fusion, channel: str) -> float:
    return float(getattr(fusion.weights, channel))


def _normalised(channels: Mapping[str, Ranking], fusion: Fusion) -> dict[str, dict[str, float]]:
    """Return channel -> item -> its normalised score, of the channels that count and hold any."""
    found = {}
    for name, ranking in channels.items():
        if fusion_weight(fusion, name) > 0 and ranking:
            scores = {item_id: score for item_id, (_, score) in ranking.items()}
            found[name] = _z(scores) if fusion.normalize == "z" else _min_max(scores)
    return found


def _min_max(scores: Mapping[str, float]) -> dict[str, float]:
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 1.0)
    return {item_id: (score - low) / (high - low) for item_id, score in scores.items()}


def _z(scores: Mapping[str, float]) -> dict[str, float]:
    mean = math.fsum(scores.values()) / len(scores)
    spread = math.sqrt(math.fsum((s - mean) ** 2 for s in scores.values()) / len(scores))
    if spread == 0:
        return dict.fromkeys(scores, 0.0)
    return {item_id: (score - mean) / spread for item_id, score in scores.items()}


def _ordered(scores: Mapping[str, float]) -> list[Fused]:
    """Return the items by score, rounded as the channels' own are, and then by id."""
    rounded = {item_id: round(score, SCORE_DECIMALS) + 0.0 for item_id, score in scores.items()}
    return [
        Fused(item_id, rounded[item_id])
        for item_id in sorted(rounded, key=lambda item: (-rounded[item], item))
    ]


METHODS: dict[str, FusionMethod] = {
    "rrf": reciprocal_rank,
    "weighted": weighted,
    "combmnz": combmnz,
}


def fuse(channels: Mapping[str, Ranking], fusion: Fusion) -> list[Fused]:
    """Return the fused ranking by a config's method, of the first ``fusion.depth`` candidates."""
    depth = fusion.depth
    if depth is not None:
        channels = {
            name: {item: found for item, found in ranking.items() if found[0] <= depth}
            for name, ranking in channels.items()
        }
    return METHODS[fusion.method](channels, fusion)
