"""The local record: whole lines or none, whole files or none, and damage told with its line."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.errors import RecordError, UsageError
from kebab_eval.records import GoldenQuery, Hit, Judgments, QueryResult
from kebab_eval.tracking import spool
from kebab_eval.tracking.spool import RecordWriter, find_record, list_records, read_record

GOLDEN = GoldenQuery("q-1", "text", Judgments(doc={"a.md": 1.0}))
INFO: dict[str, Any] = {
    "golden": {
        "name": "g",
        "version": "1",
        "digest": "d",
        "path": "g.yaml",
        "queries": 1,
        "min_relevance": 1,
    },
    "system": {},
}
CONFIG = {"search": {"k": 10}, "metrics": {"primary": "ndcg_at_10_doc"}}


def result(query_id: str = "q-1", text: str = "text") -> QueryResult:
    return QueryResult(query_id, text, "hybrid", (Hit(1, "c", "a.md", 0.5, "rrf", text),), 1.0)


def writer(root: Path, name: str = "run", info: Mapping[str, Any] = INFO) -> RecordWriter:
    files = {
        "config.json": spool.dump_json(CONFIG),
        "golden.jsonl": spool.dump_line(GOLDEN.to_json()) + "\n",
    }
    return RecordWriter.create(root, name, info, files)


def finished(root: Path, name: str, created_at: str, **info: Any) -> Path:
    made = writer(root, name)
    made.close()
    made.update(status="FINISHED", created_at=created_at, **info)
    return made.folder


def lines(folder: Path) -> list[str]:
    return (folder / "per_query.jsonl").read_text().splitlines()


# --- writing --------------------------------------------------------------------------------


def test_a_record_that_was_written_reads_back(tmp_path: Path) -> None:
    made = writer(tmp_path, "rrf k60")
    made.append(result())
    made.write_results([result()])
    made.write("aggregate.json", '{"a": 1}')
    made.write("plots/x.svg", "<svg/>")
    made.update(status="FINISHED")
    run = read_record(made.folder)
    assert run.results == (result(),)
    assert run.golden.queries == (GOLDEN,)
    assert (run.golden.name, run.golden.min_relevance) == ("g", 1)
    assert run.config == CONFIG
    assert run.aggregate == {"a": 1}
    assert (run.name, run.info["status"]) == ("rrf k60", "FINISHED")
    assert run.run_id == made.folder.name
    assert not list(made.folder.rglob(".*.tmp"))


def test_an_answer_is_on_disk_when_it_was_appended(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.append(result("q-1"))
    made.append(result("q-2"))
    assert [json.loads(line)["query_id"] for line in lines(made.folder)] == ["q-1", "q-2"]
    assert read_record(made.folder).info["status"] == "RUNNING"
    made.close()


def test_an_id_sorts_by_time_and_says_the_name() -> None:
    now = datetime(2026, 11, 30, 22, 15, 30, tzinfo=UTC)
    assert spool.new_run_id("rrf_k60", now)[:-4] == "20261130-221530-rrf_k60-"
    assert spool.new_run_id("../../etc/passwd", now)[:-4] == "20261130-221530-etc-passwd-"
    assert spool.new_run_id("한글 이름", now)[:-4] == "20261130-221530-한글-이름-"
    assert spool.new_run_id("...", now)[:-4] == "20261130-221530-run-"
    assert len(spool.new_run_id("x" * 500, now)) == 15 + 1 + 40 + 1 + 4


def test_a_disk_that_fills_in_the_middle_of_a_line_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = writer(tmp_path)
    made.append(result("q-1"))
    write = os.write
    calls = []

    def half_then_full(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half_then_full)
        with pytest.raises(
            RecordError, match=r"per_query\.jsonl: cannot be written: No space left"
        ):
            made.append(result("q-2"))
    assert len(calls) == 2
    assert [json.loads(line)["query_id"] for line in lines(made.folder)] == ["q-1"]
    made.append(result("q-3"))
    assert [json.loads(line)["query_id"] for line in lines(made.folder)] == ["q-1", "q-3"]
    made.close()


def test_an_interrupt_in_the_middle_of_a_line_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = writer(tmp_path)
    write = os.write

    def half_then_stop(descriptor: int, data: bytes) -> int:
        write(descriptor, data[:10])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half_then_stop)
        with pytest.raises(KeyboardInterrupt):
            made.append(result())
    assert lines(made.folder) == []
    made.close()


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = writer(tmp_path)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    made.append(result("q-1", "긴 글 " * 20))
    assert json.loads(lines(made.folder)[0])["query"] == "긴 글 " * 20
    made.close()


def test_a_file_is_written_whole_or_keeps_what_it_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = writer(tmp_path)
    made.write("report.md", "old")

    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(RecordError, match=r"report\.md: cannot be written: No space left"):
            made.write("report.md", "new text")
    assert (made.folder / "report.md").read_text() == "old"
    assert not list(made.folder.glob(".*"))
    made.close()


def test_a_record_that_cannot_be_started_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RecordError, match="No space left"):
        writer(tmp_path / "spool")
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_spool_below_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("")
    with pytest.raises(RecordError, match="cannot be written: Not a directory"):
        writer(tmp_path / "spool")


def test_a_record_folder_that_vanishes_is_told_and_not_made_again(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.append(result())
    shutil.rmtree(made.folder)
    with pytest.raises(RecordError, match="it was removed while the run was going on"):
        made.append(result())
    with pytest.raises(RecordError, match="cannot be written"):
        made.write_results([result()])
    with pytest.raises(RecordError, match="cannot be written"):
        made.update(status="FAILED")
    with pytest.raises(RecordError, match="cannot be written"):
        made.write("plots/x.svg", "")
    assert not made.folder.exists()
    made.close()


def test_closing_twice_is_nothing_and_appending_after_it_is_told(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.close()
    made.close()
    with pytest.raises(RecordError):
        made.append(result())


@pytest.mark.parametrize(
    "text",
    [
        "<script>",
        "=cmd()",
        "a|b",
        "`x`",
        "\x1b[31m",
        "\u2028\u2029\x85",
        "\0",
        "\r\n",
        '"\\',
        "\ud800",
        "가나",
    ],
)
def test_any_text_survives_and_the_file_stays_utf8(tmp_path: Path, text: str) -> None:
    made = writer(tmp_path)
    made.append(result(text, text))
    made.append(result("next"))
    (made.folder / "per_query.jsonl").read_bytes().decode("utf-8")
    assert read_record(made.folder).results == (result(text, text), result("next"))
    made.write_results([result(text, text)])
    (made.folder / "per_query.jsonl").read_bytes().decode("utf-8")
    assert read_record(made.folder).results == (result(text, text),)


# --- reading --------------------------------------------------------------------------------


def test_the_line_that_was_cut_off_at_the_end_is_left_out(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.append(result())
    made.close()
    with (made.folder / "per_query.jsonl").open("a") as file:
        file.write('{"query_id": "q-2", "que')
    assert read_record(made.folder).results == (result(),)


def test_every_damaged_line_is_told_with_its_number(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.close()
    path = made.folder / "per_query.jsonl"
    good = spool.dump_line(result().to_json())
    hit = good.replace('"rank":1', '"rank":1e999')
    damaged = [
        "not json",
        "[1]",
        "{}",
        '{"query_id":1}',
        '"text"',
        "null",
        "[" * 100_000,
        hit,
        "\xff",
    ]
    path.write_bytes("\n".join([good, *damaged, good]).encode("latin-1") + b"\n")
    with pytest.raises(RecordError) as told:
        read_record(made.folder)
    found = str(told.value).splitlines()
    assert [line.split(": ")[0] for line in found] == [f"{path}:{n}" for n in range(2, 11)]
    assert "not a query result (missing 'query_id')" in found[2]


def test_very_many_damaged_lines_are_counted(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.close()
    (made.folder / "per_query.jsonl").write_text("x\n" * 1000)
    with pytest.raises(RecordError) as told:
        read_record(made.folder)
    assert len(str(told.value).splitlines()) == 21
    assert str(told.value).endswith("and 980 more")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("run.json", "", r"run\.json: not valid JSON"),
        ("run.json", "[]", r"run\.json: expected a JSON object, found list"),
        ("run.json", "{}", r"run\.json: damaged, without 'id', 'name', 'created_at', 'status'"),
        ("run.json", "\xff", r"run\.json: not valid JSON"),
        ("run.json", "[" * 100_000, r"run\.json: not valid JSON"),
        ("config.json", "{", r"config\.json: not valid JSON"),
        ("config.json", "{}", r"config\.json: damaged, without 'search', 'metrics'"),
        ("aggregate.json", "nope", r"aggregate\.json: not valid JSON"),
        ("golden.jsonl", "{}\n", r"golden\.jsonl:1: not a golden query \(missing 'judgments'\)"),
    ],
)
def test_a_damaged_file_is_told_by_name(tmp_path: Path, file: str, content: str, said: str) -> None:
    folder = finished(tmp_path, "run", "2026")
    (folder / file).write_bytes(content.encode("latin-1"))
    with pytest.raises(RecordError, match=said):
        read_record(folder)


@pytest.mark.parametrize(
    "golden", [None, [], {}, {"name": "g"}, {**INFO["golden"], "min_relevance": "x"}]
)
def test_a_damaged_golden_section_is_told(tmp_path: Path, golden: Any) -> None:
    folder = finished(tmp_path, "run", "2026", golden=golden)
    with pytest.raises(RecordError, match="'golden' is damaged"):
        read_record(folder)


@pytest.mark.parametrize("file", ["run.json", "config.json", "per_query.jsonl", "golden.jsonl"])
def test_a_missing_file_is_told(tmp_path: Path, file: str) -> None:
    folder = finished(tmp_path, "run", "2026")
    (folder / file).unlink()
    with pytest.raises(RecordError, match=rf"{file}: cannot be read: No such file"):
        read_record(folder)


def test_a_record_without_an_aggregate_was_not_judged(tmp_path: Path) -> None:
    assert read_record(finished(tmp_path, "run", "2026")).aggregate == {}


# --- finding --------------------------------------------------------------------------------


def test_records_are_listed_newest_first_and_damaged_ones_left_out(tmp_path: Path) -> None:
    old, new = finished(tmp_path, "a", "2026-01"), finished(tmp_path, "b", "2026-02")
    for name, content in (("x", "{}"), ("y", "nope"), ("z", "[" * 100_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(content)
    (tmp_path / "file").write_text("")
    assert [info["folder"] for info in list_records(tmp_path)] == [new, old]
    assert list_records(tmp_path / "nothing") == []


def test_a_run_is_found_by_every_name_it_has(tmp_path: Path) -> None:
    old = finished(tmp_path, "alpha", "2026-01", mlflow={"run_id": "0123456789abcdef"})
    new = finished(tmp_path, "alpha", "2026-02", mlflow=None)
    other = finished(tmp_path, "beta", "2026-03", mlflow="damaged")
    assert find_record("latest", tmp_path) == other
    assert find_record("latest~1", tmp_path) == new
    assert find_record("latest~2", tmp_path) == old
    assert find_record("latest~3", tmp_path) is None
    assert find_record("alpha", tmp_path) == new  # the newest of that name
    assert find_record(old.name, tmp_path) == old
    assert find_record("0123", tmp_path) == old
    assert find_record("0123456789abcdef", tmp_path) == old
    assert find_record(str(old), tmp_path) == old
    assert find_record("012", tmp_path) is None  # shorter than a prefix may be
    assert find_record("gamma", tmp_path) is None


def test_an_ambiguous_prefix_is_told_with_the_candidates(tmp_path: Path) -> None:
    folders = [finished(tmp_path, f"run{n}", f"2026-0{n + 1}") for n in range(7)]
    prefix = folders[0].name[:4]
    with pytest.raises(UsageError) as told:
        find_record(prefix, tmp_path)
    message = str(told.value)
    assert message.startswith(f"RUN: 7 runs begin with '{prefix}': {folders[6].name} (run6), ")
    assert message.endswith("and 2 more; give more of it")


def test_a_whole_id_is_not_ambiguous(tmp_path: Path) -> None:
    finished(tmp_path, "a", "2026-01", id="abcd-1")
    longer = finished(tmp_path, "b", "2026-02", id="abcd-12")
    assert find_record("abcd-12", tmp_path) == longer
    found = find_record("abcd-1", tmp_path)
    assert found is not None
    assert found != longer


@pytest.mark.parametrize(
    "reference", ["x" * 300, "a\0b", "\udcff" * 5, "../..", "/", "latest~", "*"]
)
def test_a_strange_reference_names_nothing(
    tmp_path: Path, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "spool", "a", "2026")
    assert find_record(reference, tmp_path / "spool") is None


def test_a_reference_that_names_nothing_gets_a_hint(tmp_path: Path) -> None:
    assert "there is no record in" in spool.near_reference("x", tmp_path)
    folder = finished(tmp_path, "alpha", "2026")
    assert spool.near_reference("alpah", tmp_path) == " (did you mean 'alpha'?)"
    assert spool.near_reference("zzz", tmp_path) == f"; the newest are {folder.name}"


def test_json_of_a_record_holds_no_nan() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        spool.dump_json({"a": float("nan")})
    with pytest.raises(ValueError, match="Out of range"):
        spool.dump_line({"a": float("inf")})
