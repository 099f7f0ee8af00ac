"""The scores of a Document Server set by version: one table each, for every report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kebab_eval.metrics.versions import FAILURE, LATENCIES, SLICES, VERSIONS
from kebab_eval.records import EvalRun

TITLES = dict(zip(VERSIONS, ("v0.1 (binary)", "v0.2 (graded)"), strict=True))
LABELS: dict[str, dict[str, str]] = {
    "v0.1": {
        "recall_at_10": "Recall@10",
        "mrr_at_10": "MRR@10",
        "ndcg_at_10": "nDCG@10",
        "top3_hit": "top-3 hit",
    },
    "v0.2": {
        "ndcg_at_10_doc": "nDCG@10",
        "recall_at_10_rel2_doc": "Recall@10 ≥2",
        "recall_at_10_rel3_doc": "Recall@10 ≥3",
        FAILURE: "failure cases",
        "latency_p50_ms": "p50 ms",
        "latency_p95_ms": "p95 ms",
    },
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A score: how it is written, over how many queries, and how good it is.

    Attributes:
        n: how many queries were scored; None where the text says so itself (``5/6``) or none was.
        share: 0 to 1, for a background; None where nothing was scored, and of a latency.
    """

    text: str
    n: int | None = None
    share: float | None = None

    def __str__(self) -> str:
        return self.text if self.n is None else f"{self.text} ({self.n})"


@dataclass(frozen=True, slots=True)
class VersionRow:
    """The scores of the whole set, or of the queries that share a value."""

    value: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class VersionTable:
    """One version's scores: of all queries, and for each field that they are sliced by.

    Attributes:
        narrow: how many columns a terminal has room for; the latencies stand behind them.
    """

    title: str
    labels: tuple[str, ...]
    overall: VersionRow
    groups: tuple[tuple[str, tuple[VersionRow, ...]], ...]
    narrow: int


_NOTHING = Cell("–")


def version_tables(run: EvalRun) -> tuple[VersionTable, ...]:
    """Return the tables that a run is to be read by; none for sets of other formats."""
    blocks = run.aggregate.get("versions") or {}
    asked = run.config["metrics"].get("eval_version", "both")  # older records have no such key
    return tuple(
        _table(version, blocks[version])
        for version in VERSIONS
        if version in blocks and asked in (version, "both")
    )


def said_of(tables: Sequence[VersionTable]) -> str:
    """Return how the tables are to be read, in one sentence without its full stop."""
    said = "In parentheses: how many queries the score is of"
    if any(LABELS["v0.2"][FAILURE] in table.labels for table in tables):
        said += "; failure cases: how many of them came back empty, as they should"
    return said


def _table(version: str, block: Mapping[str, Any]) -> VersionTable:
    labels = LABELS[version]
    return VersionTable(
        title=TITLES[version],
        labels=tuple(labels.values()),
        overall=_row("all", block["scores"], labels),
        groups=tuple(
            (field, tuple(_row(value, scores, labels) for value, scores in slices.items()))
            for field in SLICES
            if (slices := block[f"by_{field}"])
        ),
        narrow=len(labels.keys() - LATENCIES.keys()),
    )


def _row(value: str, scores: Mapping[str, Any], names: Mapping[str, str]) -> VersionRow:
    return VersionRow(value, tuple(_FORMS.get(name, _score)(**scores[name]) for name in names))


def _score(value: float | None, n: int) -> Cell:
    return _NOTHING if value is None else Cell(f"{value:.3f}", n, value)


def _rightly_empty(value: float | None, n: int) -> Cell:
    return _NOTHING if value is None else Cell(f"{round(value * n)}/{n}", None, value)


def _latency(value: float | None, n: int) -> Cell:
    return _NOTHING if value is None else Cell(f"{value:,.1f}", n)


_FORMS: dict[str, Callable[..., Cell]] = {
    FAILURE: _rightly_empty,
    **dict.fromkeys(LATENCIES, _latency),
}
