"""The Parquet rows, read by pandas as a notebook would."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pandas

from kebab_eval.records import EvalRun, GoldenQuery, Judgments
from kebab_eval.reports.parquet import render_parquet


def test_the_rows_are_those_of_the_record(judged_run: Callable[..., EvalRun]) -> None:
    queries = [
        GoldenQuery("q1", "하나", Judgments(doc={"d": 1.0})),
        GoldenQuery("q2", "two", Judgments(doc={"d": 1.0})),
        GoldenQuery("n", "nothing expected"),
    ]
    run = judged_run("r", queries, {"q1": ["d#1", "x#1"], "q2": None, "n": ["x#1"]})
    rows = pandas.read_parquet(io.BytesIO(render_parquet(run))).set_index("query_id")
    assert list(rows.index) == ["q1", "q2", "n"]
    assert [(hit["rank"], hit["doc_id"]) for hit in rows.loc["q1", "hits"]] == [(1, "d"), (2, "x")]
    assert rows["query"].to_list() == ["하나", "two", "nothing expected"]
    assert rows["ndcg_at_10_doc"].to_list()[:2] == [1.0, 0.0]
    assert pandas.isna(rows.loc["n", "ndcg_at_10_doc"])  # not scored is null, not 0
    assert rows.loc["q2", "error"]
    assert len(rows.loc["q2", "hits"]) == 0


def test_texts_that_no_utf8_holds_are_escaped(judged_run: Callable[..., EvalRun]) -> None:
    run = judged_run("r", [GoldenQuery("q", "t", Judgments(doc={"d": 1.0}))], {"q": ["d#1"]})
    odd = replace(run.results[0], query="a\ud800b")
    rows = pandas.read_parquet(io.BytesIO(render_parquet(replace(run, results=(odd,)))))
    assert rows["query"].to_list() == ["a\\ud800b"]
