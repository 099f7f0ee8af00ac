"""The linter: each code is told, where it stands, and nothing else is."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

from kebab_eval.golden.lint import ERRORS, WARNINGS, lint
from kebab_eval.golden.lint_texts import folded
from kebab_eval.golden.registry import ReadOptions
from kebab_eval.records import Listing, Passage
from kebab_eval.reports.lint import render_lint, summary_line

NOTE = "# k\n\nThe constant is 60. It was 600 once. The constant is 60.\n"
SCAN = "---\ntitle: s\nocr_derived: true\n---\n\nScanned words.\n"
LISTING = Listing(
    (
        Passage("n#1", "n.md", NOTE[:24], 0, 24),
        Passage("n#2", "n.md", NOTE[25:], 25, len(NOTE)),
        Passage("s#1", "s.md", SCAN[40:], 40, len(SCAN)),
    ),
    {"n.md": NOTE, "s.md": SCAN},
)
DOCS, CHUNKS = frozenset({"n.md", "s.md"}), frozenset({"n#1", "n#2", "s#1"})

DOCSERVER = """\
- id: std_001
  query: one
  category: standards
  graded_relevance: {n.md: 3, s.md: 0}
  notes: because
"""


def told(folder: Path, text: str, *, corpus: bool = True, name: str = "g.yaml") -> list[str]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    report = lint(
        path,
        None,
        LISTING if corpus else None,
        docs=DOCS if corpus else None,
        chunks=CHUNKS if corpus else None,
    )
    return [
        f"{':'.join(map(str, finding.position[1:]))} {finding.code}" for finding in report.findings
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("- {id: a, query: q, expect: x}", "1:21 unknown-field"),
        ("- {id: a}", "1:3 missing-field"),
        ("- {id: a, query: q, lang: kr}", "1:27 unknown-value"),
        ("- {id: a, query: q, expected_doc_ids: n.md}", "1:39 type"),
        ("- {id: a, query: q, expected_doc_ids: [n.md, n.md]}", "1:46 duplicate-item"),
        ("- {id: a, query: q}\n- {id: a, query: other words}", "2:3 duplicate-id"),
        ("- {id: a, query: q, expected_spans: [{doc: n.md}]}", "1:38 span"),
        ("- {id: a, query: q, expected_spans: [{doc: n.md, quote: is 61}]}", "1:38 anchor"),
        ("- {id: a, query: q, expected_doc_ids: [m.md]}", "1:40 unknown-id"),
        ("- {id: a, query: q, expected_chunk_ids: ['n#9']}", "1:42 unknown-id"),
        ("[]", "None:None empty"),
        ("- {id: a, query: q", "1:19 unreadable"),
    ],
)
def test_each_error_is_told_where_it_stands(tmp_path: Path, text: str, code: str) -> None:
    found = told(tmp_path, text)
    if code.endswith("unreadable"):
        assert [line.split()[1] for line in found] == ["unreadable"]
    else:
        assert found == [code]


def test_groups_and_judged_failures(tmp_path: Path) -> None:
    text = """\
