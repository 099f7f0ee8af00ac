"""The scores of a Document Server set by version, worked by hand; and sets of fractional gains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import log2
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.golden import load_golden
from kebab_eval.metrics import default_metrics, evaluate_run, primary_for
from kebab_eval.records import (
    BinaryJudgments,
    GoldenQuery,
    GoldenSet,
    Hit,
    Judgments,
    QueryResult,
)

OLD_FILE = """\
- {id: q1, query: one, category: norm, relevant_ids: [11, 12, 13], top3_ids: [11]}
- {id: q2, query: two, category: norm, relevant_ids: [21], top3_ids: [21]}
- {id: q3, query: three, category: rule, relevant_ids: [31, 32]}
- {id: q4, query: four, category: rule, relevant_ids: [41], top3_ids: [42]}
- {id: q5, query: five, category: rule, relevant_ids: [51], top3_ids: [51]}
"""
RANKINGS: dict[str, list[int] | None] = {
    "q1": [99, 11, 12],
    "q2": [97, 98, 99, 21],
    "q3": [*range(901, 911), 31, 32],
    "q4": [41, 99, 98, 42],
    "q5": None,  # it failed
}


def result(query_id: str, docs: list[int] | None, latency_ms: float = 1.0) -> QueryResult:
    """A result of one hit for each document, as the Document Server returns them."""
    if docs is None:  # what came before it failed does not count
        early = tuple(Hit(rank, "", doc, 1.0, "rrf") for rank, doc in enumerate(("51", "1"), 1))
        return QueryResult(query_id, "text", "hybrid", early, error="timeout")
    hits = tuple(
        Hit(rank, f"{doc}#{rank}", str(doc), 1 / rank, "rrf") for rank, doc in enumerate(docs, 1)
    )
    return QueryResult(query_id, "text", "hybrid", hits, latency_ms)


def query(query_id: str, grades: Mapping[int, float], **fields: Any) -> GoldenQuery:
    """A graded case; version 0.1 counts its documents from grade 2 on, the top three from 3 on."""
    binary = BinaryJudgments(
        frozenset(str(doc) for doc, grade in grades.items() if grade >= 2),
        frozenset(str(doc) for doc, grade in grades.items() if grade >= 3),
    )
    judgments = Judgments(doc={str(doc): grade for doc, grade in grades.items()})
    return GoldenQuery(query_id, "text", judgments, **{"v01": binary, **fields})


def golden(*queries: GoldenQuery) -> GoldenSet:
    return GoldenSet("g", "0.2", "", queries, 2, format="docserver")


def versions(golden: GoldenSet, *results: QueryResult, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = evaluate_run(golden, results, **more).aggregate["versions"]
    return found


def values(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return name -> (value, n) of the scores, without a slice's own n."""
    return {name: (cell["value"], cell["n"]) for name, cell in cells.items() if name != "n"}


def close(value: float) -> Any:
    return pytest.approx(value, abs=1e-9)


# --- version 0.1 ------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> dict[str, Any]:
    """The blocks of the old file above."""
    path = tmp_path / "queries.yaml"
    path.write_text(OLD_FILE, encoding="utf-8")
    results = [result(query_id, docs) for query_id, docs in RANKINGS.items()]
    return versions(load_golden(path).golden, *results)


def test_an_old_file_gives_the_scores_worked_by_hand(old: dict[str, Any]) -> None:
    #        recall@10        MRR@10  nDCG@10                                            top 3
    # q1: 11, 12 of three     1/2     (1/log2 3 + 1/log2 4) / (1 + 1/log2 3 + 1/log2 4)  1
    # q2: 21 at rank 4        1/4     (1/log2 5) / 1                                     0
    # q3: at ranks 11 and 12  0       0                                     no top3_ids: –
    # q4: 41, 42 at 1 and 4   1       (1 + 1/log2 5) / (1 + 1/log2 3)       42 at rank 4: 0
    # q5: failed              0       0                                                  0
    ndcg = [
        (1 / log2(3) + 1 / 2) / (1 + 1 / log2(3) + 1 / 2),  # 1.130930 / 2.130930 = 0.530721
        1 / log2(5),  #                                                             0.430677
        0,
        (1 + 1 / log2(5)) / (1 + 1 / log2(3)),  #         1.430677 / 1.630930 = 0.877215
        0,
    ]
    assert sum(ndcg) / 5 == pytest.approx(0.367723, abs=1e-6)
    assert values(old["v0.1"]["scores"]) == {
        "recall_at_10": (close((2 / 3 + 1 + 0 + 1 + 0) / 5), 5),
        "mrr_at_10": (close((1 / 2 + 1 / 4 + 0 + 1 + 0) / 5), 5),
        "ndcg_at_10": (close(sum(ndcg) / 5), 5),
        "top3_hit": (close((1 + 0 + 0 + 0) / 4), 4),
    }


