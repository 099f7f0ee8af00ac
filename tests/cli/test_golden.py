"""The commands of golden sets, as a user runs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

CORPUS = {
    "a.md": "# Pumps\n\nThe first pump runs at sixty bar and was built in 2019.\n\n"
    "## More\n\nThe second pump runs at eighty bar; nobody knows who built it.\n",
    "b.md": "# Valves\n\nThe main valve is closed on Sundays for the inspection.\n",
}
CONFIG = """\
golden: golden.yaml
backend: {corpus: corpus}
search: {mode: lexical}
"""


DOCUMENTS_ALONE = "golden: {path: golden.yaml, levels: [doc]}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in CORPUS.items():
        path = tmp_path / "corpus" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "v1.yaml").write_text(CONFIG)
    window = "chunking: {version: fixed-window-v1, target_tokens: 10, overlap_tokens: 0}\n"
    (tmp_path / "window.yaml").write_text(CONFIG + window)
    return tmp_path


def chunk_ids() -> list[str]:
    from kebab_eval.workflows.golden_source import open_source

    Path("golden.yaml").write_text("- {id: x, query: x}\n")
    listing = open_source(None, Path("v1.yaml")).listing
    assert listing is not None
    return [passage.chunk_id for passage in listing.passages]


@pytest.fixture
def golden(project: Path) -> Path:
    first, second = chunk_ids()[:2]
    path = project / "golden.yaml"
    path.write_text(
        "# what people ask\n"
        f"- id: q1\n  query: 펌프 압력은?\n  expected_chunk_ids: # by reading\n    - {first!r}\n\n"
        f"- {{id: q2, query: who built it, expected_chunk_ids: [{second!r}]}}\n",
        encoding="utf-8",
    )
    return path


def test_anchor_then_run_on_another_chunker(program: Program, golden: Path) -> None:
    refused = program("run", "-c", "window.yaml")
    assert refused.returncode == 2
    assert "golden anchor" in refused.stderr or "is not in the corpus" in refused.stderr
    done = program("golden", "anchor", "-c", "v1.yaml", "--in-place")
    assert done.returncode == 0, done.stderr
    assert "2 spans for 2 queries, 0 queries left as they are" in done.stderr
    text = golden.read_text("utf-8")
    assert text.startswith("# what people ask\n- id: q1\n  query: 펌프 압력은?\n")
    assert "# by reading" in text
    ran = program("run", "-c", "window.yaml", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["aggregate"]["metrics"]["span_recall_at_10"]["n"] == 2
    again = program("golden", "anchor", "-c", "v1.yaml", "--check")
    assert again.returncode == 0


def test_a_query_of_which_a_chunk_gets_no_span_is_left_as_it_is(
    program: Program, golden: Path
) -> None:
    before = golden.read_text("utf-8")
    first = before.partition("by reading\n")[2].partition("\n")[0]
    golden.write_text(before.replace(first, f"{first}\n    - gone  # long ago"), "utf-8")
    done = program("golden", "anchor", "-c", "v1.yaml", "-o", "new.yaml", "--json")
    assert done.returncode == 2
    assert "left as it is: q1: gone is no chunk of this config" in done.stderr
    assert "1 spans for 1 queries, 1 queries left as they are" in done.stderr
    assert [(one["query_id"], len(one["spans"])) for one in json.loads(done.stdout)["queries"]] == [
        ("q1", 0),
        ("q2", 1),
    ]
    written = Path("new.yaml").read_text("utf-8")
    assert written.partition("\n\n")[0] == golden.read_text("utf-8").partition("\n\n")[0]
    assert "expected_spans" in written.partition("\n\n")[2]


def test_a_file_that_cannot_be_edited_stays_as_it_is(program: Program, golden: Path) -> None:
    first = chunk_ids()[0]
    aliased = f"- id: q1\n  query: &same 펌프\n  notes: *same\n  expected_chunk_ids: [{first!r}]\n"
    golden.write_text(aliased, "utf-8")
    done = program("golden", "anchor", "-c", "v1.yaml", "--in-place")
    assert done.returncode == 2
    assert "golden.yaml:3:10: alias *same stands for text elsewhere" in done.stderr
    assert golden.read_text("utf-8") == aliased


def test_a_golden_file_behind_a_link_keeps_its_place_and_its_rights(
    program: Program, golden: Path
) -> None:
    real = golden.rename(golden.with_name("kept.yaml"))
    real.chmod(0o640)
    golden.symlink_to(real.name)
    assert program("golden", "anchor", "-c", "v1.yaml", "--in-place").returncode == 0
    assert golden.is_symlink()
    assert "expected_spans" in real.read_text("utf-8")
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in golden.parent.glob(".*.tmp")) == []


def test_chunks_are_anchored_where_a_config_counts_documents_alone(
    program: Program, golden: Path
) -> None:
    Path("v1.yaml").write_text(CONFIG.replace("golden: golden.yaml", DOCUMENTS_ALONE))
    done = program("golden", "anchor", "-c", "v1.yaml", "-o", "new.yaml")
    assert "2 spans for 2 queries" in done.stderr


def test_migrate_there_and_check(program: Program, golden: Path) -> None:
    before = golden.read_text("utf-8")
    options = ("--from-config", "v1.yaml", "--to-config", "window.yaml")
    checked = program("golden", "migrate", *options, "--check")
    assert checked.returncode == 2
    assert golden.read_text("utf-8") == before
    done = program("golden", "migrate", *options, "-o", "new.yaml", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["counts"]["lost"] == 0
    assert document["written"] == "new.yaml"
    assert golden.read_text("utf-8") == before
    assert program("run", "-c", "window.yaml", "--golden", "new.yaml").returncode == 0


def test_what_is_lost_stops_the_writing(program: Program, golden: Path) -> None:
    golden.write_text("- {id: q1, query: x, expected_chunk_ids: [gone]}\n")
    options = ("--from-config", "v1.yaml", "--to-config", "window.yaml", "-o", "new.yaml")
    done = program("golden", "migrate", *options)
    assert done.returncode == 2
    assert "gone is no chunk of the old config" in done.stderr
    assert not Path("new.yaml").exists()
    assert program("golden", "migrate", *options, "--allow-lost").returncode == 0
    assert "expected_chunk_ids: []" in Path("new.yaml").read_text()


def test_lint_and_its_exit_codes(program: Program, golden: Path) -> None:
    assert program("golden", "lint", "-c", "v1.yaml").returncode == 0
    golden.write_text("- {id: 02142, query: q}\n")
    warned = program("golden", "lint", "golden.yaml")
    assert warned.returncode == 0
    assert warned.stdout.startswith("golden.yaml:1:8 yaml-number warning: ")
    assert "1 queries, 0 errors, 1 warning" in warned.stderr
    assert program("golden", "lint", "golden.yaml", "--strict").returncode == 2
    golden.write_text("- {id: q, query: q, expected_doc_ids: [aa.md]}\n")
    wrong = program("golden", "lint", "-c", "v1.yaml", "--json")
    assert wrong.returncode == 2
    (finding,) = json.loads(wrong.stdout)["findings"]
    assert (finding["code"], finding["line"], finding["column"]) == ("unknown-id", 1, 40)
    assert "did you mean 'a.md'" in finding["message"]
    assert program("golden", "lint").returncode == 2  # neither a file nor a config


def test_diff(program: Program, golden: Path) -> None:
    Path("new.yaml").write_text(golden.read_text("utf-8").replace("who built", "who made"), "utf-8")
    done = program("golden", "diff", "golden.yaml", "new.yaml")
    assert done.returncode == 0
    assert "0 added, 0 removed, 1 changed" in done.stdout
    assert "query: 'who built it' → 'who made it'" in done.stdout
    wrong = program("golden", "diff", "golden.yaml", "nowhere.yaml")
    assert wrong.returncode == 2
    assert wrong.stdout == ""


def test_chunkers_are_compared_by_span_on_one_golden_set(program: Program, golden: Path) -> None:
    program("golden", "anchor", "-c", "v1.yaml", "--in-place")
    before = golden.read_bytes()
    seen = {}
    for config in ("v1", "window"):
        done = program("run", "-c", f"{config}.yaml", "--json")
        assert done.returncode == 0, done.stderr
        seen[config] = json.loads(done.stdout)["aggregate"]["metrics"]["hit_at_10_chunk"]
    v2 = ("-S", "chunking.version=md-heading-v2", "--name", "v2")
    assert program("run", "-c", "v1.yaml", *v2).returncode == 0
    assert {cell["n"] for cell in seen.values()} == {2}
    assert golden.read_bytes() == before
    for candidate in ("window", "v2"):
        done = program("compare", "v1", candidate, "--json", "--strict-chunker-version")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        assert document["chunker_version_match"] == "span"
        assert {line["level"] for line in document["per_query"]} == {"chunk"}
        assert "span_recall_at_10" in document["deltas"]
