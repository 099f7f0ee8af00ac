"""Metrics for which an item is relevant or not: it is, from ``min_grade`` on.

Each kernel takes a rank table, a cutoff (None: the whole ranking) and ``min_grade``, and returns
float64, (n_queries,), NaN where a query has no relevant judgment and so is not scored.
"""

from __future__ import annotations

import numpy as np

from kebab_eval.metrics.ranktable import FloatArray, IntArray, RankTable, place_in_query

#: Stands for "the whole ranking": beyond every rank.
UNCUT = 2**62


def scored(values: FloatArray, has_judgment: IntArray) -> FloatArray:
    """Return ``values`` with NaN wherever ``has_judgment`` is 0."""
    if has_judgment.all():
        return values
    return np.where(has_judgment > 0, values, np.nan)


def hit(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return 1 where a relevant item is among the first ``cutoff``, else 0.

    Source: trec_eval's ``success``.
    """
    found = table.relevant_in_first(cutoff or UNCUT, min_grade)
    return scored((found > 0).astype(np.float64), table.n_relevant(min_grade))


def precision(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return the relevant items in the first k, divided by k, also when fewer came back.

    Without a cutoff, divided by the number of places. Source: trec_eval's ``P`` and ``set_P``.
    """
    found = table.relevant_in_first(cutoff or UNCUT, min_grade)
    places = np.maximum(table.n_hits, 1) if cutoff is None else cutoff
    return scored(found / places, table.n_relevant(min_grade))


def recall(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return the relevant items among the first k *hits*, divided by the relevant items judged.

    At document level this looks at the documents of the first k hits (kebab's definition), not at
    the first k documents. Source: trec_eval's ``recall``; kebab for documents.
    """
    if table.hit_rank is table.rank:
        found = table.relevant_in_first(cutoff or UNCUT, min_grade)
    else:
        rank, query = table.relevant_hits(min_grade)
        found = table.per_query_of(query[rank <= (cutoff or UNCUT)])
    judged = table.n_relevant(min_grade)
    return scored(found / np.maximum(judged, 1), judged)


def mrr(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return 1 / rank of the first relevant item, 0 without one or beyond the cutoff.

    Source: Voorhees 1999; trec_eval's ``recip_rank``.
    """
    rank, query = table.relevant(min_grade)
    values = np.zeros(table.n_queries)
    # Rows are by rank within a query; written last to first, the first relevant one remains.
    values[query[::-1]] = np.where(rank <= (cutoff or UNCUT), 1.0 / rank, 0.0)[::-1]
    return scored(values, table.n_relevant(min_grade))


def average_precision(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return the precision at each relevant item's rank, summed, over the relevant items judged.

    Source: Buckley & Voorhees 2000; trec_eval's ``map`` and ``map_cut``.
    """
    rank, query = table.relevant(min_grade)
    if cutoff is not None:
        rank, query = rank[rank <= cutoff], query[rank <= cutoff]
    seen = place_in_query(query, table.n_queries) + 1
    judged = table.n_relevant(min_grade)
    sums = table.total(query, seen / rank)
    return scored(sums / np.maximum(judged, 1), judged)


def r_precision(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return the precision at rank R, where R is how many relevant items were judged.

    Source: trec_eval's ``Rprec``.
    """
    rank, query = table.relevant(min_grade)
    judged = table.n_relevant(min_grade)
    found = table.per_query_of(query[rank <= judged[query]])
    return scored(found / np.maximum(judged, 1), judged)


def bpref(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return how often a relevant item precedes the judged non-relevant ones.

    With R relevant and N judged non-relevant (grade in [0, min_grade)), each returned relevant
    item gives 1 - min(n, R) / min(N, R), n being the non-relevant ones before it, and 1 where n is
    0; the sum is divided by R. Negative grades are outside the pool and are passed over.

    Source: Buckley & Voorhees 2004, in trec_eval's form.
    """
    _rank, query, grade = table.returned
    non_relevant = (grade >= 0) & (grade < min_grade)
    before_all: IntArray = non_relevant.cumsum() - non_relevant
    counts = table.per_query_of(query)
    starts = counts.cumsum() - counts
    first = np.append(before_all, 0)[starts[query]]
    judged = table.n_relevant(min_grade)
    pool = table.per_query((table.grade >= 0) & (table.grade < min_grade))
    rows = (grade >= min_grade).nonzero()[0]
    owner = query[rows]
    n_before = np.minimum((before_all - first)[rows], judged[owner])
    bound = np.minimum(pool, judged)[owner]
    sums = table.total(owner, 1.0 - n_before / np.maximum(bound, 1))
    return scored(sums / np.maximum(judged, 1), judged)


def rbp(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return (1 - p) · Σ p^(rank - 1) over the relevant items, with persistence p = 0.8.

    Below 1 even for an ideal ranking unless it is endless. Source: Moffat & Zobel 2008.
    """
    persistence = 0.8
    rank, query = table.relevant(min_grade)
    # Far down the weight underflows to 0, which it may.
    with np.errstate(under="ignore"):
        weight = (1.0 - persistence) * np.power(persistence, rank - 1.0)
    weight[rank > (cutoff or UNCUT)] = 0.0
    return scored(table.total(query, weight), table.n_relevant(min_grade))


def judged(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return the share of the first k hits that carry any judgment; of all that came back if fewer.

    NaN where nothing came back. ``min_grade`` plays no part: a judgment of any grade counts.
    """
    limit = cutoff or UNCUT
    rank, query, _grade = table.returned
    places = np.minimum(table.n_hits, limit)
    return scored(table.per_query_of(query[rank <= limit]) / np.maximum(places, 1), table.n_hits)


def top3_hit(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return 1 where an item of grade 3 or more is in the first 3, NaN for a query without one."""
    return hit(table, 3, 3.0)


def empty_result(table: RankTable, cutoff: int | None, min_grade: float) -> FloatArray:
    """Return 1 where nothing came back, else 0."""
    return np.asarray(table.n_hits == 0, dtype=np.float64)
