"""gate and baseline from the command line, on the starting project."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

HYBRID, LEXICAL = "configs/hybrid.yaml", "configs/lexical.yaml"


@pytest.fixture(scope="module")
def both_ran(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both") / "project"
    shutil.copytree(starter, folder)
    for config in (HYBRID, LEXICAL):
        command = [sys.executable, "-m", "kebab_eval", "run", "--config", config, "--quiet"]
        subprocess.run(command, cwd=folder, check=True)
    return folder


@pytest.fixture
def two_runs(both_ran: Path, tmp_path: Path) -> Path:
    """A project with a run ``hybrid`` and then a run ``lexical``, local records only."""
    shutil.copytree(both_ran, tmp_path, dirs_exist_ok=True)
    return tmp_path


def _gate(program: Program, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return program("gate", "--baseline", "hybrid", "--candidate", "lexical", *arguments, **more)


# --- gate -----------------------------------------------------------------------------------


def test_a_run_passes_against_itself(program: Program, two_runs: Path) -> None:
    done = program("gate", "--baseline", "hybrid", "--candidate", "hybrid")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gate passed: 1 passed of 1 rule\nhybrid (")
    assert "hit_at_5_doc >= baseline - 0.03" in done.stdout  # no chunk is judged here


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (["failed_queries == 0"], 0),
        (["regressions <= 8", "losses <= 8", "p95_ms <= 1000x", "total_queries == 8"], 0),
        (["ndcg_at_10_doc >= 1 [warn]"], 0),
        (["ndcg_at_10_doc >= 1"], 1),
        (["language=en: ndcg_at_10_doc >= 1"], 1),
        (["ndcg_at_10_doc > 0.999x [significant]", "failed_queries == 0"], 4),
        (["ndcg_at_10_doc > 0.999x [significant]", "failed_queries == 1"], 1),
    ],
)
def test_the_exit_code_is_the_verdict(
    program: Program, two_runs: Path, rules: list[str], code: int
) -> None:
    done = _gate(program, *(word for rule in rules for word in ("--rule", rule)))
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr == ""


def test_every_output_says_the_same(program: Program, two_runs: Path) -> None:
    (two_runs / "gate.yaml").write_text(
        "rules:\n  - ndcg_at_10_doc >= 1\n  - language=ko: ndcg_at_10_doc >= 1 [warn]\n"
        "  - failed_queries == 0\n"
    )
    summary = two_runs / "summary.md"
    summary.write_text("before\n")
    done = _gate(
        program, "--rules", "gate.yaml", "--json", "--junit", "g.xml", "-o", "g.md", "--github",
        env={"GITHUB_STEP_SUMMARY": str(summary)},
    )  # fmt: skip
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["counts"] == {"fail": 1, "undecided": 0, "warn": 1, "pass": 1}
    assert document["baseline"]["name"] == "hybrid"
    suite = ElementTree.fromstring((two_runs / "g.xml").read_text())  # noqa: S314  # ours
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert (two_runs / "g.md").read_text().startswith("### ❌ gate failed: 1 failed")
    assert summary.read_text() == "before\n" + (two_runs / "g.md").read_text() + "\n"
    # stdout is one document, so the annotations are on the other stream
    first, second = done.stderr.splitlines()
    assert first.startswith("::error file=gate.yaml,line=2,col=5,title=gate fail::")
    assert second.startswith("::warning file=gate.yaml,line=3,col=5,title=gate warn::")
    assert not list(two_runs.glob(".*.tmp"))


def test_github_annotations_follow_the_text(program: Program, two_runs: Path) -> None:
    done = _gate(program, "--rule", "ndcg_at_10_doc >= 1", "--github")
    assert done.stdout.splitlines()[-1].startswith("::error title=gate fail::")
    only = _gate(program, "--rule", "ndcg_at_10_doc >= 1", "--format", "github")
    assert only.stdout == done.stdout.splitlines(keepends=True)[-1]


def test_the_command_line_says_what_the_rules_file_does_not(
    program: Program, two_runs: Path
) -> None:
    (two_runs / "gate.yaml").write_text("- ndcg_at_10_doc > 0.999x\n- mrr_at_10_doc >= 0 [warn]\n")
    verdicts = {}
    for words in ((), ("--require", "significant"), ("--on-fail", "warn")):
        done = _gate(program, "--rules", "gate.yaml", "--json", *words)
        verdicts[words] = (done.returncode, json.loads(done.stdout)["rules"][0]["verdict"])
    assert verdicts == {
        (): (1, "fail"),
        ("--require", "significant"): (4, "undecided"),
        ("--on-fail", "warn"): (0, "warn"),
    }


def test_every_wrong_rule_is_told_with_its_place(program: Program, two_runs: Path) -> None:
    (two_runs / "gate.yaml").write_text("- hit_at_5_doc >= basline - 0.03\n- losess <= 3\n")
    done = _gate(program, "--rules", "gate.yaml", "--rule", "p95_ms <= 1.2y")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: gate.yaml:1:19: expected a number, 'baseline'")
    assert "did you mean 'baseline'?" in lines[0]
    assert lines[1].startswith("error: gate.yaml:2:3: no metric and no count is called 'losess'")
    assert lines[2].startswith("error: --rule 'p95_ms <= 1.2y': column 14: a number takes no unit")
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rules", "none.yaml"], "none.yaml: rules file does not exist"),
        (["--rule", "langage=ko: mrr_doc >= 0"], "column 1: no query of 'queries' has a field"),
        (["--rule", "language=kr: mrr_doc >= 0"], "column 10: no query has language 'kr'"),
        (["--junit", "no/g.xml"], "--junit no/g.xml: the folder no does not exist"),
        (["-o", "g.xls"], "the ending '.xls' names no format"),
        (["--allow", "golen"], "did you mean 'golden'?"),
    ],
)
def test_wrong_use_is_told(
    program: Program, two_runs: Path, arguments: list[str], said: str
) -> None:
    done = _gate(program, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_baseline_is_needed_only_by_rules_that_compare(program: Program, two_runs: Path) -> None:
    alone = program("gate", "--candidate", "lexical", "--rule", "failed_queries == 0")
    assert alone.returncode == 0, alone.stderr
    missing = program("gate", "--candidate", "lexical")
    assert missing.returncode == 2
    assert "--baseline: missing; the rule 'hit_at_5_doc >= baseline - 0.03'" in missing.stderr


def test_runs_that_differ_too_much_are_undecided_unless_allowed(
    program: Program, two_runs: Path
) -> None:
    program("run", "--config", HYBRID, "--k", "7", "--name", "k7", "--quiet")
    arguments = ("gate", "--baseline", "hybrid", "--candidate", "k7", "--rule", "losses <= 8")
    done = program(*arguments)
    assert done.returncode == 4
    assert "hits asked for" in done.stdout
    assert "--allow k" in done.stdout
    allowed = program(*arguments, "--allow", "k")
    assert allowed.returncode == 0, allowed.stdout
    assert "allowed though it differs" in allowed.stdout


# --- baseline -------------------------------------------------------------------------------


def test_a_frozen_file_stands_in_where_there_is_no_store(program: Program, project: Path) -> None:
    import sqlite3

    for config in (HYBRID, LEXICAL):
        assert program("track", "--config", config, "--quiet").returncode == 0
    done = program("baseline", "freeze", "hybrid", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    frozen = json.loads(done.stdout)
    date = frozen["frozen_at"][:10]
    assert frozen["json"] == f"baselines/v1_baseline_{date}.json"
    assert frozen["mlflow_tagged"] is True

    # the run is tagged in MLflow and marked in its record
    connection = sqlite3.connect(project / "mlruns" / "mlflow.db")
    rows = connection.execute("SELECT value FROM tags WHERE key = 'kebab_eval.baseline'")
    assert rows.fetchall() == [("default",)]
    connection.close()
    (marked,) = [p for p in project.glob("mlruns/spool/*/run.json") if "baselines" in p.read_text()]
    assert json.loads(marked.read_text())["name"] == "hybrid"

    # every reference to it gives the same report
    wanted = json.loads(program("report", "hybrid", "--format", "json").stdout)
    per_query = str(marked.with_name("per_query.jsonl"))
    for reference in ("baseline", "baseline:default", frozen["json"], per_query):
        shown = json.loads(program("report", reference, "--format", "json").stdout)
        assert shown["aggregate"] == wanted["aggregate"]
        assert shown["per_query"] == wanted["per_query"]

    # MLflow alone finds it too
    shutil.rmtree(project / "mlruns" / "spool")
    shutil.move(project / "baselines", project / "away")
    assert json.loads(program("report", "baseline", "--format", "json").stdout)["run"]["name"] == (
        "hybrid"
    )

    # and on a machine without any store, the file alone
    shutil.rmtree(project / "mlruns")
    assert program("run", "--config", HYBRID, "--quiet").returncode == 0
    file = f"away/v1_baseline_{date}.json"
    for command in (
        ("gate", "--baseline", file, "--candidate", "latest"),
        ("compare", file, "latest"),
        ("report", file),
    ):
        done = program(*command)
        assert done.returncode == 0, done.stderr
    assert not (project / "mlruns" / "mlflow.db").exists()


def test_a_frozen_baseline_is_never_overwritten(program: Program, two_runs: Path) -> None:
    first = program("baseline", "freeze", "hybrid", "--dir", "kept")
    assert first.returncode == 0
    files = {path: path.read_bytes() for path in (two_runs / "kept").iterdir()}
    assert len(files) == 2
    again = program("baseline", "freeze", "lexical", "--dir", "kept")
    assert again.returncode == 2
    assert again.stderr.count("exists already") == 2
    assert {path: path.read_bytes() for path in (two_runs / "kept").iterdir()} == files
    labelled = program("baseline", "freeze", "lexical", "--dir", "kept", "--label", "words")
    assert labelled.returncode == 0
    assert (two_runs / labelled.stdout.splitlines()[1]).read_text().startswith("# Baseline v1, ")
    listed = json.loads(program("baseline", "list", "--dir", "kept", "--json").stdout)
    assert sorted((entry["label"], entry["run_name"]) for entry in listed) == [
        ("default", "hybrid"),
        ("words", "lexical"),
    ]
    table = program("baseline", "list", "--dir", "kept").stdout.splitlines()
    assert len(table) == 3
    assert json.loads(program("report", "baseline:words", "--format", "json").stdout)["run"][
        "name"
    ] == "lexical"  # fmt: skip


def test_a_store_that_is_gone_costs_a_warning(program: Program, project: Path) -> None:
    assert program("track", "--config", HYBRID, "--quiet").returncode == 0
    (project / "mlruns" / "mlflow.db").unlink()
    done = program("baseline", "freeze", "hybrid")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: the MLflow run could not be tagged: sqlite:///mlruns/")
    assert len(list((project / "baselines").iterdir())) == 2


def test_the_verdict_is_kept_with_the_candidates_run(program: Program, project: Path) -> None:
    runs = []
    for config in (HYBRID, LEXICAL):
        runs.append(json.loads(program("track", "--config", config, "--json").stdout))
    artifacts = project / "mlruns" / "artifacts" / runs[1]["run_id"] / "artifacts"
    rule = ("--rule", "ndcg_at_10_doc >= 1")

    assert _gate(program, *rule, "--no-log").returncode == 1
    assert not (artifacts / "gate").exists()

    assert _gate(program, *rule).returncode == 1
    folder = artifacts / "gate" / Path(runs[0]["record_dir"]).name
    assert {path.name for path in folder.iterdir()} == {"gate.json", "gate.md"}
    assert json.loads((folder / "gate.json").read_text())["verdict"] == "fail"
    with closing(sqlite3.connect(project / "mlruns" / "mlflow.db")) as database:
        tags = database.execute(
            "SELECT run_uuid, value FROM tags WHERE key = 'kebab_eval.gate'"
        ).fetchall()
    assert tags == [(runs[1]["run_id"], "fail")]

    # A tracker that is gone costs a warning, not the verdict.
    (project / "mlruns" / "mlflow.db").unlink()
    done = _gate(program, *rule)
    assert done.returncode == 1
    assert done.stderr.startswith("warning: the verdict is not in MLflow: sqlite:///mlruns/")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["freeze", "hybird"], "no run is called 'hybird' (did you mean 'hybrid'?)"),
        (["freeze", "hybrid", "--label", "../x"], "--label: '../x' cannot be part of a file name"),
        (["freeze", "hybrid", "--version", "a b"], "--version: 'a b' cannot be part"),
        (["list", "--dir", "nowhere"], "--dir nowhere: the folder does not exist"),
    ],
)
def test_wrong_use_of_baseline_is_told(
    program: Program, two_runs: Path, arguments: list[str], said: str
) -> None:
    done = program("baseline", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (two_runs / "baselines").exists()


def test_a_json_that_is_no_baseline_is_told(program: Program, two_runs: Path) -> None:
    (record,) = two_runs.glob("mlruns/spool/*hybrid*")
    done = program("report", str(record / "aggregate.json"))
    assert done.returncode == 2
    assert "not a frozen baseline: schema_version is 'kebab_eval.aggregate.v1'" in done.stderr