- {id: a, query: q, group: g, expected_doc_ids: [n.md]}
- {id: b, query: r, group: g, expected_doc_ids: [s.md]}
"""
    assert told(tmp_path, text) == ["2:3 group"]
    text = DOCSERVER.replace("notes: because", "failure_expected: true\n  notes: because")
    assert "4:21 failure-judged" in told(tmp_path, text)
    assert "4:22 grade" not in told(tmp_path, text)
    assert "4:28 grade" in told(tmp_path, DOCSERVER.replace("n.md: 3", "n.md: 4"))


WARNED = {
    "duplicate-query": "- {id: a, query: 'What is it?'}\n- {id: b, query: what  is IT}",
    "similar-query": (
        "- {id: a, query: 'how many candidates does the reranker keep in all'}\n"
        "- {id: b, query: 'how many candidates does the reranker keep in al'}"
    ),
    "only-zero": DOCSERVER.replace("n.md: 3", "n.md: 0"),
    "all-highest": (
        "- {id: std_1, query: q, graded_relevance: {n.md: 3, s.md: 3, t.md: 3}, notes: x}\n"
    ),
    "no-notes": DOCSERVER + "- {id: std_002, query: two, graded_relevance: {n.md: 3, s.md: 1}}\n",
    "language": "- {id: a, query: what is it, lang: ko}",
    "ocr": DOCSERVER + "  ocr_derived: true\n",
    "must-contain": "- {id: a, query: q, expected_doc_ids: [n.md], must_contain: ['61']}",
    "forbidden": "- {id: a, query: q, expected_chunk_ids: ['n#2'], forbidden: ['600']}",
    "small-category": DOCSERVER,
    "single-group": "- {id: a, query: q, group: alone, expected_doc_ids: [n.md]}",
    "nfd-id": "- {id: " + unicodedata.normalize("NFD", "가") + ", query: q}",
    "yaml-number": "- {id: 02142, query: q}",
    "stale-chunk": (
        "- {id: a, query: q, expected_chunk_ids: ['n#1'],"
        " expected_spans: [{doc: n.md, quote: It was 600 once}]}"
    ),
    "ambiguous-quote": (
        "- {id: a, query: q, expected_spans: [{doc: n.md, quote: The constant is 60}]}"
    ),
}


@pytest.mark.parametrize("code", WARNINGS)
def test_each_warning_is_told(tmp_path: Path, code: str) -> None:
    assert code in {line.split()[1] for line in told(tmp_path, WARNED[code])}


SOUND = """\
- id: a
  query: 상수는 얼마인가
  lang: ko
  group: g
  expected_doc_ids: [n.md]
  expected_chunk_ids: ["n#2"]
  expected_spans: [{doc: n.md, quote: It was 600 once}]
  must_contain: ["600"]
  forbidden: ["61"]
- {id: b, query: what is the constant, lang: en, group: g, expected_doc_ids: [n.md]}
- {id: "02142", query: "RRF의 k는 what?", lang: mixed}
"""


def test_a_sound_set_has_no_findings(tmp_path: Path) -> None:
    assert told(tmp_path, SOUND) == []


def test_one_broken_entry_hides_nothing_of_the_others(tmp_path: Path) -> None:
    text = """\
- {id: a, query: q, lang: kr, expected_doc_ids: [m.md]}
- {id: b}
- {id: b, query: r, oops: 1}
- {id: c, query: what is it, lang: ko}
"""
    assert told(tmp_path, text) == [
        "1:27 unknown-value",
        "1:50 unknown-id",
        "2:3 missing-field",
        "3:21 unknown-field",
        "4:36 language",
    ]


@pytest.mark.parametrize(
    "written", ["1e5", "0x1F", "null", "no", "12:30", "2026-11-30", "1_000", "~", "007", "3.0", "7"]
)
def test_ids_that_other_readers_take_for_something_else(tmp_path: Path, written: str) -> None:
    found = told(tmp_path, f"- {{id: {written}, query: q}}")
    assert "yaml-number" in found[0] or "missing-field" in found[0]  # null and ~ are nothing here
    assert told(tmp_path, f'- {{id: "{written}", query: q}}') == []


def test_whole_numbers_are_the_ids_of_the_document_server(tmp_path: Path) -> None:
    text = "- {id: s1, query: q, category: exam, graded_relevance: {3856: 3, 02142: 1}, notes: x}"
    found = told(tmp_path, text, corpus=False)
    assert [line for line in found if "yaml-number" in line] == ["1:66 yaml-number"]


def test_without_a_corpus_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text("- {id: a, query: q, expected_doc_ids: [nowhere.md]}")
    report = lint(path)
    assert report.findings == ()
    assert "not held against a corpus" in summary_line(report)


def test_the_forms(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text("- {id: a, query: q, 'un%\\x1b[31m': x}\n- {id: b, query: 'q!'}", "utf-8")
    report = lint(path, ReadOptions())
    text = render_lint(report, "text").splitlines()
    assert len(text) == len(report.findings)
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+ [a-z-]+ (error|warning): ", text[0])
    github = render_lint(report, "github").splitlines()
    assert github[-1].startswith("::warning file=")
    assert "title=golden duplicate-query::asks the same" in github[-1]
    assert '"schema_version": "kebab_eval.lint.v1"' in render_lint(report, "json")


def test_folding_leaves_words_alone() -> None:
    assert folded("What is  RRF?") == folded("what is rrf")
    assert folded("가나 다") == folded("가나다!")
    assert folded("60") != folded("600")


def test_the_page_explains_every_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "golden-lint.md").read_text("utf-8")
    explained = re.findall(r"^\| `([a-z-]+)` \|", page, flags=re.MULTILINE)
    assert explained == [*ERRORS, *WARNINGS]
