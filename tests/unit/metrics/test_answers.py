from __future__ import annotations

import pytest

from kebab_eval.metrics.answers import citation_coverage, groundedness, refusal_correctness


@pytest.mark.parametrize(
    ("answer", "must", "forbidden", "expected"),
    [
        ("The limit is 30 s.", ["30 s"], [], 1.0),
        ("The limit is 30 s.", ["30 s", "retry"], [], 0.0),
        ("The limit is 30 s.", ["30 s"], ["limit"], 0.0),
        ("The limit is 30 s.", [], ["60 s"], 1.0),
        ("anything", [], [], None),
        (None, ["30 s"], [], None),
        ("\uac01", ["\u1100\u1161\u11a8"], [], 1.0),
    ],
)
def test_groundedness(answer, must, forbidden, expected):
    assert groundedness(answer, must, forbidden) == expected


def test_citation_coverage():
    assert citation_coverage([True, False, True, True], grounded=True) == 3 / 4
    assert citation_coverage([], grounded=True) == 0.0
    assert citation_coverage([True], grounded=False) is None


def test_refusal_correctness():
    assert refusal_correctness(True, should_refuse=True) == 1.0
    assert refusal_correctness(False, should_refuse=True) == 0.0
    assert refusal_correctness(True, should_refuse=False) is None
    assert refusal_correctness(None, should_refuse=True) is None
