"""People's own sets: JSON, JSON lines and CSV through a map, and what is wrong with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.errors import GoldenError
from kebab_eval.golden import ReadOptions, load_golden
from kebab_eval.golden.mapped import USUAL
from kebab_eval.golden.references import resolve_documents
from kebab_eval.records import GoldenQuery, GoldenSet, Span


def read(folder: Path, content: Any, name: str = "g.json", **where: str) -> GoldenSet:
    """Return the set of a file; content that is no text is written as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text, encoding="utf-8")
    return load_golden(folder / name, options=ReadOptions(map=where or None)).golden


def one(folder: Path, entry: dict[str, Any], **where: str) -> GoldenQuery:
    (query,) = read(folder, [entry], **where).queries
    return query


def faults(folder: Path, content: Any, name: str = "g.json", **where: str) -> list[str]:
    with pytest.raises(GoldenError) as told:
        read(folder, content, name, **where)
    assert all(fault.code for fault in told.value.faults)
    return [str(fault).replace(f"{folder}/", "") for fault in told.value.faults]


def meanings(spans: tuple[Span, ...]) -> list[dict[str, Any]]:
    return [span.meaning() for span in spans]


def test_the_usual_names_need_no_map(tmp_path: Path) -> None:
    query = one(
        tmp_path,
        {
            "_id": 7,
            "question": "What is k?",
            "ground_truth_sources": ["a.md"],
            "chunk_text_snippet": "k is 60",
            "language": "en",
            "question_type": "fact",
            "answer": "60",
        },
    )
    assert (query.query_id, query.query, query.language) == ("7", "What is k?", "en")
    assert query.category == "fact"
    assert query.judgments.doc == {"a.md": 1.0}
    assert meanings(query.spans) == [{"doc": "a.md", "quote": "k is 60"}]
    assert (query.notes, query.must_contain) == ("", ())  # an answer is no text it must contain


def test_a_map_says_where_fields_stand(tmp_path: Path) -> None:
    query = one(
        tmp_path,
        {"q": "What?", "meta": {"lang": "ko", "team": "search"}, "hits": [{"path": "a.md"}]},
        query="q",
        lang="meta.lang",
        expected_doc_ids="hits[].path",
        **{"tags.team": "meta.team"},
    )
    assert (query.query, query.language, query.tags) == ("What?", "ko", {"team": "search"})
    assert query.judgments.doc == {"a.md": 1.0}


def test_a_key_with_dots_is_a_key(tmp_path: Path) -> None:
    query = one(tmp_path, {"question": "q", "m.l": "en", "m": {"l": "ko"}}, lang="m.l")
    assert query.language == "en"


def test_fractional_gains_are_kept_and_all_of_them_are_relevant(tmp_path: Path) -> None:
    entries = [
        {
            "question": "q",
            "relevance": [{"doc_id": "a", "gain": 0.5}, {"chunk_id": "c", "gain": 2}],
        },
        {"question": "r", "relevance": {"b": 0.25, "d": 0, "e": -1}},
    ]
    golden = read(tmp_path, entries)
    assert golden.queries[0].judgments.doc == {"a": 0.5}
    assert golden.queries[0].judgments.chunk == {"c": 2.0}
    assert golden.queries[1].judgments.doc == {"b": 0.25, "d": 0.0, "e": -1.0}
    assert (golden.linear_gain, golden.min_relevance) == (True, 0.25)  # the least above 0


def test_whole_gains_are_relevant_from_1(tmp_path: Path) -> None:
    golden = read(tmp_path, [{"question": "q", "relevance": {"a": 3, "b": 2}}])
    assert (golden.linear_gain, golden.min_relevance) == (False, 1)


def test_a_negative_question_is_one_that_nothing_answers(tmp_path: Path) -> None:
    entries = [
        {"question": "q", "question_type": "negative", "sources": []},
        {"question": "r", "question_type": "fact", "sources": ["a.md"]},
    ]
    first, second = read(tmp_path, entries).queries
    assert (first.failure_expected, first.should_refuse) == (True, True)
    assert second.failure_expected is False


