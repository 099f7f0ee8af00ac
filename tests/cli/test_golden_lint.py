"""``golden lint`` and ``golden stats`` as a user runs them, on a set with faults of many kinds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

GOLDEN = """\
- id: 0x1F
  query: what is it
  lang: ko
  expected_doc_ids: [a.md]
- id: q2
  query: "50% of\\nwhat"
  expected_doc_ids: [aa.md]
  \"x,y:z%\": 1
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.md").write_text("# Pumps\n\nThe pump runs at sixty bar.\n")
    (tmp_path / "corpus" / "b.md").write_text("# Valves\n\nThe valve is closed.\n")
    (tmp_path / "c.yaml").write_text(
        "golden: g.yaml\nbackend: {corpus: corpus}\nsearch: {mode: lexical}\n"
    )
    (tmp_path / "g.yaml").write_text(GOLDEN)
    return tmp_path


def test_everything_is_told_at_once_in_file_order(program: Program, project: Path) -> None:
    done = program("golden", "lint", "-c", "c.yaml")
    assert done.returncode == 2
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == [
        "g.yaml:1:7 yaml-number warning",
        "g.yaml:3:9 language warning",
        "g.yaml:7:22 unknown-id error",
        "g.yaml:8:3 unknown-field error",
    ]
    assert done.stderr.splitlines() == ["2 queries, 2 errors, 2 warnings"]


def test_annotations_of_github_are_escaped(program: Program, project: Path) -> None:
    (project / "g.yaml").rename(project / "g,1:%.yaml")
    done = program("golden", "lint", "g,1:%.yaml", "--format", "github")
    assert done.returncode == 2
    head, _, message = done.stdout.splitlines()[-1].partition(",title=golden unknown-field::")
    assert head == "::error file=g%2C1%3A%25.yaml,line=8,col=3"
    assert message.startswith("unknown field 'x,y:z%25'")


def test_json_is_one_document_whatever_the_format(program: Program, project: Path) -> None:
    short = program("golden", "lint", "g.yaml", "--json")
    assert program("golden", "lint", "g.yaml", "--format", "json").stdout == short.stdout
    document = json.loads(short.stdout)
    assert document["schema_version"] == "kebab_eval.lint.v1"
    assert (document["errors"], document["warnings"], document["corpus_checked"]) == (1, 2, False)
    assert document["findings"][0] | {"message": ""} == {
        "code": "yaml-number",
        "severity": "warning",
        "path": "g.yaml",
        "line": 1,
        "column": 7,
        "message": "",
    }


def test_what_a_run_leaves_alone_is_no_error(program: Program, project: Path) -> None:
    (project / "g.yaml").write_text(
        "- {id: a, query: q, expected_doc_ids: [a.md], expected_chunk_ids: ['a.md#old:1']}\n"
    )
    by_documents = ("-c", "c.yaml", "-S", "golden.levels=[doc]")
    assert program("golden", "lint", "-c", "c.yaml").returncode == 2
    assert program("golden", "lint", *by_documents, "--strict").returncode == 0
    assert program("run", *by_documents, "--quiet").returncode == 0


def test_stats(program: Program, project: Path) -> None:
    from kebab_eval.workflows.golden_source import open_source

    (project / "g.yaml").write_text("- {id: x, query: x}\n")
    listing = open_source(None, Path("c.yaml")).listing
    assert listing is not None
    chunk = next(p.chunk_id for p in listing.passages if p.doc_id == "b.md")
    (project / "g.yaml").write_text(
        f"- {{id: a, query: q, lang: en, expected_chunk_ids: [{chunk!r}]}}\n- {{id: n, query: r}}\n"
    )
    done = program("golden", "stats", "-c", "c.yaml")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("g v1, 2 queries, kebab, digest ")
    # Who expects a chunk of b.md expects b.md; a.md is what is left of two.
    assert lines[-1] == "documents      2, of which no query expects 1"
    document = json.loads(program("golden", "stats", "g.yaml", "--json").stdout)
    assert document["schema_version"] == "kebab_eval.golden_stats.v1"
    assert (document["queries"], document["no_answer"], document["documents"]) == (2, 1, None)


def test_stats_of_a_broken_set_are_its_faults(program: Program, project: Path) -> None:
    done = program("golden", "stats", "g.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "g.yaml:8:3: unknown field" in done.stderr
