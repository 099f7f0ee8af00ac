"""sweep from the command line: replayed beside real runs, and what MLflow has of it."""

from __future__ import annotations

import csv
import json
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

HYBRID = "configs/hybrid.yaml"
PRIMARY = "ndcg_at_5_doc"


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_a_replay_gives_what_real_runs_give(program: Program, project: Path) -> None:
    assert program("run", "-q", "-c", HYBRID).returncode == 0
    grid = ("--grid", "fusion.rrf_k=1,60", "--grid", "search.depth=2,20",
            "--grid", "score_gate=null,0.6",
            "--grid", "fusion.method=rrf,combmnz", "--metric", "mrr_at_10_doc",
            "--metric", "recall_at_3_doc", "--metric", "map_at_7_doc", "--no-track")  # fmt: skip
    replayed = told(program("sweep", "--replay", "hybrid", *grid, "--json"))
    real = told(program("sweep", "-c", HYBRID, *grid, "--json"))
    assert len(replayed["points"]) == len(real["points"]) == 16
    assert replayed["notes"] == []
    for one, other in zip(replayed["points"], real["points"], strict=True):
        assert one["values"] == other["values"]
        assert one["metrics"] == other["metrics"]
        for side in ("answered_rightly", "refused_rightly"):
            assert one[side] == other[side]
    assert len({json.dumps(point["metrics"]) for point in real["points"]}) > 3
    assert len(list((project / "mlruns" / "spool").iterdir())) == 1 + 16
    assert not (project / "mlruns" / "mlflow.db").exists()


