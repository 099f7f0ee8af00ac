"""The main job from the command line: an empty folder, init, track, report; all of it offline."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

HYBRID, LEXICAL = "configs/hybrid.yaml", "configs/lexical.yaml"
ARTIFACTS = {
    "aggregate.json",
    "candidates.jsonl",
    "config.json",
    "config.yaml",
    "golden.jsonl",
    "per_query.csv",
    "per_query.jsonl",
    "per_query_table.json",
    "plots/latency.svg",
    "plots/metrics.svg",
    "plots/ranks.svg",
    "report.html",
    "report.md",
    "run.json",
}


def _query(database: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql, values).fetchall()


def _files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def _track(program: Program, config: str, *more: str) -> dict[str, Any]:
    done = program("track", "--config", config, "--json", *more)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_init_then_track_in_an_empty_folder(program: Program, tmp_path: Path) -> None:
    assert program("init").returncode == 0
    first, second = _track(program, HYBRID), _track(program, LEXICAL, "--tag", "team=search")

    # one MLflow run each, finished, in one experiment
    database = tmp_path / "mlruns" / "mlflow.db"
    runs = _query(database, "SELECT run_uuid, name, status FROM runs ORDER BY start_time")
    assert runs == [
        (first["run_id"], "hybrid", "FINISHED"),
        (second["run_id"], "lexical", "FINISHED"),
    ]
    assert first["experiment_id"] == second["experiment_id"]

    # the params differ in the lever alone
    params = [
        dict(_query(database, "SELECT key, value FROM params WHERE run_uuid = ?", run["run_id"]))
        for run in (first, second)
    ]
    assert {k for k in params[0] if params[0][k] != params[1][k]} == {"mode"}
    assert params[1]["mode"] == "lexical"
    assert params[0]["chunker_version"] == "md-heading-v1"
    assert {"rrf_k", "embedding_model", "score_gate", "k", "corpus_fingerprint"} <= params[0].keys()
    assert len(params[0]["golden_digest"]) == 32

    # the metrics are those of aggregate.json, under one prefix for each kind
    metrics = dict(
        _query(database, "SELECT key, value FROM metrics WHERE run_uuid = ?", second["run_id"])
    )
    value = second["aggregate"]["metrics"]["ndcg_at_5_doc"]["value"]
    assert metrics["retrieval/ndcg_at_5_doc"] == value
    assert metrics["count/queries"] == 8
    assert {key.partition("/")[0] for key in metrics} == {
        "retrieval", "count", "latency", "by_language", "by_difficulty"
    }  # fmt: skip

    # the golden set is a dataset input, the note is Markdown, the tag is there
    assert _query(database, "SELECT name FROM datasets") == [("queries",)]
    tags = dict(
        _query(database, "SELECT key, value FROM tags WHERE run_uuid = ?", second["run_id"])
    )
    assert tags["mlflow.note.content"].startswith("# lexical\n")
    assert tags["team"] == "search"

    # the record and the artifacts hold the same files
    record = tmp_path / second["record_dir"]
    assert _files(record) == ARTIFACTS
    artifacts = tmp_path / "mlruns" / "artifacts" / second["run_id"] / "artifacts"
    assert _files(artifacts) == ARTIFACTS
    run = json.loads((artifacts / "run.json").read_text())
    assert run["status"] == "FINISHED"
    assert run["lever"] == {"key": "search.mode", "value": "lexical"}


def test_track_says_the_metrics_and_both_links(program: Program, project: Path) -> None:
    program("track", "--config", HYBRID)
    done = program("track", "--config", LEXICAL)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "lexical  8 queries of queries v1" in done.stdout
    assert "ndcg_at_5_doc " in done.stdout
    assert "#/experiments/1/runs/" in done.stdout
    assert "#/compare-runs?runs=" in done.stdout
    assert "with the run before it, hybrid" in done.stdout


def test_two_runs_give_the_same_bytes_whatever_the_hash_seed(
    program: Program, project: Path
) -> None:
    seen = []
    for seed, threads in (("1", "1"), ("2", "2")):
        env = {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads}
        done = program("run", "--config", HYBRID, "--json", env=env)
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        aggregate = document["aggregate"]
        del aggregate["latency_ms"]
        lines = (project / document["record_dir"] / "per_query.jsonl").read_text().splitlines()
        results = [json.loads(line) for line in lines]
        for result in results:
            assert result.pop("latency_ms") > 0
            assert result.pop("started_at") > "2026"
            assert result.pop("timings_ms")["total"] > 0
        record = project / document["record_dir"]
        golden = (record / "golden.jsonl").read_bytes()
        golden += (record / "candidates.jsonl").read_bytes()
        seen.append(json.dumps([aggregate, results]).encode() + golden)
        # the second run must not lean on the first one's vectors
        for cached in project.rglob(".kebab_eval_cache/*"):
            cached.unlink()
    assert seen[0] == seen[1]


def test_a_run_that_differs_from_its_config_says_so_in_its_name(
    program: Program, project: Path
) -> None:
    arguments = ("run", "--config", HYBRID, "--json", "-S", "fusion.rrf_k=20")
    names = [
        json.loads(program(*arguments, *more).stdout)["run_name"]
        for more in ((), ("--limit", "2", "--concurrency", "2"), ("--name", "mine", "--k", "3"))
    ]
    assert names == [
        "hybrid (fusion.rrf_k=20)",
        "hybrid (fusion.rrf_k=20, 2 of 8 queries)",
        "mine",
    ]


def test_options_can_be_given_by_the_environment(program: Program, project: Path) -> None:
    env = {
        "KEBAB_EVAL_RUN_CONFIG": HYBRID,
        "KEBAB_EVAL_RUN_QUERY_ID": "q-003",
        "KEBAB_EVAL_RUN_K": "2",
    }
    done = program("run", "--json", env=env)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["aggregate"]["total_queries"] == 1
    assert program("report", "latest").stdout.count("see only the 2 hits") == 1


def test_run_writes_no_mlflow_store(program: Program, project: Path) -> None:
    done = program("run", "--config", HYBRID, "--limit", "3", "-o", "out.md")
    assert done.returncode == 0, done.stderr
    assert not (project / "mlruns" / "mlflow.db").exists()
    assert "3 queries of queries v1" in (project / "out.md").read_text()


def test_report_gives_every_format_of_a_run(program: Program, project: Path) -> None:
    document = json.loads(program("run", "--config", HYBRID, "--json").stdout)
    name = Path(document["record_dir"]).name
    for reference in ("latest", "hybrid", name, name[:18], document["record_dir"]):
        done = program("report", reference, "--format", "json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["aggregate"] == document["aggregate"]
    assert program("report", "latest", "--format", "md").stdout.startswith("# hybrid\n")
    assert program("report", "latest", "--format", "html").stdout.startswith("<!doctype html>")
    assert program("report", "latest", "--format", "csv").stdout.startswith("query_id,query,")
    unknown = program("report", "hybird")
    assert unknown.returncode == 2
    assert "no run is called 'hybird' (did you mean 'hybrid'?)" in unknown.stderr


def test_report_finds_a_run_that_only_mlflow_holds(program: Program, project: Path) -> None:
    import shutil

    document = _track(program, HYBRID)
    shutil.rmtree(project / "mlruns" / "spool")
    done = program("report", document["run_id"][:8], "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["aggregate"] == document["aggregate"]


def test_init_overwrites_nothing(program: Program, project: Path) -> None:
    (project / HYBRID).write_text("mine")
    done = program("init")
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert (project / HYBRID).read_text() == "mine"


def test_doctor_names_what_is_wrong(program: Program, project: Path) -> None:
    assert program("doctor", "--config", HYBRID).returncode == 0
    (project / "notes" / "on-call.md").write_bytes(b"\xff")
    done = program("doctor", "--config", HYBRID)
    assert done.returncode == 3
    assert "notes/on-call.md" in done.stdout


def test_a_dead_tracker_costs_seconds_and_loses_nothing(program: Program, project: Path) -> None:
    started = time.monotonic()
    done = program("track", "--config", HYBRID, "--tracking-uri", "http://user:pw@127.0.0.1:9")
    assert done.returncode == 3
    assert "the results are complete in mlruns/spool/" in done.stderr
    assert "pw" not in done.stderr
    assert time.monotonic() - started < 60  # MLflow alone would retry for minutes
    assert program("report", "latest").returncode == 0
    leaked = [
        p for p in (project / "mlruns").rglob("*") if p.is_file() and b"pw@" in p.read_bytes()
    ]
    assert leaked == []


def test_a_secret_reaches_no_file_and_no_output(program: Program, project: Path) -> None:
    with (project / HYBRID).open("a") as config:
        config.write('tags: {owner: "team-${env:KE_TOKEN}"}\n')
    env = {"KE_TOKEN": "s3cr3t-value-91"}
    done = program("track", "--config", HYBRID, env=env)
    assert done.returncode == 0, done.stderr
    assert "s3cr3t" not in done.stdout + done.stderr
    files = [path for path in project.rglob("*") if path.is_file()]
    assert [path for path in files if b"s3cr3t" in path.read_bytes()] == []
    assert any(b"${env:KE_TOKEN}" in path.read_bytes() for path in files)


def test_a_disk_that_refuses_is_an_error_and_leaves_no_half_record(
    program: Program, project: Path
) -> None:
    (project / "mlruns").write_text("a file where the folder should be")
    done = program("run", "--config", HYBRID)
    assert done.returncode == 3
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


SLOW = """
import sys, time
from kebab_eval.engine.search import Engine
search = Engine.search
def slow(self, *arguments):
    time.sleep(0.4)
    return search(self, *arguments)
Engine.search = slow
from kebab_eval.cli.front import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_the_partial_record_and_ends_the_run_killed(
    number: signal.Signals, project: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "track", "--config", HYBRID],
        cwd=project,
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not _answers(project) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "answers are kept in mlruns/spool/" in stderr
    assert "Traceback" not in stderr
    (record,) = (project / "mlruns" / "spool").iterdir()
    assert json.loads((record / "run.json").read_text())["status"] == "KILLED"
    assert 1 <= len(_answers(project)) < 8
    database = project / "mlruns" / "mlflow.db"
    assert _query(database, "SELECT status FROM runs") == [("KILLED",)]


def _answers(project: Path) -> list[Any]:
    return [
        json.loads(line)
        for path in project.glob("mlruns/spool/*/per_query.jsonl")
        for line in path.read_text().splitlines()
    ]
