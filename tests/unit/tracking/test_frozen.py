"""Frozen files on disk: new, whole, both or none; and what finds them again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.baseline import Frozen, freeze
from kebab_eval.errors import RecordError, UsageError
from kebab_eval.records import EvalRun, GoldenQuery, Judgments
from kebab_eval.tracking import frozen as module
from kebab_eval.tracking import spool
from kebab_eval.tracking.frozen import list_frozen, read_frozen, write_new
from kebab_eval.workflows.lookup import find_run, locate_run

JudgedRun = Callable[..., EvalRun]


def run_of(make: JudgedRun, name: str = "name") -> EvalRun:
    queries = [GoldenQuery("a", "x", Judgments(doc={"d": 1.0}), language="ko")]
    about = {"name": "set", "version": "1", "digest": "d1", "path": "g", "min_relevance": 1}
    return make(name, queries, {"a": ["d#1"]}, golden=about)


def frozen_file(folder: Path, run: EvalRun, at: str, label: str = "default") -> Path:
    frozen = Frozen("1", label, at)
    path = folder / f"{frozen.stem}.json"
    write_new({path: freeze(run, frozen)})
    return path


def record(root: Path, run: EvalRun) -> Path:
    files = {
        "config.json": spool.dump_json(run.config),
        "golden.jsonl": "".join(spool.dump_line(q.to_json()) + "\n" for q in run.golden.queries),
        "aggregate.json": spool.dump_json(run.aggregate),
    }
    info = {k: v for k, v in run.info.items() if k not in ("id", "created_at")}
    made = spool.RecordWriter.create(root, run.name, info, files)
    made.write_results(run.results)
    return made.folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- writing --------------------------------------------------------------------------------


def test_files_are_written_whole_and_leave_nothing_else(tmp_path: Path) -> None:
    write_new({tmp_path / "new" / "a.json": "1\n", tmp_path / "new" / "a.md": "한글 \ud800"})
    assert names(tmp_path / "new") == ["a.json", "a.md"]
    assert (tmp_path / "new" / "a.md").read_text() == "한글 \\ud800"


@pytest.mark.parametrize("taken", ["a.json", "a.md"])
def test_either_file_that_exists_refuses_both(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("mine")
    with pytest.raises(UsageError, match=rf"{taken}: exists already"):
        write_new({tmp_path / "a.json": "1", tmp_path / "a.md": "2"})
    assert names(tmp_path) == [taken]
    assert (tmp_path / taken).read_text() == "mine"


def test_a_dangling_link_counts_as_taken(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("nowhere")
    with pytest.raises(UsageError, match="exists already"):
        write_new({tmp_path / "a.json": "1"})


def test_a_file_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def raced(source: Path, target: Path) -> None:
        if target.name == "a.md":
            target.write_text("theirs")
        link(source, target)

    monkeypatch.setattr(os, "link", raced)
    with pytest.raises(UsageError, match=r"a\.md: exists already"):
        write_new({tmp_path / "a.json": "1", tmp_path / "a.md": "2"})
    assert names(tmp_path) == ["a.md"]
    assert (tmp_path / "a.md").read_text() == "theirs"


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = module._create

    def full(path: Path, data: bytes) -> None:
        if ".md" in path.name:
            create(path, data[:1])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        create(path, data)

    monkeypatch.setattr(module, "_create", full)
    with pytest.raises(RecordError, match=r"a\.md: cannot be written: No space left"):
        write_new({tmp_path / "a.json": "1", tmp_path / "a.md": "22"})
    assert names(tmp_path) == []


def test_a_file_system_without_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    write_new({tmp_path / "a.json": "1"})
    assert names(tmp_path) == ["a.json"]
    with pytest.raises(UsageError):
        module._create_or_nothing(tmp_path / "a.json", b"2")
    assert (tmp_path / "a.json").read_text() == "1"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be written"):
        write_new({tmp_path / "file" / "a.json": "1"})


# --- reading --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (b"{", RecordError, "not valid JSON"),
        (b"[]", UsageError, "not a frozen baseline: a JSON list"),
        (b"{}", UsageError, "not a frozen baseline: schema_version is None"),
        (b'{"schema_version": "kebab_eval.baseline.v2"}', UsageError, "of another version"),
        (b'{"schema_version": "kebab_eval.baseline.v1"}', RecordError, "damaged \\(missing"),
        (b"\xff", RecordError, "not valid JSON"),
        (b"[" * 100_000, RecordError, "not valid JSON"),
    ],
)
def test_a_file_that_is_none_is_told(
    tmp_path: Path, content: bytes, error: type[Exception], said: str
) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(error, match=said):
        read_frozen(tmp_path / "a.json")


def test_a_list_holds_the_newest_first_and_tells_what_is_damaged(
    tmp_path: Path, judged_run: JudgedRun
) -> None:
    run = run_of(judged_run)
    old = frozen_file(tmp_path, run, "2026-11-01T00:00:00Z")
    new = frozen_file(tmp_path, run, "2026-12-01T00:00:00Z", "x")
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "torn.json").write_text(old.read_text()[:200])
    files, damaged = list_frozen(tmp_path)
    assert [file.path for file in files] == [new, old]
    assert (files[0].primary, files[0].score, files[0].n) == ("ndcg_at_10_doc", 1.0, 1)
    assert len(damaged) == 1
    assert "torn.json" in damaged[0]
    assert list_frozen(tmp_path / "nowhere") == ([], [])


# --- finding --------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_frozen_file_is_a_run(here: Path, judged_run: JudgedRun) -> None:
    run = run_of(judged_run)
    path = frozen_file(here, run, "2026-12-01T00:00:00Z")
    assert find_run(str(path)).results == run.results
    assert find_run(path.name).name == "name"


def test_the_results_file_of_a_record_names_it(here: Path, judged_run: JudgedRun) -> None:
    folder = record(here / "elsewhere", run_of(judged_run))
    for reference in (folder, folder / "per_query.jsonl", folder / "run.json"):
        assert locate_run(str(reference)).folder == folder
    assert spool.find_record(str(folder / "per_query.jsonl")) == folder
    alone = here / "per_query.jsonl"
    alone.write_text("")
    with pytest.raises(UsageError, match=r"there is no run\.json beside it"):
        find_run(str(alone))


def test_a_file_that_is_not_there_is_told_as_a_file(here: Path) -> None:
    with pytest.raises(UsageError, match=r"baselines/none\.json: frozen baseline does not exist"):
        find_run("baselines/none.json")


def test_baseline_finds_what_was_frozen_last(here: Path, judged_run: JudgedRun) -> None:
    one = record(spool.SPOOL, run_of(judged_run, "one"))
    two = record(spool.SPOOL, run_of(judged_run, "two"))
    with pytest.raises(UsageError, match="nothing is frozen yet"):
        find_run("baseline")
    spool.mark_baseline(one, "default", "2026-12-01T00:00:00Z", "f")
    spool.mark_baseline(two, "x", "2026-12-02T00:00:00Z", "f")
    assert find_run("baseline").name == "two"
    assert find_run("baseline:default").name == "one"
    spool.mark_baseline(one, "x", "2026-12-03T00:00:00Z", "f")
    assert find_run("baseline:x").name == "one"
    assert find_run("baseline:default").name == "one"
    with pytest.raises(UsageError, match="frozen are default, x"):
        find_run("baseline:y")


def test_a_newer_file_in_the_folder_goes_before_an_older_mark(
    here: Path, judged_run: JudgedRun
) -> None:
    mine = record(spool.SPOOL, run_of(judged_run, "mine"))
    spool.mark_baseline(mine, "default", "2026-12-01T00:00:00Z", "f")
    frozen_file(here / "baselines", run_of(judged_run, "theirs"), "2026-12-02T00:00:00Z")
    assert find_run("baseline").name == "theirs"
    frozen_file(here / "baselines", run_of(judged_run, "other"), "2026-11-02T00:00:00Z", "odd")
    with pytest.raises(UsageError, match="frozen are default, odd"):
        find_run("baseline:none")
    spool.mark_baseline(mine, "default", "2026-12-03T00:00:00Z", "f")
    assert find_run("baseline").name == "mine"


def test_a_run_that_is_called_baseline_is_found_by_its_name(
    here: Path, judged_run: JudgedRun
) -> None:
    record(spool.SPOOL, run_of(judged_run, "baseline"))
    assert find_run("baseline").name == "baseline"


def test_marks_of_any_shape_harm_nothing(here: Path, judged_run: JudgedRun) -> None:
    folder = record(spool.SPOOL, run_of(judged_run))
    for marks in (1, [1], [{}], [{"label": 1, "frozen_at": 2}], {"label": "x"}):
        spool.RecordWriter(folder, {**spool.list_records()[0], "folder": ""}).update(
            baselines=marks
        )
        with pytest.raises(UsageError, match="nothing is frozen yet"):
            find_run("baseline")
