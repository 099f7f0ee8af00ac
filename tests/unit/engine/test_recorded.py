"""Recorded candidates, fused again: by hand, and against the engine's own code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.config import Fusion
from kebab_eval.engine.recorded import RecordedCandidates, Settings, fused
from kebab_eval.metrics import default_registry, evaluate_run
from kebab_eval.records import (
    Candidate,
    GoldenQuery,
    GoldenSet,
    Hit,
    Judgments,
    QueryResult,
    Span,
)


def asked(**more: Any) -> Settings:
    fusion = Fusion.model_validate(
        {
            key: more.pop(name)
            for name, key in (
                ("rrf_k", "rrf_k"),
                ("weights", "weights"),
                ("method", "method"),
                ("normalize", "normalize"),
                ("fused", "depth"),
            )
            if name in more
        }
    )
    given = {"mode": "hybrid", "k": 10, "depth": 50, "score_gate": None, **more}
    return Settings(fusion=fusion, **given)


def result(query_id: str = "q", **channels: str) -> QueryResult:
    """A letter a chunk; its document is the letter in lower case."""
    return QueryResult(
        query_id,
        "words",
        "hybrid",
        candidates={
            name: tuple(
                Candidate(letter, letter.lower(), 1.0 - 0.1 * place)
                for place, letter in enumerate(letters)
            )
            for name, letters in channels.items()
        },
    )


def golden(*queries: GoldenQuery) -> GoldenSet:
    return GoldenSet("g", "1", "x", queries)


QUERY = GoldenQuery("q", "words", Judgments(chunk={"B": 1.0}, doc={"b": 1.0}))


def hits(found: QueryResult, settings: Settings, k: int | None = 10) -> list[str]:
    recorded = RecordedCandidates(golden(QUERY), {"q": found}, k)
    kept = recorded.hits(settings).gated(settings.score_gate)
    return [recorded.ids[0][item] for item in kept.order[0, : kept.count[0]]]


def test_the_levers_behind_the_channels() -> None:
    found = result(lexical="ABC", vector="CDB")
    # rrf_k 1: A 1/2 = .5; B 1/3 + 1/4 = .583; C 1/4 + 1/2 = .75; D 1/3; the highest is 1/2 + 1/2
    assert hits(found, asked(rrf_k=1)) == ["C", "B", "A", "D"]
    assert hits(found, asked(rrf_k=1, k=2)) == ["C", "B"]
    assert hits(found, asked(rrf_k=1, score_gate=0.5)) == ["C", "B", "A"]
    # depth 1: A and C alone, of one score; the id settles it
    assert hits(found, asked(rrf_k=1, depth=1)) == ["A", "C"]
    assert hits(found, asked(mode="lexical")) == ["A", "B", "C"]
    assert hits(found, asked(mode="vector", depth=2)) == ["C", "D"]
    # a channel of weight 0 brings nothing in
    assert hits(found, asked(weights={"lexical": 1.0, "vector": 0.0})) == ["A", "B", "C"]


def test_the_metrics_by_hand() -> None:
    found = result(lexical="ABC", vector="CDB")
    recorded = RecordedCandidates(golden(QUERY), {"q": found}, 10)
    ranked = recorded.hits(asked(rrf_k=1))  # C B A D: the relevant one is second
    parse = default_registry().parse
    assert recorded.values(ranked, parse("mrr_at_10_chunk")).tolist() == [0.5]
    assert recorded.values(ranked, parse("ndcg_at_10_doc")).tolist() == [1 / math.log2(3)]
    # a gate of .6 leaves C alone
    assert recorded.values(ranked.gated(0.6), parse("hit_at_5_doc")).tolist() == [0.0]


def test_a_failed_query_has_no_hits_and_one_without_result_no_row() -> None:
    failed = QueryResult("q", "words", "hybrid", error="down")
    recorded = RecordedCandidates(golden(QUERY, GoldenQuery("r", "t")), {"q": failed}, 10)
    assert len(recorded.queries) == 1
    assert recorded.hits(asked()).count.tolist() == [0]
    assert recorded.answered.tolist() == [False]


def test_spans_are_found_in_any_of_their_chunks() -> None:
    query = GoldenQuery(
        "q",
        "words",
        Judgments(chunk={"B": 1.0, "D": 1.0}, doc={"b": 1.0}),
        spans=(Span("b", "one", chunk_ids=("B", "D")), Span("b", "two", chunk_ids=("X",))),
    )
    recorded = RecordedCandidates(golden(query), {"q": result(lexical="AB")}, 10)
    parse = default_registry().parse
    ranked = recorded.hits(asked(mode="lexical"))
    assert recorded.values(ranked, parse("span_recall_at_1")).tolist() == [0.0]
    assert recorded.values(ranked, parse("span_recall_at_5")).tolist() == [0.5]


letters = st.lists(st.sampled_from("ABCDEFGHIJKLMNOP"), unique=True, max_size=12)


@settings(max_examples=150, deadline=None)
@given(
    rankings=st.lists(st.tuples(letters, letters), min_size=1, max_size=4),
    relevant=st.sets(st.sampled_from("ABCDEFG"), min_size=1),
    rrf_k=st.sampled_from([0.5, 1, 2, 7, 60, 10_000]),
    weights=st.sampled_from([(1.0, 1.0), (0.3, 1.7), (0.0, 1.0), (2.0, 0.0)]),
    k=st.integers(1, 8),
    depth=st.integers(1, 12),
    mode=st.sampled_from(["hybrid", "lexical", "vector"]),
    gate=st.sampled_from([None, 0.3, 0.5, 0.9]),
    method=st.sampled_from(["rrf", "rrf", "weighted", "combmnz"]),
    fused_depth=st.sampled_from([None, 1, 4, 20]),
)
def test_all_queries_at_once_are_each_query_by_the_engine(
    *, rankings: Any, relevant: Any, rrf_k: float, weights: Any, k: int, depth: int, mode: Any,
    gate: float | None, method: str, fused_depth: int | None,
) -> None:  # fmt: skip
    """Hits and metrics equal those of the engine's own fusion, judged as a run is judged."""
    judged = Judgments(
        chunk=dict.fromkeys(sorted(relevant), 1.0),
        doc={one.lower(): 1.0 for one in sorted(relevant)},
    )
    queries = [GoldenQuery(f"q{n}", "t", judged) for n in range(len(rankings))]
    recorded_results = {
        f"q{n}": result(f"q{n}", lexical="".join(one), vector="".join(other))
        for n, (one, other) in enumerate(rankings)
    }
    one = asked(
        method=method, fused=fused_depth,
        mode=mode, k=k, depth=depth, score_gate=gate, rrf_k=rrf_k,
        weights={"lexical": weights[0], "vector": weights[1]},
    )  # fmt: skip
    pruned = k if method == "rrf" else None
    recorded = RecordedCandidates(golden(*queries), recorded_results, pruned)
    found = recorded.hits(one).gated(gate)
    results = []
    for number, query in enumerate(queries):
        ranked = fused(recorded_results[query.query_id], one)[:k]
        ranked = [(item, score) for item, score in ranked if gate is None or score >= gate]
        kept = found.order[number, : found.count[number]]
        assert [recorded.ids[number][item] for item in kept] == [item for item, _ in ranked]
        assert found.score[number, : len(ranked)].tolist() == [score for _, score in ranked]
        hits_ = tuple(
            Hit(rank, item, item.lower(), score, "rrf")
            for rank, (item, score) in enumerate(ranked, 1)
        )
        results.append(QueryResult(query.query_id, "t", mode, hits_))
    scores = evaluate_run(golden(*queries), results)
    for name in (
        "ndcg_at_10_chunk",
        "ndcg_at_10_doc",
        "recall_at_3_doc",
        "mrr_at_10_doc",
        "map_doc",
    ):
        column = recorded.values(found, default_registry().parse(name))
        expected = [row.get(name, math.nan) for row in scores.per_query]
        np.testing.assert_array_equal(column, expected)


def test_other_methods_are_done_query_by_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that only the engine knows gives what the engine gives: here backwards."""
    from kebab_eval.engine import fusion
    from kebab_eval.engine.fusion import Fused

    def backwards(channels: Any, _: Any) -> list[Fused]:
        names = sorted({item for ranking in channels.values() for item in ranking}, reverse=True)
        return [Fused(name, 1.0) for name in names]

    monkeypatch.setitem(fusion.METHODS, "rrf", backwards)
    monkeypatch.setattr(RecordedCandidates, "_at_once", lambda *_: False)
    assert hits(result(lexical="ABC", vector="CDB"), asked(), None) == ["D", "C", "B", "A"]
