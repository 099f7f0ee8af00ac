"""Judgments or a run as three flat columns: query id, item id, value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kebab_eval.errors import Fault, FormatError
from kebab_eval.formats.texts import Texts

What = Literal["judgments", "run"]

#: Faults that are told one by one; of the rest only the number is.
MAX_FAULTS = 1000


@dataclass(frozen=True)
class Columns:
    """One row a judgment or a hit, in file order.

    Args:
        query: (n,), query ids in NFC.
        item: (n,), item ids in NFC.
        value: float64, (n,), grades or scores, finite.
    """

    query: Texts
    item: Texts
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.value)

    def slice(self, start: int, stop: int) -> Columns:
        return Columns(
            self.query.slice(start, stop), self.item.slice(start, stop), self.value[start:stop]
        )

    def take(self, rows: NDArray[np.int64]) -> Columns:
        return Columns(self.query.take(rows), self.item.take(rows), self.value[rows])

    def by_query(self) -> dict[str, dict[str, float]]:
        """Return query id -> item id -> value, in file order."""
        if not len(self):
            return {}
        starts = self.query.runs()
        names = self.query.take(starts[:-1]).tolist()
        items, values = self.item.tolist(), self.value.tolist()
        groups: dict[str, dict[str, float]] = {}
        for name, (start, stop) in zip(names, pairwise(starts.tolist()), strict=True):
            rows = zip(items[start:stop], values[start:stop], strict=True)
            groups.setdefault(name, {}).update(rows)
        return groups


def joined(parts: Sequence[Columns]) -> Columns:
    """Return the rows of several columns, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return from_lists([], [], [])
    return Columns(
        Texts.joined(part.query for part in parts),
        Texts.joined(part.item for part in parts),
        np.concatenate([part.value for part in parts]),
    )


def from_lists(query: Sequence[str], item: Sequence[str], value: Sequence[float]) -> Columns:
    """Return columns of lists of equal length."""
    return Columns(Texts.of(query), Texts.of(item), np.array(value, dtype=np.float64))


class Rows:
    """Rows as they are read one by one, with every fault kept until all have been seen."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.query: list[str] = []
        self.item: list[str] = []
        self.value: list[float] = []
        self.faults: list[Fault] = []
        self._more = 0
        self._line_of: dict[tuple[str, str], int] = {}

    def fault(self, line: int, message: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(f"{self.path}:{line}", message))
        else:
            self._more += 1

    def add(self, line: int, query: str, item: str, value: float) -> None:
        """Add a row; a second one for the same query and item is a fault."""
        earlier = self._line_of.setdefault((query, item), line)
        if earlier != line:
            self.fault(
                line,
                f"query {query!r} holds item {item!r} already, on line {earlier}; keep one of them",
            )
            return
        self.query.append(query)
        self.item.append(item)
        self.value.append(value)

    def columns(self) -> Columns:
        """Return the rows.

        Raises:
            FormatError: with every fault, in file order.
        """
        if self._more:
            self.faults.append(Fault(self.path, f"{self._more} more lines are wrong"))
        if self.faults:
            raise FormatError(self.faults)
        return from_lists(self.query, self.item, self.value)