def test_a_condition_may_be_mapped(tmp_path: Path) -> None:
    entries = [{"question": "q", "kind": "none"}, {"question": "r", "kind": "x"}]
    golden = read(tmp_path, entries, failure_expected="kind=none", ocr_derived="kind=x")
    assert [q.failure_expected for q in golden.queries] == [True, False]
    assert [q.ocr_derived for q in golden.queries] == [False, True]


def test_a_negative_question_with_sources_is_told(tmp_path: Path) -> None:
    entry = {"question": "q", "question_type": "negative", "sources": ["a.md"]}
    (told,) = faults(tmp_path, [entry])
    assert told == "g.json:1:2: a query that nothing answers (failure_expected) has no judgments"


def test_an_id_is_made_from_the_text(tmp_path: Path) -> None:
    entries = [{"question": "e\u0301"}, {"question": "other"}, {"question": "é"}]
    digest = hashlib.sha256("é".encode()).hexdigest()[:8]
    ids = [query.query_id for query in read(tmp_path, entries).queries]
    assert ids[0] == f"q-{digest}"
    assert ids[2] == f"q-{digest}-2"
    again = [query.query_id for query in read(tmp_path, entries[1:]).queries]
    assert again == [ids[1], ids[0]]  # whatever else stands in the file


@pytest.mark.parametrize("written", ["02142", "1e5", "null", "true", "~"])
def test_an_id_in_quotes_is_its_text(tmp_path: Path, written: str) -> None:
    assert one(tmp_path, {"id": written, "question": "q"}).query_id == written


def test_an_id_that_is_a_number_is_the_text_that_stands_there(tmp_path: Path) -> None:
    golden = read(tmp_path, '[{"id": 1e5, "question": "q", "sources": [1.0, 3856]}]')
    (query,) = golden.queries
    assert (query.query_id, list(query.judgments.doc)) == ("1e5", ["1.0", "3856"])


@pytest.mark.parametrize(
    ("entry", "where", "expected"),
    [
        ({"file": "a.md"}, {"quote_doc": "file"}, [("a.md", "x")]),
        ({"sources": ["a.md"]}, {}, [("a.md", "x")]),
    ],
)
def test_a_quote_stands_in_the_document_that_is_known(
    tmp_path: Path, entry: dict[str, Any], where: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    query = one(tmp_path, {"question": "q", "quote": "x", **entry}, **where)
    assert [(span.doc, span.quote) for span in query.spans] == expected


def test_quotes_pair_with_their_documents(tmp_path: Path) -> None:
    entry = {"question": "q", "s": [{"p": "a", "t": "x"}, {"p": "b", "t": "y"}]}
    query = one(tmp_path, entry, expected_doc_ids="s.p", quote="s.t")
    assert meanings(query.spans) == [{"doc": "a", "quote": "x"}, {"doc": "b", "quote": "y"}]


@pytest.mark.parametrize("sources", [[], ["a", "b"]])
def test_a_quote_of_no_certain_document_is_told(tmp_path: Path, sources: list[str]) -> None:
    (told,) = faults(tmp_path, [{"question": "q", "quote": "x", "sources": sources}])
    assert f"1 quote for {len(sources)} documents" in told
    assert "quote_doc in golden.map names them" in told


def test_spans_are_read_as_in_our_own_yaml(tmp_path: Path) -> None:
    spans = [{"doc": "a", "quote": "x", "occurrence": 2}, {"doc": "b", "section": "s", "grade": 2}]
    query = one(tmp_path, {"question": "q", "expected_spans": spans})
    assert meanings(query.spans) == spans
    assert query.judgments.doc == {"a": 1.0, "b": 2.0}  # no document is judged by itself


def test_a_span_that_is_wrong_is_told_at_its_object(tmp_path: Path) -> None:
    entries = [{"question": "q"}, {"question": "r", "expected_spans": [{"doc": "a", "quot": "x"}]}]
    assert faults(tmp_path, entries) == [
        "g.json:1:21: unknown field 'quot' (did you mean 'quote'?)",
        "g.json:1:21: a span needs a quote, start and end, or a section",
    ]


def test_places_are_line_and_column(tmp_path: Path) -> None:
    text = '{"version": 3, "items": [\n  {"question": "q"},\n  {"question": ""}\n]}'
    assert faults(tmp_path, text) == ["g.json:3:3: 'question' (the query) is missing"]
    lines = '{"question": "q"}\n\n{"question": ""}\n'
    assert faults(tmp_path, lines, "g.jsonl") == ["g.jsonl:3: 'question' (the query) is missing"]
    table = 'id,question\n1,"two\nlines"\n2,\n'
    assert faults(tmp_path, table, "g.csv") == ["g.csv:4: 'question' (the query) is missing"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("a.md", ["a.md"]),
        ("a.md; b.md", ["a.md", "b.md"]),
        ("a.md|b.md|", ["a.md", "b.md"]),
        ('"[""a;b.md"", ""c.md""]"', ["a;b.md", "c.md"]),
        ("[draft] a.md", ["[draft] a.md"]),
        ("", []),
    ],
)
def test_a_cell_may_hold_several_values(tmp_path: Path, cell: str, expected: list[str]) -> None:
    golden = read(tmp_path, f"question,sources\nq,{cell}\n", "g.csv")
    assert list(golden.queries[0].judgments.doc) == expected


