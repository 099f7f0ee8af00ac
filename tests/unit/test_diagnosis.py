"""Which stage lost an answer: hand-made candidates, one for each stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kebab_eval.diagnosis import LEVERS, STAGES, diagnose, lost_at, miss_stage
from kebab_eval.records import (
    Candidate,
    EvalRun,
    GoldenQuery,
    GoldenSet,
    Hit,
    Judgments,
    QueryResult,
    Span,
)
from kebab_eval.reports.diagnosis import render_diagnosis

CONFIG: dict[str, Any] = {
    "search": {"mode": "hybrid", "k": 2, "depth": 4},
    "fusion": {"method": "rrf", "rrf_k": 1, "weights": {"lexical": 1.0, "vector": 1.0}},
    "score_gate": None,
    "metrics": {"primary": "ndcg_at_10_doc", "cutoffs": [1], "seed": 0},
}
QUERY = GoldenQuery("q", "words", Judgments(chunk={"w#1": 1.0}, doc={"w": 1.0}), language="ko")


def channel(*names: str) -> tuple[Candidate, ...]:
    return tuple(Candidate(f"{name}#1", name, 1.0) for name in names)


def result(
    lexical: str = "", vector: str = "", hits: str = "ab", error: str | None = None
) -> QueryResult:
    """The channels' rankings and the hits, a letter a document; ``w`` is the one wanted."""
    found = tuple(Hit(n, f"{name}#1", name, 1.0, "rrf") for n, name in enumerate(hits, 1))
    candidates = {"lexical": channel(*lexical), "vector": channel(*vector)}
    if not (lexical or vector):
        candidates = {}
    return QueryResult("q", "words", "hybrid", found, 1.0, error, candidates=candidates)


@pytest.mark.parametrize(
    ("answered", "config", "stage"),
    [
        (result("abw", "abw", hits="aw"), {}, None),
        (result(error="timeout"), {}, "failed"),
        (result(), {}, "not returned"),
        (result("abcd", "abcd"), {}, "no candidate"),
        (result("abcw", "abcd"), {}, "one channel"),
        # lexical 1/(1+2) + vector 1/(1+4) = .533; a: 1/2 + 1/2 = 1; b: 1/4 + 1/3 = .583
        (result("awbc", "abcw"), {}, "fused out"),
        (result("abcw", "abcw"), {}, "beyond k"),
        # 1/(1+1) + 1/(1+2) = .833 is the second of the fusion: only the gate can have dropped it
        (result("wabc", "awbc", hits="a"), {"score_gate": 0.9}, "score gate"),
    ],
)
def test_each_stage(answered: QueryResult, config: dict[str, Any], stage: str | None) -> None:
    assert miss_stage(QUERY, answered, {**CONFIG, **config}, 1.0) == stage


def test_what_nothing_answers_is_not_missed() -> None:
    assert miss_stage(GoldenQuery("q", "t"), result("ab", "ab"), CONFIG, 1.0) is None


def test_a_span_that_no_chunk_holds_cannot_be_won() -> None:
    gone = GoldenQuery("q", "t", spans=(Span("d", "gone", chunk_ids=()),))
    assert miss_stage(gone, result("ab", "ab"), CONFIG, 1.0) == "unwinnable"


def test_a_system_of_one_channel_has_no_fusion_to_blame() -> None:
    lexical = QueryResult("q", "words", "lexical", candidates={"lexical": channel(*"abw")})
    lost = lost_at(QUERY, lexical, CONFIG, 1.0)
    assert lost is not None
    assert (lost.stage, lost.fused_rank, lost.channel_ranks) == ("beyond k", 3, {"lexical": 3})


def test_documents_are_looked_for_where_no_chunk_is_judged() -> None:
    by_document = GoldenQuery("q", "t", Judgments(doc={"w": 1.0}))
    lost = lost_at(by_document, result("abcw", "abcd"), CONFIG, 1.0)
    assert lost is not None
    assert (lost.level, lost.item, lost.channel_ranks) == ("doc", "w", {"lexical": 4})


