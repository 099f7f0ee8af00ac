"""What a run makes of its answers: values by hand, and what a run without them must not say."""

from __future__ import annotations

import pytest

from kebab_eval.metrics import evaluate_run
from kebab_eval.records import Answer, Citation, GoldenQuery, GoldenSet, Hit, Judgments, QueryResult
from kebab_eval.tracking.keys import run_metrics

HITS = (Hit(1, "a#1", "a", 0.9, "rrf"), Hit(2, "b#1", "b", 0.5, "rrf"))
RETRIEVED, ELSEWHERE = Citation("a#1", "a", "[1]"), Citation("z#1", "z", "[2]")
QUERIES = (
    GoldenQuery("q1", "t", Judgments(doc={"a": 1.0}), must_contain=("60",), language="en"),
    GoldenQuery("q2", "t", Judgments(doc={"a": 1.0}), forbidden=("70",), language="en"),
    GoldenQuery("q3", "t", Judgments(doc={"a": 1.0}), language="ko"),
    GoldenQuery("n1", "t", failure_expected=True),
    GoldenQuery("n2", "t"),  # nothing at all is expected: no answer is right
    GoldenQuery("q4", "t", must_contain=("60",)),  # not yet judged: a template, no refusal
)
GOLDEN = GoldenSet("g", "1", "x", QUERIES)
ANSWERS = {
    "q1": Answer("60 bar", (RETRIEVED, ELSEWHERE), grounded=True, latency_ms=10.0,
                 tokens={"prompt": 100, "completion": 10}),
    "q2": Answer("not 70", grounded=True, latency_ms=20.0, tokens={"prompt": 50}),
    "q3": Answer("sure", (RETRIEVED,), grounded=False, latency_ms=30.0),
    "n1": Answer(refused=True, refusal_reason="score_gate", grounded=False, latency_ms=40.0),
    "n2": Answer("made up", (RETRIEVED,), grounded=True, latency_ms=50.0),
    "q4": Answer(error="HTTP 500"),
}  # fmt: skip


def results(answers: dict[str, Answer] | None) -> list[QueryResult]:
    return [
        QueryResult(q.query_id, "t", "x", HITS, 1.0, answer=answers and answers[q.query_id])
        for q in QUERIES
    ]


def test_the_metrics_of_answers_by_hand() -> None:
    aggregate = evaluate_run(GOLDEN, results(ANSWERS)).aggregate
    metrics = aggregate["metrics"]
    # q1 holds what it must: 1; q2 holds what it must not: 0; the others have no list, or failed.
    assert (metrics["groundedness"]["value"], metrics["groundedness"]["n"]) == (1 / 2, 2)
    # q1: 1 of 2; q2, grounded without any: 0; n2: 1 of 1; q3 is not grounded, n1 refused.
    coverage = metrics["citation_coverage"]
    assert (coverage["value"], coverage["n"]) == ((1 / 2 + 0 + 1) / 3, 3)
    # n1 refused, n2 did not; q4 waits for its judgments.
    assert (metrics["refusal_correctness"]["value"], metrics["refusal_correctness"]["n"]) == (
        1 / 2,
        2,
    )
    low, high = coverage["ci95"]
    assert 0 <= low <= coverage["value"] <= high <= 1
    for name in ("groundedness", "citation_coverage", "refusal_correctness"):
        assert aggregate[name] == metrics[name]["value"]


def test_the_count_of_answers_by_hand() -> None:
    assert evaluate_run(GOLDEN, results(ANSWERS)).aggregate["answers"] == {
        "answered": 4,
        "refused": 1,
        "failed": 1,
        # of 10, 20, 30, 40, 50; the 95th is 4/5 of the way from the fourth to the fifth
        "latency_ms": {"p50": 30.0, "p95": pytest.approx(48.0)},
        "tokens": {"completion": 10, "prompt": 150},
    }


def test_answers_are_cut_into_slices_too() -> None:
    languages = evaluate_run(GOLDEN, results(ANSWERS)).aggregate["slices"]["language"]
    assert languages["en"]["groundedness"] == 1 / 2
    assert languages["ko"]["groundedness"] is None


def test_a_failed_answer_changes_no_metric_of_the_search() -> None:
    failed = evaluate_run(GOLDEN, results(dict.fromkeys(ANSWERS, Answer(error="down")))).aggregate
    without = evaluate_run(GOLDEN, results(None)).aggregate
    assert failed["answers"]["failed"] == 6
    assert failed["failed_queries"] == 0
    assert failed["groundedness"] is failed["refusal_correctness"] is None
    for name, entry in without["metrics"].items():
        assert failed["metrics"][name] == entry


def test_a_run_without_answers_says_nothing_of_them() -> None:
    aggregate = evaluate_run(GOLDEN, results(None)).aggregate
    assert "answers" not in aggregate
    assert "groundedness" not in aggregate["metrics"]
    assert not [key for key in run_metrics(aggregate, "ndcg_at_10_doc") if "answer" in key]


def test_a_primary_metric_that_nothing_has_is_null_over_no_query() -> None:
    aggregate = evaluate_run(GOLDEN, results(None), metrics=["groundedness"]).aggregate
    assert aggregate["metrics"]["groundedness"] == {"value": None, "n": 0, "ci95": None}
    assert aggregate["slices"]["language"]["en"]["groundedness"] is None


@pytest.mark.parametrize(
    "citation",
    [Citation(marker="[9]"), Citation("z#1", "a"), Citation("", "z")],
    ids=["of nothing", "of another chunk", "of another document"],
)
def test_a_citation_of_what_was_not_retrieved_covers_nothing(citation: Citation) -> None:
    # A hit without a document id must not make a citation of nothing one of it.
    hits = (*HITS, Hit(3, "c#1", "", 0.1, "rrf"))
    result = QueryResult("q1", "t", "x", hits, 1.0, answer=Answer("60", (citation,), grounded=True))
    assert evaluate_run(GOLDEN, [result]).aggregate["citation_coverage"] == 0.0


def test_the_keys_of_mlflow() -> None:
    logged = run_metrics(evaluate_run(GOLDEN, results(ANSWERS)).aggregate, "groundedness")
    found = {key: value for key, value in logged.items() if "answer" in key}
    assert found == {
        "answer/groundedness": 1 / 2,
        "answer/citation_coverage": 1 / 2,
        "answer/refusal_correctness": 1 / 2,
        "answer/prompt_tokens": 150,
        "answer/completion_tokens": 10,
        "latency/answer_p50_ms": 30.0,
        "latency/answer_p95_ms": pytest.approx(48.0),
        "count/answers_answered": 4,
        "count/answers_refused": 1,
        "count/answers_failed": 1,
    }
    assert logged["count/scored_groundedness"] == 2
    assert logged["by_language/en"] == 1 / 2
