"""The scores of a Document Server set, as its version 0.1 gave them and as version 0.2 does.

Version 0.1 knows relevant documents, and those that belong among the first three; version 0.2 knows
grades from 0 to 3. Both are taken of one run, so that old numbers can be held against new ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kebab_eval.metrics import binary, graded
from kebab_eval.metrics.ranktable import FloatArray, RankTable, first_places, from_places
from kebab_eval.metrics.slices import slice_values
from kebab_eval.records import GoldenQuery, GoldenSet, QueryResult

VERSIONS = ("v0.1", "v0.2")
SLICES = ("category", "language", "ocr_derived")

#: The metrics of a run that version 0.2 reports; every run of such a set has them.
V02_METRICS = ("ndcg_at_10_doc", "recall_at_10_rel2_doc", "recall_at_10_rel3_doc")
FAILURE = "failure_correct"
LATENCIES = {"latency_p50_ms": 50, "latency_p95_ms": 95}

_CUT, _TOP = 10, 3

Score = tuple[FloatArray, Callable[[FloatArray], float]]
"""A value for each query, NaN where it is not scored, and what makes one number of them."""


def has_versions(golden: GoldenSet) -> bool:
    """Say whether a golden set is scored by version: whether it is the Document Server's."""
    return golden.format == "docserver" or any(query.v01 is not None for query in golden.queries)


def version_scores(
    queries: Sequence[GoldenQuery],
    results: Sequence[QueryResult],
    values: Mapping[str, FloatArray],
) -> dict[str, Any]:
    """Return version -> ``{"scores", "by_category", "by_language", "by_ocr_derived"}``.

    ``scores`` is name -> ``{"value", "n"}``, where n is how many queries were scored, and the value
    is None where none was. A slice holds the same for each of its values, and its own ``n``: how
    many queries it has.

    Args:
        queries: the queries that have a result.
        results: one for each of them, in the same order; one with an error returned nothing.
        values: the run's metrics, float64, (n_queries,) each; version 0.2 is read from them.
    """
    binary_scores: dict[str, Score] = {
        name: (column, _mean) for name, column in _v01(queries, results).items()
    }
    graded_scores: dict[str, Score] = {
        name: (values[name], _mean) for name in (*V02_METRICS, FAILURE)
    }
    times = _latencies(results)
    graded_scores |= {name: (times, _percentile(share)) for name, share in LATENCIES.items()}
    blocks = (_block(queries, binary_scores), _block(queries, graded_scores))
    return dict(zip(VERSIONS, blocks, strict=True))


def _v01(queries: Sequence[GoldenQuery], results: Sequence[QueryResult]) -> dict[str, FloatArray]:
    """Return the scores of version 0.1: every relevant document is worth the same."""
    judged = [query.v01 for query in queries]
    # A document of the top three is relevant, also where the file forgets to say so.
    relevant = _binary_table([one.relevant | one.top3 if one else () for one in judged], results)
    top3 = _binary_table([one.top3 if one else () for one in judged], results)
    return {
        "recall_at_10": binary.recall(relevant, _CUT, 1.0),
        "mrr_at_10": binary.mrr(relevant, _CUT, 1.0),
        "ndcg_at_10": graded.ndcg(relevant, _CUT, 1.0),
        "top3_hit": binary.hit(top3, _TOP, 1.0),
    }


def _binary_table(relevant: Sequence[Iterable[str]], results: Sequence[QueryResult]) -> RankTable:
    """Return the rank table of the documents in order of first appearance, all of grade 1."""
    documents = [
        first_places([] if result.error is not None else [hit.doc_id for hit in result.hits])
        for result in results
    ]
    ranks = [{name: rank for rank, name in enumerate(found, 1)} for found in documents]
    judgments = [dict.fromkeys(sorted(names), 1.0) for names in relevant]
    # The same ranks twice: recall counts the first ten documents here, whatever the hits were.
    return from_places(judgments, ranks, ranks, [len(found) for found in ranks])


def _latencies(results: Sequence[QueryResult]) -> FloatArray:
    times = [
        math.nan if result.error is not None or result.latency_ms is None else result.latency_ms
        for result in results
    ]
    return np.array(times, dtype=np.float64)


def _block(queries: Sequence[GoldenQuery], scores: Mapping[str, Score]) -> dict[str, Any]:
    values = [slice_values(query) for query in queries]
    block: dict[str, Any] = {"scores": _numbers(scores, range(len(queries)))}
    for field in SLICES:
        members: dict[str, list[int]] = {}
        for row, found in enumerate(values):
            if field in found:
                members.setdefault(found[field], []).append(row)
        block[f"by_{field}"] = {
            value: {"n": len(rows), **_numbers(scores, rows)}
            for value, rows in sorted(members.items())
        }
    return block


def _numbers(scores: Mapping[str, Score], rows: Sequence[int]) -> dict[str, dict[str, Any]]:
    numbers = {}
    for name, (column, summed_up) in scores.items():
        found = column[list(rows)]
        found = found[~np.isnan(found)]
        numbers[name] = {"value": summed_up(found) if len(found) else None, "n": len(found)}
    return numbers


def _mean(values: FloatArray) -> float:
    # fsum rounds once, so a mean does not depend on the order of the queries.
    return math.fsum(values.tolist()) / len(values)


def _percentile(share: int) -> Callable[[FloatArray], float]:
    return lambda values: float(np.percentile(values, share))
