"""Which format a golden file is in: by its ending, and by what stands in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab_eval.errors import GoldenError
from kebab_eval.golden.registry import ReadOptions, detect, parse_golden

OURS = '{"query_id": "a", "query": "t", "judgments": {"chunk": {}, "doc": {}}}\n'


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("g.yaml", "- {id: a, query: t}", "kebab"),
        ("g.yml", "- {id: a, query: t, expected_doc_ids: [a]}", "kebab"),
        ("g", "- {id: a, query: t}", "kebab"),
        (
            "g.yaml",
            "- {id: a, query: t}\n- {id: b, query: u, graded_relevance: {1: 3}}",
            "docserver",
        ),
        ("g.yaml", "- {id: a, query: t, relevant_ids: [1]}", "docserver"),
        ("g.yaml", "- {id: a, query: t, top3_ids: [1]}", "docserver"),
        ("g.yaml", "- {id: a, query: t, failure_expected: true}", "docserver"),
        ("g.yaml", "- {id: a, query: t, intent: fact_lookup}", "docserver"),
        ("g.yaml", "queries:\n- {id: a, query: t, relevant_ids: [1]}", "docserver"),
        ("g.json", '[{"question": "q"}]', "mapped"),
        ("g.csv", "question\nq\n", "mapped"),
        ("g.TSV", "question\nq\n", "mapped"),
        ("g.jsonl", '{"question": "q"}\n', "mapped"),
        ("g.ndjson", '{"question": "q"}\n', "mapped"),
        ("golden.jsonl", "\n" + OURS, "jsonl"),
        ("golden.jsonl", OURS.replace('"t"', '"t\u2028t"'), "jsonl"),
        ("g.trec", "301\tq\n", "trec"),
        ("g.topics", "301\tq\n", "trec"),
        ("g.xml", "<topics><top>", "trec"),
        ("g.txt", "<top>\n<num> 301\n<title> q\n</top>", "trec"),
    ],
)
def test_the_format_is_found(tmp_path: Path, name: str, content: str, expected: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert detect(tmp_path / name) == expected


def test_qrels_say_that_a_table_is_topics(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("301\tq\n")
    assert detect(tmp_path / "t.tsv", ReadOptions(qrels=tmp_path / "q")) == "trec"


def test_a_map_says_that_a_file_is_mapped(tmp_path: Path) -> None:
    assert detect(tmp_path / "any.txt", ReadOptions(map={"query": "q"})) == "mapped"


def test_a_folder_with_queries_is_beir(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text("")
    assert detect(tmp_path) == "beir"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "golden set is a folder without queries.jsonl, so no BEIR folder; name a file"),
        ("g.txt", "the ending '.txt' names no golden format; set golden.format to one: kebab,"),
        ("none.yaml", "golden set does not exist; check the path"),
    ],
)
def test_what_cannot_be_told_is_said_plainly(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "g.txt").write_text("hello\n")
    with pytest.raises(GoldenError) as told:
        detect(tmp_path / name)
    assert says in str(told.value)


def test_an_unknown_format_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match=r"\(did you mean 'kebab'\?\); there are: kebab, "):
        parse_golden(tmp_path / "g.yaml", ReadOptions(format="kebb"))


def test_a_named_format_is_not_questioned(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("- {id: a, query: t}")
    parsed, _ = parse_golden(tmp_path / "g.txt", ReadOptions(format="kebab"))
    assert parsed.format == "kebab"
