"""The linter: each code is told, where it stands, and nothing else is."""

from __future__ import annotations

import re
import time
import unicodedata
from pathlib import Path

import pytest

from kebab_eval.errors import GoldenError
from kebab_eval.golden.lint import ERRORS, WARNINGS, Finding, lint
from kebab_eval.golden.lint_corpus import _is_scan
from kebab_eval.golden.lint_texts import folded
from kebab_eval.golden.load import load_golden
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
    "other-document": "- {id: a, query: q, expected_doc_ids: [s.md], expected_chunk_ids: ['n#1']}",
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


def test_levels_that_do_not_count_are_left_alone_as_in_a_run(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(
        "- {id: a, query: q, expected_doc_ids: [n.md], expected_chunk_ids: ['old#1']}\n"
        "- {id: b, query: r, expected_chunk_ids: ['old#2']}\n"
    )
    corpus = {"docs": DOCS, "chunks": CHUNKS}
    everything = lint(path, None, LISTING, **corpus)
    assert [finding.code for finding in everything.findings] == ["unknown-id", "unknown-id"]
    documents = lint(path, None, LISTING, **corpus, levels=["doc"])
    assert [(f.code, f.position[1]) for f in documents.findings] == [("unjudged", 2)]
    with pytest.raises(GoldenError) as refused:
        load_golden(path, levels=["doc"])
    assert [fault.code for fault in refused.value.faults] == ["unjudged"]


def test_the_grade_from_which_an_item_counts_is_the_config_s(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    span = "{doc: n.md, quote: It was 600 once, grade: 1}"
    path.write_text(f"- {{id: a, query: q, expected_spans: [{span}], forbidden: ['600']}}")
    assert [f.code for f in lint(path, None, LISTING).findings] == ["forbidden"]
    assert lint(path, None, LISTING, min_relevance=2).findings == ()


ALIKE = "what does section {} of the manual say about the temperature of the pump"


def test_texts_with_other_numbers_ask_different_things(tmp_path: Path) -> None:
    def codes(*texts: str) -> list[str]:
        entries = [f'- {{id: "n{n}", query: "{text}"}}\n' for n, text in enumerate(texts)]
        return [line.split()[1] for line in told(tmp_path, "".join(entries))]

    assert codes(ALIKE.format(4), ALIKE.format(5)) == []
    assert codes(ALIKE.format("v1"), ALIKE.format("v2")) == []
    assert codes(ALIKE.format(4), ALIKE.format(4) + "s") == ["similar-query"]
    assert codes("why C++?", "why C#?", "why C?", "k 1.5", "k 15", "?", "!") == []
    assert codes("why C++?", "Why  c++", "k 1.5", "K 1.5!") == ["duplicate-query"] * 2


def test_alike_texts_that_expect_other_documents_are_no_group(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    entry = "- {{id: {}, query: '{}', expected_doc_ids: [{}]}}\n"
    text = ALIKE.format(4)
    for docs, advice in (("n.md", "give both one group"), ("s.md", "mend the judgments")):
        path.write_text(entry.format("a", text, "n.md") + entry.format("b", text + "s", docs))
        (finding,) = lint(path).findings
        assert advice in finding.message


def test_a_set_made_of_one_frame_is_compared_in_time(tmp_path: Path) -> None:
    """Each text shares most parts with each other: all pairs would be eight million."""
    path = tmp_path / "g.yaml"
    entry = "- {{id: q{}, query: '{}'}}\n"
    path.write_text("".join(entry.format(n, ALIKE.format(n)) for n in range(4000)))
    started = time.process_time()
    assert lint(path).findings == ()
    assert time.process_time() - started < 8


def test_grades_that_nobody_chose_are_not_doubted(tmp_path: Path) -> None:
    lists = "relevant_ids: [1, 2, 3], top3_ids: [1, 2, 3]"
    assert told(tmp_path, f"- {{id: a, query: q, {lists}}}", corpus=False) == []
    graded = "graded_relevance: {1: 3, 2: 3, 3: 3}, notes: x"
    found = told(tmp_path, f"- {{id: a, query: q, {graded}}}", corpus=False)
    assert found == ["1:39 all-highest"]


def test_a_whole_set_of_one_grade(tmp_path: Path) -> None:
    def codes(*grades: int) -> list[str]:
        case = "- {{id: a{}, query: word{}, graded_relevance: {{1: {}, 2: 0}}, notes: x}}\n"
        text = "".join(case.format(n, n, grade) for n, grade in enumerate(grades))
        return told(tmp_path, text, corpus=False)

    assert codes(3, 3, 3, 3, 3) == ["1:3 all-highest"]
    assert codes(3, 3, 3, 3, 2) == []
    assert codes(3, 3, 3, 3) == []  # four may be chance


@pytest.mark.parametrize(
    ("text", "scan"),
    [
        ("---\nocr_derived: true\n---\n", True),
        ("---\r\ntitle: x\r\nocr_derived: True \r\n---\r\nwords\r\n", True),
        ("---\nocr_derived: false\n---\n", False),
        ("---\ntitle: on scans\n---\nwrite\nocr_derived: true\n---\n", False),
        ("ocr_derived: true\n---\n", False),
    ],
)
def test_a_scan_is_marked_in_its_front_matter_alone(text: str, scan: bool) -> None:
    assert _is_scan(text) is scan


def test_another_chunker_is_told_once(tmp_path: Path) -> None:
    def entries(count: int, listed: str) -> str:
        span = "{doc: n.md, quote: It was 600 once}"
        return "".join(
            f"- {{id: a{listed[-1]}{n}, query: word {listed} {n}, expected_chunk_ids: ['{listed}'],"
            f" expected_spans: [{span}]}}\n"
            for n in range(count)
        )

    # n#2 holds the span. Of 5 + 4 five are stale, which is most; of 5 + 5 it is not.
    assert told(tmp_path, entries(5, "n#1") + entries(4, "n#2")) == ["1:52 stale-chunk"]
    assert len(told(tmp_path, entries(5, "n#1") + entries(5, "n#2"))) == 5
    assert len(told(tmp_path, entries(4, "n#1"))) == 4


def test_chunks_and_spans_of_documents_that_are_not_judged(tmp_path: Path) -> None:
    span = "expected_spans: [{doc: n.md, quote: It was 600 once}]"
    assert told(tmp_path, f"- {{id: a, query: q, expected_doc_ids: [s.md], {span}}}") == [
        "1:64 other-document"
    ]
    assert told(tmp_path, f"- {{id: a, query: q, expected_doc_ids: [s.md, n.md], {span}}}") == []
    assert told(tmp_path, f"- {{id: a, query: q, {span}}}") == []
    # What is not there has one fault, not two.
    gone = span.replace("n.md", "gone.md")
    found = told(tmp_path, f"- {{id: a, query: q, expected_doc_ids: [s.md], {gone}}}")
    assert found == ["1:64 anchor"]


@pytest.mark.parametrize(
    ("place", "position"),
    [
        ("g.yaml", ("g.yaml", None, None)),
        ("g.csv:7", ("g.csv", 7, None)),
        ("g.yaml:7:3", ("g.yaml", 7, 3)),
        ("C:\\sets\\g.yaml:7:3", ("C:\\sets\\g.yaml", 7, 3)),
        ("run:5:a/g.yaml", ("run:5:a/g.yaml", None, None)),
        ("", ("", None, None)),
    ],
)
def test_a_place_is_taken_apart(place: str, position: tuple[str, int | None, int | None]) -> None:
    assert Finding("error", "type", place, "x").position == position


def test_what_could_not_be_read_is_not_said_to_lack_a_corpus(tmp_path: Path) -> None:
    report = lint(tmp_path / "nowhere.yaml", None, LISTING, docs=DOCS, chunks=CHUNKS)
    assert summary_line(report) == "0 queries, 1 error, 0 warnings"
