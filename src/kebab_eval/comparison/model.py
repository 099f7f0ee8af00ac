"""What a comparison is: its parts as frozen dataclasses, and how it reads as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kebab_eval.comparability import Change, Difference
from kebab_eval.metrics.judging import Relevance
from kebab_eval.records import Level

COMPARISON_SCHEMA = "kebab_eval.comparison.v1"
ALPHA = 0.05

Kind = Literal["win", "loss", "draw", "regression"]
KINDS: tuple[Kind, ...] = ("win", "loss", "draw", "regression")
ChunkerMatch = Literal["same", "span", "fallback_doc"]
Verdict = Literal["better", "worse", "no difference", "not measured"]
Movement = Literal["entered", "left", "up", "down", "same"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs: its names, and what is not paired."""

    run_id: str
    name: str
    created_at: str
    mlflow_run_id: str | None
    mlflow_experiment_id: str | None
    queries: int
    failed: tuple[str, ...]
    """Ids of the queries that failed."""
    latency_ms: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Delta:
    """One metric in both runs, over the queries that both scored.

    Attributes:
        baseline: mean of those queries, None where there are none.
        delta: candidate minus baseline.
        ci95: bootstrap interval of the mean difference, None below two queries.
        p_value: of the sign-flip test; 1 for identical values.
        p_holm: the same, corrected for all metrics (or all slices) that are compared together.
        detectable: smallest difference that so many queries show in 80 % of all cases; None where
            the values do not vary, which says nothing of what could have been seen.
        n: queries that both runs scored.
        direction: whether ``higher`` or ``lower`` is better.
    """

    metric: str
    baseline: float | None
    candidate: float | None
    delta: float | None
    ci95: tuple[float, float] | None
    p_value: float
    p_holm: float
    detectable: float | None
    n: int
    direction: Literal["higher", "lower"] = "higher"

    @property
    def gain(self) -> float | None:
        """The difference in the direction of better."""
        if self.delta is None:
            return None
        return self.delta if self.direction == "higher" else -self.delta

    @property
    def significant(self) -> bool:
        """At 5 %, before any correction."""
        return self.n > 0 and self.p_value < ALPHA

    @property
    def queries_needed(self) -> int | None:
        """About how many queries could show a difference of the size seen; None if it is 0."""
        if not self.delta or not self.detectable:
            return None
        return max(2, math.ceil(self.n * (self.detectable / abs(self.delta)) ** 2))


@dataclass(frozen=True, slots=True)
class SliceDelta:
    """The primary metric in one slice; ``p_holm`` of ``delta`` is corrected for all slices.

    ``against_whole``: the slice moves one way and the whole the other.
    """

    field: str
    value: str
    delta: Delta
    against_whole: bool


@dataclass(frozen=True, slots=True)
class ItemMove:
    """One returned item in both rankings; a rank is None where it did not come back."""

    chunk_id: str
    doc_id: str
    baseline_rank: int | None
    candidate_rank: int | None
    relevance: Relevance
    snippet: str

    @property
    def movement(self) -> Movement:
        if self.baseline_rank is None:
            return "entered"
        if self.candidate_rank is None:
            return "left"
        if self.candidate_rank == self.baseline_rank:
            return "same"
        return "up" if self.candidate_rank < self.baseline_rank else "down"


@dataclass(frozen=True, slots=True)
class QueryDelta:
    """One query in both runs.

    Attributes:
        kind: by kebab's rules, from the rank of the first relevant hit.
        baseline_rank: that rank, None for a miss.
        delta: of the primary metric, None where a run did not score the query.
        note: what happened, as in ``rank 1→2``.
        expected: whether anything relevant is judged; without that it is no regression.
        level: of the ranks: documents where the query has no judged chunk, or the chunkers differ.
        items: the two rankings as one list, for a query whose outcome or primary metric changed.
    """

    query_id: str
    query: str
    kind: Kind
    baseline_rank: int | None
    candidate_rank: int | None
    delta: float | None
    note: str
    expected: bool
    level: Level = "doc"
    baseline_error: str | None = None
    candidate_error: str | None = None
    items: tuple[ItemMove, ...] = ()

    @property
    def changed(self) -> bool:
        return self.kind != "draw" or bool(self.delta)


