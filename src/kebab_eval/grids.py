"""The grammar of ``--grid``: a config key and the values that it takes.

--grid fusion.rrf_k=1,10,60         a list, each value read as YAML
--grid score_gate=0:1:0.01          a range: first, last, and the step (1 where none is said)
--grid fusion.method=[rrf]          a YAML list, for values that hold a comma
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

from kebab_eval.errors import Fault, UsageError

MAX_VALUES = 10_000
"""Of one grid: a typo in a step must not fill the memory."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")


@dataclass(frozen=True, slots=True)
class Axis:
    """One key with its values, in the order given."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of the values of some keys."""

    axes: tuple[Axis, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(axis.key for axis in self.axes)

    def __len__(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    def combinations(self) -> Iterator[tuple[Any, ...]]:
        """Yield the values of each combination, the last key moving fastest."""
        return product(*(axis.values for axis in self.axes))


def parse_grids(texts: Sequence[str]) -> Grid:
    """Return the grid of the ``--grid`` options.

    Raises:
        UsageError: with every fault.
    """
    axes: list[Axis] = []
    faults: list[Fault] = []
    for text in texts:
        key, sign, given = text.partition("=")
        key, place = key.strip(), f"--grid {text}"
        if not sign or not key or not given.strip():
            faults.append(Fault(place, "must be KEY=VALUES, as in fusion.rrf_k=1,10,60 or 1:200"))
            continue
        if any(axis.key == key for axis in axes):
            faults.append(Fault(place, f"{key} has a grid already; name all its values in one"))
            continue
        try:
            values = _values(given.strip())
        except ValueError as wrong:
            faults.append(Fault(place, str(wrong)))
            continue
        axes.append(Axis(key, values))
    grid = Grid(tuple(axes))
    if not faults and len(grid) > MAX_VALUES:
        message = f"{len(grid):,} combinations; {MAX_VALUES:,} are the most"
        faults.append(Fault("--grid", message))
    if faults:
        raise UsageError(faults)
    return grid


def _values(text: str) -> tuple[Any, ...]:
    """Return the values of one grid, without repeats.

    Raises:
        ValueError: a range that is none, or no YAML.
    """
    ranged = _RANGE.fullmatch(text)
    values = _range(*ranged.groups()) if ranged else _listed(text)
    kept = list({repr(value): value for value in values}.values())
    if not kept:
        raise ValueError("holds no value")
    return tuple(kept)


def _range(first: str, last: str, step: str | None) -> list[Any]:
    """Return the numbers from first to last; decimals, so that 0.1 ten times over is 1."""
    start, end, by = Decimal(first), Decimal(last), Decimal(step or "1")
    if by <= 0:
        raise ValueError("the step of a range must be above 0")
    if end < start:
        raise ValueError(f"the range ends at {last}, before its beginning {first}")
    count = int((end - start) / by) + 1
    if count > MAX_VALUES:
        raise ValueError(f"is a range of {count:,} values; {MAX_VALUES:,} are the most")
    numbers = [start + by * place for place in range(count)]
    return [int(one) if one == one.to_integral_value() else float(one) for one in numbers]


def _listed(text: str) -> list[Any]:
    from kebab_eval.errors import ConfigError
    from kebab_eval.yaml_source import parse_yaml

    listed = text if text.startswith("[") else f"[{text}]"
    try:
        node = parse_yaml(listed, "", ConfigError)
    except ConfigError as wrong:
        raise ValueError(f"is no list of YAML values ({wrong.faults[0].message})") from None
    found = None if node is None else node.python()
    if not isinstance(found, list):
        raise ValueError("is no list of values")  # of what the user wrote
    return found
