"""A run's metrics: each query's values, their means with n and interval, and the slices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kebab_eval.errors import MetricError
from kebab_eval.metrics.answers import ANSWER_METRICS, answer_scores, answer_summary
from kebab_eval.metrics.ranktable import FloatArray, RankTable, first_places, from_places
from kebab_eval.metrics.registry import Metric, default_registry
from kebab_eval.metrics.slices import slice_means
from kebab_eval.metrics.spans import span_recall
from kebab_eval.metrics.versions import V02_METRICS, has_versions, version_scores
from kebab_eval.records import LEVELS, GoldenQuery, GoldenSet, Level, QueryResult
from kebab_eval.stats import mean_intervals

AGGREGATE_SCHEMA = "kebab_eval.aggregate.v1"
DEFAULT_CUTOFFS = (1, 3, 5, 10)

#: Values of a query that do not follow from its ranking alone.
EMPTY, FAILURE, SPANS = "empty_result", "failure_correct", "span_recall"


@dataclass(frozen=True)
class RunScores:
    """What a run scored.

    Args:
        per_query: for each query of the golden set, in its order, metric name -> value; an
            undefined value has no key, and a query without a result has none at all.
        aggregate: ``aggregate.json`` (``kebab_eval.aggregate.v1``), plain Python values, no NaN.
    """

    per_query: tuple[dict[str, float], ...]
    aggregate: dict[str, Any]


def default_metrics(golden: GoldenSet, cutoffs: Sequence[int] = DEFAULT_CUTOFFS) -> list[Metric]:
    """Return the metrics that a run is scored with, chunk level first.

    At both levels hit, precision, recall and nDCG at each cutoff (nDCG at 5 and 10 always), MRR@10,
    MAP and judged@10; nDCG with linear gain where the set has fractional gains; where a query has a
    grade of 2 or 3, recall from that grade on, and top3_hit.
    """
    registry = default_registry()
    ndcg = "ndcg_linear" if golden.linear_gain else "ndcg"
    metrics: list[Metric] = []
    for level in LEVELS:
        grades = {grade for query in golden.queries for grade in query.judgments.at(level).values()}
        top = max(grades, default=0)
        for family in ("hit", "precision", "recall"):
            metrics += [registry.make(family, cutoff=k, level=level) for k in cutoffs]
        for k in sorted({*cutoffs, 5, 10}):
            metrics.append(registry.make(ndcg, cutoff=k, level=level))
        metrics.append(registry.make("mrr", cutoff=10, level=level))
        metrics.append(registry.make("map", level=level))
        metrics.append(registry.make("judged", cutoff=10, level=level))
        for grade in (2, 3):
            if top >= grade:
                metrics += [
                    registry.make("recall", cutoff=k, min_grade=grade, level=level) for k in cutoffs
                ]
        if top >= 3:
            metrics.append(registry.make("top3_hit", level=level))
    return metrics


def primary_for(golden: GoldenSet, primary: str) -> str:
    """Return the name of the metric that a run on this set is judged by first.

    It is the one that the config names, but for nDCG of a set with fractional gains: that is
    ndcg_linear, with the same cutoff and level. A gain of 2^grade - 1 is for grades on a scale; 0.5
    is a gain already.

    Raises:
        MetricError: no metric has that name.
    """
    if not golden.linear_gain:
        return primary
    registry = default_registry()
    metric = registry.parse(primary)
    if metric.family.name != "ndcg":
        return primary
    return registry.make("ndcg_linear", cutoff=metric.cutoff, level=metric.level).name


def evaluate_run(
    golden: GoldenSet,
    results: Sequence[QueryResult],
    *,
    cutoffs: Sequence[int] = DEFAULT_CUTOFFS,
    seed: int = 0,
    metrics: Sequence[str] = (),
) -> RunScores:
    """Score a run against its golden set.

    Only the queries that have a result are scored, so that a partial run can be; ``total_queries``
    is their number. A result with an error counts in ``failed_queries`` and scores 0 wherever its
    query has judgments. ``hit_at_k`` and ``mrr`` are at chunk level, as kebab has them, when the
    golden set judges any chunk, and otherwise at document level. A Document Server set has
    ``versions`` besides (:func:`kebab_eval.metrics.versions.version_scores`).

    Args:
        golden: the golden set.
        results: at most one for each golden query, in any order.
        cutoffs: the k of hit, precision, recall and nDCG.
        seed: of the bootstrap.
        metrics: names of further metrics, with their level, to compute beside the default ones.

    Returns:
        The values of each query and the aggregate.

    Raises:
        MetricError: a cutoff below 1, an unknown metric, a result of a query that the golden set
            does not hold, or two results of one query.
    """
    cutoffs = sorted(set(cutoffs))
    chosen = {metric.name: metric for metric in default_metrics(golden, cutoffs)}
    further = _further((*metrics, *V02_METRICS) if has_versions(golden) else metrics)
    chosen |= {metric.name: metric for metric in further if metric.level is not None}
    span_cuts = {metric.cutoff for metric in further if metric.family.name == SPANS}
    places = _places(golden, results)
    queries = [golden.queries[place] for place in places]
    answered = [results[places[place]] for place in places]

    tables = {level: _rank_table(golden, queries, answered, level) for level in LEVELS}
    values = {
        metric.name: metric.compute(tables[metric.level])
        for metric in chosen.values()
        if metric.level is not None
    }
    if any(span.chunk_ids is not None for query in queries for span in query.spans):
        span_cuts |= {*cutoffs}
    asked = sorted(k for k in span_cuts if k is not None)
    spans = span_recall(queries, answered, asked, golden.min_relevance)
    values |= {f"{SPANS}_at_{k}": column for k, column in spans.items()}
    values[EMPTY] = np.array([_empty(result) for result in answered], dtype=np.float64)
    values[FAILURE] = np.array(
        [_failure(*pair) for pair in zip(queries, answered, strict=True)], dtype=np.float64
    )
    answers = answer_summary(answered)
    # A run without answers has them only where they are asked for: null, over no query.
    named = {metric.name for metric in further}
    wanted = [name for name in ANSWER_METRICS if answers is not None or name in named]
    if wanted:
        rows = [answer_scores(*pair) for pair in zip(queries, answered, strict=True)]
        for name in wanted:
            values[name] = np.array([row.get(name, math.nan) for row in rows], dtype=np.float64)
    scored = _defined(values, len(queries))
    per_query: list[dict[str, float]] = [{} for _ in golden.queries]
    for place, row in zip(places, scored, strict=True):
        per_query[place] = row
    summary = _summary(values, seed)
    aggregate: dict[str, Any] = {
        "schema_version": AGGREGATE_SCHEMA,
        **_legacy(golden, summary, cutoffs),
        "total_queries": len(results),
        "failed_queries": sum(result.error is not None for result in answered),
        "duplicate_hits": sum(_duplicates(result) for result in answered),
        "metrics": summary,
        "slices": slice_means(queries, scored, list(values)),
        "latency_ms": _latency(answered),
        "failure_precision": {
            "correct": sum(row.get(FAILURE) == 1.0 for row in scored),
            "total": summary[FAILURE]["n"],
        },
    }
    if answers is not None:
        aggregate["answers"] = answers
    if has_versions(golden):  # the aggregate of any other set has no such key
        aggregate["versions"] = version_scores(queries, answered, values)
    return RunScores(tuple(per_query), aggregate)


def _further(names: Sequence[str]) -> tuple[Metric, ...]:
    metrics = default_registry().parse_all(names)
    for metric in metrics:
        computed = metric.family.name in (EMPTY, FAILURE, SPANS, *ANSWER_METRICS)
        if metric.level is None and not computed:
            kind = "has no ranking to follow from" if metric.family.kernel is None else ""
            wanted = f"say {metric.name}_chunk or {metric.name}_doc"
            raise MetricError(f"{metric.name!r} {kind}" if kind else f"{metric.name!r}: {wanted}")
    return metrics


def _places(golden: GoldenSet, results: Sequence[QueryResult]) -> dict[int, int]:
    """Return place in the golden set -> place in the results, in golden order."""
    index = {query.query_id: place for place, query in enumerate(golden.queries)}
    found: dict[int, int] = {}
    for position, result in enumerate(results):
        place = index.get(result.query_id)
        if place is None:
            raise MetricError(
                f"a result is for query {result.query_id!r}, which golden set {golden.name!r} does "
                "not hold; score a run against the golden set that it was run on"
            )
        if place in found:
            raise MetricError(f"two results are for query {result.query_id!r}")
        found[place] = position
    return dict(sorted(found.items()))


def _rank_table(
    golden: GoldenSet,
    queries: Sequence[GoldenQuery],
    results: Sequence[QueryResult],
    level: Level,
) -> RankTable:
    judgments: list[Mapping[str, float]] = [query.judgments.at(level) for query in queries]
    hits = [() if result.error is not None else result.hits for result in results]
    # The scale is the whole golden set's, so that a partial run has the same ERR.
    scale = max(
        (grade for query in golden.queries for grade in query.judgments.at(level).values()),
        default=0,
    )
    if level == "chunk":
        chunks = [first_places([hit.chunk_id for hit in found]) for found in hits]
        counts = [len(found) for found in hits]
        return from_places(
            judgments,
            chunks,
            chunks,
            counts,
            min_relevance=golden.min_relevance,
            max_grade=scale,
        )
    documents = [first_places([hit.doc_id for hit in found]) for found in hits]
    # First places are in the order of first appearance: counting them re-ranks the documents.
    ranks = [{name: rank for rank, name in enumerate(found, 1)} for found in documents]
    return from_places(
        judgments,
        ranks,
        documents,
        [len(found) for found in documents],
        min_relevance=golden.min_relevance,
        max_grade=scale,
    )


def _empty(result: QueryResult) -> float:
    return math.nan if result.error is not None else float(not result.hits)


def _failure(query: GoldenQuery, result: QueryResult) -> float:
    if not query.failure_expected:
        return math.nan
    # An outage returns nothing too, and must not pass for a right refusal.
    return float(result.error is None and not result.hits)


def _defined(values: Mapping[str, FloatArray], n_queries: int) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = [{} for _ in range(n_queries)]
    for name, column in values.items():
        for row, value in zip(rows, column.tolist(), strict=True):
            if not math.isnan(value):
                row[name] = value
    return rows


def _summary(values: Mapping[str, FloatArray], seed: int) -> dict[str, dict[str, Any]]:
    """Return metric -> ``{value, n, ci95}``; metrics scored on the same number share resamples.

    ``ci95`` is None where fewer than two queries were scored.
    """
    columns = {name: column[~np.isnan(column)] for name, column in values.items()}
    by_n: dict[int, list[str]] = {}
    for name, column in columns.items():
        by_n.setdefault(len(column), []).append(name)
    intervals: dict[str, list[float]] = {}
    for n, names in by_n.items():
        if n >= 2:
            bounds = mean_intervals(np.column_stack([columns[name] for name in names]), seed=seed)
            intervals |= dict(zip(names, bounds.tolist(), strict=True))
    return {
        name: {
            "value": math.fsum(column.tolist()) / len(column) if len(column) else None,
            "n": len(column),
            "ci95": intervals.get(name),
        }
        for name, column in columns.items()
    }


def _legacy(
    golden: GoldenSet, summary: Mapping[str, Mapping[str, Any]], cutoffs: Sequence[int]
) -> dict[str, Any]:
    """Return the names that kebab's users read already."""
    level = "chunk" if any(query.judgments.chunk for query in golden.queries) else "doc"

    def by_cutoff(family: str, at: str) -> dict[str, float | None]:
        return {str(k): summary[f"{family}_at_{k}_{at}"]["value"] for k in cutoffs}

    return {
        "hit_at_k": by_cutoff("hit", level),
        "recall_at_k_doc": by_cutoff("recall", "doc"),
        "precision_at_k_chunk": by_cutoff("precision", "chunk"),
        "mrr": summary[f"mrr_at_10_{level}"]["value"],
        # Null without answers.
        "citation_coverage": _value(summary, "citation_coverage"),
        "groundedness": _value(summary, "groundedness"),
        "empty_result_rate": summary[EMPTY]["value"],
        "refusal_correctness": _value(summary, "refusal_correctness"),
    }


def _value(summary: Mapping[str, Mapping[str, Any]], name: str) -> Any:
    return summary[name]["value"] if name in summary else None


def _duplicates(result: QueryResult) -> int:
    names = [hit.chunk_id for hit in result.hits if hit.chunk_id] if result.error is None else []
    return len(names) - len(first_places(names))


def _latency(results: Sequence[QueryResult]) -> dict[str, float | None]:
    """Return the p50, p95, p99 and maximum of the answered queries, linearly interpolated."""
    times = [r.latency_ms for r in results if r.error is None and r.latency_ms is not None]
    if not times:
        return {"p50": None, "p95": None, "p99": None, "max": None}
    p50, p95, p99 = np.percentile(times, (50, 95, 99)).tolist()
    return {"p50": p50, "p95": p95, "p99": p99, "max": float(max(times))}
