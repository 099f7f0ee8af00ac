"""BEIR folders and TREC topics as golden sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab_eval.errors import GoldenError
from kebab_eval.golden import ReadOptions, load_golden
from kebab_eval.records import GoldenSet

HEADER = "query-id\tcorpus-id\tscore\n"


def beir(folder: Path, queries: str, qrels: str, split: str | None = None) -> GoldenSet:
    (folder / "qrels").mkdir()
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(HEADER + qrels, encoding="utf-8")
    return load_golden(folder, options=ReadOptions(split=split)).golden


def trec(folder: Path, topics: str, qrels: str = "301 0 a 1\n") -> GoldenSet:
    (folder / "t.trec").write_text(topics, encoding="utf-8")
    (folder / "qrels.txt").write_text(qrels, encoding="utf-8")
    return load_golden(folder / "t.trec", options=ReadOptions(qrels=folder / "qrels.txt")).golden


def faults(folder: Path, read: object, *arguments: str) -> list[str]:
    with pytest.raises(GoldenError) as told:
        read(folder, *arguments)  # type: ignore[operator]  # one of the two above
    assert all(fault.code for fault in told.value.faults)
    return [str(fault).replace(f"{folder}/", "") for fault in told.value.faults]


def test_a_beir_folder_is_its_judged_queries_in_file_order(tmp_path: Path) -> None:
    queries = '{"_id":"1","text":"one"}\n{"_id":"2","text":"two"}\n{"_id":"3","text":"train"}\n'
    golden = beir(tmp_path, queries, "2\ta\t2\n1\tb\t-1\n1\tc\t0\n")
    assert (golden.format, golden.min_relevance) == ("beir", 1)
    assert [(q.query_id, q.query) for q in golden.queries] == [("1", "one"), ("2", "two")]
    # A negative grade stays judged; the metrics give it no gain.
    assert golden.queries[0].judgments.doc == {"b": -1.0, "c": 0.0}


def test_what_is_wrong_in_a_beir_folder_is_told(tmp_path: Path) -> None:
    told = faults(tmp_path, beir, '{"_id":"1","text":"one"}\n', "1\ta\thigh\n1\tb\n")
    assert told == [
        "qrels/test.tsv:2: the grade is 'high'; a grade is a whole number",
        "qrels/test.tsv:3: 2 fields by tabs where qrels have 3",
    ]


def test_a_judged_query_without_text_is_told(tmp_path: Path) -> None:
    (told,) = faults(tmp_path, beir, '{"_id":"1","text":" "}\n', "1\ta\t1\n")
    assert told.endswith("query '1' has no text")


def test_a_beir_folder_without_judgments_is_empty(tmp_path: Path) -> None:
    (told,) = faults(tmp_path, beir, '{"_id":"1","text":"one"}\n', "")
    assert "no query is judged in qrels/test.tsv" in told


def test_a_split_that_is_not_there_is_told(tmp_path: Path) -> None:
    (told,) = faults(tmp_path, beir, '{"_id":"1","text":"one"}\n', "1\ta\t1\n", "dev")
    assert "has no split 'dev'; there are: test" in told


@pytest.mark.parametrize(
    "topics",
    [
        "<top>\n<num> Number: 301\n<title> Crime &amp; a < b\n\n<desc> Description: long\n</top>",
        "<top><num>301</num><title>Crime &amp;\n  a &lt; b</title></top>",
        "<?xml version='1.0'?>\n<topics>\n<top><num>301</num><title>Crime & a < b</title></top>",
        "<TOP>\n<NUM> 301\n<TITLE> Topic: Crime & a < b\n",
        "301\tCrime & a < b\n",
    ],
)
def test_topics_of_every_shape(tmp_path: Path, topics: str) -> None:
    golden = trec(tmp_path, topics, "301 0 a 1\n301 0 b -1\n")
    (query,) = golden.queries
    assert (query.query_id, query.query) == ("301", "Crime & a < b")
    assert query.judgments.doc == {"a": 1.0, "b": -1.0}
    assert golden.format == "trec"


def test_a_topic_that_nobody_judged_is_left_out(tmp_path: Path) -> None:
    golden = trec(tmp_path, "301\tone\n302\ttwo\n")
    assert [query.query_id for query in golden.queries] == ["301"]


def test_a_line_separator_in_a_text_ends_no_line(tmp_path: Path) -> None:
    assert trec(tmp_path, "301\tone\u2028two\n").queries[0].query == "one\u2028two"


@pytest.mark.parametrize(
    ("topics", "says"),
    [
        ("<top>\n<title> x\n</top>\n", "t.trec:1:1: a topic has no number (<num>)"),
        ("\n<top>\n<num> 301\n</top>\n", "t.trec:2:1: a topic has no title (<title>)"),
        ("<top>\n<num> 301\n<title>\n</top>\n", "query '301' has no text"),
        (
            "<top><num>301<title>x</top>\n<top><num>301<title>y</top>",
            "t.trec:2:1: id '301' stands twice (first at t.trec:1:1)",
        ),
        ("301\tone\n302 two\n", "t.trec:2:1: a line of topics is a query id, a tab and the text"),
        (
            "302\ttwo\n",
            "qrels.txt: judges none of the topics of t.trec; are these the right qrels?",
        ),
        ("", "t.trec: golden set is empty"),
    ],
)
def test_what_is_wrong_in_topics_is_told(tmp_path: Path, topics: str, says: str) -> None:
    assert any(says in told for told in faults(tmp_path, trec, topics))


def test_faults_of_the_qrels_are_told_too(tmp_path: Path) -> None:
    assert faults(tmp_path, trec, "301\tone\n", "301 0 a\n") == [
        "qrels.txt:1: 3 fields where a line has 4: query iteration item grade"
    ]


def test_topics_without_qrels_say_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "t.trec").write_text("301\tone\n")
    with pytest.raises(GoldenError, match=r"set golden\.qrels to the file"):
        load_golden(tmp_path / "t.trec")


def test_a_hostile_prologue_is_no_trap(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("<??>" * 5000)  # exponential, where matching may go back
    with pytest.raises(GoldenError):
        load_golden(tmp_path / "t.yaml")


def test_qrels_without_a_line_judge_nothing(tmp_path: Path) -> None:
    (told,) = faults(tmp_path, trec, "301\tone\n", "")
    assert "judges none of the topics" in told
