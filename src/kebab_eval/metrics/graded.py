"""Metrics in which a grade is worth a gain: nDCG with two gains, and ERR.

Each kernel takes a rank table, a cutoff (None: the whole ranking) and ``min_grade`` (which plays
no part: every positive grade counts), and returns float64, (n_queries,), NaN where a query has no
grade above 0 and so is not scored.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kebab_eval.metrics.binary import UNCUT, scored
from kebab_eval.metrics.ranktable import FloatArray, IntArray, RankTable

Placed = tuple[IntArray, IntArray, FloatArray]
Gain = Callable[[FloatArray], FloatArray]


def exponential_gain(grade: FloatArray) -> FloatArray:
    """Return 2^grade - 1, and 0 for a negative grade."""
    return np.exp2(np.maximum(grade, 0.0)) - 1.0


def linear_gain(grade: FloatArray) -> FloatArray:
    """Return the grade, and 0 for a negative grade."""
    return np.maximum(grade, 0.0)


def ndcg(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return nDCG with gain 2^grade - 1 and discount log2(rank + 1), in [0, 1].

    The ideal is over all judged items, cut at the same k. Source: Burges et al. 2005.
    """
    return _ndcg(table, cutoff, exponential_gain)


def ndcg_linear(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return nDCG with gain = grade and discount log2(rank + 1), in [0, 1].

    Source: Järvelin & Kekäläinen 2002; trec_eval's ``ndcg`` and ``ndcg_cut``.
    """
    return _ndcg(table, cutoff, linear_gain)


def _ndcg(table: RankTable, cutoff: int | None, gain: Gain) -> FloatArray:
    limit = cutoff or UNCUT
    best = _dcg(table, table.ideal, limit, gain)
    value = _dcg(table, table.returned, limit, gain) / np.where(best > 0, best, 1.0)
    # Both sums run in rank order, so an ideal ranking gives exactly 1; a sum that differs from the
    # ideal one in its last digit only must not pass it.
    return scored(np.minimum(value, 1.0), table.n_positive)


def _dcg(table: RankTable, placed: Placed, limit: int, gain: Gain) -> FloatArray:
    rank, query, grade = placed
    if limit < UNCUT:
        kept = rank <= limit
        rank, query, grade = rank[kept], query[kept], grade[kept]
    return table.total(query, gain(grade) / np.log2(rank + 1.0))


def err(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return the expected 1 / rank of the place where a user stops.

    An item of grade g stops them with probability (2^g - 1) / 2^max; max is the top of the grading
    scale (``RankTable.scale``), so an ideal ranking stays below 1.

    Source: Chapelle et al. 2009.
    """
    rank, query, grade = table.returned
    rows = np.flatnonzero((grade > 0) & (rank <= (cutoff or UNCUT)))
    stops = exponential_gain(grade[rows]) / np.exp2(table.scale)
    values = np.zeros(table.n_queries)
    going_on = np.ones(table.n_queries)
    owner, place = query[rows], table.place(query[rows])
    # One step for each place: the n-th returned item of every query at once.
    for step in range(int(place.max(initial=-1)) + 1):
        here = np.flatnonzero(place == step)
        at, stop = owner[here], stops[here]
        values[at] += going_on[at] * stop / rank[rows[here]]
        going_on[at] *= 1.0 - stop
    return scored(values, table.n_positive)
