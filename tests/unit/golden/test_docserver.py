"""The Document Server's sets: grades, the mapping of v0.1, ids as text, what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab_eval.errors import GoldenError
from kebab_eval.golden import LoadedGolden, load_golden
from kebab_eval.records import BinaryJudgments


def loaded(folder: Path, text: str) -> LoadedGolden:
    (folder / "g.yaml").write_text(text, encoding="utf-8")
    return load_golden(folder / "g.yaml")


def faults(folder: Path, text: str) -> list[tuple[str, str]]:
    with pytest.raises(GoldenError) as told:
        loaded(folder, text)
    return [(f.code, str(f).replace(f"{folder}/", "")) for f in told.value.faults]


def test_a_graded_case_is_read_whole(tmp_path: Path) -> None:
    golden = loaded(
        tmp_path,
        """
- id: std_006
  query: "안전 거리"
  category: standards
  legacy_category: norm
  intent: fact_lookup
  domain_hint: document
  language: ko
  ocr_derived: false
  failure_expected: false
  graded_relevance: {3856: 3, 02142: 2, 4101: 0}
  notes: "3856 says it."
""",
    ).golden
    (query,) = golden.queries
    assert (golden.format, golden.version, golden.min_relevance) == ("docserver", "0.2", 2)
    assert query.judgments.doc == {"3856": 3.0, "02142": 2.0, "4101": 0.0}
    assert (query.category, query.language, query.ocr_derived) == ("standards", "ko", False)
    assert query.tags == {
        "legacy_category": "norm",
        "intent": "fact_lookup",
        "domain_hint": "document",
    }
    assert query.notes == "3856 says it."
    # Without the ids of v0.1: relevant from grade 2, of the top three from grade 3.
    assert query.v01 == BinaryJudgments(frozenset({"3856", "02142"}), frozenset({"3856"}))


def test_the_ids_of_v01_are_kept_as_they_stand(tmp_path: Path) -> None:
    text = "- {id: a, query: t, graded_relevance: {1: 3, 2: 3}, relevant_ids: [1], top3_ids: []}"
    (query,) = loaded(tmp_path, text).golden.queries
    assert query.v01 == BinaryJudgments(frozenset({"1"}), frozenset())


def test_a_binary_set_gets_grades(tmp_path: Path) -> None:
    text = "- {id: a, query: t, category: old, relevant_ids: [1, 02], top3_ids: [1, 3]}"
    golden = loaded(tmp_path, text).golden
    (query,) = golden.queries
    assert (golden.version, golden.min_relevance) == ("0.1", 2)
    assert query.judgments.doc == {"1": 3.0, "02": 2.0, "3": 3.0}
    assert query.v01 == BinaryJudgments(frozenset({"1", "02", "3"}), frozenset({"1", "3"}))


@pytest.mark.parametrize("further", ["notes: why", "must_contain: [x]", "difficulty: hard"])
def test_what_is_ours_does_not_make_a_binary_set_a_graded_one(tmp_path: Path, further: str) -> None:
    golden = loaded(tmp_path, f"- {{id: a, query: t, relevant_ids: [1], {further}}}").golden
    assert golden.version == "0.1"
    assert golden.queries[0].judgments.doc == {"1": 2.0}


def test_a_case_without_grades_in_a_graded_set_is_read_as_v01(tmp_path: Path) -> None:
    text = (
        "- {id: a, query: t, graded_relevance: {7: 3}}\n"
        "- {id: b, query: u, relevant_ids: [1, 2], top3_ids: [2]}\n"
    )
    _, second = loaded(tmp_path, text).golden.queries
    assert second.judgments.doc == {"1": 2.0, "2": 3.0}


def test_a_mapping_may_name_its_version(tmp_path: Path) -> None:
    text = "version: 2026-03\nqueries:\n- {id: a, query: t, relevant_ids: [1]}\n"
    assert loaded(tmp_path, text).golden.version == "2026-03"


def test_a_span_is_as_relevant_as_its_document(tmp_path: Path) -> None:
    text = """
