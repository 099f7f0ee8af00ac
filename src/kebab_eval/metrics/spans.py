"""Recall of spans: how many of the expected passages stand in the first k hits.

Chunkers cut different numbers of relevant chunks from the same passages, so a share of chunks
compares chunkers with each other only roughly. The passages are the same for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kebab_eval.metrics.ranktable import FloatArray, normalise_id
from kebab_eval.records import GoldenQuery, QueryResult


def span_recall(
    queries: Sequence[GoldenQuery],
    results: Sequence[QueryResult],
    cutoffs: Sequence[int],
    min_relevance: float = 1,
) -> dict[int, FloatArray]:
    """Return cutoff -> the share of each query's spans that a chunk of the first k hits holds.

    Args:
        queries: with their spans resolved to chunk ids; the spans of too low a grade do not count.
        results: one for each query, in the same order; a failed one finds nothing.

    Returns:
        float64, (n_queries,), NaN where a query has no resolved span.
    """
    found = {k: np.full(len(queries), math.nan) for k in cutoffs}
    for place, (query, result) in enumerate(zip(queries, results, strict=True)):
        spans = [
            {normalise_id(chunk_id) for chunk_id in span.chunk_ids}
            for span in query.spans
            if span.chunk_ids is not None and span.grade >= min_relevance
        ]
        if not spans:
            continue
        hits = [] if result.error is not None else [normalise_id(h.chunk_id) for h in result.hits]
        for k in cutoffs:
            first = set(hits[:k])
            found[k][place] = sum(not first.isdisjoint(span) for span in spans) / len(spans)
    return found
