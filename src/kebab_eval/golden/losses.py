"""What a golden set loses on its way into another format, counted by kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Loss:
    """One kind of loss.

    Args:
        verb: ``dropped``, or ``changed`` where something else stands there now.
        what: the field; empty where the units themselves are lost.
        count: of how many ``unit``.
        why: and what stands there instead.
    """

    verb: str
    what: str
    count: int
    unit: str
    why: str

    def __str__(self) -> str:
        unit = self.unit
        if self.count == 1:
            unit = "query" if unit == "queries" else unit.removesuffix("s")
        of = " of " if self.what else ""
        return f"{self.verb}: {self.what}{of}{self.count} {unit} ({self.why})"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.verb,
            "what": self.what,
            "count": self.count,
            "unit": self.unit,
            "why": self.why,
        }


@dataclass(slots=True)
class Losses:
    """The losses on the way into ``target``, each kind once, in the order of their telling."""

    target: str = ""
    kinds: list[Loss] = field(default_factory=list)

    def drop(self, what: str, count: int, unit: str = "queries", why: str = "") -> None:
        """Count what is left out; nothing is told where the count is 0."""
        if count:
            why = why or f"{self.target} has no place for it"
            self.kinds.append(Loss("dropped", what, count, unit, why))

    def change(self, what: str, count: int, unit: str, why: str) -> None:
        """Count what is written in another way; nothing is told where the count is 0."""
        if count:
            self.kinds.append(Loss("changed", what, count, unit, why))
