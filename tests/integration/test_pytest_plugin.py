"""pytest --kebab-eval-config: an item for each rule, evaluated once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HYBRID = "configs/hybrid.yaml"
RULES = """\
rules:
  - failed_queries == 0
  - ndcg_at_5_doc >= 1
  - total_queries >= 99 [warn]
  - ndcg_at_5_doc > 0.999x [significant]
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def ready(project: Path) -> Path:
    (project / "gate.yaml").write_text(RULES)
    (project / "test_other.py").write_text("def test_other(): pass\n")
    (project / "pytest.ini").write_text("[pytest]\n")
    return project


def records(folder: Path) -> int:
    return len(list(folder.glob("mlruns/spool/*")))


def test_each_rule_is_a_test(ready: Path) -> None:
    for config in (HYBRID, "configs/lexical.yaml"):
        command = [sys.executable, "-m", "kebab_eval", "run", "-q", "-c", config]
        subprocess.run(command, cwd=ready, check=True)
    asked = ("--kebab-eval-config", HYBRID, "--kebab-eval-rules", "gate.yaml",
             "--kebab-eval-baseline", "hybrid")  # fmt: skip
    done = run(ready, *asked)
    assert done.returncode == 1
    assert "kebab-eval: failed_queries == 0 PASSED" in done.stdout
    assert "kebab-eval: ndcg_at_5_doc >= 1 FAILED" in done.stdout
    assert "kebab-eval: total_queries >= 99 PASSED" in done.stdout  # it only warns
    assert "fail: ndcg_at_5_doc >= 1\n" in done.stdout
    assert "hybrid against hybrid, record mlruns/spool/" in done.stdout
    assert "Traceback" not in done.stdout
    assert "test_other.py::test_other PASSED" in done.stdout
    assert records(ready) == 3  # one evaluation for all rules


def test_workers_evaluate_once(ready: Path) -> None:
    (ready / "gate.yaml").write_text(
        "rules:\n"
        + "  - failed_queries == 0\n" * 1
        + ("  - total_queries == 8\n  - ndcg_at_5_doc >= 0\n  - duplicate_hits == 0\n")
    )
    asked = ("--kebab-eval-config", HYBRID, "--kebab-eval-rules", "gate.yaml", "-n2")
    done = run(ready, *asked)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
    assert records(ready) == 1


def test_an_undecided_rule_fails_or_is_skipped(ready: Path) -> None:
    (ready / "gate.yaml").write_text("rules: ['ndcg_at_5_doc > 0.99 [significant]']\n")
    asked = ("--kebab-eval-config", HYBRID, "--kebab-eval-rules", "gate.yaml")
    done = run(ready, *asked)
    assert done.returncode == 1
    assert "undecided: ndcg_at_5_doc > 0.99" in done.stdout
    done = run(ready, *asked, "--kebab-eval-undecided", "skip")
    assert done.returncode == 0, done.stdout
    assert "SKIPPED" in done.stdout


def test_what_is_wrong_is_told(ready: Path) -> None:
    done = run(ready, "--kebab-eval-rules", "gate.yaml")
    assert "--kebab-eval-rules needs --kebab-eval-config" in done.stderr
    (ready / "gate.yaml").write_text("rules: ['ndgc_at_5_doc >= 1']\n")
    done = run(ready, "--kebab-eval-config", HYBRID, "--kebab-eval-rules", "gate.yaml")
    assert done.returncode == 4  # pytest's own code for wrong use
    assert "ndgc_at_5_doc" in done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    done = run(ready, "--kebab-eval-config", "configs/gone.yaml")
    assert done.returncode == 1
    assert "configs/gone.yaml" in done.stdout
    assert "Traceback" not in done.stdout


def test_without_the_option_nothing_is_imported(ready: Path) -> None:
    (ready / "test_light.py").write_text(
        "import sys\n"
        "def test_light():\n"
        "    heavy = {'numpy', 'pydantic', 'mlflow', 'yaml', 'kebab_eval.workflows'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    done = run(ready, "test_light.py", "-p", "no:xdist", "-p", "no:hypothesispytest")
    assert done.returncode == 0, done.stdout
