"""Our numbers beside pytrec_eval's on generated rankings: equal to 1e-12 where definitions agree.

Where they do not, docs/metrics.md says why; each of its cases is a test here.
"""

from __future__ import annotations

import random
from math import log2

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval import evaluate

CUTS = (1, 3, 5, 10, 100)
PAIRS = {
    "map": "map",
    "mrr": "recip_rank",
    "rprec": "Rprec",
    "bpref": "bpref",
    "ndcg_linear": "ndcg",
    "precision": "set_P",
    "recall": "set_recall",
    **{f"precision_at_{k}": f"P_{k}" for k in CUTS},
    **{f"recall_at_{k}": f"recall_{k}" for k in CUTS},
    **{f"hit_at_{k}": f"success_{k}" for k in CUTS},
    **{f"ndcg_linear_at_{k}": f"ndcg_cut_{k}" for k in CUTS},
    **{f"map_at_{k}": f"map_cut_{k}" for k in CUTS},
}
CUT = ",".join(map(str, CUTS))
MEASURES = {
    *("map", "recip_rank", "Rprec", "bpref", "ndcg", "set_P", "set_recall"),
    *(f"{family}.{CUT}" for family in ("P", "recall", "success", "ndcg_cut", "map_cut")),
}


def theirs(judgments, run, relevance_level=1):
    evaluator = pytrec_eval.RelevanceEvaluator(judgments, MEASURES, relevance_level=relevance_level)
    return evaluator.evaluate(run)


def assert_equal(judgments, run, min_relevance=1):
    ours = evaluate(judgments, run, PAIRS, min_relevance=min_relevance).per_query()
    # Differences 1 and 7 below: a query without a relevant judgment is not scored by us, and they
    # crash, now and then, on one whose grades are all negative or too low, or whose ranking is
    # empty.
    tops = {query: max(judged.values()) for query, judged in judgments.items()}
    both = {query: judged for query, judged in judgments.items() if tops[query] >= min_relevance}
    ranked = {q: ranking for q, ranking in run.items() if q in both and ranking}
    peer = theirs(both, ranked, min_relevance)
    for query, values in peer.items():
        for name, measure in PAIRS.items():
            assert ours[query][name] == pytest.approx(values[measure], abs=1e-12), name
    for query in judgments.keys() - both.keys():
        assert all("ndcg" in name for name in ours[query])
        assert not ours[query] or tops[query] > 0
    for query in both.keys() - peer.keys():
        assert set(ours[query].values()) == {0.0}


ITEMS = st.sampled_from([f"d{i}" for i in range(12)] + ["D1", "d01", "é", "문서", "z z", "1e5"])
# Quarters are exact in single precision too, so that ties are ties for both (difference 2).
SCORES = st.integers(-8, 8).map(lambda n: n / 4)
JUDGED = st.dictionaries(ITEMS, st.integers(-2, 4), min_size=1, max_size=12)
RANKING = st.dictionaries(ITEMS, SCORES, max_size=16)
QUERIES = st.integers(0, 5).map(lambda n: f"q{n}")


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(QUERIES, JUDGED, min_size=1, max_size=5),
    st.dictionaries(QUERIES, RANKING, max_size=5),
    st.integers(1, 3),
)
def test_generated_rankings(judgments, run, min_relevance):
    assert_equal(judgments, run, min_relevance)


@pytest.mark.parametrize(("n_queries", "depth"), [(1, 1000), (1000, 30)])
@pytest.mark.parametrize("levels", [5, 10**6])
def test_many_queries_and_deep_rankings(n_queries, depth, levels):
    source = random.Random(n_queries + levels)
    judgments, run = {}, {}
    for index in range(n_queries):
        names = [f"d{n}" for n in source.sample(range(5 * depth), 2 * depth)]
        judgments[f"q{index}"] = {
            n: source.choice((-1, 0, 0, 1, 2, 3)) for n in source.sample(names, 20)
        }
        # Whole numbers below 2^24 are exact in single precision.
        run[f"q{index}"] = {n: float(source.randrange(levels)) for n in names[:depth]}
    assert_equal(judgments, run)


# The differences of docs/metrics.md, in its order.


def test_difference_1_a_query_without_relevant_judgments():
    judgments, run = {"q": {"a": 0}, "r": {"a": 1}}, {"q": {"a": 1.0}, "r": {"a": 1.0}}
    assert theirs(judgments, run)["q"]["map"] == 0.0
    found = evaluate(judgments, run, ["map"])
    assert "map" not in found.per_query()["q"]
    assert found["map"] == 1.0  # over one query; theirs is 0.5 over two


def test_difference_2_scores_in_double_precision():
    judgments, run = {"q": {"a": 1}}, {"q": {"a": 1.00000002, "b": 1.00000001}}
    assert theirs(judgments, run)["q"]["recip_rank"] == 1 / 2
    assert evaluate(judgments, run, ["mrr"])["mrr"] == 1.0


def test_difference_3_queries_without_results_count():
    judgments, run = {"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1.0}}
    assert "r" not in theirs(judgments, run)
    assert evaluate(judgments, run, ["map"])["map"] == 1 / 2


def test_difference_4_mrr_at_10_is_cut_and_recip_rank_is_not():
    judgments = {"q": {"a": 1}}
    run = {"q": {"a": 0.0, **{f"x{i}": 1.0 for i in range(10)}}}
    assert theirs(judgments, run)["q"]["recip_rank"] == 1 / 11
    assert evaluate(judgments, run, ["mrr_at_10"])["mrr_at_10"] == 0.0
    assert evaluate(judgments, run, ["mrr"])["mrr"] == 1 / 11


def test_difference_5_ndcg_has_the_exponential_gain():
    judgments, run = {"q": {"a": 3, "b": 1}}, {"q": {"b": 2.0, "a": 1.0}}
    linear = (1 + 3 / log2(3)) / (3 + 1 / log2(3))
    exponential = (1 + 7 / log2(3)) / (7 + 1 / log2(3))
    assert theirs(judgments, run)["q"]["ndcg"] == pytest.approx(linear, abs=1e-12)
    found = evaluate(judgments, run, ["ndcg", "ndcg_linear"])
    assert found["ndcg_linear"] == pytest.approx(linear, abs=1e-12)
    assert found["ndcg"] == pytest.approx(exponential, abs=1e-12)


def test_difference_6_ids_are_compared_in_nfc():
    judgments, run = {"q": {"\uac00": 1}}, {"q": {"\u1100\u1161": 1.0}}
    assert theirs(judgments, run)["q"]["map"] == 0.0
    assert evaluate(judgments, run, ["map"])["map"] == 1.0


def test_difference_7_negative_grades_only_and_empty_rankings():
    # No call of theirs: it goes beyond an array of no elements, and may crash much later.
    assert evaluate({"q": {"a": -1}}, {"q": {"a": 1.0}}, ["map"])["map"] is None
    assert evaluate({"q": {"a": 1}}, {"q": {}}, ["map"])["map"] == 0.0