def test_a_sweep_is_one_run_over_the_others(program: Program, project: Path) -> None:
    done = program(
        "sweep", "-c", HYBRID, "--grid", "fusion.rrf_k=1,60", "-o", "sweep.csv", "--holdout", "0.5"
    )
    assert done.returncode == 0, done.stderr
    assert "2 combinations of fusion.rrf_k over 8 queries, by ndcg_at_5_doc" in done.stdout
    with (project / "sweep.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["fusion.rrf_k"] for row in rows] == ["1", "60"]
    with closing(sqlite3.connect(project / "mlruns" / "mlflow.db")) as database:
        runs = dict(database.execute("SELECT name, run_uuid FROM runs").fetchall())
        children = database.execute(
            "SELECT run_uuid FROM tags WHERE key = 'mlflow.parentRunId' AND value = ?",
            (runs["sweep of hybrid"],),
        ).fetchall()
        series = database.execute(
            "SELECT step, value FROM metrics WHERE run_uuid = ? AND key = ? ORDER BY step",
            (runs["sweep of hybrid"], f"sweep/{PRIMARY}"),
        ).fetchall()
        statuses = {status for (status,) in database.execute("SELECT status FROM runs")}
    names = {"hybrid (fusion.rrf_k=1)", "hybrid (fusion.rrf_k=60)"}
    assert {one for (one,) in children} == {runs[name] for name in names}
    assert [step for step, _ in series] == [1, 60]
    assert [value for _, value in series] == [float(row[PRIMARY]) for row in rows]
    assert statuses == {"FINISHED"}
    artifacts = project / "mlruns" / "artifacts" / runs["sweep of hybrid"] / "artifacts"
    assert {path.name for path in artifacts.iterdir()} == {
        "sweep.csv", "sweep.json", "sweep.md", "sweep.svg"
    }  # fmt: skip
    record = json.loads(next(project.glob("mlruns/spool/*/run.json")).read_text())
    assert record["command"].startswith(f"kebab-eval run --config {HYBRID} -S fusion.rrf_k=")

    replayed = program("sweep", "--replay", runs["hybrid (fusion.rrf_k=60)"], "--grid",
                       "score_gate=0:1:0.1")  # fmt: skip
    assert replayed.returncode == 0, replayed.stderr
    assert "balances best" in replayed.stdout
    with closing(sqlite3.connect(project / "mlruns" / "mlflow.db")) as database:
        keys = {key for (key,) in database.execute("SELECT DISTINCT key FROM metrics")}
    assert {"sweep/answered_rightly", "sweep/refused_rightly"} <= keys


def test_every_wrong_value_is_told_and_nothing_runs(program: Program, project: Path) -> None:
    assert program("run", "-q", "-c", HYBRID).returncode == 0
    done = program(
        "sweep", "--replay", "hybrid", "--grid", "lexical.b=1", "--grid", "fusion.rrf_k=0,x,60",
        "--grid", "search.depth=80", "--grid", "score_gate=a", "--grid", "fusion.rrf_kk=1",
    )  # fmt: skip
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [
        "--grid lexical.b", "--grid fusion.rrf_kk", "--grid fusion.rrf_k=0",
        "--grid fusion.rrf_k=x", "--grid score_gate=a", "--grid search.depth=80",
    ]  # fmt: skip
    assert "record one with -S search.depth=80" in lines[5]
    assert "did you mean 'fusion.rrf_k'?" in lines[1]

    done = program("sweep", "-c", HYBRID, "--grid", "fusion.rrf_k=0,60", "--grid", "search.k=x")
    assert done.returncode == 2
    assert "fusion.rrf_k" in done.stderr
    assert "search.k" in done.stderr
    assert len(list((project / "mlruns" / "spool").iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--grid", "fusion.rrf_k=1"], "--config: missing"),
        (["-c", HYBRID], "--grid"),
        (["-c", HYBRID, "--grid", "fusion.rrf_k=1:60"], "60 runs of the whole golden set"),
        (["--replay", "hybird", "--grid", "fusion.rrf_k=1"], "no run is called 'hybird'"),
        (["--replay", "x", "-c", HYBRID, "--grid", "fusion.rrf_k=1"], "--config: belongs to runs"),
        (["-c", HYBRID, "--grid", "fusion.rrf_k=1", "-o", "x.html"], "names no format"),
        (["-c", HYBRID, "--grid", "golden=a.yaml,b.yaml"], "--grid golden: is no lever"),
        (["-c", HYBRID, "--grid", "execution.concurrency=1,2"], "is no lever"),
        (["-c", HYBRID, "--grid", "fusion.rrf_k=1", "--metric", "ndgc_at_5_doc"], "ndgc_at_5_doc"),
    ],
)
def test_wrong_use_is_told(
    program: Program, project: Path, arguments: list[str], said: str
) -> None:
    done = program("sweep", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(project.glob("mlruns/spool/*"))


def test_values_may_need_each_other(program: Program, project: Path) -> None:
    assert program("run", "-q", "-c", HYBRID).returncode == 0
    replayed = ("sweep", "--replay", "hybrid", "--no-track", "--grid", "fusion.normalize=z")
    document = told(program(*replayed, "--grid", "fusion.method=weighted", "--json"))
    assert document["points"][-1]["values"] == {
        "fusion.normalize": "z", "fusion.method": "weighted"
    }  # fmt: skip
    done = program(*replayed, "--grid", "fusion.method=weighted,rrf")
    assert done.returncode == 2
    assert done.stderr == (
        "error: --grid fusion.normalize=z, --grid fusion.method=rrf: normalize is for the method "
        "weighted, not for rrf\n"
    )


def test_a_run_without_candidates_cannot_be_replayed(program: Program, project: Path) -> None:
    assert program("run", "-q", "-c", HYBRID).returncode == 0
    next(project.glob("mlruns/spool/*/candidates.jsonl")).unlink()
    done = program("sweep", "--replay", "hybrid", "--grid", "fusion.rrf_k=1")
    assert done.returncode == 2
    assert "hybrid has no candidates on record" in done.stderr


def test_other_hits_than_the_fusion_gives_are_told(program: Program, project: Path) -> None:
    assert program("run", "-q", "-c", HYBRID).returncode == 0
    path = next(project.glob("mlruns/spool/*/per_query.jsonl"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["hits"] = lines[0]["hits"][1:]  # as a reranker or another fusion would
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    done = program("sweep", "--replay", "hybrid", "--grid", "fusion.rrf_k=1", "--no-track")
    assert done.returncode == 0, done.stderr
    assert "gives other hits than it returned for 1 of 8 queries" in done.stdout


def test_a_tracker_that_is_down_costs_a_replay_nothing(program: Program, project: Path) -> None:
    assert program("run", "-q", "-c", HYBRID).returncode == 0
    done = program(
        "sweep", "--replay", "hybrid", "--grid", "fusion.rrf_k=1,60", "-o", "sweep.json",
        "--tracking-uri", "http://u:pw@127.0.0.1:9",
    )  # fmt: skip
    assert done.returncode == 0
    assert "2 combinations of fusion.rrf_k" in done.stdout
    assert done.stderr.startswith("warning: the table is not in MLflow: ")
    assert "pw" not in done.stderr
    assert (project / "sweep.json").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("sweep", "-c", "c.yaml", "--grid", "search.k=3,4,5"),
        ("ab", "--baseline", "c.yaml", "--candidate", "d.yaml"),
    ],
)
def test_what_was_run_stays_when_it_is_stopped(project: Path, command: tuple[str, ...]) -> None:
    """Stopped in its second run: the first is finished, that one and the parent are killed."""
    (project / "system.py").write_text(
        "import pathlib, time\n"
        "def search(query, k):\n"
        "    seen = pathlib.Path('asked')\n"
        "    seen.write_text(seen.read_text() + 'x' if seen.exists() else 'x')\n"
        "    if len(seen.read_text()) > 10:\n"
        "        time.sleep(1)\n"
        "    return [('d', 1.0)]\n"
    )
    (project / "golden.yaml").write_text(
        "".join(f"- {{id: q{n}, query: text {n}, expected_doc_ids: [d]}}\n" for n in range(8))
    )
    text = (
        'golden: golden.yaml\nbackend: {type: python, target: "system:search", path: .}\n'
        "execution: {warmup: 0, concurrency: 1}\n"
    )
    (project / "c.yaml").write_text(text)
    (project / "d.yaml").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "kebab_eval", *command], cwd=project, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if (project / "asked").exists() and len((project / "asked").read_text()) > 10:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    with closing(sqlite3.connect(project / "mlruns" / "mlflow.db")) as database:
        statuses = database.execute("SELECT status FROM runs ORDER BY start_time").fetchall()
    # the parent, the first run, the second
    assert [status for (status,) in statuses] == ["KILLED", "FINISHED", "KILLED"]
