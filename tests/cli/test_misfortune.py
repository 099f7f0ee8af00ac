"""What went wrong under attack: secrets in paths, two first runs, cut-off and damaged records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

CONFIG = "configs/lexical.yaml"
SECRET = "s3cr3t-value-77"  # noqa: S105  # planted to be looked for
ENV = {"KE_SECRET": SECRET}


def _holding_secret(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("tracking", '{uri: "sqlite:///mlruns/${env:KE_SECRET}.db"}', 0),
        ("tracking", '{uri: "http://127.0.0.1:9/${env:KE_SECRET}"}', 3),
        ("tracking", '{uri: "http://user:${env:KE_SECRET}/x#1@127.0.0.1:9"}', 2),
        ("golden", '"../gold/${env:KE_SECRET}.yaml"', 0),
        ("golden", '"../nowhere/${env:KE_SECRET}.yaml"', 2),
    ],
)
def test_a_secret_in_a_path_or_address_is_shown_as_its_reference(
    key: str, value: str, code: int, program: Program, project: Path
) -> None:
    (project / "gold").mkdir()
    queries = (project / "golden" / "queries.yaml").read_text()
    (project / "gold" / f"{SECRET}.yaml").write_text(queries)
    (project / "x.yaml").write_text(f"extends: {CONFIG}\n{key}: {value.replace('../', '')}\n")
    done = program("track", "--config", "x.yaml", env=ENV)
    assert done.returncode == code, done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert _holding_secret(project / "mlruns") == []


def test_two_first_runs_at_once_both_reach_mlflow(program: Program, project: Path) -> None:
    command = [sys.executable, "-m", "kebab_eval", "track", "--config", CONFIG, "-q"]
    both = [
        subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, env=dict(os.environ))
        for _ in range(2)
    ]
    ended = [(process.communicate(timeout=120)[1], process.returncode) for process in both]
    assert [code for _, code in ended] == [0, 0], ended


def test_a_record_that_was_cut_off_is_judged_when_it_is_read(
    program: Program, project: Path
) -> None:
    whole = json.loads(program("run", "--config", CONFIG, "--json").stdout)
    record = project / whole["record_dir"]
    (record / "aggregate.json").unlink()
    info = json.loads((record / "run.json").read_text())
    (record / "run.json").write_text(json.dumps({**info, "status": "RUNNING"}))
    done = program("report", "latest", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["aggregate"] == whole["aggregate"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("aggregate.json", '{"x": 1}'),
        ("config.json", '{"metrics": {}}'),
        ("per_query.jsonl", ""),
    ],
)
def test_a_damaged_record_is_told(file: str, content: str, program: Program, project: Path) -> None:
    record = json.loads(program("run", "--config", CONFIG, "--json").stdout)["record_dir"]
    (project / record / file).write_text(content)
    done = program("report", "latest", "--format", "md")
    assert done.returncode == 3
    assert "damaged" in done.stderr
    assert "internal failure" not in done.stderr


def test_json_is_one_document_in_any_encoding(program: Program, project: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii"}
    done = program("run", "--config", CONFIG, "--name", "한글", "--json", env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run_name"] == "한글"
    assert program("report", "latest", env=env).returncode == 0


@pytest.mark.parametrize("uri", ["foo://x", "http://[::1", "http://127.0.0.1:abc", "http://"])
def test_an_impossible_store_is_told_before_any_query(
    uri: str, program: Program, project: Path
) -> None:
    done = program("track", "--config", CONFIG, "--tracking-uri", uri)
    assert done.returncode == 2, done.stderr
    assert not (project / "mlruns").exists()
    assert program("doctor", "--tracking-uri", uri).returncode == 3


def test_tags_that_the_run_sets_itself_are_refused(program: Program, project: Path) -> None:
    done = program("run", "--config", CONFIG, "--tag", "mlflow.runName=x")
    assert done.returncode == 2
    assert "are set by the run" in done.stderr
