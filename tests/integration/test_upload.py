"""Outages for real: a server that is down, dies or falls silent, and a client that is killed.

Whatever happens, the record is whole, and ``upload`` brings the run to MLflow with nothing twice.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location(
    "mlflow_server", Path(__file__).with_name("mlflow_server.py")
)
assert _spec is not None
assert _spec.loader is not None
servers = importlib.util.module_from_spec(_spec)
sys.modules["mlflow_server"] = servers
_spec.loader.exec_module(servers)

Program = Callable[..., subprocess.CompletedProcess[str]]

SYSTEM = """
def search(query, k):
    return [(f"d{n}", 1 / (n + 1)) for n in range(k)]
"""
COUNT = 24
GOLDEN = "".join(
    f"- {{id: q{n:02}, query: 질문 {n}, expected_doc_ids: [d{n % 7}]}}\n" for n in range(COUNT)
)
CONFIG = """\
golden: golden.yaml
backend: {type: python, target: "system:search", path: .}
search: {k: 5}
execution: {warmup: 0}
"""
START_TRACE, LOG_SPANS = "POST /api/3.0/mlflow/traces", "POST /v1/traces"
END_RUN, LOG_BATCH = "POST /api/2.0/mlflow/runs/update", "POST /api/2.0/mlflow/runs/log-batch"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with servers.mlflow_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "system.py").write_text(SYSTEM)
    (tmp_path / "golden.yaml").write_text(GOLDEN)
    (tmp_path / "c.yaml").write_text(f"experiment: {tmp_path.name}\n{CONFIG}")
    return tmp_path


def rows(database: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql, values).fetchall()


def record_of(folder: Path) -> Path:
    (found,) = (folder / "mlruns" / "spool").iterdir()
    return found


def assert_whole_record(folder: Path) -> Path:
    record = record_of(folder)
    assert json.loads((record / "run.json").read_text())["status"] == "FINISHED"
    assert len((record / "per_query.jsonl").read_text().splitlines()) == COUNT
    assert json.loads((record / "aggregate.json").read_text())["total_queries"] == COUNT
    return record


def state(database: Path, experiment: str) -> dict[str, Any]:
    """Return all that the store holds of an experiment's one run, without ids and addresses."""
    ((experiment_id,),) = rows(
        database, "SELECT experiment_id FROM experiments WHERE name = ?", experiment
    )
    runs = rows(
        database, "SELECT run_uuid, status FROM runs WHERE experiment_id = ?", experiment_id
    )
    assert len(runs) == 1, runs
    ((run_id, status),) = runs
    traces = rows(
        database,
        "SELECT t.client_request_id, t.request_preview, t.status, t.response_preview,"
        " (SELECT count(*) FROM spans s WHERE s.trace_id = t.request_id),"
        " (SELECT group_concat(name || '=' || value, ';') FROM"
        "  (SELECT name, value FROM assessments a WHERE a.trace_id = t.request_id ORDER BY name))"
        " FROM trace_info t WHERE t.experiment_id = ? ORDER BY 1",
        experiment_id,
    )
    params = "SELECT key, value FROM params WHERE run_uuid = ? ORDER BY 1"
    metrics = rows(database, params.replace("params", "metrics"), run_id)
    return {
        "status": status,
        "params": rows(database, params, run_id),
        "metrics": [row for row in metrics if not row[0].startswith("latency/")],
        "inputs": len(rows(database, "SELECT 1 FROM inputs WHERE destination_id = ?", run_id)),
        "traces": traces,
    }


