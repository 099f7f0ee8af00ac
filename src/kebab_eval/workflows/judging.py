"""Judging what came back: for a run that ends, and for a record that was cut off before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kebab_eval import metrics
from kebab_eval.golden.anchors import resolve_from_hits
from kebab_eval.records import EvalRun, GoldenSet, QueryResult


def judge(
    golden: GoldenSet, answered: Sequence[QueryResult], settings: Mapping[str, Any]
) -> tuple[tuple[QueryResult, ...], dict[str, Any]]:
    """Return the results with their metrics, in the order of the golden set, and the aggregate.

    Args:
        answered: at most one result for each query, in any order.
        settings: the section ``metrics`` of a config.
    """
    scores = metrics.evaluate_run(
        golden,
        answered,
        cutoffs=settings["cutoffs"],
        seed=settings["seed"],
        metrics=[settings["primary"]],
    )
    by_id = {result.query_id: result for result in answered}
    results = tuple(
        replace(by_id[query.query_id], metrics=values)
        for query, values in zip(golden.queries, scores.per_query, strict=True)
        if query.query_id in by_id
    )
    return results, scores.aggregate


def settled(golden: GoldenSet, answered: Sequence[QueryResult]) -> GoldenSet:
    """Return the golden set with the spans that no listing resolved, found in the hits' texts."""
    if all(span.chunk_ids is not None for query in golden.queries for span in query.spans):
        return golden
    return resolve_from_hits(golden, answered)


def judged(run: EvalRun) -> EvalRun:
    """Return a run whose record was cut off before it was judged, judged from its answers."""
    golden = settled(run.golden, run.results)
    results, aggregate = judge(golden, run.results, run.config["metrics"])
    return replace(run, golden=golden, results=results, aggregate=aggregate)
