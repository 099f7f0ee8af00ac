"""After kill -9: only what is missing is asked, and the record is that of an unbroken run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

SYSTEM = """
import time
def search(query, k):
    with open("asked.txt", "a") as log:
        log.write(query + "\\n")
    time.sleep(0.05)
    return [(f"d{n}", 1 / (n + 1)) for n in range(k)]
"""
GOLDEN = "".join(
    f"- {{id: q{n:02}, query: text {n}, expected_doc_ids: [d{n % 5}]}}\n" for n in range(30)
)
CONFIG = """\
golden: golden.yaml
backend: {type: python, target: "system:search", path: .}
search: {k: 5}
execution: {concurrency: 2, warmup: 0}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "system.py").write_text(SYSTEM)
    (tmp_path / "golden.yaml").write_text(GOLDEN)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path


def killed(folder: Path, command: str) -> Path:
    """Start a run, kill it after some answers; return its record, half a line at its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kebab_eval", command, "-c", "c.yaml", "-q"],
        cwd=folder,
        env={**os.environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = list(folder.glob("mlruns/spool/*/per_query.jsonl"))
        if found and found[0].read_text().count("\n") >= 5:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (path,) = folder.glob("mlruns/spool/*/per_query.jsonl")
    with path.open("a") as lines:
        lines.write('{"schema_version": "kebab_eval.quer')
    return path.parent


def results(record: Path) -> list[dict[str, Any]]:
    lines = (record / "per_query.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    for result in found:
        result.pop("latency_ms")
        result.pop("started_at")
    return found


def aggregate(record: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((record / "aggregate.json").read_text())
    del data["latency_ms"]
    return data


def test_only_what_is_missing_is_asked(program: Program, folder: Path) -> None:
    record = killed(folder, "run")
    assert json.loads((record / "run.json").read_text())["status"] == "RUNNING"
    kept = {json.loads(line)["query"] for line in
            (record / "per_query.jsonl").read_text().splitlines()[:-1]}  # fmt: skip
    assert 5 <= len(kept) < 30
    (folder / "asked.txt").write_text("")
    done = program("resume", "latest")
    assert done.returncode == 0, done.stderr
    asked = (folder / "asked.txt").read_text().splitlines()
    assert sorted(asked) == sorted({f"text {n}" for n in range(30)} - kept)

    whole = program("run", "-c", "c.yaml", "--json")
    unbroken = folder / json.loads(whole.stdout)["record_dir"]
    assert results(record) == results(unbroken)
    assert aggregate(record) == aggregate(unbroken)
    assert json.loads((record / "run.json").read_text())["status"] == "FINISHED"
    assert {path.name for path in record.iterdir()} == {path.name for path in unbroken.iterdir()}

    again = program("resume", record.name)
    assert again.returncode == 2
    assert "all 30 queries are answered" in again.stderr


def test_a_tracked_run_goes_on_in_its_mlflow_run(program: Program, folder: Path) -> None:
    record = killed(folder, "track")
    done = program("resume", record.name, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["status"] == "FINISHED"
    import sqlite3

    with sqlite3.connect(folder / "mlruns" / "mlflow.db") as database:
        runs = database.execute("SELECT run_uuid, status FROM runs").fetchall()
    assert runs == [(document["run_id"], "FINISHED")]


def test_another_system_does_not_finish_the_run(program: Program, folder: Path) -> None:
    record = killed(folder, "run")
    config = json.loads((record / "config.json").read_text())
    config["backend"]["versions"] = {"chunker_version": "v2"}
    (record / "config.json").write_text(json.dumps(config))
    done = program("resume", record.name)
    assert done.returncode == 4
    assert "chunker_version: None then, v2 now" in done.stderr


def test_a_system_that_is_down_stops_the_run_and_says_how_to_go_on(
    program: Program, folder: Path
) -> None:
    (folder / "system.py").write_text("def search(query, k):\n    raise OSError('no route')\n")
    done = program("run", "-c", "c.yaml", "-S", "execution.concurrency=1")
    assert done.returncode == 3
    assert "the first 10 queries all failed" in done.stderr
    assert "no route" in done.stderr
    assert "20 queries were not asked; 'kebab-eval resume mlruns/spool/" in done.stderr
    (folder / "system.py").write_text(SYSTEM)
    done = program("resume", "latest", "--failed", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["aggregate"]["failed_queries"] == 0
    missing = program("resume", "nothing-of-that-name")
    assert missing.returncode == 2
    assert "no record is called" in missing.stderr
