"""The worked cases of the metric contract, each with its arithmetic."""

from __future__ import annotations

from math import log2
from pathlib import Path

import pytest

from kebab_eval import evaluate
from kebab_eval.formats import read_trec_run
from kebab_eval.metrics import evaluate_run
from kebab_eval.records import GoldenQuery, GoldenSet, Hit, Judgments, QueryResult


def value(judged, ranking, metric, min_relevance=1):
    scores = evaluate({"q": judged}, {"q": ranking}, [metric], min_relevance=min_relevance)
    return scores[metric]


def test_three_of_five_places_are_relevant():
    assert value({"a": 1, "b": 1, "c": 1}, ["a", "b", "c", "x", "y"], "precision_at_5") == 3 / 5


def test_precision_is_divided_by_the_cutoff_also_when_fewer_came_back():
    assert value({"a": 1, "b": 1, "c": 1}, ["a", "b", "c"], "precision_at_5") == 3 / 5


def test_nothing_expected_in_the_top_five_is_zero():
    assert value({"a": 1}, ["v", "w", "x", "y", "z", "a"], "precision_at_5") == 0.0


def test_without_any_expected_chunk_precision_is_undefined():
    query = GoldenQuery("q", "text", Judgments(doc={"d": 1}))
    golden = GoldenSet("g", "1", "", (query,))
    hits = (Hit(1, "c", "d", 1.0, "rrf"),)
    scores = evaluate_run(golden, [QueryResult("q", "text", "hybrid", hits, 1.0)])
    assert scores.aggregate["metrics"]["precision_at_5_chunk"] == {
        "value": None,
        "n": 0,
        "ci95": None,
    }
    assert "precision_at_5_chunk" not in scores.per_query[0]


def test_graded_ndcg_with_exponential_gain():
    # Ranks 1, 2, 3 hold the grades 3, 1, 2; x (grade 3) was not returned.
    dcg = 7 + 1 / log2(3) + 3 / 2
    ideal = 7 + 7 / log2(3) + 3 / 2 + 1 / log2(5)
    assert dcg == pytest.approx(9.1309, abs=5e-5)
    assert ideal == pytest.approx(13.3472, abs=5e-5)
    found = value({"a": 3, "b": 1, "c": 2, "x": 3}, ["a", "b", "c"], "ndcg_at_10")
    assert found == pytest.approx(dcg / ideal, abs=1e-12)
    assert found == pytest.approx(0.6841, abs=5e-5)


def test_an_item_that_comes_back_again_counts_once_and_keeps_its_place_occupied():
    judged, ranking = {"a": 1, "b": 1}, ["a", "a", "a"]
    assert value(judged, ranking, "precision_at_3") == 1 / 3
    # a at rank 1: DCG 1; ideal 1 + 1/log2(3)
    assert value(judged, ranking, "ndcg_at_3") == pytest.approx(1 / (1 + 1 / log2(3)))
    # b behind the three a stands at rank 4
    assert value(judged, [*ranking, "b"], "map") == pytest.approx((1 + 2 / 4) / 2)


def test_duplicate_hits_are_reported():
    query = GoldenQuery("q", "text", Judgments(chunk={"a": 1, "b": 1}))
    golden = GoldenSet("g", "1", "", (query,))
    hits = tuple(Hit(rank, "a", "d", 1.0, "rrf") for rank in (1, 2, 3))
    scores = evaluate_run(golden, [QueryResult("q", "text", "hybrid", hits, 1.0)])
    assert scores.aggregate["duplicate_hits"] == 2
    assert scores.per_query[0]["precision_at_3_chunk"] == 1 / 3
    assert scores.per_query[0]["ndcg_at_3_chunk"] <= 1


@pytest.mark.parametrize("metric", ["ndcg_at_10", "ndcg_linear_at_10", "map", "hit_at_10", "bpref"])
def test_grades_of_zero_only_are_not_scored(metric):
    assert value({"a": 0, "b": 0}, ["a", "b"], metric) is None


def test_a_negative_grade_gains_nothing():
    # ranking b, a, c: DCG = 0 + 2/log2(3) + 1/2; ideal a, c: 2 + 1/log2(3)
    expected = (2 / log2(3) + 1 / 2) / (2 + 1 / log2(3))
    assert expected == pytest.approx(0.6697, abs=5e-5)
    found = value({"a": 2, "b": -1, "c": 1}, ["b", "a", "c"], "ndcg_linear_at_10")
    assert found == pytest.approx(expected, abs=1e-12)


def test_close_scores_of_a_trec_file_are_kept_apart(tmp_path: Path):
    path = tmp_path / "run"
    path.write_text("q Q0 b 1 1.00000001 t\nq Q0 a 2 1.00000002 t\n")
    run = read_trec_run(path)
    assert run == {"q": {"b": 1.00000001, "a": 1.00000002}}
    # In single precision both would be 1 and b, the higher id, would come first.
    assert evaluate({"q": {"a": 1}}, run, ["mrr_at_10"])["mrr_at_10"] == 1.0