def test_a_cell_may_hold_gains_as_json(tmp_path: Path) -> None:
    text = 'question,relevance\nq,"[{""doc_id"": ""a"", ""gain"": 0.5}]"\nr,"{""b"": 1}"\n'
    first, second = read(tmp_path, text, "g.csv").queries
    assert (first.judgments.doc, second.judgments.doc) == ({"a": 0.5}, {"b": 1.0})


@pytest.mark.parametrize(
    "text",
    ["\ufeffquestion;id\r\nq;1\r\n", "question,id\nq,1\n", "question\tid\nq\t1\n"],
)
def test_tables_of_every_kind(tmp_path: Path, text: str) -> None:
    name = "g.tsv" if "\t" in text else "g.csv"
    (query,) = read(tmp_path, text, name).queries
    assert (query.query, query.query_id) == ("q", "1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("question,sources\nq\n", "g.csv:2: 1 cells where the header has 2"),
        ("question,question\nq,r\n", "g.csv:1: column 'question' stands twice; keep one"),
        ('question\n"q\n', "not valid CSV: unexpected end of data"),
        ("question,sources\nq,\"['a.md']\"\n", "g.csv:2: the cell \"['a.md']\" is no JSON list"),
        ("question,failure_expected\nq,maybe\n", "must be true or false, found 'maybe'"),
        ("question\n", "g.csv: golden set is empty; it needs at least one query"),
        ("answer\nx\n", "no field holds the query; name it in golden.map (found: answer)"),
    ],
)
def test_what_is_wrong_in_a_table_is_told(tmp_path: Path, text: str, says: str) -> None:
    assert any(says in told for told in faults(tmp_path, text, "g.csv"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"question": "q"} {"question": "r"}]', "g.json:1:20: not valid JSON: expected a comma"),
        ('[{"question": "q"},]', "g.json:1:20: not valid JSON: a comma before ]"),
        ('[{"question": "q"}] x', "g.json:1:21: text follows the array; a file holds one"),
        ('[{"question": "q"}', "g.json:1:19: not valid JSON: expected a comma or ]"),
        ('{"a": [{"question": "q"}]', "not valid JSON: expected a comma or }"),
        ('{"question": "q"}\n{"question": "r"}', "JSON lines are written to a file that ends in"),
        ('{"a": [{"q": 1}], "b": [{"q": 1}]}', "holds several lists of objects (a, b)"),
        ('{"a": 1}', "expected a JSON array of objects, or an object that holds one"),
        ("", "expected a JSON array of objects"),
        ('["q"]', "a golden query is an object, found 'q'"),
        ('[{"question": "q", "question": "r"}]', "key 'question' stands twice; keep one"),
        ('[{"question": "q", "x": NaN}]', "NaN is no number of JSON"),
        ('[{"question": "\\ud800"}]', "a \\u escape is half of a character"),
        ("[" * 100_000, "nested too deep"),
        ('[{"question": ["q", "r"]}]', "'question' (query) must be one text"),
        ('[{"question": "q", "sources": [{"p": 1}]}]', "map expected_doc_ids to 'sources.KEY'"),
        ('[{"question": "q", "relevance": "high"}]', "must hold objects such as {"),
        ('[{"question": "q", "relevance": [{"gain": 1}]}]', "lacks an id (doc_id,"),
        ('[{"question": "q", "relevance": [{"doc_id": "a"}]}]', "lacks a gain"),
        ('[{"question": "q", "relevance": {"a": 1e999}}]', "the gain of 'a' must be a number"),
        ('[{"id": 1, "question": "q"}, {"id": "1", "question": "r"}]', "id '1' stands twice"),
    ],
)
def test_what_is_wrong_in_json_is_told(tmp_path: Path, text: str, says: str) -> None:
    told = faults(tmp_path, text)
    assert any(says in one for one in told), told