@pytest.fixture(scope="module")
def unbroken(server: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The state of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("unbroken")
    (folder / "system.py").write_text(SYSTEM)
    (folder / "golden.yaml").write_text(GOLDEN)
    (folder / "c.yaml").write_text(f"experiment: unbroken\n{CONFIG}")
    command = [sys.executable, "-m", "kebab_eval", "track", "-c", "c.yaml", "-q"]
    subprocess.run([*command, "--tracking-uri", server.uri], cwd=folder, check=True)
    found = state(server.database, "unbroken")
    assert [trace[0] for trace in found["traces"]] == [f"q{n:02}" for n in range(COUNT)]
    assert {trace[4] for trace in found["traces"]} == {2}  # a root and a search each
    return found


def upload(program: Program, folder: Path, uri: str) -> dict[str, Any]:
    done = program("upload", "latest", "--tracking-uri", uri, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_server_that_was_down_at_the_start(
    program: Program, folder: Path, server: Any, unbroken: dict[str, Any]
) -> None:
    dead = f"http://127.0.0.1:{servers.free_port()}"
    done = program("track", "-c", "c.yaml", "--tracking-uri", dead)
    assert done.returncode == 3
    record = assert_whole_record(folder)
    assert f"'kebab-eval upload {record.relative_to(folder)}' sends them to MLflow" in done.stderr

    first = upload(program, folder, server.uri)
    assert first["run_was_there"] is False
    assert first["traces"] == {"sent": COUNT, "were_there": 0}
    assert state(server.database, folder.name) == unbroken
    again = upload(program, folder, server.uri)
    assert again["run_id"] == first["run_id"]
    assert again["run_was_there"] is True
    assert again["traces"] == {"sent": 0, "were_there": COUNT}
    assert state(server.database, folder.name) == unbroken


@pytest.mark.parametrize(
    ("request_line", "passed", "how"),
    [
        (START_TRACE, 5, "cut"),
        (LOG_SPANS, 0, "silence"),
        (END_RUN, 0, "cut"),
        (END_RUN, 0, "silence"),
    ],
)
def test_a_server_that_dies_in_the_middle_or_at_the_end(
    *,
    request_line: str,
    passed: int,
    how: str,
    program: Program,
    folder: Path,
    server: Any,
    unbroken: dict[str, Any],
) -> None:
    wire = servers.Wire(server.port, request_line, passed, how)
    done = program("track", "-c", "c.yaml", "--tracking-uri", wire.uri, timeout_s=60)
    wire.close()
    assert wire.reached
    assert done.returncode == 3, done.stderr
    assert "'kebab-eval upload " in done.stderr
    assert "Traceback" not in done.stderr
    assert_whole_record(folder)
    document = upload(program, folder, server.uri)
    assert document["run_was_there"] is True
    assert state(server.database, folder.name) == unbroken


@pytest.mark.parametrize(
    ("request_line", "passed"),
    [
        ("POST /api/2.0/mlflow/runs/create", 0),
        (LOG_BATCH, 0),
        (START_TRACE, 9),
        (LOG_SPANS, 0),
        (END_RUN, 0),
    ],
)
def test_a_client_that_is_killed_at_any_point_of_the_upload(
    *,
    request_line: str,
    passed: int,
    program: Program,
    folder: Path,
    server: Any,
    unbroken: dict[str, Any],
) -> None:
    program("run", "-c", "c.yaml", "-q")
    processes: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        processes[0].kill()

    wire = servers.Wire(server.port, request_line, passed, kill)
    command = [sys.executable, "-m", "kebab_eval", "upload", "latest", "--tracking-uri", wire.uri]
    processes.append(subprocess.Popen(command, cwd=folder, env=dict(os.environ)))
    assert processes[0].wait(timeout=60) == -signal.SIGKILL
    wire.close()
    assert_whole_record(folder)
    upload(program, folder, server.uri)
    assert state(server.database, folder.name) == unbroken


def test_a_disk_that_is_full_loses_nothing_of_the_record(program: Program, folder: Path) -> None:
    program("track", "-c", "c.yaml", "-q", "--limit", "1")  # makes the store
    done = program("run", "-c", "c.yaml", "--json")
    record = folder / json.loads(done.stdout)["record_dir"]
    before = {path: path.read_bytes() for path in record.rglob("*") if path.is_file()}
    size = 100_000  # of a file: less than what a transaction of traces writes ahead
    full = subprocess.run(
        [sys.executable, "-m", "kebab_eval", "upload", str(record)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    assert full.returncode == 3, full.stdout + full.stderr
    assert "Traceback" not in full.stderr
    assert "'kebab-eval upload " in full.stderr
    for path, content in before.items():
        if path.name != "run.json":
            assert path.read_bytes() == content
    done = program("upload", str(record), "--json")
    assert done.returncode == 0, done.stderr
    database = folder / "mlruns" / "mlflow.db"
    run_id = json.loads(done.stdout)["run_id"]
    ids = rows(
        database,
        "SELECT client_request_id FROM trace_info t JOIN trace_request_metadata m"
        " ON m.request_id = t.request_id AND m.key = 'mlflow.sourceRun' AND m.value = ?",
        run_id,
    )
    assert sorted(ids) == [(f"q{n:02}",) for n in range(COUNT)]
    assert rows(database, "SELECT status FROM runs WHERE run_uuid = ?", run_id) == [("FINISHED",)]


def test_a_record_that_has_not_ended_is_not_sent(program: Program, folder: Path) -> None:
    program("run", "-c", "c.yaml", "-q")
    record = record_of(folder)
    info = json.loads((record / "run.json").read_text())
    (record / "run.json").write_text(json.dumps({**info, "status": "RUNNING"}))
    done = program("upload", "latest")
    assert done.returncode == 2
    assert f"the run has not ended: {COUNT} of {COUNT} queries are answered" in done.stderr
    assert "'kebab-eval resume " in done.stderr
    assert program("upload", "nothing").returncode == 2
