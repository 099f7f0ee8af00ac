"""Every family on rankings small enough to work out by hand."""

from __future__ import annotations

from math import log2

import pytest

from kebab_eval import evaluate


def value(judged, ranking, metric, min_relevance=1):
    scores = evaluate({"q": judged}, {"q": ranking}, [metric], min_relevance=min_relevance)
    return scores[metric]


GRADES = {"a": 3, "b": 0, "c": 2, "d": 1, "e": -1, "f": 3}
RANKING = ["b", "c", "x", "a", "e", "d"]  # grades 0, 2, unjudged, 3, -1, 1; f is missed


@pytest.mark.parametrize(
    ("metric", "min_relevance", "expected"),
    [
        ("hit_at_1", 1, 0.0),
        ("hit_at_2", 1, 1.0),
        ("hit_at_3", 3, 0.0),
        ("mrr_at_10", 1, 1 / 2),
        ("mrr_at_10", 3, 1 / 4),
        ("mrr_at_1", 1, 0.0),
        ("mrr", 3, 1 / 4),
        ("precision_at_4", 1, 2 / 4),
        ("precision", 1, 3 / 6),
        ("recall_at_4", 1, 2 / 4),  # a, c of a, c, d, f
        ("recall", 1, 3 / 4),
        ("recall_at_10_rel2", 1, 2 / 3),  # a, c of a, c, f
        ("recall_at_10_rel3", 1, 1 / 2),  # a of a, f
        ("map", 1, (1 / 2 + 2 / 4 + 3 / 6) / 4),
        ("map_at_4", 1, (1 / 2 + 2 / 4) / 4),
        ("rprec", 1, 2 / 4),  # R = 4
        ("rprec", 3, 0 / 2),
        # R = 4, N = 1 (b): before each of c, a, d one non-relevant item, so each gives 1 - 1/1
        ("bpref", 1, 0.0),
        # R = 3, N = 2 (b, d): c and a have b before them: 2 (1 - 1/2); divided by 3
        ("bpref", 2, 2 * (1 - 1 / 2) / 3),
        ("rbp", 1, 0.2 * (0.8 + 0.8**3 + 0.8**5)),
        ("judged_at_3", 1, 2 / 3),
        ("judged_at_10", 1, 5 / 6),  # of the 6 that came back
        ("judged", 1, 5 / 6),
        ("top3_hit", 1, 0.0),
        ("ndcg_at_2", 1, (3 / log2(3)) / (7 + 7 / log2(3))),
        ("ndcg_linear_at_2", 1, (2 / log2(3)) / (3 + 3 / log2(3))),
        (
            "ndcg",
            1,
            (3 / log2(3) + 7 / log2(5) + 1 / log2(7))
            / (7 + 7 / log2(3) + 3 / log2(4) + 1 / log2(5)),
        ),
        # Stops with 3/8 at rank 2, 7/8 at rank 4, 1/8 at rank 6
        ("err", 1, 3 / 8 / 2 + 5 / 8 * 7 / 8 / 4 + 5 / 8 * 1 / 8 * 1 / 8 / 6),
        ("err_at_2", 1, 3 / 8 / 2),
    ],
)
def test_value(metric, min_relevance, expected):
    assert value(GRADES, RANKING, metric, min_relevance) == pytest.approx(expected, abs=1e-15)


def test_bpref_without_judged_non_relevant_items_is_the_recall():
    assert value({"a": 1, "b": 1}, ["x", "a"], "bpref") == 1 / 2


def test_bpref_counts_no_more_non_relevant_items_than_there_are_relevant_ones():
    # R = 1: min(2, 1) / min(3, 1) = 1
    assert value({"a": 1, "x": 0, "y": 0, "z": 0}, ["x", "y", "a"], "bpref") == 0.0


def test_top3_hit_wants_grade_three_among_the_first_three():
    assert value(GRADES, ["x", "y", "a"], "top3_hit") == 1.0
    assert value({"a": 2}, ["a"], "top3_hit") is None


def test_rbp_far_down_the_ranking_is_zero_without_a_warning():
    ranking = [f"x{i}" for i in range(5000)] + ["a"]
    assert value({"a": 1}, ranking, "rbp") == pytest.approx(0.0, abs=1e-300)


def test_judged_needs_a_hit_and_no_judgment():
    scores = evaluate({"q": {"a": 1}, "r": {}}, {"q": [], "r": ["x"]}, ["judged_at_10"])
    assert scores.per_query() == {"q": {}, "r": {"judged_at_10": 0.0}}


def test_a_query_without_results_scores_zero():
    scores = evaluate({"q": {"a": 1}, "r": {"a": 1}}, {"q": ["a"]}, ["mrr_at_10", "ndcg_at_10"])
    assert scores.means == {"mrr_at_10": 0.5, "ndcg_at_10": 0.5}
    assert scores.without_results == ("r",)


def test_all_queries_without_results_score_zero():
    scores = evaluate({"q": {"a": 1, "b": 0}}, {})
    assert {v for name, v in scores.means.items() if name != "judged_at_10"} == {0.0}
    assert scores["judged_at_10"] is None


def test_nothing_at_all_is_undefined():
    assert set(evaluate({}, {}).means.values()) == {None}


def test_the_mean_is_over_scored_queries_with_its_n():
    scores = evaluate(
        {"q": {"a": 1}, "r": {"a": 0}, "s": {"a": 1}}, {"q": ["a"], "r": ["a"]}, ["hit_at_1"]
    )
    assert scores["hit_at_1"] == 1 / 2
    assert scores.n == {"hit_at_1": 2}
