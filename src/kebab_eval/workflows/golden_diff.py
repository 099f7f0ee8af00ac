"""Two golden files become a difference."""

from __future__ import annotations

from pathlib import Path

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.golden import load_golden
from kebab_eval.golden.diff import SetDiff, diff_sets
from kebab_eval.records import GoldenSet


def diff_files(old: Path, new: Path) -> SetDiff:
    """Compare two golden files, of any formats.

    Raises:
        GoldenError: with every fault of both.
    """
    sets: list[GoldenSet] = []
    faults: list[Fault] = []
    for path in (old, new):
        try:
            sets.append(load_golden(path).golden)
        except GoldenError as wrong:
            faults += wrong.faults
    if faults:
        raise GoldenError(faults)
    return diff_sets(*sets)
