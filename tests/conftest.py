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

HERE = ROOT / "tests"
# What starts servers, a browser, a cluster or many processes: minutes, where the rest takes two.
SLOW = (
    "ui/",
    "integration/",
    "cli/test_ab_configs.py",
    "cli/test_import.py",
    "cli/test_misfortune.py",
    "cli/test_resume.py",
    "cli/test_sweep.py",
    "cli/test_wheel.py",
)

Program = Callable[..., subprocess.CompletedProcess[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--everything", action="store_true", help="Run the slow tests too, as CI does."
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow tests out of a plain run; whatever is named on the command line runs."""
    if config.args != config.getini("testpaths") or config.getoption("--everything"):
        return
    slow = [item for item in items if item.path.is_relative_to(HERE) and _is_slow(item.path)]
    left_out = set(slow)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=slow)


def _is_slow(path: Path) -> bool:
    place = path.relative_to(HERE).as_posix()
    return place.startswith(SLOW)


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