@dataclass(frozen=True, slots=True)
class JudgmentChange:
    """One metric of two runs of two golden sets: what the judgments changed, and what retrieval.

    Both runs are judged by both sets, from their recorded hits. What the judgments did is the mean
    of their effect on either run, what retrieval did the mean of its effect under either set; the
    two add up to the change that the two records show.

    Attributes:
        n: queries that are scored in all four.
        baseline_by_old: mean of the baseline, judged by its own set; and so on.
    """

    metric: str
    n: int
    baseline_by_old: float
    baseline_by_new: float
    candidate_by_old: float
    candidate_by_new: float
    total: float
    from_judgments: float
    from_retrieval: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        differences: what would have forbidden the comparison and was allowed.
        config_diff: every value that differs; levers first.
        declared_lever: the key that the candidate's config says it moves.
        chunker_version_match: how chunks are lined up: ``same`` chunker; by the ``span`` of the
            golden set that they hold, documents where a query has none; by document throughout.
        judgment_changes: for runs of two golden sets, how much of each metric's change comes from
            the judgments; else empty.
        primary: the metric that the verdict is about, a key of ``deltas``.
        deltas: by metric, the primary one first.
        counts: queries by kind.
        primary_counts: queries whose primary metric rose, fell or stayed: win, loss, draw.
        per_query: every query that both runs hold, in the baseline's order.
        notes: what a reader must know before believing any of it.
    """

    baseline: Side
    candidate: Side
    differences: tuple[Difference, ...]
    config_diff: tuple[Change, ...]
    declared_lever: str | None
    chunker_version_match: ChunkerMatch
    judgment_changes: tuple[JudgmentChange, ...]
    primary: str
    deltas: Mapping[str, Delta]
    counts: Mapping[str, int]
    primary_counts: Mapping[str, int]
    per_query: tuple[QueryDelta, ...]
    slices: tuple[SliceDelta, ...]
    notes: tuple[str, ...]

    @property
    def comparable(self) -> bool:
        return not self.differences

    @property
    def levers(self) -> tuple[Change, ...]:
        return tuple(change for change in self.config_diff if change.lever)

    @property
    def one_lever(self) -> bool:
        return len(self.levers) == 1

    @property
    def verdict(self) -> Verdict:
        """By the primary metric alone, at 5 %, without a correction: it was chosen beforehand."""
        delta = self.deltas[self.primary]
        if delta.gain is None:
            return "not measured"
        if not delta.significant:
            return "no difference"
        return "better" if delta.gain > 0 else "worse"

    @property
    def changed(self) -> tuple[QueryDelta, ...]:
        """The queries that changed: regressions, losses, wins, draws; the worst (best) first."""
        order: Mapping[Kind, int] = {"regression": 0, "loss": 1, "win": 2, "draw": 3}

        def key(line: QueryDelta) -> tuple[int, float]:
            delta = line.delta or 0.0
            return order[line.kind], -delta if line.kind == "win" else delta

        return tuple(sorted((line for line in self.per_query if line.changed), key=key))

    def to_json(self) -> dict[str, Any]:
        """Return what ``compare --json`` prints, without the link of a UI."""
        return {
            "schema_version": COMPARISON_SCHEMA,
            "baseline": _side_json(self.baseline),
            "candidate": _side_json(self.candidate),
            "comparable": self.comparable,
            "differences": [one.to_json() for one in self.differences],
            "verdict": self.verdict,
            "primary": self.primary,
            "config_diff": [
                {
                    "key": change.key,
                    "baseline": change.baseline,
                    "candidate": change.candidate,
                    "source": change.source,
                    "lever": change.lever,
                    "declared": change.declared,
                }
                for change in self.config_diff
            ],
            "declared_lever": self.declared_lever,
            "levers_moved": len(self.levers),
            "chunker_version_match": self.chunker_version_match,
            "judgment_changes": [asdict(change) for change in self.judgment_changes],
            "deltas": {name: _delta_json(delta) for name, delta in self.deltas.items()},
            "counts": dict(self.counts),
            "primary_counts": dict(self.primary_counts),
            "latency_ms": {
                name: {
                    "baseline": self.baseline.latency_ms.get(name),
                    "candidate": self.candidate.latency_ms.get(name),
                }
                for name in ("p50", "p95")
            },
            "failed_queries": {
                "baseline": list(self.baseline.failed),
                "candidate": list(self.candidate.failed),
            },
            "slices": [
                {
                    "field": part.field,
                    "value": part.value,
                    "against_whole": part.against_whole,
                    **_delta_json(part.delta),
                }
                for part in self.slices
            ],
            "per_query": [_query_json(line) for line in self.per_query],
            "notes": list(self.notes),
        }


def _side_json(side: Side) -> dict[str, Any]:
    return {
        "run_id": side.run_id,
        "name": side.name,
        "created_at": side.created_at,
        "mlflow_run_id": side.mlflow_run_id,
        "queries": side.queries,
    }


def _delta_json(delta: Delta) -> dict[str, Any]:
    return {
        "baseline": delta.baseline,
        "candidate": delta.candidate,
        "delta": delta.delta,
        "ci95": list(delta.ci95) if delta.ci95 else None,
        "p_value": delta.p_value,
        "p_holm": delta.p_holm,
        "detectable": delta.detectable,
        "n": delta.n,
        "direction": delta.direction,
        "queries_needed": delta.queries_needed,
    }


def _query_json(line: QueryDelta) -> dict[str, Any]:
    document: dict[str, Any] = {
        "query_id": line.query_id,
        "query": line.query,
        "kind": line.kind,
        "level": line.level,
        "baseline_rank": line.baseline_rank,
        "candidate_rank": line.candidate_rank,
        "delta": line.delta,
        "note": line.note,
    }
    if line.baseline_error is not None or line.candidate_error is not None:
        document["error"] = {"baseline": line.baseline_error, "candidate": line.candidate_error}
    if line.items:
        document["items"] = [
            {
                "chunk_id": item.chunk_id,
                "doc_id": item.doc_id,
                "baseline_rank": item.baseline_rank,
                "candidate_rank": item.candidate_rank,
                "movement": item.movement,
                "relevance": item.relevance,
            }
            for item in line.items
        ]
    return document
