"""docs/metrics.md says what the registry says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kebab_eval import evaluate
from kebab_eval.metrics import default_registry

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
ROWS = {
    cells[1].strip().strip("`"): [cell.strip() for cell in cells[2:-1]]
    for cells in (line.split("|") for line in TEXT.splitlines() if line.startswith("| `"))
}


@pytest.mark.parametrize("family", list(default_registry()), ids=lambda family: family.name)
def test_every_family_is_described_as_it_is_declared(family):
    cutoff, threshold, _meaning, _scored, direction, _source = ROWS[family.name]
    assert cutoff == {"required": "needed", "optional": "may have", "none": "no"}[family.cut]
    assert threshold == ("yes" if family.thresholds else "no")
    assert direction == family.direction


def test_nothing_else_is_described():
    assert list(ROWS) == [family.name for family in default_registry()]


def test_the_python_example():
    judgments = {"q1": {"a": 3, "b": 1}, "q2": {"c": 2}}
    scores = evaluate(judgments, {"q1": ["b", "a"], "q2": ["x", "c"]}, "ndcg_at_10, mrr_at_10")
    assert scores["mrr_at_10"] == 0.75


def test_every_difference_is_a_test():
    tests = (ROOT / "tests" / "comparison" / "test_pytrec_eval.py").read_text(encoding="utf-8")
    listed = re.findall(r"^(\d)\. \*\*", TEXT, flags=re.MULTILINE)
    tested = re.findall(r"^def test_difference_(\d)_", tests, flags=re.MULTILINE)
    assert listed == tested == [str(n) for n in range(1, len(listed) + 1)]
