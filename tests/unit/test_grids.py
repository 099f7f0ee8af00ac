"""What --grid may say."""

from __future__ import annotations

from typing import Any

import pytest

from kebab_eval.errors import UsageError
from kebab_eval.grids import parse_grids


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("k=1,10,60", (1, 10, 60)),
        ("k=1:4", (1, 2, 3, 4)),
        ("k=0:1:0.25", (0, 0.25, 0.5, 0.75, 1)),
        ("k=0:0.3:0.1", (0, 0.1, 0.2, 0.3)),  # no 0.30000000000000004
        ("k=5:6:2", (5,)),
        ("k=bigram,whitespace", ("bigram", "whitespace")),
        ("k=null,0.5,true", (None, 0.5, True)),
        ("k=[[1, 5], [1, 10]]", ([1, 5], [1, 10])),
        ("k=1,1,2", (1, 2)),  # said twice, run once
        (" k = x ", ("x",)),
    ],
)
def test_values(text: str, values: tuple[Any, ...]) -> None:
    (axis,) = parse_grids([text]).axes
    assert (axis.key, axis.values) == ("k", values)


def test_all_combinations_the_last_key_fastest() -> None:
    grid = parse_grids(["a=1,2", "b=x,y"])
    assert len(grid) == 4
    assert list(grid.combinations()) == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


def test_every_fault_at_once() -> None:
    wrong = ["a", "=1", "b=", "c=3:1", "d=1:2:0", "e=[1", "f=1", "f=2", "g=0:1:0.00001"]
    with pytest.raises(UsageError) as told:
        parse_grids(wrong)
    said = [str(fault) for fault in told.value.faults]
    assert len(said) == 8
    assert said[0] == ("--grid a: must be KEY=VALUES, as in fusion.rrf_k=1,10,60 or 1:200")
    assert "--grid c=3:1: the range ends at 1, before its beginning 3" in said
    assert "--grid d=1:2:0: the step of a range must be above 0" in said
    assert "--grid f=2: f has a grid already; name all its values in one" in said
    assert "is a range of 100,001 values; 10,000 are the most" in said[-1]


def test_too_many_combinations_are_told() -> None:
    with pytest.raises(UsageError, match="40,000 combinations; 10,000 are the most"):
        parse_grids(["a=1:200", "b=1:200"])
