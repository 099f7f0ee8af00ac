"""History into records and MLflow runs: kebab's database and lines, TREC runs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

GOLDEN = """\
- {id: q1, query: one, expected_doc_ids: [a.md], expected_chunk_ids: [a1]}
- {id: q2, query: two, expected_doc_ids: [b.md], expected_chunk_ids: [b1]}
- {id: q3, query: three, expected_doc_ids: [c.md], expected_chunk_ids: [c1]}
- {id: q4, query: never asked, expected_doc_ids: [c.md], expected_chunk_ids: [c1]}
"""
SNAPSHOT = {
    "eval_k": 10, "chunker_version": "md-heading-v1", "rrf_k": 60, "score_gate": 0.3,
    "embedding": {"model": "multilingual-e5-large", "version": "1", "dimensions": 1024},
    "index_version": "i1", "config": {"any": "thing"}, "something_new": 1,
}  # fmt: skip


def hit(rank: int, chunk: str) -> dict[str, Any]:
    document = f"{chunk[0]}.md"
    return {
        "rank": rank, "chunk_id": chunk, "doc_id": f"id-{chunk[0]}", "doc_path": document,
        "snippet": f"text of {chunk}", "retrieval": {"method": "hybrid", "fusion_score": 1 / rank},
        "chunker_version": "md-heading-v1",
    }  # fmt: skip


def result(query_id: str, *chunks: str, **more: Any) -> dict[str, Any]:
    hits = [hit(rank, chunk) for rank, chunk in enumerate(chunks, 1)]
    return {
        "query_id": query_id, "query": f"text {query_id}", "mode": "hybrid",
        "hits_top_k": hits[::-1],  # the rank orders them, not the place
        "answer": None, "elapsed_ms": 12, "error": None, **more,
    }  # fmt: skip


# q1 at rank 1, q2 at rank 4, q3 not at all: hit@1 1/3, hit@5 2/3, MRR (1 + 1/4) / 3 = .4167,
# P@5 (1/5 + 1/5) / 3 = .1333
RESULTS = [
    result("q1", "a1", "x1"),
    result("q2", "x1", "y1", "z1", "b1"),
    result("q3", "x1"),
]
STORED = {
    "hit_at_k": {"1": 0.3333, "3": 0.3333, "5": 0.6667, "10": 0.6667},
    "recall_at_k_doc": {"10": 0.6667},
    "mrr": 0.4167,
    "citation_coverage": None,
    "empty_result_rate": 0.0,
    "total_queries": 3,
    "failed_queries": 0,
}


def history(path: Path, runs: dict[str, tuple[str, Any, Any]], **results: Any) -> Path:
    """Write a database: run id -> (created_at, snapshot, aggregate)."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE eval_runs (run_id TEXT PRIMARY KEY, suite, config_snapshot_json, "
            "aggregate_json, commit_hash, created_at)"
        )
        database.execute("CREATE TABLE eval_query_results (run_id, query_id, result_json)")
        for run_id, (at, snapshot, aggregate) in runs.items():
            row = (run_id, "golden", json.dumps(snapshot), json.dumps(aggregate), "c0ffee", at)
            database.execute("INSERT INTO eval_runs VALUES (?, ?, ?, ?, ?, ?)", row)
            for one in results.get(run_id, RESULTS):
                text = one if isinstance(one, str) else json.dumps(one)
                name = "?" if isinstance(one, str) else one["query_id"]
                database.execute("INSERT INTO eval_query_results VALUES (?, ?, ?)",
                                 (run_id, name, text))  # fmt: skip
        database.commit()
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "golden.yaml").write_text(GOLDEN)
    runs = {
        "r2": ("2025-03-02T10:00:00Z", {**SNAPSHOT, "rrf_k": 20}, STORED),
        "r1": ("2025-03-01 09:30:00", SNAPSHOT, {**STORED, "mrr": 0.5}),
    }
    history(tmp_path / "kebab.sqlite", runs)
    return tmp_path


