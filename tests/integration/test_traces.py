"""What ``track`` leaves in a store: traces by either route, choices, the dataset, the links."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

SYSTEM = """
import os
def search(query, k):
    shift = int(os.environ.get("SHIFT", "0")) if query.endswith(("3", "7")) else 0
    if query.endswith("5"):
        return []
    return [{"id": f"d{n}#a", "doc_id": f"d{n}", "score": 1 / (n + 1), "text": "x"}
            for n in range(shift, k + shift)]
"""
GOLDEN = "".join(
    f"- {{id: q{n}, query: text {n}, expected_doc_ids: [d{n % 4}]}}\n" for n in range(10)
)
CONFIG = """\
golden: golden.yaml
backend: {type: python, target: "system:search", path: .}
search: {k: 3}
execution: {warmup: 0}
"""
# Any version but those that were tested takes the public route.
UNTESTED = """
import sys
from kebab_eval.tracking import trace_upload
trace_upload.BULK_VERSIONS = frozenset()
from kebab_eval.cli.front import main
main(sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "system.py").write_text(SYSTEM)
    (tmp_path / "golden.yaml").write_text(GOLDEN)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path


def rows(folder: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as connection:
        return connection.execute(sql, values).fetchall()


def track(program: Program, *more: str, **env: str) -> dict[str, Any]:
    done = program("track", "-c", "c.yaml", "--json", *more, env=env)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def traced(folder: Path, run_id: str) -> list[str]:
    found = rows(
        folder,
        "SELECT client_request_id FROM trace_info t JOIN trace_request_metadata m ON"
        " m.request_id = t.request_id AND m.key = 'mlflow.sourceRun' AND m.value = ? ORDER BY 1",
        run_id,
    )
    return [query_id for (query_id,) in found]


def everything(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all that the store holds of traces, the moments of writing left out."""
    asked = {
        "traces": "SELECT request_id, timestamp_ms, execution_time_ms, status, client_request_id,"
        " request_preview, response_preview, trace_name FROM trace_info ORDER BY 1",
        "tags": "SELECT request_id, key, value FROM trace_tags ORDER BY 1, 2",
        "metadata": "SELECT request_id, key, value FROM trace_request_metadata ORDER BY 1, 2",
        "spans": "SELECT trace_id, span_id, parent_span_id, name, type, status,"
        " start_time_unix_nano, end_time_unix_nano, content FROM spans ORDER BY 1, 2",
        "assessments": "SELECT assessment_id, trace_id, name, assessment_type, value, source_type,"
        " source_id, run_id, created_timestamp, valid, assessment_metadata"
        " FROM assessments ORDER BY 1",
    }
    found = {what: rows(folder, sql) for what, sql in asked.items()}
    assert all(found.values())
    return found


def test_the_public_route_writes_what_the_fast_one_writes(program: Program, folder: Path) -> None:
    track(program)
    fast = everything(folder)
    # Everything is deleted, and sent once more to the same run by the other route.
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM trace_info")  # and what hangs on them
        connection.commit()
    assert rows(folder, "SELECT count(*) FROM spans") == [(0,)]
    command = [sys.executable, "-c", UNTESTED, "upload", "latest", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["traces"] == {"sent": 10, "were_there": 0}
    assert everything(folder) == fast


def test_the_choice_of_queries(program: Program, folder: Path) -> None:
    every = [f"q{n}" for n in range(10)]
    assert traced(folder, track(program)["run_id"]) == every
    moved = track(program, "--traces", "changed", SHIFT="1")
    assert traced(folder, moved["run_id"]) == ["q3", "q7"]
    # q5 finds nothing; q3 and q7 expect d3, which only the shifted ranking holds
    failed = track(program, "-S", "tracking.traces=failed")
    assert traced(folder, failed["run_id"]) == ["q3", "q5", "q7"]
    samples = [traced(folder, track(program, "--traces", "sample:4")["run_id"]) for _ in range(2)]
    assert samples[0] == samples[1]
    assert len(samples[0]) == 4
    assert traced(folder, track(program, "--traces", "none")["run_id"]) == []


def test_rows_of_two_runs_pair_whatever_the_levers(program: Program, folder: Path) -> None:
    first = track(program)
    second = track(program, "-S", "search.k=2", "-S", "search.mode=lexical")
    inputs = [
        rows(
            folder,
            "SELECT i.value FROM trace_request_metadata i JOIN trace_request_metadata m ON"
            " m.request_id = i.request_id AND m.key = 'mlflow.sourceRun' AND m.value = ?"
            " WHERE i.key = 'mlflow.traceInputs' ORDER BY 1",
            run["run_id"],
        )
        for run in (first, second)
    ]
    assert inputs[0] == inputs[1]
    assert json.loads(inputs[0][0][0]) == {"query_id": "q0", "query": "text 0"}


def test_both_links_of_the_evaluation_page_are_printed(program: Program, folder: Path) -> None:
    first = track(program)
    done = program("track", "-c", "c.yaml")
    ids = [run_id for (run_id,) in rows(folder, "SELECT run_uuid FROM runs ORDER BY start_time")]
    assert ids[0] == first["run_id"]
    page = f"#/experiments/1/runs/{ids[1]}/evaluations"
    assert f"{page}\n" in done.stdout
    assert f"{page}?compareToRunUuid={ids[0]}\n" in done.stdout
    compared = program("compare", "latest~1", "latest")
    assert f"{page}?compareToRunUuid={ids[0]}\n" in compared.stdout
    assert "/evaluations" not in program("track", "-c", "c.yaml", "--traces", "none").stdout


def test_the_golden_set_becomes_a_dataset_and_is_merged_when_it_changes(
    program: Program, folder: Path
) -> None:
    asked = "SELECT inputs, expectations FROM evaluation_dataset_records ORDER BY inputs"
    track(program, "-S", "tracking.dataset=true", "--limit", "2")  # a part is no golden set
    assert rows(folder, asked) == []
    for _ in range(2):
        track(program, "-S", "tracking.dataset=true")
    assert rows(folder, "SELECT name FROM evaluation_datasets") == [("golden",)]
    found = rows(folder, asked)
    assert len(found) == 10
    assert json.loads(found[0][0]) == {"query": "text 0", "query_id": "q0"}
    assert json.loads(found[0][1]) == {"expected_ids": {"doc": ["d0"]}}

    text = GOLDEN.replace("query: text 9", "query: text nine").replace("[d3]", "[d2]")
    (folder / "golden.yaml").write_text(
        text.replace("- {id: q8, query: text 8", "- {id: q8b, query: 8")
    )
    track(program, "-S", "tracking.dataset=true")
    found = rows(folder, asked)
    assert rows(folder, "SELECT name FROM evaluation_datasets") == [("golden",)]
    texts = {json.loads(inputs)["query_id"]: json.loads(inputs)["query"] for inputs, _ in found}
    assert texts == {**{f"q{n}": f"text {n}" for n in range(8)}, "q8b": "8", "q9": "text nine"}
    assert all("d3" not in expected for _, expected in found)


def test_a_query_that_is_asked_again_has_its_new_trace_once(program: Program, folder: Path) -> None:
    system = (folder / "system.py").read_text()
    (folder / "system.py").write_text(
        system + "works = search\ndef search(query, k):\n"
        "    if query.endswith('4') and not os.path.exists('well'):\n"
        "        raise ValueError('ill')\n"
        "    return works(query, k)\n"
    )
    done = program("track", "-c", "c.yaml")
    assert done.returncode == 3
    states = "SELECT client_request_id, status FROM trace_info WHERE status != 'OK'"
    assert rows(folder, states) == [("q4", "ERROR")]
    (folder / "well").write_text("")
    done = program("resume", "latest", "--failed")
    assert done.returncode == 0, done.stderr
    assert rows(folder, states) == []
    assert rows(folder, "SELECT count(*) FROM trace_info") == [(10,)]
    assert rows(folder, "SELECT status FROM runs") == [("FINISHED",)]
