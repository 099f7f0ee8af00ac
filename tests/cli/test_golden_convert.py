"""``golden convert`` from the command line: what it writes, what it tells, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kebab_eval.cli.front import main

BINARY = """\
- id: a
  query: "one"
  lang: ko
  expected_doc_ids: [x.md]
  must_contain: ["60"]
- id: b
  query: "nothing"
"""
MAPPED = 'ask,where,kind\none,"x.md; y.md",fact\nnothing,,negative\n'


@pytest.fixture
def convert(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.yaml").write_text(BINARY)
    (tmp_path / "g.csv").write_text(MAPPED)

    def call(*arguments):
        with pytest.raises(SystemExit) as caught:
            main(["golden", "convert", *map(str, arguments)])
        out, err = capsys.readouterr()
        return caught.value.code, out, err

    return call


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_is_lost_is_told_on_stderr(convert, tmp_path):
    code, out, err = convert("g.yaml", "--to", "beir", "-o", "out")
    assert code == 0
    assert out == "out/queries.jsonl, out/qrels/test.tsv: 1 query as beir\n"
    assert err.splitlines() == [
        "dropped: language of 1 query (beir has no place for it)",
        "dropped: must_contain of 1 query (beir has no place for it)",
        "dropped: 1 query (without judged documents they are not asked)",
    ]
    assert (tmp_path / "out/qrels/test.tsv").read_text().splitlines()[1:] == ["a\tx.md\t1"]
    assert files(tmp_path) == {"g.yaml", "g.csv", "out/queries.jsonl", "out/qrels/test.tsv"}


def test_a_set_goes_through_our_own_lines_and_back(convert, tmp_path):
    assert convert("g.yaml", "--to", "jsonl", "-o", "g.jsonl")[0] == 0
    code, _, err = convert("g.jsonl", "--to", "kebab", "-o", "back.yaml")
    assert (code, err) == (0, "")
    assert convert("back.yaml", "--to", "jsonl", "-o", "back.jsonl")[0] == 0
    assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "g.jsonl").read_bytes()


def test_json_is_one_document(convert):
    code, out, _ = convert("g.yaml", "--to", "trec", "-o", "out", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["losses"][0] == {
        "kind": "dropped",
        "what": "language",
        "count": 1,
        "unit": "queries",
        "why": "trec has no place for it",
    }
    del document["losses"]
    assert document == {
        "input": "g.yaml",
        "from": "kebab",
        "to": "trec",
        "files": ["out/topics.trec", "out/qrels.txt"],
        "total_queries": 1,
    }


def test_topics_come_back_with_their_qrels(convert, tmp_path):
    assert convert("g.yaml", "--to", "trec", "-o", "out")[0] == 0
    arguments = ("out/topics.trec", "--qrels", "out/qrels.txt", "--to", "kebab", "-o", "k.yaml")
    assert convert(*arguments) == (0, "k.yaml: 1 query as kebab\n", "")
    assert (tmp_path / "k.yaml").read_text().startswith('- id: a\n  query: "one"\n')


def test_a_table_is_converted_by_a_map(convert, tmp_path):
    maps = ("query=ask", "expected_doc_ids=where", "failure_expected=kind=negative")
    options = [part for text in maps for part in ("--map", text)]
    code, _, err = convert("g.csv", "--to", "kebab", "-o", "k.yaml", *options)
    assert code == 0
    assert err == ("changed: failure_expected of 1 query (a query that expects nothing says it)\n")
    assert '    - "x.md"\n    - "y.md"\n' in (tmp_path / "k.yaml").read_text()


def test_references_are_resolved_by_a_config(convert, project):
    (project / "mine.json").write_text('[{"question": "q", "sources": ["on-call.md"]}]')
    config = "configs/lexical.yaml"
    code, _, err = convert("mine.json", "--to", "kebab", "-o", "k.yaml", "-c", config)
    assert (code, err) == (0, "")
    assert '    - "on-call.md"\n' in (project / "k.yaml").read_text()
    (project / "mine.json").write_text('[{"question": "q", "sources": ["oncall.md"]}]')
    code, out, err = convert("mine.json", "--to", "kebab", "-o", "new.yaml", "-c", config)
    assert (code, out) == (2, "")
    assert "document 'oncall.md' is not in the corpus (did you mean 'on-call.md'?)" in err
    assert not (project / "new.yaml").exists()


def test_the_set_of_a_config_is_the_input(convert, project):
    code, out, _ = convert("--to", "jsonl", "-o", "g.jsonl", "-c", "configs/lexical.yaml")
    assert code == 0
    assert out == "g.jsonl: 8 queries as jsonl\n"


def test_nothing_is_overwritten(convert, tmp_path):
    (tmp_path / "k.yaml").write_text("mine")
    code, out, err = convert("g.yaml", "--to", "kebab", "-o", "k.yaml")
    assert (code, out) == (2, "")
    assert err == "error: k.yaml: is there already; add --force to overwrite it\n"
    assert (tmp_path / "k.yaml").read_text() == "mine"
    assert convert("g.yaml", "--to", "kebab", "-o", "k.yaml", "--force")[0] == 0
    assert (tmp_path / "k.yaml").read_text().startswith("- id: a\n")


def test_other_files_of_a_folder_stay(convert, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/corpus.jsonl").write_text("mine")
    assert convert("g.yaml", "--to", "beir", "-o", "out")[0] == 0
    code, _, err = convert("g.yaml", "--to", "beir", "-o", "out")
    assert code == 2
    assert len(err.splitlines()) == 2  # both files are named
    assert (tmp_path / "out/corpus.jsonl").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("g.yaml", "--to", "kebab", "-o", "k.txt"), "file that ends in .yaml, .yml"),
        (("g.yaml", "--to", "jsonl", "-o", "g.yaml"), "file that ends in .jsonl, .ndjson"),
        (("g.yaml", "--to", "beir", "-o", "g.csv"), "is a file; beir is written to a folder"),
        (("g.yaml", "--to", "kebab", "-o", "none/k.yaml"), "the folder none does not exist"),
        (("g.yaml", "--to", "kebab", "-o", "."), "is a folder; name a file"),
        (("none.yaml", "--to", "kebab", "-o", "k.yaml"), "none.yaml: golden set does not exist"),
        (("--to", "kebab", "-o", "k.yaml"), "name a golden set, or a config"),
        (("g.csv", "--to", "kebab", "-o", "k.yaml"), "no field holds the query; name it in"),
        (("g.csv", "--to", "kebab", "-o", "k.yaml", "--map", "query"), "is not FIELD=PATH"),
        (
            ("g.csv", "--to", "kebab", "-o", "k.yaml", "--map", "query=asks"),
            "golden.map.query: no object of g.csv has 'asks' (did you mean 'ask'?)",
        ),
    ],
)
def test_what_is_wrong_is_told_and_nothing_written(convert, tmp_path, arguments, says):
    before = files(tmp_path)
    code, out, err = convert(*arguments)
    assert (code, out) == (2, "")
    assert says in " ".join(err.split())
    assert files(tmp_path) == before


def test_an_id_that_the_format_cannot_hold_is_named(convert, tmp_path):
    (tmp_path / "g.yaml").write_text("- {id: a b, query: t, expected_doc_ids: [x y, z]}\n")
    code, _, err = convert("g.yaml", "--to", "trec", "-o", "out")
    assert code == 2
    assert [line.partition(" cannot")[0] for line in err.splitlines()] == [
        "error: g.yaml:1:3: query id 'a b'",
        "error: g.yaml:1:3: document id 'x y'",
    ]
    assert not (tmp_path / "out").exists()


def test_a_failed_write_leaves_nothing(convert, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/qrels").write_text("in the way")
    code, out, err = convert("g.yaml", "--to", "beir", "-o", "out")
    assert (code, out) == (3, "")
    assert "cannot be written" in err
    assert files(tmp_path / "out") == {"qrels"}


def test_hostile_text_does_not_reach_the_terminal(convert, tmp_path):
    (tmp_path / "g.json").write_text(
        '[{"question": "q", "lang": "\\u001b[31mred", "sources": ["a"]}]'
    )
    code, _, err = convert("g.json", "--to", "kebab", "-o", "k.yaml")
    assert code == 0
    assert "\x1b" not in err
    assert "\\x1b[31mred: not one of ko, en, mixed" in err