def test_nothing_of_a_line_is_passed_over(tmp_path: Path) -> None:
    told = faults(tmp_path, '{"question": "q"} {"question": "r"}\n{bad\n[]\n', "g.jsonl")
    assert told[0] == "g.jsonl:1: a line holds one JSON object; text follows it at character 18"
    assert [line.split(": ")[0] for line in told] == ["g.jsonl:1", "g.jsonl:2", "g.jsonl:3"]


def test_a_line_separator_in_a_text_ends_no_line(tmp_path: Path) -> None:
    (query,) = read(tmp_path, '{"question": "a\u2028b"}\n', "g.jsonl").queries
    assert query.query == "a\u2028b"


def test_a_map_that_leads_nowhere_is_told_with_the_nearest_path(tmp_path: Path) -> None:
    told = faults(
        tmp_path,
        [{"question": "q", "meta": {"lang": "ko"}}],
        query="qestion",
        lang="meta.lng",
        expected_doc_id="x",
    )
    assert [line.partition("; ")[0] for line in told] == [
        "golden.map: 'expected_doc_id' is no field (did you mean 'expected_doc_ids'?)",
        "golden.map.query: no object of g.json has 'qestion' (did you mean 'question'?)",
        "golden.map.lang: no object of g.json has 'meta.lng' (did you mean 'meta.lang'?)",
    ]


DOCS = ["search/rrf-notes.md", "search/bm25.md", "a/readme.md", "b/readme.md", "x#y.md"]


def resolved(folder: Path, *references: str) -> tuple[GoldenQuery, list[str]]:
    read(folder, [{"question": "q", "sources": list(references)}])
    loaded, wrong = resolve_documents(load_golden(folder / "g.json"), DOCS)
    assert all(key[1] in DOCS for key in loaded.entries[0].id_places) or wrong
    return loaded.golden.queries[0], [fault.message for fault in wrong]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("search/bm25.md", ["search/bm25.md"]),
        ("rrf-notes.md", ["search/rrf-notes.md"]),
        ("./search/bm25.md", ["search/bm25.md"]),
        ("search/*.md", ["search/bm25.md", "search/rrf-notes.md"]),
        ("x#y.md", ["x#y.md"]),
    ],
)
def test_references_become_ids(tmp_path: Path, reference: str, expected: list[str]) -> None:
    query, wrong = resolved(tmp_path, reference)
    assert (list(query.judgments.doc), wrong) == (expected, [])


def test_a_section_is_a_span_of_its_document(tmp_path: Path) -> None:
    query, wrong = resolved(tmp_path, "rrf-notes.md#Small k")
    assert meanings(query.spans) == [{"doc": "search/rrf-notes.md", "section": "Small k"}]
    assert (query.judgments.doc, wrong) == ({"search/rrf-notes.md": 1.0}, [])


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("readme.md", "'readme.md' may be 'a/readme.md', 'b/readme.md'; write more of the path"),
        ("none/*.md", "no document matches 'none/*.md'"),
        ("rrf.md", "document 'rrf.md' is not in the corpus"),
    ],
)
def test_a_reference_that_means_no_one_document_is_told(
    tmp_path: Path, reference: str, says: str
) -> None:
    _, wrong = resolved(tmp_path, reference)
    assert len(wrong) == 1
    assert wrong[0].startswith(says)


def test_every_usual_name_stands_in_the_document() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/golden-formats.md").read_text("utf-8")
    names = {name for usual in USUAL.values() for name in usual} - {"ocr_derived"}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []
