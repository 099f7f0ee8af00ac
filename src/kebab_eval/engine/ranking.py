"""A channel's ranking: the best of a score array, ordered by scores and ids and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SCORE_DECIMALS = 6
"""Scores are rounded before they are compared: a float's last bits are no reason to rank."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One item of a channel's ranking; ``index`` is its position in the index, ``rank`` from 1."""

    index: int
    rank: int
    score: float


def best(
    scores: NDArray[np.float64], ids: Sequence[str], depth: int, *, positive: bool = False
) -> list[Candidate]:
    """Return the first ``depth`` items by descending score, then ascending id.

    Args:
        scores: float64, (n,); rounded here to ``SCORE_DECIMALS``.
        ids: n ids, the tie-breaker.
        depth: at least 1; may exceed n.
        positive: drop items whose rounded score is not above 0.
    """
    rounded = np.round(scores, SCORE_DECIMALS) + 0.0  # -0.0 becomes 0.0
    kept = np.flatnonzero(rounded > 0) if positive else np.arange(len(rounded))
    if len(kept) > depth:
        # Everything at least as good as the depth-th, so that a tie at the edge is settled by id.
        edge = np.partition(rounded[kept], len(kept) - depth)[len(kept) - depth]
        kept = kept[rounded[kept] >= edge]
    order = sorted(kept.tolist(), key=lambda index: (-rounded[index], ids[index]))[:depth]
    return [
        Candidate(index, rank, float(rounded[index])) for rank, index in enumerate(order, start=1)
    ]
