"""A run of two queries whose numbers are worked by hand, with any text in any place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kebab_eval.config import Config
from kebab_eval.metrics import evaluate_run
from kebab_eval.records import EvalRun, GoldenQuery, GoldenSet, Hit, Judgments, QueryResult

MakeRun = Callable[..., EvalRun]


def make_run(text: str = "words", **info: Any) -> EvalRun:
    """Return a run: query one finds its document at rank 2 of 2, query two failed.

    Args:
        text: stands in every place that a corpus, a golden set, a backend or a user fills.
        info: replaces keys of ``run.json``.
    """
    one = GoldenQuery(
        f"q1 {text}",
        f"{text} one",
        Judgments(doc={f"b {text}": 1.0}),
        language="ko",
        category=f"{text}",
        group=f"{text}",
        tags={"team": text},
    )
    two = GoldenQuery(f"q2 {text}", text, Judgments(doc={"b": 1.0}), language="en")
    hits = (
        Hit(1, f"a {text}#h", "a", 0.5, "rrf", text),
        Hit(2, f"b {text}#h", f"b {text}", 0.25, "rrf", f"{text} {text}"),
    )
    results = [
        QueryResult(one.query_id, one.query, "hybrid", hits, 2.0),
        QueryResult(two.query_id, two.query, "hybrid", error=f"failed: {text}"),
    ]
    golden = GoldenSet(f"set {text}", "1", "0123456789abcdef", (one, two))
    scores = evaluate_run(golden, results)
    config = Config.model_validate_json(
        '{"name":"n","golden":{"path":"g"},"backend":{"corpus":"c"}}'
    )
    judged = tuple(
        QueryResult(
            result.query_id,
            result.query,
            result.mode,
            result.hits,
            result.latency_ms,
            result.error,
            values,
        )
        for result, values in zip(results, scores.per_query, strict=True)
    )
    about = {
        "id": "20260101-000000-n-abcd",
        "name": f"run {text}",
        "created_at": "2026-01-01T00:00:00.000Z",
        "status": "FINISHED",
        "golden": {
            "name": golden.name,
            "version": "1",
            "digest": golden.digest,
            "path": text,
            "queries": 2,
            "min_relevance": 1,
        },
        "lever": {"key": "embedding.provider", "value": text},
        "system": {"chunker_version": text, "rrf_k": 60},
        "git": {"commit": "c" * 40, "branch": text, "dirty": True},
        "versions": {"kebab_eval": "0"},
        "command": f"kebab-eval track {text}",
        "tags": {"a": text},
        **info,
    }
    snapshot = {**config.model_dump(mode="json"), "tags": {"t": text}}
    return EvalRun(about, snapshot, golden, judged, scores.aggregate)


@pytest.fixture
def run_with() -> MakeRun:
    return make_run
