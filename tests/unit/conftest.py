"""Runs for what takes two of them: comparisons and what stands on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kebab_eval.config import Config
from kebab_eval.metrics import evaluate_run
from kebab_eval.records import EvalRun, GoldenQuery, GoldenSet, Hit, QueryResult

JudgedRun = Callable[..., EvalRun]


def make_judged_run(
    name: str,
    queries: Sequence[GoldenQuery],
    rankings: Mapping[str, Sequence[str] | None],
    *,
    config: Mapping[str, Any] | None = None,
    system: Mapping[str, Any] | None = None,
    digest: str = "d1",
    min_relevance: float = 1,
    text: str = "",
    **info: Any,
) -> EvalRun:
    """Return a run as a record would hold it.

    Args:
        rankings: query id -> the chunk ids that came back, ``chunk#…`` of document ``chunk``; None
            for a query that failed. A query that is absent was not asked.
        config: sections that replace those of the default config.
        system: replaces keys of the system's snapshot.
    """
    golden = GoldenSet("set", "1", digest, tuple(queries), min_relevance)
    results = [_result(query, rankings[query.query_id], text) for query in queries
               if query.query_id in rankings]  # fmt: skip
    scores = evaluate_run(golden, results)
    values = dict(zip((query.query_id for query in queries), scores.per_query, strict=True))
    plain = Config.model_validate_json(
        '{"name":"n","golden":{"path":"g"},"backend":{"corpus":"c"}}'
    ).model_dump(mode="json")
    about = {
        "id": f"20260101-000000-{name}-abcd",
        "name": name,
        "created_at": "2026-01-01T00:00:00.000Z",
        "status": "FINISHED",
        "golden": {"name": "set", "version": "1", "digest": digest},
        "system": {"chunker_version": "v1", "corpus_fingerprint": "c1", **(system or {})},
        **info,
    }
    judged = tuple(replace(result, metrics=values[result.query_id]) for result in results)
    return EvalRun(about, {**plain, **(config or {})}, golden, judged, scores.aggregate)


def _result(query: GoldenQuery, ranking: Sequence[str] | None, text: str) -> QueryResult:
    if ranking is None:
        return QueryResult(query.query_id, query.query, "hybrid", error=f"timeout{text}")
    hits = tuple(
        Hit(rank, chunk, chunk.rpartition("#")[0], 1 / rank, "rrf", text)
        for rank, chunk in enumerate(ranking, 1)
    )
    return QueryResult(query.query_id, query.query, "hybrid", hits, float(len(ranking)))


@pytest.fixture
def judged_run() -> JudgedRun:
    return make_judged_run
