from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kebab_eval
from kebab_eval import evaluate
from kebab_eval.errors import MetricError

JUDGMENTS = {"q": {"a": 3, "b": 1}, "r": {"c": 2}}
RUN = {"q": {"b": 0.9, "a": 0.8}, "r": {"x": 0.5, "c": 0.4}}
METRICS = ["ndcg_at_10", "mrr_at_10", "recall_at_1"]


def test_the_public_name():
    assert kebab_eval.evaluate is evaluate


@pytest.mark.parametrize(
    "rankings",
    [
        RUN,
        {"q": ["b", "a"], "r": ["x", "c"]},
        {"q": ("b", "a"), "r": ("x", "c")},
        (["q", "r", "q", "r"], ["a", "x", "b", "c"], [0.8, 0.5, 0.9, 0.4]),
        (
            np.array(["q", "r", "q", "r"]),
            np.array(["a", "x", "b", "c"]),
            np.array([0.8, 0.5, 0.9, 0.4]),
        ),
    ],
)
def test_rankings_in_any_shape(rankings):
    assert evaluate(JUDGMENTS, rankings, METRICS).means == evaluate(JUDGMENTS, RUN, METRICS).means


def rows(groups, name):
    return {
        "query_id": [q for q, group in groups.items() for _ in group],
        "doc_id": [item for group in groups.values() for item in group],
        name: [value for group in groups.values() for value in group.values()],
    }


@pytest.mark.parametrize("frame", [pd.DataFrame, pa.table])
def test_data_frames(frame):
    found = evaluate(frame(rows(JUDGMENTS, "relevance")), frame(rows(RUN, "score")), METRICS)
    assert found.means == evaluate(JUDGMENTS, RUN, METRICS).means


def test_a_list_of_relevant_ids_is_judgments_of_grade_one():
    found = evaluate({"q": ["a"], "r": {"b"}}, {"q": ["x", "a"], "r": ["b"]}, "mrr, hit_at_1")
    assert found.means == {"mrr": (1 / 2 + 1) / 2, "hit_at_1": 1 / 2}


def test_the_order_of_a_list_is_the_ranking_and_scores_are_sorted():
    assert evaluate({"q": {"a": 1}}, {"q": ["a", "b"]}, "mrr")["mrr"] == 1.0
    assert evaluate({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 2.0}}, "mrr")["mrr"] == 0.5


def test_a_repeated_id_in_a_list_keeps_its_first_rank():
    for item in ("b", "é"):
        assert evaluate({"q": {item: 1}}, {"q": ["x", "x", item, item]}, "mrr")["mrr"] == 1 / 3


def test_queries_of_one_side_only():
    found = evaluate({"q": {"a": 1}, "r": {"a": 1}}, {"q": ["a"], "z": ["a"]}, "hit_at_1")
    assert found["hit_at_1"] == 1 / 2
    assert (found.without_results, found.without_judgments) == (("r",), ("z",))
    assert evaluate({"q": {"a": 1}, "r": {"a": 1}}, {"q": ["a"]}, "map", complete=False)["map"] == 1


def test_query_ids_are_compared_in_nfc():
    assert evaluate({"\uac00": {"a": 1}}, {"\u1100\u1161": ["a"]}, "map")["map"] == 1.0


def test_intervals_are_seeded():
    judged = {f"q{i}": {"a": 1} for i in range(30)}
    run = {f"q{i}": ["x"] * i + ["a"] for i in range(30)}
    found = evaluate(judged, run, "mrr")
    low, high = found.intervals(seed=3)["mrr"]
    assert low < found["mrr"] < high
    assert found.intervals(seed=3) == found.intervals(seed=3)
    assert found.intervals(seed=3) != found.intervals(seed=4)
    assert evaluate({"q": {"a": 1}}, {"q": ["a"]}, "map").intervals() == {"map": None}


@pytest.mark.parametrize(
    ("judgments", "rankings", "message"),
    [
        ({"q": {"a": 1}}, {"q": {"a": float("nan")}}, "the score of 'a' is nan"),
        ({"q": {"a": 1}}, {"q": [1, 2]}, "a ranking is a list of ids"),
        ({"q": {"a": 1}}, {"q": "abc"}, "a ranking is a list of ids"),
        ({"q": "abc"}, {"q": ["a"]}, "judgments are id -> grade"),
        ({"q": {"a": 1}, "r": {}}, {"q": ["a"], "r": {"a": 1.0}}, "give one kind"),
        ({"q": {"a": 1001}}, {"q": ["a"]}, "grades go up to 1000"),
        ({1: {"a": 1}}, {"q": ["a"]}, "the id 1 is a int"),
        (7, {}, "cannot read a int"),
        ((["q"], ["a"], [1, 2]), {}, "equally long"),
        ((["q", "q"], ["a", "a"], [1, 2]), {}, "row 1: query 'q' holds 'a' twice"),
        (([1], ["a"], [1]), {}, "row 0: the id 1 is a int"),
        (pd.DataFrame({"query_id": ["q"], "doc_id": ["a"]}), {}, "needs one column grade"),
        ({"q": {"a": 1}}, {}, "no metric is called 'nope'"),
    ],
)
def test_what_cannot_be_read_is_refused(judgments, rankings, message):
    with pytest.raises(MetricError, match=message):
        evaluate(judgments, rankings, "nope" if "nope" in message else "map")


def test_the_docstring_is_right():
    import doctest

    from kebab_eval import api

    assert doctest.testmod(api).failed == 0


def test_an_evaluation_shows_its_means() -> None:
    scores = evaluate({"q": {"a": 1}, "r": {"b": 0}}, {"q": ["x", "a"]}, metrics="mrr_at_10,map")
    assert repr(scores) == "<Evaluation of 2 queries: mrr_at_10=0.5000, map=0.5000>"
