"""What a run must say of itself so that it can be repeated: versions, commit, lever."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from kebab_eval import __version__

# The packages that can change a number in the record.
_PACKAGES = ("numpy", "bm25s", "PyStemmer", "markdown-it-py", "mlflow")


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python, and of the packages behind the numbers."""
    found = {"kebab_eval": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_state(folder: Path) -> dict[str, Any]:
    """Return commit, branch and whether the tree is dirty; empty outside a checkout."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    return {
        "commit": commit,
        "branch": _git(folder, "branch", "--show-current") or None,
        "dirty": bool(_git(folder, "status", "--porcelain", "--untracked-files=no")),
    }


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(folder), "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, errors="replace", check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
