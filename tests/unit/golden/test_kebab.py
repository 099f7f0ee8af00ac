"""kebab's golden format: fields, raw ids, and what is wrong with an entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab_eval.errors import GoldenError
from kebab_eval.golden import load_golden
from kebab_eval.records import GoldenQuery


def queries(folder: Path, text: str) -> tuple[GoldenQuery, ...]:
    (folder / "g.yaml").write_text(text, encoding="utf-8")
    return load_golden(folder / "g.yaml").golden.queries


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(GoldenError) as told:
        queries(folder, text)
    return [str(fault).replace(f"{folder}/", "") for fault in told.value.faults]


def test_every_field_is_read(tmp_path: Path) -> None:
    text = """
- id: q-1
  query: "What is it?"
  lang: mixed
  expected_doc_ids: [a.md, b.md]
  expected_chunk_ids: ["a.md#h:1a2b3c4d"]
  must_contain: ["60"]
  forbidden: ["600", x]
  difficulty: hard
  group: g
"""
    (query,) = queries(tmp_path, text)
    assert query.query_id == "q-1"
    assert query.query == "What is it?"
    assert query.judgments.doc == {"a.md": 1.0, "b.md": 1.0}
    assert query.judgments.chunk == {"a.md#h:1a2b3c4d": 1.0}
    assert query.must_contain == ("60",)
    assert query.forbidden == ("600", "x")
    assert (query.language, query.difficulty, query.group) == ("mixed", "hard", "g")
    assert query.place == f"{tmp_path}/g.yaml:2:3"


@pytest.mark.parametrize(
    "written",
    ["02142", "3856", "1e5", "0x10", "true", "no", "Null", "1.0", "a b", "a:b", "2026-01-01", "~"],
)
def test_an_id_is_the_text_that_stands_in_the_file(tmp_path: Path, written: str) -> None:
    (query,) = queries(tmp_path, f"- {{id: q, query: t, expected_doc_ids: [{written}]}}\n")
    assert query.judgments.doc == {written: 1.0}


@pytest.mark.parametrize("written", ["02142", "1e5", "true", "0x1F", "q 1"])
def test_a_query_id_is_the_text_that_stands_in_the_file(tmp_path: Path, written: str) -> None:
    (query,) = queries(tmp_path, f"- {{id: {written}, query: 3856}}\n")
    assert (query.query_id, query.query) == (written, "3856")


def test_texts_are_read_as_nfc(tmp_path: Path) -> None:
    nfd = "e\u0301"
    (query,) = queries(tmp_path, f"- {{id: {nfd}, query: {nfd}, expected_doc_ids: [{nfd}.md]}}\n")
    assert (query.query_id, query.query, list(query.judgments.doc)) == ("é", "é", ["é.md"])


def test_an_id_that_stands_twice_in_two_normal_forms_is_told(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, "- {id: q, query: t, expected_doc_ids: [é, e\u0301]}\n")
    assert fault == "g.yaml:1:43: expected_doc_ids holds 'é' twice; keep one"


@pytest.mark.parametrize("null", ["", "null", "~"])
def test_a_null_field_is_an_absent_one(tmp_path: Path, null: str) -> None:
    text = f"- id: q\n  query: t\n  group: {null}\n  lang: {null}\n  must_contain: {null}\n"
    (query,) = queries(tmp_path, text)
    assert (query.group, query.language, query.must_contain) == (None, None, ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("abc", ["g.yaml:1:1: a golden set is a list of queries, found 'abc'"]),
        ("{id: q}", ["g.yaml:1:1: a golden set is a list of queries, found a mapping"]),
        ("- q", ["g.yaml:1:3: a golden query is a mapping with id and query, found 'q'"]),
        ("-", ["g.yaml:1:2: a golden query is a mapping with id and query, found nothing"]),
        ("- {}", ["g.yaml:1:3: field 'id' is missing", "g.yaml:1:3: field 'query' is missing"]),
        ("- {id: , query: t}", ["g.yaml:1:8: field 'id' is missing"]),
        ("- {id: ' ', query: t}", ["g.yaml:1:8: id must not be empty"]),
        ("- {id: [a], query: t}", ["g.yaml:1:8: id must be text, found a list"]),
        ("- {id: a, query: {b: c}}", ["g.yaml:1:18: query must be text, found a mapping"]),
        (
            "- {id: a, query: t, expected_doc_ids: a.md}",
            ["g.yaml:1:39: expected_doc_ids must be a list of texts, found 'a.md'"],
        ),
        (
            "- {id: a, query: t, must_contain: [[x], '', y]}",
            [
                "g.yaml:1:36: must_contain must hold texts, found a list",
                "g.yaml:1:41: must_contain must hold texts, found ''",
            ],
        ),
        (
            "- {id: a, query: t, lang: kr}",
            ["g.yaml:1:27: lang must be one of ko, en, mixed; found 'kr'"],
        ),
        (
            "- {id: a, query: t, difficulty: hrad}",
            [
                "g.yaml:1:33: difficulty must be one of easy, medium, hard; found 'hrad'"
                " (did you mean 'hard'?)"
            ],
        ),
        (
            "- {id: a, query: t, expected_docs_id: []}",
            [
                "g.yaml:1:21: unknown field 'expected_docs_id' (did you mean 'expected_doc_ids'?)",
            ],
        ),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(tmp_path: Path, text: str, told: list[str]) -> None:
    assert faults(tmp_path, text) == told


def test_all_faults_of_a_file_are_told_in_its_order(tmp_path: Path) -> None:
    text = (
        "- {id: a, query: t, langg: ko, lang: x}\n"
        "- {query: t}\n"
        "- {id: a, query: t}\n"
        "- {id: b, query: '', group: g}\n"
    )
    assert [fault.split(": ")[0] for fault in faults(tmp_path, text)] == [
        "g.yaml:1:21",
        "g.yaml:1:38",
        "g.yaml:2:3",
        "g.yaml:3:3",
        "g.yaml:4:18",
    ]


def test_a_merge_key_is_no_field(tmp_path: Path) -> None:
    told = faults(tmp_path, "- &a {id: a, query: t}\n- {<<: *a, id: b, query: t}\n")
    assert told[0].startswith("g.yaml:2:4: unknown field '<<'; allowed: difficulty,")


def test_ids_may_come_by_alias(tmp_path: Path) -> None:
    text = (
        "- {id: a, query: t, expected_doc_ids: &d [x]}\n- {id: b, query: t, expected_doc_ids: *d}\n"
    )
    assert [query.judgments.doc for query in queries(tmp_path, text)] == [{"x": 1.0}] * 2


def test_crlf_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    plain = "- id: a\n  query: t\n- id: b\n  query: u\n"
    assert queries(tmp_path, "\ufeff" + plain.replace("\n", "\r\n")) == queries(tmp_path, plain)
