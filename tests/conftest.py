"""What every test needs: no leftovers between tests, and the program as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the developer's shell must not decide a test."""
    for name in list(os.environ):
        if name.startswith(("KEBAB_EVAL_", "MLFLOW_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run ``kebab-eval`` as a process of its own, in ``tmp_path`` unless told otherwise."""

    def run(
        *arguments: str,
        cwd: Path = tmp_path,
        env: dict[str, str] | None = None,
        timeout_s: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kebab_eval", *arguments],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starting project, its vectors cached: copy it, never write into it."""
    from kebab_eval.workflows.init import write_starter

    folder = tmp_path_factory.mktemp("starter")
    write_starter(folder)
    return folder


@pytest.fixture
def project(starter: Path, tmp_path: Path) -> Path:
    """A starting project of the test's own, in ``tmp_path``."""
    import shutil

    shutil.copytree(starter, tmp_path, dirs_exist_ok=True)
    return tmp_path