def run() -> EvalRun:
    languages = {"q1": "ko", "q2": "ko", "q3": "en", "q4": "en"}
    queries = (
        *(
            GoldenQuery(name, f"text {name}", QUERY.judgments, language=language)
            for name, language in languages.items()
        ),
        GoldenQuery("n", "nothing"),
    )
    answers = [
        result("wabc", "abcd"),  # one channel had it first: 1/2 = .5; a .833, b .583
        result("abcw", "abcw"),
        result("abcd", "abcd"),
        result("w", "w", hits="w"),
        result("a", "b"),
    ]
    results = tuple(
        replace(answer, query_id=query.query_id, metrics={"ndcg_at_10_doc": 0.0})
        for query, answer in zip(queries, answers, strict=True)
    )
    info = {"id": "r", "name": "a run", "status": "FINISHED"}
    return EvalRun(info, CONFIG, GoldenSet("g", "1", "x", queries), results, {})


def test_a_run_by_stage_slice_and_lever() -> None:
    found = diagnose(run())
    assert found.answerable == 4
    assert {stage: [one.query_id for one in lost] for stage, lost in found.by_stage.items()} == {
        "no candidate": ["q3"], "one channel": ["q1"], "beyond k": ["q2"]
    }  # fmt: skip
    assert found.slices == {("language", "en"): (1, 2), ("language", "ko"): (2, 2)}
    wins = {win.lever: win.queries for win in found.wins}
    assert wins["search.k"] == ("q1", "q2")  # both stand within the first 20 of the fusion
    assert wins["fusion"] == ("q1",)
    assert wins["candidates"] == ("q3",)
    assert found.wins[0].lever == "search.k"


def test_each_missed_query_has_one_cause_and_says_if_its_document_came_back() -> None:
    """What is missed here is a chunk; another chunk of its document is among q1's hits."""
    whole = run()
    other = Hit(2, "w#2", "w", 1.0, "rrf")
    first = replace(whole.results[0], hits=(whole.results[0].hits[0], other))
    found = diagnose(replace(whole, results=(first, *whole.results[1:])))
    assert [(one.query_id, one.cause, one.document_rank) for one in found.lost] == [
        ("q1", "ranked out", 2), ("q2", "ranked out", None), ("q3", "candidate recall", None)
    ]  # fmt: skip
    assert found.to_json()["causes"] == {"ranked out": 2, "candidate recall": 1}
    assert found.to_json()["found_the_document"] == 1
    for form in ("text", "md"):
        said = render_diagnosis(found, form)
        assert "nothing relevant; 1 of them found the document, but not the passage" in said
        assert said.index("ranked out") < said.index("candidate recall")


def test_without_candidates_the_recorded_stage_stands() -> None:
    """A frozen baseline holds each query's stage, and not the candidates that it follows from."""
    whole = run()
    stages = [None, "beyond k", "no candidate", None, None]
    results = tuple(
        replace(result, candidates={}, miss_stage=stage)
        for result, stage in zip(whole.results, stages, strict=True)
    )
    found = diagnose(replace(whole, results=results))
    assert [(one.query_id, one.stage) for one in found.lost] == [
        ("q1", "not returned"), ("q2", "beyond k"), ("q3", "no candidate")
    ]  # fmt: skip


def test_the_forms_say_the_same() -> None:
    found = diagnose(run())
    text = render_diagnosis(found, "text")
    assert text.startswith("a run: 3 of 4 answerable queries found nothing relevant\n")
    assert "     1  one channel   one channel had it" in text
    assert "one channel q1 (lexical 1, fused 3) text q1" in text
    assert "|" in render_diagnosis(found, "md")
    assert '"schema_version": "kebab_eval.diagnosis.v1"' in render_diagnosis(found, "json")


def test_hostile_texts_stay_in_their_place() -> None:
    bad = run()
    queries = (replace(bad.golden.queries[0], query="<b>\n\x1b[31m|x"), *bad.golden.queries[1:])
    found = diagnose(replace(bad, golden=replace(bad.golden, queries=queries)))
    assert "\x1b" not in render_diagnosis(found, "text")
    assert "\\<b\\>" in render_diagnosis(found, "md")


def test_every_stage_has_a_lever() -> None:
    assert STAGES.keys() == LEVERS.keys()
