"""Judging what came back: for a run that ends, and for a record that was cut off before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kebab_eval import metrics
from kebab_eval.diagnosis import STAGES, miss_stage
from kebab_eval.golden.anchors import resolve_from_hits
from kebab_eval.records import EvalRun, GoldenSet, QueryResult


def judge(
    golden: GoldenSet, answered: Sequence[QueryResult], config: Mapping[str, Any]
) -> tuple[tuple[QueryResult, ...], dict[str, Any]]:
    """Return the results with their metrics and what lost them, in golden order, and the aggregate.

    Args:
        answered: at most one result for each query, in any order.
        config: the recorded config.
    """
    settings = config["metrics"]
    scores = metrics.evaluate_run(
        golden,
        answered,
        cutoffs=settings["cutoffs"],
        seed=settings["seed"],
        metrics=[settings["primary"]],
    )
    by_id = {result.query_id: result for result in answered}
    results = tuple(
        replace(
            by_id[query.query_id],
            metrics=values,
            miss_stage=miss_stage(query, by_id[query.query_id], config, golden.min_relevance),
        )
        for query, values in zip(golden.queries, scores.per_query, strict=True)
        if query.query_id in by_id
    )
    missed = Counter(result.miss_stage for result in results if result.miss_stage is not None)
    stages = {stage: missed[stage] for stage in STAGES if missed[stage]}
    return results, {**scores.aggregate, "miss_stages": stages}


def settled(golden: GoldenSet, answered: Sequence[QueryResult]) -> GoldenSet:
    """Return the golden set with the spans that no listing resolved, found in the hits' texts."""
    if all(span.chunk_ids is not None for query in golden.queries for span in query.spans):
        return golden
    return resolve_from_hits(golden, answered)


def judged(run: EvalRun) -> EvalRun:
    """Return a run whose record was cut off before it was judged, judged from its answers."""
    golden = settled(run.golden, run.results)
    results, aggregate = judge(golden, run.results, run.config)
    return replace(run, golden=golden, results=results, aggregate=aggregate)
