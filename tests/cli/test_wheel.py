"""The wheel works outside the checkout: nothing it needs was left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_starts_a_project_and_evaluates_it(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = (tmp_path / "dist").glob("kebab_eval-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    demo = tmp_path / "demo"
    demo.mkdir()

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=demo,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run("-c", "import kebab_eval; print(kebab_eval.__file__)")
    assert where.startswith(str(tmp_path / "site")), "the test must not see the checkout"
    run("-m", "kebab_eval", "init")
    out = run("-m", "kebab_eval", "track", "--config", "configs/hybrid.yaml")
    assert "ndcg_at_5_doc" in out
    assert run("-m", "kebab_eval", "report", "latest", "--format", "html").startswith("<!doctype")
