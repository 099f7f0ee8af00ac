"""ab over configs: one parent run, each candidate held against the baseline, by Holm."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

HYBRID, LEXICAL = "configs/hybrid.yaml", "configs/lexical.yaml"
BOTH = ("--baseline", HYBRID, "--candidate", LEXICAL)


def extended(project: Path, name: str, text: str) -> str:
    (project / "configs" / f"{name}.yaml").write_text(
        f"extends: hybrid.yaml\nname: {name}\n{text}\n"
    )
    return f"configs/{name}.yaml"


def test_several_configs_below_one_run(program: Program, project: Path) -> None:
    vector = extended(project, "vector", "search: {mode: vector}")
    done = program("ab", *BOTH, "--candidate", vector, "-o", "ab.csv")
    assert done.returncode == 0, done.stderr
    first, verdict, *_ = done.stdout.splitlines()
    assert first == "lexical, vector against hybrid, by ndcg_at_5_doc"
    assert verdict.startswith(
        ("no winner: of 2 candidates none is better", "vector wins", "lexical")
    )
    with (project / "ab.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["lexical", "vector"]
    # Holm over two: the smaller p counts twice, the other at least as much.
    p_values = [float(row["p_value"]) for row in rows]
    corrected = [float(row["p_holm"]) for row in rows]
    smaller = min(1.0, 2 * min(p_values))
    assert sorted(corrected) == pytest.approx(sorted([smaller, max(smaller, *p_values)]))
    with closing(sqlite3.connect(project / "mlruns" / "mlflow.db")) as database:
        runs = dict(database.execute("SELECT name, run_uuid FROM runs").fetchall())
        children = database.execute(
            "SELECT COUNT(*) FROM tags WHERE key = 'mlflow.parentRunId' AND value = ?",
            (runs["ab of 2 candidates"],),
        ).fetchone()
        statuses = {status for (status,) in database.execute("SELECT status FROM runs")}
    assert children == (3,)
    assert statuses == {"FINISHED"}
    artifacts = project / "mlruns" / "artifacts" / runs["ab of 2 candidates"] / "artifacts"
    assert {path.name for path in artifacts.iterdir()} == {"ab.csv", "ab.json", "ab.md", "compare"}
    assert {path.name for path in (artifacts / "compare").iterdir()} == {"1-lexical", "2-vector"}
    commands = {
        json.loads(path.read_text())["command"] for path in project.glob("mlruns/spool/*/run.json")
    }
    assert commands == {f"kebab-eval track --config {path}" for path in (HYBRID, LEXICAL, vector)}


def test_one_candidate_is_a_comparison(program: Program, project: Path) -> None:
    done = program("ab", *BOTH, "--no-track", "--json")
    assert done.returncode == 0, done.stderr
    comparison = json.loads(done.stdout)
    assert comparison["candidate"]["name"] == "lexical"
    assert [change["key"] for change in comparison["config_diff"] if change["lever"]] == [
        "search.mode"
    ]
    assert not (project / "mlruns" / "mlflow.db").exists()


def test_what_it_refuses_before_anything_runs(program: Program, project: Path) -> None:
    deep = extended(project, "deep", "search: {k: 7}")
    done = program("ab", "--baseline", HYBRID, "--candidate", deep)
    assert done.returncode == 4
    assert "another number of hits (search.k) than configs/hybrid.yaml: 7, not" in done.stderr
    broken = extended(project, "broken", "search: {kk: 7}")
    done = program("ab", *BOTH, "--candidate", broken, "-S", "fusion.rrf_k=x")
    assert done.returncode == 2
    assert "broken.yaml:3" in done.stderr
    assert done.stderr.count("-S fusion.rrf_k") == 1  # said once for all of them
    for arguments, said in (
        (("--baseline", HYBRID), "--candidate: missing"),
        (("--candidate", HYBRID), "--baseline: missing"),
        ((*BOTH, "--candidate", LEXICAL), f"--candidate {LEXICAL}: is named already"),
        ((*BOTH, "-c", HYBRID), "--config goes with two addresses"),
        ((*BOTH, "--candidate", deep, "-o", "x.html"), "names no format"),
        ((), "--config: missing; or compare configs, with --baseline and --candidate"),
    ):
        done = program("ab", *arguments)
        assert done.returncode == 2, arguments
        assert said in done.stderr
    assert not (project / "mlruns").exists() or not list(project.glob("mlruns/spool/*"))