def test_slices_have_their_own_n(old: dict[str, Any]) -> None:
    rule = old["v0.1"]["by_category"]["rule"]
    assert rule["n"] == 3
    assert values(rule)["mrr_at_10"] == (close((0 + 1 + 0) / 3), 3)
    assert values(rule)["top3_hit"] == (0.0, 2)  # q3 has no top3_ids
    assert list(old["v0.1"]["by_category"]) == ["norm", "rule"]
    assert old["v0.1"]["by_language"] == {}


def test_an_old_file_is_graded_too(old: dict[str, Any]) -> None:
    scores = values(old["v0.2"]["scores"])
    # top3_ids have grade 3 (gain 7), the others grade 2 (gain 3).
    # q1: (7/log2 3 + 3/2) / (7 + 3/log2 3 + 3/2);  q2: 1/log2 5;
    # q4: (3 + 7/log2 5) / (7 + 3/log2 3);  q3 and q5: 0
    ndcg = (
        (7 / log2(3) + 3 / 2) / (7 + 3 / log2(3) + 3 / 2)
        + 1 / log2(5)
        + (3 + 7 / log2(5)) / (7 + 3 / log2(3))
    ) / 5
    assert scores["ndcg_at_10_doc"] == (close(ndcg), 5)
    assert scores["recall_at_10_rel2_doc"] == (close((2 / 3 + 1 + 0 + 1 + 0) / 5), 5)
    assert scores["recall_at_10_rel3_doc"] == (close((1 + 1 + 1 + 0) / 4), 4)
    assert scores["failure_correct"] == (None, 0)


def test_documents_are_ranked_by_first_appearance() -> None:
    # Eleven chunks of document 9, then one of document 1: the second document, the twelfth hit.
    found = versions(golden(query("q", {1: 3})), result("q", [9] * 11 + [1]))
    binary, graded = values(found["v0.1"]["scores"]), values(found["v0.2"]["scores"])
    assert binary["mrr_at_10"] == (1 / 2, 1)
    assert binary["recall_at_10"] == (1.0, 1)
    assert binary["top3_hit"] == (1.0, 1)
    # recall_at_10_…_doc takes the documents of the first ten hits, here as everywhere
    assert graded["recall_at_10_rel2_doc"] == (0.0, 1)


def test_a_document_of_the_top_three_is_relevant_also_where_nothing_else_says_so() -> None:
    case = query("q", {}, v01=BinaryJudgments(frozenset(), frozenset({"1"})))
    found = versions(golden(case), result("q", [9, 1]))
    assert values(found["v0.1"]["scores"])["mrr_at_10"] == (1 / 2, 1)


# --- version 0.2 ------------------------------------------------------------------------------


@pytest.fixture
def new() -> dict[str, Any]:
    cases = golden(
        query("a", {1: 3, 2: 1}, category="standards", language="ko", ocr_derived=False),
        query("b", {3: 2}, category="ocr_derived", language="ko", ocr_derived=True),
        query("c", {4: 1, 5: 0}, category="mixed", language="mixed"),
        query("d", {}, category="failure_expected", language="en", failure_expected=True),
        query("e", {}, category="failure_expected", language="en", failure_expected=True),
        query("f", {}, category="failure_expected", language="ko", failure_expected=True),
    )
    return versions(
        cases,
        result("a", [2, 1], 10),
        result("b", [9], 20),
        result("c", [4], 30),
        result("d", [], 40),
        result("e", [9], 50),
        result("f", None),  # an outage is no right refusal
    )


def test_graded_scores_and_what_they_are_scored_on(new: dict[str, Any]) -> None:
    # a: (1 + 7/log2 3) / (7 + 1/log2 3);  b: 0;  c: 1
    ndcg = (1 + 7 / log2(3)) / (7 + 1 / log2(3))
    assert values(new["v0.2"]["scores"]) == {
        "ndcg_at_10_doc": (close((ndcg + 0 + 1) / 3), 3),
        "recall_at_10_rel2_doc": (1 / 2, 2),  # c has no document of grade 2
        "recall_at_10_rel3_doc": (1.0, 1),
        "failure_correct": (close(1 / 3), 3),
        "latency_p50_ms": (30.0, 5),
        "latency_p95_ms": (close(48.0), 5),  # 0.95 · 4 = 3.8: 40 + 0.8 · 10
    }
    assert values(new["v0.1"]["scores"])["recall_at_10"] == (1 / 2, 2)