- id: a
  query: t
  graded_relevance: {7: 3, 8: 0}
  expected_spans:
    - {doc: 7, quote: x}
    - {doc: 7, quote: y, grade: 1}
    - {doc: 8, quote: z}
    - {doc: 9, quote: w}
"""
    (query,) = loaded(tmp_path, text).golden.queries
    # Grade 1 would be below min_relevance 2: the chunk that answers would count for nothing.
    assert [span.grade for span in query.spans] == [3.0, 1.0, 2.0, 2.0]


def test_every_id_has_its_place(tmp_path: Path) -> None:
    text = "- {id: a, query: t, graded_relevance: {7: 3}, relevant_ids: [7, 8]}"
    (entry,) = loaded(tmp_path, text).entries
    places = {
        item: place.replace(f"{tmp_path}/", "") for (_, item), place in entry.id_places.items()
    }
    assert places == {"7": "g.yaml:1:40", "8": "g.yaml:1:65"}


@pytest.mark.parametrize("grade", ["4", "-1", "1.5", "3.0", "x", "true", ".nan", "null", "[3]"])
def test_a_grade_is_0_1_2_or_3(tmp_path: Path, grade: str) -> None:
    ((code, told),) = faults(tmp_path, f"- {{id: a, query: t, graded_relevance: {{7: {grade}}}}}")
    assert code == "grade"
    assert told.startswith("g.yaml:1:43: the grade of '7' must be 0, 1, 2 or 3, found ")


@pytest.mark.parametrize(
    "judged",
    [
        "graded_relevance: {7: 0}",
        "relevant_ids: [7]",
        "top3_ids: [7]",
        "expected_spans: [{doc: 7, quote: x}]",
    ],
)
def test_a_failure_case_has_no_judgments(tmp_path: Path, judged: str) -> None:
    told = faults(tmp_path, f"- {{id: a, query: t, failure_expected: true, {judged}}}")
    assert [code for code, _ in told] == ["failure-judged"]


def test_a_failure_case_expects_nothing(tmp_path: Path) -> None:
    text = "- {id: a, query: t, failure_expected: true, graded_relevance: {}, relevant_ids: []}"
    (query,) = loaded(tmp_path, text).golden.queries
    assert query.failure_expected
    assert query.should_refuse


@pytest.mark.parametrize(
    ("field", "code", "says"),
    [
        ("category: standard", "unknown-value", "(did you mean 'standards'?)"),
        ("intent: lookup", "unknown-value", "intent must be one of semantic_search"),
        ("domain_hint: web", "unknown-value", "domain_hint must be one of document, news, mixed"),
        ("language: kr", "unknown-value", "language must be one of ko, en, mixed"),
        ("ocr_derived: maybe", "type", "ocr_derived must be true or false"),
        ("graded_relevence: {}", "unknown-field", "(did you mean 'graded_relevance'?)"),
        ("graded_relevance: [7]", "type", "must be a mapping of id: grade, found a list"),
        ("graded_relevance: {é: 1, e\u0301: 2}", "duplicate-item", "holds 'é' twice; keep one"),
        ("graded_relevance: {'': 1}", "missing-field", "graded_relevance holds an empty id"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, field: str, code: str, says: str) -> None:
    ((found, told),) = faults(tmp_path, f"- {{id: a, query: t, failure_expected: false, {field}}}")
    assert found == code
    assert says in told
    assert told.startswith("g.yaml:1:")


def test_an_unknown_key_beside_the_queries_is_told(tmp_path: Path) -> None:
    told = faults(tmp_path, "verison: 1\nqueries:\n- {id: a, query: t, relevant_ids: [1]}\n")
    assert told == [
        ("unknown-field", "g.yaml:1:1: unknown field 'verison'; allowed: queries, version")
    ]
