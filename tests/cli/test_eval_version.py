"""``--eval-version``: the scores of a Document Server set by version, on the command line."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kebab_eval.tracking import keys

Program = Callable[..., subprocess.CompletedProcess[str]]

OLD_SET = """\
- id: n1
  query: how long do we keep backups
  category: norm
  relevant_ids: [backup-policy.md]
  top3_ids: [backup-policy.md]
- id: n2
  query: who is on call
  category: rule
  relevant_ids: [on-call.md]
"""
ARGUMENTS = ("--config", "configs/hybrid.yaml", "--golden", "golden/old.yaml")
BINARY, GRADED = "v0.1 (binary)", "v0.2 (graded)"


@pytest.fixture
def docserver(project: Path) -> Path:
    """The starting project with a v0.1 set over its notes."""
    (project / "golden" / "old.yaml").write_text(OLD_SET, encoding="utf-8")
    return project


def test_a_run_shows_both_and_report_shows_either(program: Program, docserver: Path) -> None:
    done = program("run", *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    assert BINARY in done.stdout
    assert GRADED in done.stdout

    for asked, shown, hidden in (("v0.1", BINARY, GRADED), ("v0.2", GRADED, BINARY)):
        for form in ("text", "md", "html"):
            report = program("report", "latest", "--eval-version", asked, "--format", form)
            assert report.returncode == 0, report.stderr
            assert shown in report.stdout
            assert hidden not in report.stdout


def test_the_record_says_which_was_asked_for_and_holds_both(
    program: Program, docserver: Path
) -> None:
    done = program("run", *ARGUMENTS, "--eval-version", "v0.1", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    scores = document["aggregate"]["versions"]["v0.1"]["scores"]
    # Four notes, and both queries use the words of the one that answers them.
    assert scores["mrr_at_10"] == {"value": 1.0, "n": 2}
    assert scores["top3_hit"] == {"value": 1.0, "n": 1}
    assert document["aggregate"]["versions"].keys() == {"v0.1", "v0.2"}
    config = json.loads((docserver / document["record_dir"] / "config.json").read_text())
    assert config["metrics"]["eval_version"] == "v0.1"
    assert GRADED not in program("report", "latest").stdout


def test_mlflow_gets_the_old_scores_once(program: Program, docserver: Path) -> None:
    assert program("track", *ARGUMENTS, "-q").returncode == 0
    with closing(sqlite3.connect(docserver / "mlruns" / "mlflow.db")) as connection:
        logged = dict(connection.execute("SELECT key, value FROM metrics").fetchall())
    assert {key: logged[key] for key in logged if key.startswith("v0.")} == {
        "v0.1/recall_at_10": 1.0,
        "v0.1/mrr_at_10": 1.0,
        "v0.1/ndcg_at_10": 1.0,
        "v0.1/top3_hit": 1.0,
    }
    assert logged["retrieval/recall_at_10_rel2_doc"] == 1.0


def test_the_old_scores_are_logged_where_they_are_asked_for() -> None:
    score, unscored = {"value": 0.5, "n": 4}, {"value": None, "n": 0}
    aggregate = {
        "metrics": {},
        "latency_ms": {},
        "total_queries": 4,
        "failed_queries": 0,
        "duplicate_hits": 0,
        "slices": {},
        "versions": {"v0.1": {"scores": {"mrr_at_10": score, "top3_hit": unscored}}, "v0.2": {}},
    }
    counts = {"count/queries": 4, "count/failed_queries": 0, "count/duplicate_hits": 0}
    old = {"v0.1/mrr_at_10": 0.5, "count/scored_v0.1_top3_hit": 0}
    assert keys.run_metrics(aggregate, "x", "v0.2") == counts
    assert keys.run_metrics(aggregate, "x", "v0.1") == {**counts, **old}
    assert keys.run_metrics(aggregate, "x", "both") == {**counts, **old}


@pytest.mark.parametrize("command", ["run", "track"])
def test_another_set_has_no_versions_and_nothing_is_written(
    program: Program, project: Path, command: str
) -> None:
    done = program(command, "--config", "configs/hybrid.yaml", "--eval-version", "v0.1")
    assert done.returncode == 2
    assert done.stderr == (
        "error: --eval-version: 'queries' is no Document Server set (format kebab): it has no "
        "scores by version; leave the option out\n"
    )
    assert done.stdout == ""
    assert not (project / "mlruns").exists()


def test_a_report_of_another_set_says_why(program: Program, project: Path) -> None:
    assert program("run", "-q", "--config", "configs/hybrid.yaml").returncode == 0
    done = program("report", "latest", "--eval-version", "v0.2")
    assert done.returncode == 2
    assert "is no Document Server set" in done.stderr
    assert done.stdout == ""
