"""Consistency over paraphrases, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kebab_eval.errors import NotComparableError
from kebab_eval.records import Answer, EvalRun, GoldenQuery, GoldenSet, Hit, Judgments, QueryResult
from kebab_eval.reports.variants import render_variants
from kebab_eval.variants import variant_report

EXPECTED = Judgments(doc={"a": 1.0, "b": 1.0})


def query(name: str, language: str, group: str | None = "g", **more: Any) -> GoldenQuery:
    return GoldenQuery(name, f"text {name}", EXPECTED, language=language, group=group, **more)


def result(name: str, *documents: str, answer: Answer | None = None) -> QueryResult:
    hits = tuple(Hit(n, f"{doc}#{n}", doc, 1.0, "rrf") for n, doc in enumerate(documents, 1))
    return QueryResult(name, "t", "hybrid", hits, 1.0, answer=answer)


def run(queries: list[GoldenQuery], results: list[QueryResult], k: int = 50) -> EvalRun:
    config = {"search": {"k": k}, "metrics": {"primary": "ndcg_at_10_doc"}}
    return EvalRun(
        {"id": "r", "name": "wide"}, config, GoldenSet("g", "1", "x", tuple(queries)),
        tuple(results), {},
    )  # fmt: skip


FILL = [f"x{n}" for n in range(9)]  # with one document before them: ten

QUERIES = [query("ko", "ko"), query("en", "en"), query("mix", "mixed")]
RESULTS = [
    result("ko", "a", "b"),  # both among the first ten: 2/2
    result("en", "a", *FILL, "b"),  # b is the eleventh document: 1/2 narrow, 2/2 in the pool
    result("mix", "a", *FILL),  # 1/2 and 1/2
]


def test_states_spread_and_overlap() -> None:
    (group,) = variant_report(run(QUERIES, RESULTS)).groups
    assert [(v.narrow, v.pool, v.state) for v in group.variants] == [
        (1.0, 1.0, "ok"),
        (0.5, 1.0, "mis_ranked"),
        (0.5, 0.5, "missing"),
    ]
    assert (group.spread, group.worst, group.dominant) == (0.5, 0.5, None)
    # ko {a, b} and en {a, x0..x8}: 1 of 11; ko and mix the same; en and mix: 10 of 10
    assert group.overlap == pytest.approx((1 / 11 + 1 / 11 + 1) / 3)
    assert group.across == pytest.approx(1 / 11)


def test_chunks_of_one_document_are_one_document() -> None:
    again = result("en", *["x"] * 30, "a", "b")  # documents x, a, b
    (group,) = variant_report(run(QUERIES, [RESULTS[0], again, RESULTS[2]])).groups
    assert group.variants[1].state == "ok"


def test_dominant_groups() -> None:
    out = [result("ko", "a", "b"), RESULTS[1], replace(RESULTS[1], query_id="mix")]
    assert variant_report(run(QUERIES, out)).groups[0].dominant == "a"
    gone = [result("ko"), result("en"), RESULTS[1]]
    gone[2] = replace(gone[2], query_id="mix")
    assert variant_report(run(QUERIES, gone)).groups[0].dominant == "b"


def test_nothing_expected_is_a_state_of_its_own() -> None:
    bare = [replace(one, judgments=Judgments()) for one in QUERIES]
    (group,) = variant_report(run(bare, RESULTS)).groups
    assert {v.state for v in group.variants} == {"no_expected"}
    assert (group.spread, group.worst) == (None, None)


def test_answers_are_held_against_each_other() -> None:
    queries = [replace(one, must_contain=("60",)) for one in QUERIES[:2]]

    def consistent(first: Answer, second: Answer) -> bool | None:
        answered = [replace(RESULTS[0], answer=first), replace(RESULTS[1], answer=second)]
        return variant_report(run(queries, answered)).groups[0].answers_consistent

    assert consistent(Answer("it is 60"), Answer("60 it is")) is True
    assert consistent(Answer("it is 60"), Answer("it is 61")) is False
    assert consistent(Answer("it is 60"), Answer(refused=True)) is False
    assert consistent(Answer(refused=True), Answer(refused=True)) is True
    assert variant_report(run(queries, RESULTS[:2])).groups[0].answers_consistent is None


def test_a_shallow_run_is_refused_with_the_flag() -> None:
    with pytest.raises(NotComparableError, match="evaluate again with --k 50"):
        variant_report(run(QUERIES, RESULTS, k=49))


def test_a_set_without_groups_is_refused() -> None:
    with pytest.raises(NotComparableError, match="no group of two queries"):
        variant_report(run([query("ko", "ko", None), query("en", "en", "alone")], RESULTS[:2]))


def test_the_forms() -> None:
    report = variant_report(run(QUERIES, RESULTS))
    text = render_variants(report, "text").splitlines()
    assert text[:2] == ["wide", "1 groups, 3 wordings"]
    assert "g: spread 0.500, worst 0.500, overlap 0.394, ko-en 0.091" in text
    assert "  mis_ranked  0.500 of 1.000  en    en text en" in text
    assert "| g |" in render_variants(report, "md")
    assert '"a_dominant": []' in render_variants(report, "json")
