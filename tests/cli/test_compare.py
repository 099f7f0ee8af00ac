"""``kebab-eval compare`` as a user runs it: two configs of the starting project."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

HYBRID, LEXICAL = "configs/hybrid.yaml", "configs/lexical.yaml"


@pytest.fixture
def two_runs(program: Program, project: Path) -> Path:
    for config in (HYBRID, LEXICAL):
        done = program("run", "--config", config)
        assert done.returncode == 0, done.stderr
    return project


def test_the_newest_run_against_the_one_before(program: Program, two_runs: Path) -> None:
    done = program("compare", "latest~1", "latest")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:2] == ["lexical against hybrid", "One lever moved: search.mode hybrid → lexical"]
    assert lines[3].startswith("No difference that 7 queries can tell: ndcg_at_5_doc ")
    assert "compare-runs" not in done.stdout  # neither run is in MLflow
    document = json.loads(program("compare", "hybrid", "lexical", "--json").stdout)
    assert document["baseline"]["name"] == "hybrid"
    assert document["config_diff"][0]["key"] == "search.mode"
    assert document["ui_url"] is None
    assert sum(document["counts"].values()) == 8


def test_every_form_and_file(program: Program, two_runs: Path) -> None:
    for ending, start in ((".md", "# lexical against hybrid\n"), (".html", "<!doctype html>")):
        form = program("compare", "hybrid", "lexical", "--format", ending[1:])
        assert form.stdout.startswith(start)
        done = program("compare", "hybrid", "lexical", "-o", f"out{ending}")
        assert done.returncode == 0, done.stderr
        assert (two_runs / f"out{ending}").read_text() == form.stdout
    done = program("compare", "hybrid", "lexical", "-o", "out.csv")
    assert done.returncode == 2
    assert "use .json, .md, .html" in done.stderr


def test_the_metrics_that_are_asked_for(program: Program, two_runs: Path) -> None:
    chosen = ("--metric", "mrr_at_10_doc", "--metric", "hit_at_1_doc", "--json")
    document = json.loads(program("compare", "hybrid", "lexical", *chosen).stdout)
    assert list(document["deltas"]) == ["mrr_at_10_doc", "hit_at_1_doc"]
    assert document["primary"] == "mrr_at_10_doc"
    done = program("compare", "hybrid", "lexical", "--metric", "mrr_at_10_docs")
    assert done.returncode == 2
    assert "mrr_at_10_doc" in done.stderr


def test_a_run_with_itself(program: Program, two_runs: Path) -> None:
    document = json.loads(program("compare", "latest", "latest", "--json").stdout)
    assert {delta["p_value"] for delta in document["deltas"].values()} == {1.0}
    assert document["counts"] == {"win": 0, "loss": 0, "draw": 8, "regression": 0}


def test_an_unknown_run_is_told(program: Program, two_runs: Path) -> None:
    done = program("compare", "hybird", "lexical")
    assert done.returncode == 2
    assert "no run is called 'hybird' (did you mean 'hybrid'?)" in done.stderr


def test_runs_that_are_not_comparable(program: Program, two_runs: Path) -> None:
    done = program("run", "--config", HYBRID, "--k", "3", "--limit", "4", "--name", "less")
    assert done.returncode == 0, done.stderr
    done = program("compare", "hybrid", "less")
    assert done.returncode == 4
    assert done.stdout == ""
    assert "golden set: baseline queries v1" in done.stderr
    assert "hits asked for (search.k): baseline 5, candidate 3 (--allow k " in done.stderr

    done = program("compare", "hybrid", "less", "--json")
    assert done.returncode == 4
    document = json.loads(done.stdout)
    assert document["comparable"] is False
    assert [one["allow"] for one in document["differences"]] == ["golden", "k"]

    allowed = program("compare", "hybrid", "less", "--allow", "golden,k", "--json")
    assert allowed.returncode == 0, allowed.stderr
    document = json.loads(allowed.stdout)
    assert document["comparable"] is False
    assert len(document["per_query"]) == 4

    done = program("compare", "hybrid", "less", "--allow", "goldne")
    assert done.returncode == 2
    assert "did you mean 'golden'?" in done.stderr


def test_the_report_is_kept_with_the_candidates_run(program: Program, project: Path) -> None:
    runs = []
    for config in (HYBRID, LEXICAL):
        runs.append(json.loads(program("track", "--config", config, "--json").stdout))
    artifacts = project / "mlruns" / "artifacts" / runs[1]["run_id"] / "artifacts"
    baseline = Path(runs[0]["record_dir"]).name

    assert program("compare", "hybrid", "lexical", "--no-log").returncode == 0
    assert not (artifacts / "compare").exists()

    done = program("compare", "hybrid", "lexical")
    assert done.returncode == 0, done.stderr
    folder = artifacts / "compare" / baseline
    assert {path.name for path in folder.iterdir()} == {
        "comparison.html", "comparison.json", "comparison.md"
    }  # fmt: skip
    link = unquote(next(line for line in done.stdout.splitlines() if "compare-runs" in line))
    assert f'runs=["{runs[0]["run_id"]}","{runs[1]["run_id"]}"]' in link

    assert unquote(json.loads((folder / "comparison.json").read_text())["ui_url"]) in link

    # A tracker that is down costs a warning.
    done = program("compare", "hybrid", "lexical", "--tracking-uri", "http://u:pw@127.0.0.1:9")
    assert done.returncode == 0
    assert done.stdout.startswith("lexical against hybrid")
    assert "warning: the report is not in MLflow" in done.stderr
    assert "pw" not in done.stderr + done.stdout
