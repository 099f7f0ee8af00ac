"""The graded set in the Document Server's form is what its header says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.engine.corpus import Corpus, read_corpus
from kebab_eval.engine.document_ids import read_document_ids
from kebab_eval.errors import GoldenError
from kebab_eval.golden import check_ids, load_golden
from kebab_eval.yaml_source import parse_yaml

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SET = FIXTURES / "search_eval"
PREFIXES = {
    "standards": "std",
    "korean_only": "kor",
    "english_only": "eng",
    "mixed": "mix",
    "exam": "exm",
    "ocr_derived": "ocr",
    "failure_expected": "fail",
}


def plain(name: str) -> Any:
    text = (SET / name).read_text(encoding="utf-8")
    assert "&" not in re.sub(r'"[^"]*"', "", text)  # no anchors: any reader can read it
    root = parse_yaml(text, name, GoldenError)
    assert root is not None
    return root.python()


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return list(plain("queries.yaml"))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus(FIXTURES / "corpus")


def test_every_category_has_cases_to_speak_of(cases):
    counts = Counter(case["category"] for case in cases)
    assert sum(counts.values()) >= 56
    assert set(counts) == set(PREFIXES)
    assert min(counts.values()) >= 5


def test_ids_are_the_categorys_prefix_and_count_up(cases):
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case["category"]] += 1
        number = seen[case["category"]]
        assert case["id"] == f"{PREFIXES[case['category']]}_{number:03d}"


def test_every_note_has_an_id_in_the_order_of_the_paths(corpus):
    paths = [document.doc_id for document in corpus.documents]
    ids = read_document_ids(SET / "documents.yaml", paths)
    assert [ids[path] for path in paths] == [str(101 + index) for index in range(len(paths))]


def test_the_shortlists_follow_from_the_grades(cases):
    for case in cases:
        grades = case["graded_relevance"]
        assert set(grades.values()) <= {0, 1, 2, 3}
        relevant = [int(doc) for doc, grade in grades.items() if grade >= 2]
        assert sorted(case["relevant_ids"]) == sorted(relevant)
        assert set(case["top3_ids"]) == {int(doc) for doc, grade in grades.items() if grade == 3}
        assert case["notes"].endswith(".")


def test_failures_are_judged_empty_and_nothing_else_is(cases):
    for case in cases:
        assert case["failure_expected"] == (case["category"] == "failure_expected")
        assert case["failure_expected"] == (case["graded_relevance"] == {})
        assert case["failure_expected"] or 3 in case["graded_relevance"].values()


def test_not_everything_that_is_relevant_is_highly_relevant(cases):
    grades = Counter(grade for case in cases for grade in case["graded_relevance"].values())
    assert min(grades[grade] for grade in (0, 1, 2, 3)) >= 20


def test_ocr_and_categories_agree_with_the_notes_that_answer(cases, corpus):
    ids = read_document_ids(
        SET / "documents.yaml", [document.doc_id for document in corpus.documents]
    )
    meta = {ids[document.doc_id]: document.meta for document in corpus.documents}
    for case in cases:
        best = [str(doc) for doc, grade in case["graded_relevance"].items() if grade == 3]
        scanned = any(meta[doc].get("ocr_derived") is True for doc in best)
        assert case["ocr_derived"] is scanned, case["id"]
        assert (case["category"] == "ocr_derived") is scanned, case["id"]
        languages = {meta[doc]["lang"] for doc in best}
        if case["category"] == "korean_only":
            assert languages == {"ko"}, case["id"]
        if case["category"] == "english_only":
            assert languages == {"en"}, case["id"]
        if case["category"] == "mixed":
            of_one = languages in ({"ko"}, {"en"})
            assert case["language"] == "mixed" or not of_one, case["id"]


def test_the_twin_is_the_same_set_in_the_old_form(cases):
    old = plain("queries_v01.yaml")
    assert [
        {
            "id": case["id"],
            "query": case["query"],
            "category": case["legacy_category"],
            "relevant_ids": case["relevant_ids"],
            "top3_ids": case["top3_ids"],
        }
        for case in cases
    ] == old
    assert len({case["category"] for case in old}) == 9


@pytest.mark.parametrize("name", ["queries.yaml", "queries_v01.yaml"])
def test_both_forms_load_and_name_documents_of_the_corpus(name, corpus):
    loaded = load_golden(SET / name)
    paths = [document.doc_id for document in corpus.documents]
    check_ids(loaded, None, set(read_document_ids(SET / "documents.yaml", paths).values()))
    assert loaded.golden.format == "docserver"
    assert sum(query.should_refuse for query in loaded.golden.queries) == 10
