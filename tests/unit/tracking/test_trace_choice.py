"""Which queries become traces, by hand-made results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kebab_eval.config import Tracking
from kebab_eval.records import Answer, Hit, QueryResult
from kebab_eval.tracking.trace_choice import choose

PRIMARY = "ndcg_at_10_doc"


def result(query_id: str, *chunks: str, primary: float | None = 1.0) -> QueryResult:
    hits = tuple(Hit(n, chunk, "d", 1 / n, "rrf") for n, chunk in enumerate(chunks, 1))
    metrics = {} if primary is None else {PRIMARY: primary}
    return QueryResult(query_id, "text", "hybrid", hits, 1.0, metrics=metrics)


def chosen(policy: str, *results: QueryResult, before: tuple[QueryResult, ...] = ()) -> list[str]:
    previous = {one.query_id: one for one in before} if before else None
    return [one.query_id for one in choose(policy, results, PRIMARY, previous)]


def test_all_and_none() -> None:
    results = (result("b"), result("a"))
    assert chosen("all", *results) == ["b", "a"]
    assert chosen("none", *results) == []


def test_failed_are_those_without_an_answer_or_without_what_was_expected() -> None:
    lost = replace(result("lost", "c"), miss_stage="one channel")
    down = QueryResult("down", "text", "hybrid", error="timeout")
    mute = replace(result("mute", "c"), answer=Answer(error="no model"))
    fine = replace(result("fine", "c"), answer=Answer("yes"))
    assert chosen("failed", result("good", "c"), lost, down, mute, fine) == ["lost", "down", "mute"]


def test_changed_is_another_ranking_another_value_or_another_answer() -> None:
    before = tuple(result(name, "c1", "c2") for name in ("same", "order", "value", "down", "said"))
    slower = replace(before[0], latency_ms=99.0, hits=tuple(
        replace(hit, score=hit.score * 2) for hit in before[0].hits))  # fmt: skip
    now = (
        slower,
        result("order", "c2", "c1"),
        result("value", "c1", "c2", primary=0.5),
        replace(before[3], error="timeout"),
        replace(before[4], answer=Answer("yes")),
        result("new", "c1"),
    )
    assert chosen("changed", *now, before=before) == ["order", "value", "down", "said", "new"]
    assert chosen("changed", *now) == ["same", "order", "value", "down", "said", "new"]


def test_a_sample_is_the_same_queries_whatever_the_order_and_stands_in_larger_ones() -> None:
    results = [result(f"q-{n}") for n in range(40)]
    ten = chosen("sample:10", *results)
    assert len(ten) == 10
    assert sorted(chosen("sample:10", *reversed(results))) == sorted(ten)
    assert set(ten) < set(chosen("sample:11", *results))
    assert chosen("sample:99", *results) == [one.query_id for one in results]
    assert ten == sorted(
        ten, key=lambda name: int(name[2:])
    )  # in golden order, not in that of hashes


@pytest.mark.parametrize("policy", ["all", "changed", "failed", "none", "sample:1", "sample:500"])
def test_what_the_config_takes(policy: str) -> None:
    assert Tracking(traces=policy).traces == policy


@pytest.mark.parametrize(
    "policy", ["", "ALL", "sample", "sample:0", "sample:-1", "sample:1.5", "x"]
)
def test_what_the_config_refuses(policy: str) -> None:
    with pytest.raises(ValueError, match="must be all, changed, failed, none, or sample:N"):
        Tracking(traces=policy)
