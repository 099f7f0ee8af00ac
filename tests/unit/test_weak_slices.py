"""Which slices are weak, and the one cause of each miss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kebab_eval.records import Candidate, EvalRun, GoldenQuery, Judgments
from kebab_eval.weak_slices import document_languages, find_misses, find_weak_slices

JudgedRun = Callable[..., EvalRun]

ENGLISH = "a long enough English sentence about backups and restores"
KOREAN = "백업과 복구에 관한 충분히 긴 한국어 문장이며 언어를 알 수 있는 문장"
MIXED = "백업 정책 backup policy 복구 restore 절차 procedure"


def query(query_id: str, text: str, *docs: str, **more: Any) -> GoldenQuery:
    return GoldenQuery(query_id, text, Judgments(doc=dict.fromkeys(docs, 1.0)), **more)


def run_of(make: JudgedRun, queries: list[GoldenQuery], **found: list[str] | None) -> EvalRun:
    """Return a run; snippets of ``en*``, ``ko*`` and ``mix*`` documents are in that language."""
    run = make("r", queries, found)
    texts = {"en": ENGLISH, "ko": KOREAN, "mi": MIXED}
    results = tuple(
        replace(
            result,
            hits=tuple(replace(hit, snippet=texts.get(hit.doc_id[:2], "?")) for hit in result.hits),
        )
        for result in run.results
    )
    return replace(run, results=results)


def test_languages_are_read_from_what_came_back(judged_run: JudgedRun) -> None:
    run = run_of(judged_run, [query("q", "x", "en1")], q=["en1#a", "ko1#a", "mix#a", "zz#a"])
    assert document_languages(run) == {"en1": "en", "ko1": "ko", "mix": "mixed"}


@pytest.mark.parametrize(
    ("asked", "found", "cause"),
    [
        (query("q", "how", "en1", language="en"), None, "failed"),
        (query("q", "how", "en1", language="en"), ["ko1#a", "en1#a"], "ranked low"),
        (query("q", "백업", "en1", language="ko"), ["ko1#a"], "crosslingual"),
        (query("q", "how", "ko1", language="en"), ["en1#a"], "crosslingual"),
        (query("q", "백업", "en1"), ["ko1#a"], "crosslingual"),  # the language is read, too
        (query("q", "how", "en1", language="en"), ["ko1#a"], "candidate recall"),
        (query("q", "백업", "zz", language="ko"), ["ko1#a"], "candidate recall"),  # not known
        (query("q", "백업", "en1", "ko1", language="ko"), [], "candidate recall"),
        (query("q", "backup 정책", "en1", language="mixed"), ["ko1#a"], "mixed text"),
        (query("q", "備份 정책", "ko1", language="ko"), ["en1#a"], "mixed text"),
        (query("q", "백업", "en1", language="ko", ocr_derived=True), ["ko1#a"], "ocr"),
    ],
)
def test_each_miss_has_one_cause(
    judged_run: JudgedRun, asked: GoldenQuery, found: list[str] | None, cause: str
) -> None:
    # another query shows every document, so that its language is known
    other = query("other", "x", "en1")
    run = run_of(judged_run, [asked, other], q=found, other=["en1#a", "ko1#a"])
    (miss,) = find_misses(run)
    assert (miss.query_id, miss.cause) == ("q", cause)


def test_what_was_among_the_candidates_was_ranked_out(judged_run: JudgedRun) -> None:
    run = run_of(judged_run, [query("q", "how", "en1", language="en")], q=["en2#a"])
    (result,) = run.results

    def cause(*found: str) -> str:
        channel = tuple(Candidate(f"{doc}#a", doc, 1.0) for doc in found)
        held = replace(run, results=(replace(result, candidates={"lexical": channel}),))
        (miss,) = find_misses(held)
        return miss.cause

    assert cause("en2", "en1") == "ranked out"
    assert cause("en2", "en3") == "candidate recall"


def test_weak_slices_are_sorted_from_the_lowest(judged_run: JudgedRun) -> None:
    # ndcg@10: found at rank 1 is 1, at rank 3 is 1 / log2(4) = 0.5, not at all 0
    queries = [
        query("a", "x", "en1", language="en"),
        query("b", "x", "en1", language="en"),
        query("c", "x", "ko1", language="ko"),
        query("d", "x", "en2", language="mixed"),
    ]
    run = run_of(
        judged_run,
        queries,
        a=["en1#a"],
        b=["en2#a", "ko1#a", "en1#a"],
        c=["en1#a"],
        d=["en1#a", "ko1#a", "en2#a"],
    )
    weak = find_weak_slices(run)
    # en: (1 + 0.5) / 2 = 0.75 is not weak
    assert [(part.field, part.value, part.score, part.n) for part in weak] == [
        ("language", "ko", 0.0, 1),
        ("language", "mixed", 0.5, 1),
    ]
    assert [cause for part in weak for cause in part.by_cause()] == [
        "candidate recall",
        "ranked low",
    ]


def test_a_perfect_run_has_no_weak_slice(judged_run: JudgedRun) -> None:
    run = run_of(judged_run, [query("a", "x", "en1", language="en")], a=["en1#a"])
    assert (find_weak_slices(run), find_misses(run)) == ([], [])
