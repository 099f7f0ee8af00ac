"""A query result as MLflow's own entities; what the page shows of it, worked by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kebab_eval.records import (
    Answer,
    EvalRun,
    GoldenQuery,
    Hit,
    Judgments,
    QueryResult,
)
from kebab_eval.tracking.traces import TraceMaker, expected_ids, feedback_names, request_id

JudgedRun = Callable[..., EvalRun]

# MLflow and what it imports warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")

QUERY = GoldenQuery("q-1", "왜?", Judgments(chunk={"a#1": 2.0}, doc={"a": 1.0, "b": 0.0}))
STARTED = "2026-12-01T13:00:46.123456Z"
STARTED_US = 1796130046123456
RESULT = QueryResult(
    "q-1",
    "왜?",
    "hybrid",
    (
        Hit(1, "a#1", "a", 0.5, "rrf", "그래서", {"lexical_rank": 3}),
        Hit(2, "c#1", "c", 0.25, "rrf", "x"),
    ),
    20.0,
    metrics={
        "ndcg_at_10_doc": 1.0,
        "hit_at_10_doc": 1.0,
        "map_doc": 0.5,
        "mrr_at_10_doc": math.nan,
    },
    timings_ms={"lexical": 5.0, "vector": 12.0, "total": 19.0},
    started_at=STARTED,
)


def maker(judged_run: JudgedRun, query: GoldenQuery = QUERY, **config: Any) -> TraceMaker:
    run = judged_run("name", [query], {query.query_id: []}, config=config)
    return TraceMaker(run, "run1", "7")


def spans(made: Any) -> dict[str, Any]:
    return {span.name: span for span in made.spans}


def ms(span: Any) -> tuple[int, int]:
    start = STARTED_US * 1000
    return (span.start_time_ns - start) // 10**6, (span.end_time_ns - start) // 10**6


def test_the_input_names_the_query_and_nothing_else(judged_run: JudgedRun) -> None:
    made = maker(judged_run).make(RESULT)
    asked = {"query_id": "q-1", "query": "왜?"}
    assert json.loads(made.info.trace_metadata["mlflow.traceInputs"]) == asked
    assert json.loads(made.info.request_preview) == asked
    assert spans(made)["query"].inputs == asked
    moved = maker(judged_run, search={"mode": "lexical", "k": 3}).make(
        replace(RESULT, mode="lexical")
    )
    inputs = [one.info.trace_metadata["mlflow.traceInputs"] for one in (made, moved)]
    assert inputs[0] == inputs[1]
    assert made.info.client_request_id == "q-1"
    assert made.info.trace_metadata["mlflow.sourceRun"] == "run1"


def test_spans_have_the_real_times_and_stages_stand_below_the_search(judged_run: JudgedRun) -> None:
    made = maker(judged_run).make(replace(RESULT, answer=Answer("그렇다", latency_ms=30.0)))
    found = spans(made)
    assert {name: (span.span_type, *ms(span)) for name, span in found.items()} == {
        "query": ("CHAIN", 0, 50),
        "search": ("RETRIEVER", 0, 20),
        "lexical": ("TASK", 0, 5),
        "vector": ("TASK", 5, 17),
        "answer": ("LLM", 20, 50),
    }
    assert found["query"].parent_id is None
    assert found["search"].parent_id == found["answer"].parent_id == found["query"].span_id
    assert found["vector"].parent_id == found["search"].span_id
    assert (made.info.request_time, made.info.execution_duration) == (STARTED_US // 1000, 50)
    assert found["answer"].outputs["answer"] == "그렇다"


def test_hits_are_documents_with_their_grades(judged_run: JudgedRun) -> None:
    first, second = spans(maker(judged_run).make(RESULT))["search"].outputs
    assert first == {
        "page_content": "그래서",
        "metadata": {
            "doc_uri": "a",
            "chunk_id": "a#1",
            "rank": 1,
            "score": 0.5,
            "score_kind": "rrf",
            "grade_chunk": 2.0,
            "grade_doc": 1.0,
            "lexical_rank": 3,
        },
    }
    assert second["metadata"]["grade_doc"] == "unjudged"


def test_metrics_are_feedback_and_what_is_undefined_is_not_logged(judged_run: JudgedRun) -> None:
    shown = {one.name: one for one in maker(judged_run).make(RESULT).info.assessments}
    assert {name: one.feedback.value for name, one in shown.items() if one.feedback} == {
        "ndcg_at_10_doc": 1.0,
        "hit_at_10_doc": 1.0,
        "miss_stage": "found",
    }
    assert shown["expected_ids"].expectation.value == {"chunk": ["a#1"], "doc": ["a"]}
    every = maker(judged_run, tracking={"feedback": "all"}).make(RESULT).info.assessments
    assert "map_doc" in {one.name for one in every}


def test_a_miss_has_its_stage_and_a_query_without_an_answer_has_none(judged_run: JudgedRun) -> None:
    lost = maker(judged_run).make(replace(RESULT, miss_stage="fused out")).info.assessments
    assert [one.feedback.value for one in lost if one.name == "miss_stage"] == ["fused out"]
    nothing = GoldenQuery("q-1", "왜?", failure_expected=True)
    made = maker(judged_run, nothing).make(replace(RESULT, metrics={}))
    assert [one.name for one in made.info.assessments] == ["expected_ids"]


def test_a_failed_search_is_an_error_without_documents(judged_run: JudgedRun) -> None:
    failed = QueryResult("q-1", "왜?", "hybrid", error="timeout", started_at=STARTED)
    made = maker(judged_run).make(failed)
    assert made.info.state.value == "ERROR"
    assert spans(made)["search"].status.description == "timeout"
    assert spans(made)["search"].outputs == []
    assert made.info.execution_duration == 0


def test_ids_follow_from_run_and_query(judged_run: JudgedRun) -> None:
    one, again = (maker(judged_run).make(RESULT) for _ in range(2))
    other = TraceMaker(maker(judged_run).run, "run2", "7").make(RESULT)
    assert one.info.trace_id == again.info.trace_id != other.info.trace_id
    assert [span.span_id for span in one.spans] == [span.span_id for span in again.spans]
    ids = [{a.assessment_id for a in made.info.assessments} for made in (one, again, other)]
    assert ids[0] == ids[1]
    assert not ids[0] & ids[2]
    assert len({span.span_id for span in one.spans}) == len(one.spans)


def test_the_digest_is_of_the_content_also_after_a_round_trip(judged_run: JudgedRun) -> None:
    made = maker(judged_run)
    whole = replace(RESULT, latency_ms=20, hits=(replace(RESULT.hits[0], score=1),))  # ints
    read = QueryResult.from_json(json.loads(json.dumps(whole.to_json())))
    assert made.digest(whole) == made.digest(read)
    assert made.digest(whole) != made.digest(replace(whole, error="timeout"))


def test_a_record_without_start_times_begins_with_its_run(judged_run: JudgedRun) -> None:
    info = maker(judged_run).make(replace(RESULT, started_at=None)).info
    assert info.request_time == 1767225600000  # 2026-01-01, when judged_run's run was made


@pytest.mark.parametrize("text", ["<script>", "\0", "\ud800", "\r\n\u2028", "가" * 5000, '"\\'])
def test_any_text_becomes_a_trace_that_a_store_takes(judged_run: JudgedRun, text: str) -> None:
    query = GoldenQuery(text, text, Judgments(doc={text: 1.0}))
    hit = Hit(1, text, text, 1.0, text, text)
    answer = Answer(text, error=text)
    result = QueryResult(text, text, "hybrid", (hit,), 1.0, timings_ms={text: 1.0}, answer=answer)
    made = maker(judged_run, query).make(result)
    assert len(made.info.client_request_id) <= 50
    assert len(made.info.request_preview) <= 1000
    for part in (
        made.info.client_request_id,
        made.info.request_preview,
        *made.info.trace_metadata.values(),
    ):
        part.encode()
        assert "\0" not in part
    for span in made.spans:
        json.dumps(span.to_dict(), ensure_ascii=False).encode()
    made.info.to_proto()


def test_a_long_query_id_keeps_its_difference() -> None:
    one, other = request_id("x" * 80 + "a"), request_id("x" * 80 + "b")
    assert len(one) == len(other) == 50
    assert one != other
    assert request_id("short") == "short"


def test_the_shown_metrics_are_the_primary_one_and_its_companions() -> None:
    assert feedback_names("recall_at_5_chunk", [1, 5, 10])[:6] == (
        "recall_at_5_chunk",
        "hit_at_5_chunk",
        "precision_at_5_chunk",
        "ndcg_at_5_chunk",
        "mrr_at_5_chunk",
        "mrr_at_10_chunk",
    )
    assert "ndcg_at_20_doc" in feedback_names("map_doc", [5, 20])
    assert feedback_names("no such metric", None)[0] == "no such metric"


def test_what_is_expected_begins_with_the_highest_grade() -> None:
    query = GoldenQuery("q", "x", Judgments(doc={"b": 1.0, "a": 1.0, "z": 3.0, "n": 0.5}))
    assert expected_ids(query, 1) == {"doc": ["z", "a", "b"]}
    assert expected_ids(GoldenQuery("q", "x"), 1) == {}