def imported(program: Program, *arguments: str) -> list[dict[str, Any]]:
    done = program("import", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_history_judged_anew(program: Program, folder: Path) -> None:
    asked = ("kebab-db", "kebab.sqlite", "--golden", "golden.yaml")
    planned = imported(program, *asked, "--dry-run")
    assert [one["state"] for one in planned] == ["would be made"] * 2
    assert not (folder / "mlruns").exists()

    first, second = imported(program, *asked)
    assert [first["past_id"], second["past_id"]] == ["r1", "r2"]  # the oldest first
    assert first["differences"] == ["mrr: stored 0.5000, computed 0.4167"]
    assert second["differences"] == []
    aggregate = json.loads((folder / second["record_dir"] / "aggregate.json").read_text())
    assert aggregate["hit_at_k"] == pytest.approx({"1": 1 / 3, "3": 1 / 3, "5": 2 / 3, "10": 2 / 3})
    assert aggregate["precision_at_k_chunk"]["5"] == pytest.approx(0.4 / 3)
    assert aggregate["mrr"] == pytest.approx(1.25 / 3)
    assert aggregate["total_queries"] == 3  # q4 was never asked

    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as database:
        runs = database.execute("SELECT name, status, start_time, end_time FROM runs").fetchall()
        params = dict(database.execute("SELECT key, value FROM params WHERE run_uuid = ?",
                                       (second["mlflow_run_id"],)).fetchall())  # fmt: skip
    assert sorted(runs) == [
        # three searches of 12 ms each
        ("golden r1", "FINISHED", 1740821400000, 1740821400036),
        ("golden r2", "FINISHED", 1740909600000, 1740909600036),
    ]
    assert {key: params[key] for key in ("rrf_k", "chunker_version", "embedding_model", "k")} == {
        "rrf_k": "20", "chunker_version": "md-heading-v1",
        "embedding_model": "multilingual-e5-large", "k": "10",
    }  # fmt: skip

    again = imported(program, *asked)
    assert [one["state"] for one in again] == ["already there"] * 2
    assert [one["mlflow_run_id"] for one in again] == [
        first["mlflow_run_id"], second["mlflow_run_id"]
    ]  # fmt: skip
    assert len(list((folder / "mlruns" / "spool").iterdir())) == 2

    # They are runs like others.
    done = program("compare", "golden r1", "golden r2", "--json", "--no-log")
    assert done.returncode == 0, done.stderr
    levers = [one["key"] for one in json.loads(done.stdout)["config_diff"] if one["lever"]]
    assert levers == ["rrf_k"]
    for command in (("report", "golden r2"), ("baseline", "freeze", "golden r1"),
                    ("gate", "--baseline", "golden r1", "--candidate", "golden r2")):  # fmt: skip
        done = program(*command)
        assert done.returncode == 0, done.stderr


def test_without_a_golden_set_the_stored_numbers_stand(program: Program, folder: Path) -> None:
    _, second = imported(program, "kebab-db", "kebab.sqlite", "--no-track")
    aggregate = json.loads((folder / second["record_dir"] / "aggregate.json").read_text())
    assert aggregate["hit_at_k"] == STORED["hit_at_k"]
    assert aggregate["metrics"]["mrr_at_10_chunk"]["value"] == 0.4167
    # Old records lack it: that is empty, not 0.
    assert aggregate["metrics"]["precision_at_5_chunk"]["value"] is None
    done = program("import", "kebab-db", "kebab.sqlite", "--no-track")
    assert done.stdout.count("already there") == 2
    assert "--golden judges the hits anew" in done.stdout


def test_lines_of_one_run(program: Program, folder: Path) -> None:
    run = folder / "runs" / "20250101-x"
    run.mkdir(parents=True)
    refused = {"answer": "", "citations": [], "grounded": False, "refusal_reason": "score_gate",
               "model": {"id": "m"}, "prompt_template_version": "p1", "usage": {}}  # fmt: skip
    lines = [
        *RESULTS[:1],
        result("q2", "b1", error={"code": "timeout", "message": "too slow"}),
        result("q3", "c1", answer={"schema_version": "answer.v1", **refused}),
    ]
    path = run / "per_query.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    os.utime(path, (1_735_700_000, 1_735_700_000))
    (one,) = imported(program, "kebab-jsonl", str(path), "--golden", "golden.yaml", "--no-track")
    assert (one["past_id"], one["started"]) == ("20250101-x", "2025-01-01T02:53:20.000Z")
    record = folder / one["record_dir"]
    results = [json.loads(text) for text in (record / "per_query.jsonl").read_text().splitlines()]
    assert [found["error"] for found in results] == [None, "too slow", None]
    assert results[2]["answer"]["refused"] is True
    assert json.loads((record / "run.json").read_text())["status"] == "FAILED"


def test_trec_runs(program: Program, folder: Path) -> None:
    (folder / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\n")
    (folder / "bm25.txt").write_text("q1 Q0 x 1 2.0 t\nq1 Q0 a 2 1.0 t\n")
    (folder / "dense.txt").write_text("q1 Q0 a 1 2.0 t\nq2 Q0 b 1 1.0 t\n")
    found = imported(program, "trec", "qrels.txt", "bm25.txt", "dense.txt", "--no-track")
    means = {
        one["name"]: json.loads((folder / one["record_dir"] / "aggregate.json").read_text())["mrr"]
        for one in found
    }
    assert means == {"bm25": 0.25, "dense": 1.0}  # q2 is not in bm25: it counts as 0
    done = program("compare", "bm25", "dense", "--json")
    assert done.returncode == 0, done.stderr


def test_every_fault_at_once_and_nothing_is_imported(program: Program, folder: Path) -> None:
    history(
        folder / "bad.sqlite",
        {"r1": ("long ago", SNAPSHOT, STORED), "r2": ("2025-01-01", SNAPSHOT, STORED)},
        r1=["{", {**result("q1", "a1"), "hits_top_k": [{"rank": 1}]}],
        r2=[],
    )
    done = program("import", "kebab-db", "bad.sqlite")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 4
    assert "bad.sqlite: run r1, query ?: is damaged" in done.stderr
    assert "bad.sqlite: run r1, query q1: is damaged" in done.stderr
    assert "bad.sqlite: run r1: created_at is no time: 'long ago'" in done.stderr
    assert "bad.sqlite: run r2: has no query results" in done.stderr

    (folder / "lines.jsonl").write_text('{"query_id": "q1"\n' + json.dumps(RESULTS[0]) + "\n[]\n")
    done = program("import", "kebab-jsonl", "lines.jsonl", "gone.jsonl")
    assert done.returncode == 2
    assert "lines.jsonl:1: is no query result" in done.stderr
    assert "lines.jsonl:3: is no query result" in done.stderr
    assert "gone.jsonl: cannot be read" in done.stderr

    (folder / "no.sqlite").write_text("text")
    done = program("import", "kebab-db", "no.sqlite")
    assert (done.returncode, "cannot be read as a database" in done.stderr) == (2, True)
    with closing(sqlite3.connect(folder / "other.sqlite")) as database:
        database.execute("CREATE TABLE t (a)")
    done = program("import", "kebab-db", "other.sqlite")
    assert "has no table eval_runs: it is no history of kebab" in done.stderr

    (folder / "golden.yaml").write_text(GOLDEN.splitlines()[0] + "\n")
    done = program("import", "kebab-db", "kebab.sqlite", "--golden", "golden.yaml")
    assert done.returncode == 2
    assert "golden.yaml: 2 queries of run r1 are not in it: q2, q3" in done.stderr
    assert not (folder / "mlruns").exists()


def test_a_tracker_that_is_down_keeps_the_records(program: Program, folder: Path) -> None:
    asked = ("kebab-db", "kebab.sqlite", "--golden", "golden.yaml")
    down = ("--tracking-uri", "http://127.0.0.1:9")
    done = program("import", *asked, *down)
    assert done.returncode == 3
    assert "the same import again sends the rest" in done.stderr
    found = imported(program, *asked)
    assert all(one["mlflow_run_id"] for one in found)
    assert len(list((folder / "mlruns" / "spool").iterdir())) == 2
