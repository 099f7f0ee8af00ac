"""The wire form of what flows through an evaluation, and what a query expects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kebab_eval.records import EvalRun, GoldenQuery, GoldenSet, Hit, Judgments, QueryResult

HIT = Hit(
    1, "a.md#h:1a2b", "a.md", 0.0325, "rrf", "words", {"lexical_rank": 1, "lexical_score": 2.5}
)
RESULT = QueryResult("q-1", "text", "hybrid", (HIT,), 12.5, None, {"mrr_at_10_doc": 1.0}, None)


def test_a_query_result_is_the_contract_line() -> None:
    assert RESULT.to_json() == {
        "schema_version": "kebab_eval.query_result.v1",
        "query_id": "q-1",
        "query": "text",
        "mode": "hybrid",
        "hits": [
            {
                "rank": 1,
                "chunk_id": "a.md#h:1a2b",
                "doc_id": "a.md",
                "score": 0.0325,
                "score_kind": "rrf",
                "snippet": "words",
                "channels": {"lexical_rank": 1, "lexical_score": 2.5},
            }
        ],
        "answer": None,
        "latency_ms": 12.5,
        "error": None,
        "metrics": {"mrr_at_10_doc": 1.0},
        "miss_stage": None,
    }


def test_a_query_result_survives_its_json() -> None:
    assert QueryResult.from_json(json.loads(json.dumps(RESULT.to_json()))) == RESULT


def test_a_failed_query_keeps_its_cause_and_no_latency() -> None:
    failed = QueryResult("q", "t", "lexical", error="timeout")
    back = QueryResult.from_json(failed.to_json())
    assert (back.error, back.latency_ms, back.hits) == ("timeout", None, ())


def test_unknown_fields_are_ignored_and_optional_ones_may_lack() -> None:
    hit = {"rank": 1, "chunk_id": "c", "doc_id": "d", "score": 1, "score_kind": "rrf", "new": 1}
    line: dict[str, Any] = {"query_id": "q", "query": "t", "mode": "hybrid", "hits": [hit]}
    result = QueryResult.from_json({**line, "new": {}})
    assert result.hits == (Hit(1, "c", "d", 1.0, "rrf"),)
    assert result.metrics == {}


def test_a_line_of_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match=r"query_result\.v2"):
        QueryResult.from_json({**RESULT.to_json(), "schema_version": "kebab_eval.query_result.v2"})


@pytest.mark.parametrize("field", ["metrics", "channels"])
def test_a_metric_that_is_no_number_is_refused_while_it_is_read(field: str) -> None:
    line = RESULT.to_json()
    holder = line if field == "metrics" else line["hits"][0]
    holder[field] = {"x": "not a number"}
    with pytest.raises(ValueError, match="not a number"):
        QueryResult.from_json(line)


def test_a_golden_query_survives_its_json() -> None:
    query = GoldenQuery(
        "q",
        "text",
        Judgments({"c": 1.0}, {"d": 3.0}),
        language="ko",
        category="x",
        difficulty="hard",
        group="g",
        ocr_derived=True,
        failure_expected=False,
        must_contain=("60",),
        forbidden=("600",),
        tags={"a": "b"},
    )
    assert GoldenQuery.from_json(json.loads(json.dumps(query.to_json()))) == query


def test_the_place_is_no_part_of_what_a_query_means() -> None:
    assert GoldenQuery("q", "t", place="a:1:1").to_json() == GoldenQuery("q", "t").to_json()


def test_json_of_a_query_does_not_depend_on_the_order_of_its_judgments() -> None:
    one = GoldenQuery("q", "t", Judgments(doc={"a": 1.0, "b": 2.0}))
    two = GoldenQuery("q", "t", Judgments(doc={"b": 2.0, "a": 1.0}))
    assert json.dumps(one.to_json()) == json.dumps(two.to_json())


@pytest.mark.parametrize(
    ("query", "refuse"),
    [
        (GoldenQuery("q", "t"), True),
        (GoldenQuery("q", "t", Judgments(doc={"d": 1.0})), False),
        (GoldenQuery("q", "t", Judgments(chunk={"c": 1.0})), False),
        (GoldenQuery("q", "t", must_contain=("x",)), False),
        (GoldenQuery("q", "t", Judgments(doc={"d": 1.0}), failure_expected=True), True),
    ],
)
def test_a_query_should_be_refused_when_nothing_is_expected(
    query: GoldenQuery, refuse: bool
) -> None:
    assert query.should_refuse is refuse


def test_judgments_are_read_by_level() -> None:
    judgments = Judgments({"c": 1.0}, {"d": 2.0})
    assert judgments.at("chunk") == {"c": 1.0}
    assert judgments.at("doc") == {"d": 2.0}


def test_a_run_tells_its_id_and_name() -> None:
    run = EvalRun({"id": "i", "name": "n"}, {}, GoldenSet("g", "1", "", ()), (), {})
    assert (run.run_id, run.name) == ("i", "n")


def test_the_start_of_a_search_survives_and_older_records_have_none() -> None:
    result = QueryResult("q", "text", "hybrid", started_at="2026-12-01T13:00:46.123456Z")
    data = result.to_json()
    assert data["started_at"] == "2026-12-01T13:00:46.123456Z"
    assert QueryResult.from_json(data) == result
    del data["started_at"]
    assert QueryResult.from_json(data).started_at is None
    assert "started_at" not in QueryResult("q", "text", "hybrid").to_json()
