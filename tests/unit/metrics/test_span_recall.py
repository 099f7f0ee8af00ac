"""Recall of spans: hand-worked."""

from __future__ import annotations

import math

import pytest

from kebab_eval.metrics import evaluate_run
from kebab_eval.metrics.spans import span_recall
from kebab_eval.records import GoldenQuery, GoldenSet, Hit, Judgments, QueryResult, Span

SPANS = (
    Span("d", "one", chunk_ids=("c1", "c2")),  # windows that overlap both hold it
    Span("d", "two", chunk_ids=("c3",), grade=2.0),
    Span("e", "three", chunk_ids=()),
)
QUERY = GoldenQuery("q", "t", Judgments(chunk={"c1": 1.0, "c2": 1.0, "c3": 2.0}), spans=SPANS)


def result(*chunks: str, error: str | None = None) -> QueryResult:
    hits = tuple(Hit(n, chunk, "d", 1.0, "rrf") for n, chunk in enumerate(chunks, 1))
    return QueryResult("q", "t", "hybrid", hits, 1.0, error)


@pytest.mark.parametrize(
    ("found", "at_1", "at_3"),
    [
        (result("c1", "x", "c3"), 1 / 3, 2 / 3),
        (result("c1", "c2", "x"), 1 / 3, 1 / 3),  # the same span twice counts once
        (result("x"), 0.0, 0.0),
        (result("c1", "c3", error="timeout"), 0.0, 0.0),
    ],
)
def test_each_span_counts_once(found: QueryResult, at_1: float, at_3: float) -> None:
    values = span_recall([QUERY], [found], [1, 3])
    assert (values[1][0], values[3][0]) == pytest.approx((at_1, at_3))


def test_a_span_of_too_low_a_grade_does_not_count() -> None:
    assert span_recall([QUERY], [result("c3")], [1], min_relevance=2)[1][0] == 1.0


def test_a_query_without_resolved_spans_is_not_scored() -> None:
    bare = GoldenQuery("q", "t", spans=(Span("d", "x"),))
    assert math.isnan(span_recall([bare], [result("c1")], [1])[1][0])
    scores = evaluate_run(GoldenSet("g", "1", "x", (bare,)), [result("c1")])
    assert not any(name.startswith("span_recall") for name in scores.aggregate["metrics"])


def test_a_run_of_a_set_with_spans_has_it_at_each_cutoff() -> None:
    scores = evaluate_run(GoldenSet("g", "1", "x", (QUERY,)), [result("c3")], cutoffs=[1, 5])
    entry = scores.aggregate["metrics"]["span_recall_at_5"]
    assert (entry["value"], entry["n"]) == (pytest.approx(1 / 3), 1)
    assert scores.per_query[0]["span_recall_at_1"] == pytest.approx(1 / 3)
