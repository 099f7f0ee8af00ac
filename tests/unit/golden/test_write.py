"""Writing golden sets: exact files, and what each format is told to lose."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kebab_eval.errors import GoldenError
from kebab_eval.golden import load_golden
from kebab_eval.golden.write import WRITERS, write_golden
from kebab_eval.golden.yaml_text import key, number, quoted, word
from kebab_eval.records import BinaryJudgments, GoldenQuery, GoldenSet, Judgments, Span

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
RICH = GoldenQuery(
    "q-1",
    "k는 얼마?",
    Judgments(chunk={"a.md#k:1": 1.0}, doc={"a.md": 3.0, "7": 2.0, "b.md": 1.0}),
    language="ko",
    category="exam",
    difficulty="hard",
    group="k",
    ocr_derived=True,
    must_contain=("60",),
    forbidden=("no",),
    tags={"intent": "fact_lookup", "team": "x"},
    spans=(Span("a.md", "k is 60", grade=3.0), Span("b.md", section="k", grade=1.0)),
    v01=BinaryJudgments(frozenset({"a.md", "7"}), frozenset({"a.md"})),
    notes="a.md says it.",
)
NOTHING = GoldenQuery("q-2", "nothing", failure_expected=True)


def golden(*queries: GoldenQuery, least: float = 2, version: str = "0.2") -> GoldenSet:
    return GoldenSet("g", version, "", queries, least, "g.yaml", "docserver")


def written(target: str, given: GoldenSet) -> tuple[dict[str, str], list[str]]:
    done = write_golden(given, target)
    return dict(done.files), [str(loss) for loss in done.losses.kinds]


def test_kebab() -> None:
    files, losses = written("kebab", golden(RICH, NOTHING))
    assert (
        files[""]
        == """\
- id: q-1
  query: "k는 얼마?"
  lang: ko
  difficulty: hard
  group: k
  expected_doc_ids:
    - "a.md"
    - "7"
  expected_spans:
    - doc: "a.md"
      quote: "k is 60"
      grade: 3
  must_contain:
    - "60"
  forbidden:
    - "no"
  notes: "a.md says it."

- id: q-2
  query: "nothing"
"""
    )
    assert losses == [
        "dropped: category of 1 query (kebab has no place for it)",
        "dropped: ocr_derived of 1 query (kebab has no place for it)",
        "dropped: v0.1 ids of 1 query (kebab has no place for it)",
        "dropped: tags of 1 query (kebab has no place for it)",
        # the document and the chunk of grade 1, and the span of grade 1: all below 2
        "dropped: 2 judgments (below min_relevance 2; kebab lists what is relevant)",
        "dropped: 1 span (below min_relevance 2; kebab lists what is relevant)",
        "changed: grade of 2 judgments (every expected item of kebab has grade 1)",
        "changed: failure_expected of 1 query (a query that expects nothing says it)",
    ]


def test_docserver_v02() -> None:
    files, losses = written("docserver-v0.2", golden(RICH, NOTHING))
    assert (
        files[""]
        == """\
- id: q-1
  query: "k는 얼마?"
  category: exam
  intent: fact_lookup
  language: ko
  difficulty: hard
  group: k
  ocr_derived: true
  failure_expected: false
  graded_relevance:
    a.md: 3
    7: 2
    b.md: 1
  relevant_ids: ["a.md", 7]
  top3_ids: ["a.md"]
  expected_spans:
    - doc: "a.md"
      quote: "k is 60"
      grade: 3
    - doc: "b.md"
      section: "k"
      grade: 1
  must_contain:
    - "60"
  forbidden:
    - "no"
  notes: "a.md says it."
- id: q-2
  query: "nothing"
  failure_expected: true
  graded_relevance: {}
"""
    )
    assert losses == [
        "dropped: expected_chunk_ids of 1 query (docserver-v0.2 has no place for it)",
        "dropped: tags of 1 query (docserver has only legacy_category, intent, domain_hint)",
        "changed: document id of 2 ids (no plain integer: written as text)",
    ]


def test_a_binary_set_stays_relevant_in_docserver_v02() -> None:
    query = GoldenQuery("q", "t", Judgments(doc={"7": 1.0, "8": 0.0}), category="x", language="ja")
    files, losses = written("docserver-v0.2", golden(query, least=1, version="spring"))
    # Grade 1 would be below that format's min_relevance of 2.
    assert "    7: 2\n    8: 0\n" in files[""]
    assert files[""].startswith('version: "spring"\nqueries:\n- id: q\n')
    assert [loss.partition(" (")[0] for loss in losses] == [
        "changed: grade of 1 judgment",
        "dropped: language of 1 query",
        "dropped: category of 1 query",
    ]


def test_docserver_v01() -> None:
    files, losses = written("docserver-v0.1", golden(RICH, NOTHING))
    assert (
        files[""]
        == """\
- id: q-1
  query: "k는 얼마?"
  category: exam
  relevant_ids: ["a.md", 7]
  top3_ids: ["a.md"]
- id: q-2
  query: "nothing"
  relevant_ids: []
  top3_ids: []