def test_graded_slices(new: dict[str, Any]) -> None:
    block = new["v0.2"]
    assert values(block["by_category"]["failure_expected"]) == {
        "ndcg_at_10_doc": (None, 0),
        "recall_at_10_rel2_doc": (None, 0),
        "recall_at_10_rel3_doc": (None, 0),
        "failure_correct": (close(1 / 3), 3),
        "latency_p50_ms": (45.0, 2),
        "latency_p95_ms": (close(49.5), 2),
    }
    assert values(block["by_language"]["en"])["failure_correct"] == (1 / 2, 2)
    assert block["by_language"]["ko"]["n"] == 3
    # c, d, e and f do not say whether they come from OCR
    assert {value: cells["n"] for value, cells in block["by_ocr_derived"].items()} == {
        "false": 1,
        "true": 1,
    }


def test_graded_scores_are_the_metrics_of_the_run_whatever_its_cutoffs() -> None:
    aggregate = evaluate_run(
        golden(query("a", {1: 3, 2: 2})), [result("a", [2])], cutoffs=(1,)
    ).aggregate
    for name in ("ndcg_at_10_doc", "recall_at_10_rel2_doc", "recall_at_10_rel3_doc"):
        cell = aggregate["versions"]["v0.2"]["scores"][name]
        entry = aggregate["metrics"][name]
        assert cell == {"value": entry["value"], "n": entry["n"]}
    assert aggregate["metrics"]["recall_at_10_rel2_doc"]["value"] == 1 / 2


def test_a_partial_run_is_scored_on_what_it_holds() -> None:
    found = versions(golden(query("a", {1: 3}), query("b", {2: 3})), result("b", [2]))
    assert values(found["v0.1"]["scores"])["recall_at_10"] == (1.0, 1)


def test_without_any_result_nothing_is_scored() -> None:
    found = versions(golden(query("a", {1: 3})))
    assert {pair for block in found.values() for pair in values(block["scores"]).values()} == {
        (None, 0)
    }


def test_other_sets_have_no_scores_by_version() -> None:
    plain = GoldenSet("g", "1", "", (query("a", {1: 3}, v01=None),))
    assert "versions" not in evaluate_run(plain, [result("a", [1])]).aggregate


def test_the_blocks_are_plain_json_and_the_order_of_the_queries_changes_nothing(
    new: dict[str, Any],
) -> None:
    assert json.loads(json.dumps(new, allow_nan=False)) == new
    cases = [query(f"q{i}", {i: 2, 50 + i: 3}, language="xyz"[i % 3]) for i in range(30)]
    results = [result(f"q{i}", [(7 * i) % 60, i, 50 + i], 0.1 * i) for i in range(30)]
    forth, back = golden(*cases), golden(*reversed(cases))
    assert versions(forth, *results) == versions(back, *reversed(results))


# --- fractional gains -------------------------------------------------------------------------


def gains(*queries: GoldenQuery) -> GoldenSet:
    return GoldenSet("g", "1", "", queries, 0.5, format="mapped")


def test_fractional_gains_are_used_as_they_are() -> None:
    gold = gains(query("q", {1: 1.0, 2: 0.5}, v01=None))
    found = evaluate_run(gold, [result("q", [2, 1])]).aggregate["metrics"]
    # (0.5 + 1/log2 3) / (1 + 0.5/log2 3) = 1.130930 / 1.315465
    expected = (0.5 + 1 / log2(3)) / (1 + 0.5 / log2(3))
    assert found["ndcg_linear_at_10_doc"]["value"] == close(expected)
    assert expected == pytest.approx(0.859719, abs=1e-6)
    assert not [name for name in found if name.startswith("ndcg_at_")]


def test_one_fraction_decides_for_the_whole_set() -> None:
    gold = gains(query("q", {1: 1.0}, v01=None), query("r", {1: 0.25}, v01=None))
    names = {metric.name for metric in default_metrics(gold, (1, 20))}
    assert {f"ndcg_linear_at_{k}_{at}" for k in (1, 5, 10, 20) for at in ("chunk", "doc")} <= names


@pytest.mark.parametrize(
    ("asked", "linear"),
    [
        ("ndcg_at_10_doc", "ndcg_linear_at_10_doc"),
        ("ndcg_at_5_chunk", "ndcg_linear_at_5_chunk"),
        ("ndcg_doc", "ndcg_linear_doc"),
        ("ndcg_linear_at_10_doc", "ndcg_linear_at_10_doc"),
        ("mrr_at_10_doc", "mrr_at_10_doc"),
    ],
)
def test_the_primary_metric_follows_the_gains(asked: str, linear: str) -> None:
    assert primary_for(gains(query("q", {1: 0.5}, v01=None)), asked) == linear
    assert primary_for(gains(query("q", {1: 1.0}, v01=None)), asked) == asked