"""
    )
    assert "dropped: 1 judgment (docserver-v0.1 lists what is relevant)" in losses
    assert "dropped: notes of 1 query (docserver-v0.1 has no place for it)" in losses


@pytest.mark.parametrize(
    ("least", "expected"), [(2, "[1, 2]\n  top3_ids: [1]"), (1, "[1, 2, 3]\n  top3_ids: []")]
)
def test_v01_ids_follow_from_grades(least: float, expected: str) -> None:
    # Of a scale that is relevant from 2 on, 3 is for the top three; others do not say.
    query = GoldenQuery("q", "t", Judgments(doc={"1": 3.0, "2": 2.0, "3": 1.0}))
    files, _ = written("docserver-v0.1", golden(query, least=least))
    assert f"relevant_ids: {expected}\n" in files[""]


def test_beir() -> None:
    files, losses = written("beir", golden(RICH, NOTHING))
    assert files == {
        "queries.jsonl": '{"_id": "q-1", "text": "k는 얼마?"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq-1\ta.md\t3\nq-1\t7\t2\nq-1\tb.md\t1\n",
    }
    assert losses[-3:] == [
        "dropped: 1 query (without judged documents they are not asked)",
        "changed: min_relevance of 1 query (set golden.min_relevance: 2 when you use it)",
        "dropped: version of 1 set (it is '0.2'; set golden.version)",
    ]


def test_trec() -> None:
    query = replace(RICH, query="Topic:  a <b>\n& c", judgments=Judgments(doc={"a": -1.0}))
    files, losses = written("trec", golden(query, least=1, version="1"))
    assert files == {
        "topics.trec": (
            "<top>\n<num> Number: q-1\n<title> Topic: Topic: a &lt;b&gt; &amp; c\n</top>\n"
        ),
        "qrels.txt": "q-1 0 a -1\n",
    }
    assert losses[-1] == "changed: white space of 1 query (the title of a topic is one line)"


@pytest.mark.parametrize("target", ["beir", "trec"])
def test_fractional_gains_become_relevant_or_not(target: str) -> None:
    query = GoldenQuery("q", "t", Judgments(doc={"a": 0.5, "b": 0.25, "c": 1.0}))
    files, losses = written(target, golden(query, least=0.5, version="1"))
    grades = [line.split()[-1] for line in list(files.values())[1].splitlines()]
    assert grades[-3:] == ["1", "0", "1"]
    assert losses == [
        f"changed: gain of 2 judgments ({target} has whole grades: 1 is relevant, 0 is not)"
    ]


@pytest.mark.parametrize(
    ("target", "bad"), [("trec", "a b"), ("trec", "a\u3000b"), ("beir", "a\tb"), ("beir", " a")]
)
def test_ids_that_columns_cannot_hold_are_all_named(target: str, bad: str) -> None:
    first = GoldenQuery(bad, "t", Judgments(doc={"x": 1.0}), place="g.yaml:1:3")
    second = GoldenQuery("q", "t", Judgments(doc={bad + "!": 1.0, "y": 1.0}), place="g.yaml:9:3")
    with pytest.raises(GoldenError) as told:
        write_golden(golden(first, second), target)
    assert [(fault.place, fault.message.split(" cannot")[0]) for fault in told.value.faults] == [
        ("g.yaml:1:3", f"query id {bad!r}"),
        ("g.yaml:9:3", f"document id {bad + '!'!r}"),
    ]


@pytest.mark.parametrize("target", ["beir", "trec"])
def test_a_set_without_a_judged_document_cannot_be_qrels(target: str) -> None:
    with pytest.raises(GoldenError, match="no query has a judged document"):
        write_golden(golden(NOTHING), target)


def test_our_own_lines_are_those_of_a_record() -> None:
    files, losses = written("jsonl", golden(RICH, NOTHING))
    lines = [json.loads(line) for line in files[""].splitlines()]
    assert lines == [RICH.to_json(), NOTHING.to_json()]
    assert [loss.partition(" (")[0] for loss in losses] == [
        "changed: min_relevance of 2 queries",
        "dropped: version of 1 set",
    ]


def test_resolved_chunks_are_left_behind() -> None:
    query = replace(RICH, spans=(replace(RICH.spans[0], chunk_ids=("c",)),))
    assert "chunk_ids" not in written("jsonl", golden(query))[0][""]


@pytest.mark.parametrize("target", WRITERS)
def test_half_a_character_is_refused(target: str) -> None:
    query = GoldenQuery("q", "\ud800", Judgments(doc={"a": 1.0}))
    with pytest.raises(GoldenError, match=r"U\+D800, half of a character"):
        write_golden(golden(query), target)


@pytest.mark.parametrize("target", ["kebab", "docserver-v0.2", "jsonl"])
def test_the_fixture_goes_there_and_back(target: str, tmp_path: Path) -> None:
    """What a format holds of a real set has the digest it had."""
    given = load_golden(FIXTURES / "golden_queries.yaml").golden
    path = tmp_path / f"g{WRITERS[target].endings[0]}"
    path.write_text(write_golden(given, target).files[""], encoding="utf-8")
    once = load_golden(path).golden
    path.write_text(write_golden(once, target).files[""], encoding="utf-8")
    assert load_golden(path).golden.digest == once.digest
    if target != "docserver-v0.2":
        assert once.digest == given.digest


@pytest.mark.parametrize("text", ["no", "On", "NULL", "~", "", "1e5", "02142", "a b", "-", "y"])
def test_what_yaml_would_reread_is_quoted(text: str) -> None:
    assert word(text) == f'"{text}"'


@pytest.mark.parametrize("text", ["q-1", "notes/a.md", "_x", "Nope"])
def test_a_plain_word_stays_bare(text: str) -> None:
    assert word(text) == text


def test_scalars() -> None:
    assert quoted('한글 "x"\n\u2028\x85\x1b') == '"한글 \\"x\\"\\n\\u2028\\u0085\\u001b"'
    assert key("a", "  ") == "a:"
    assert key("x" * 1000, "  ") == f"? {'x' * 1000}\n  :"
    assert [number(value) for value in (3.0, 0.5, -1.0)] == ["3", "0.5", "-1"]
