"""Two runs become a comparison: what was moved, what it did, and whether that is to be believed.

Pure: two :class:`~kebab_eval.records.EvalRun` go in, a :class:`Comparison` comes out. Everything is
paired over the queries that both runs answered, and seeded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kebab_eval.comparability import Change, Difference, check_comparable, config_diff
from kebab_eval.errors import NotComparableError
from kebab_eval.metrics import default_registry, evaluate_run, normalise_id
from kebab_eval.metrics.judging import Relevance, relevance
from kebab_eval.metrics.slices import FIELDS, slice_values
from kebab_eval.records import LEVELS, EvalRun, GoldenQuery, Hit, Level, QueryResult
from kebab_eval.stats import detectable_difference, holm, mean_intervals, randomisation_test

COMPARISON_SCHEMA = "kebab_eval.comparison.v1"
ALPHA = 0.05

Kind = Literal["win", "loss", "draw", "regression"]
KINDS: tuple[Kind, ...] = ("win", "loss", "draw", "regression")
ChunkerMatch = Literal["same", "fallback_doc"]
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
class Comparison:
    """Two runs side by side.

    Attributes:
        differences: what would have forbidden the comparison and was allowed.
        config_diff: every value that differs; levers first.
        declared_lever: the key that the candidate's config says it moves.
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


def compare(
    baseline: EvalRun,
    candidate: EvalRun,
    *,
    metrics: Sequence[str] | None = None,
    allow: Collection[str] = (),
    strict_chunker_version: bool = False,
    seed: int = 0,
) -> Comparison:
    """Compare two runs, paired over the queries that both hold.

    Each run is judged by its own golden set; the two are the same unless ``allow`` says otherwise.

    Args:
        metrics: names with their level; the first is the primary one. None takes the baseline's
            primary metric and hit, recall, MRR and nDCG at each level that is scored. What a
            record does not hold is computed from its hits.
        allow: words of :data:`~kebab_eval.comparability.ALLOWED_WORDS`.
        strict_chunker_version: refuse runs of two chunkers instead of matching by document.
        seed: of the sign flips and the bootstrap.

    Raises:
        NotComparableError: the runs differ in what makes numbers comparable.
        MetricError: a metric that does not exist or does not follow from a ranking.
        UsageError: a word of ``allow`` that does not exist.
    """
    allowed = check_comparable(baseline, candidate, allow)
    match = _chunker_match(baseline, candidate, strict_chunker_version)
    names = _chosen(metrics, baseline, candidate, match)
    pairs = _pairs(baseline, candidate, names)
    primary = names[0]
    deltas = _deltas(pairs, names, seed)
    lines = tuple(_query_delta(pair, primary, match) for pair in pairs)
    rises = Counter(_primary_kind(pair, deltas[primary]) for pair in pairs)
    lever = candidate.info.get("lever")
    comparison = Comparison(
        baseline=_side(baseline),
        candidate=_side(candidate),
        differences=allowed,
        config_diff=config_diff(baseline, candidate),
        declared_lever=str(lever["key"]) if isinstance(lever, Mapping) else None,
        chunker_version_match=match,
        primary=primary,
        deltas=deltas,
        counts={kind: sum(line.kind == kind for line in lines) for kind in KINDS},
        primary_counts={kind: rises[kind] for kind in ("win", "loss", "draw")},
        per_query=lines,
        slices=_slices(pairs, deltas[primary], seed),
        notes=(),
    )
    return replace(comparison, notes=tuple(_notes(comparison, pairs, baseline, candidate)))


@dataclass(frozen=True, slots=True)
class _Answer:
    """One run's side of a query."""

    golden: GoldenQuery
    result: QueryResult
    values: Mapping[str, float]
    min_relevance: float


_Pair = tuple[_Answer, _Answer]


def _chunker_match(baseline: EvalRun, candidate: EvalRun, strict: bool) -> ChunkerMatch:
    versions = [run.info.get("system", {}).get("chunker_version") for run in (baseline, candidate)]
    if versions[0] == versions[1]:
        return "same"
    if strict:
        raise NotComparableError(
            f"{baseline.name} and {candidate.name} are not comparable by chunk; they differ in\n"
            f"  chunker version: baseline {versions[0] or 'none'}, candidate "
            f"{versions[1] or 'none'} "
            "(without --strict-chunker-version they are matched by document)"
        )
    return "fallback_doc"


# --- which metrics --------------------------------------------------------------------------


def _chosen(
    metrics: Sequence[str] | None, baseline: EvalRun, candidate: EvalRun, match: ChunkerMatch
) -> list[str]:
    if metrics:
        return [metric.name for metric in default_registry().parse_all(metrics)]
    primary = str(baseline.config["metrics"]["primary"])
    if match == "fallback_doc":  # chunk ids of two chunkers have nothing to do with each other
        primary = primary.removesuffix("_chunk") + "_doc" if primary.endswith("_chunk") else primary
    levels = LEVELS if match == "same" else ("doc",)
    names = [primary]
    for level in levels:
        scored = _scored(baseline, level) & _scored(candidate, level)
        for family, cut in (("hit", 5), ("recall", 10), ("mrr", 10), ("ndcg", 10)):
            cuts = sorted(k for name, k in scored if name == family)
            if cuts:
                k = max((c for c in cuts if c <= cut), default=cuts[0])
                names.append(f"{family}_at_{k}_{level}")
    return list(dict.fromkeys(names))


def _scored(run: EvalRun, level: Level) -> set[tuple[str, int]]:
    """Return (family, cutoff) of each plain metric that scored a query at a level."""
    registry = default_registry()
    found = set()
    for name, entry in run.aggregate["metrics"].items():
        metric = registry.parse(name)
        if metric.level == level and metric.cutoff and metric.min_grade is None and entry["n"]:
            found.add((metric.family.name, metric.cutoff))
    return found


def _pairs(baseline: EvalRun, candidate: EvalRun, names: Sequence[str]) -> list[_Pair]:
    old, new = _answers(baseline, names), _answers(candidate, names)
    return [(answer, new[query_id]) for query_id, answer in old.items() if query_id in new]


def _answers(run: EvalRun, names: Sequence[str]) -> dict[str, _Answer]:
    missing = [name for name in names if name not in run.aggregate["metrics"]]
    values: dict[str, Mapping[str, float]] = {r.query_id: r.metrics for r in run.results}
    if missing:
        scores = evaluate_run(run.golden, run.results, cutoffs=(1,), metrics=missing)
        for query, row in zip(run.golden.queries, scores.per_query, strict=True):
            recorded = values.get(query.query_id, {})
            values[query.query_id] = {
                **{name: row[name] for name in missing if name in row},
                **recorded,
            }
    results = {result.query_id: result for result in run.results}
    threshold = run.golden.min_relevance
    return {
        query.query_id: _Answer(query, results[query.query_id], values[query.query_id], threshold)
        for query in run.golden.queries
        if query.query_id in results
    }


# --- metrics --------------------------------------------------------------------------------


def _deltas(pairs: Sequence[_Pair], names: Sequence[str], seed: int) -> dict[str, Delta]:
    columns = [_values(pairs, name) for name in names]
    return {delta.metric: delta for delta in _tested(names, columns, seed)}


def _values(pairs: Iterable[_Pair], name: str) -> list[tuple[float, float]]:
    return [
        (old.values[name], new.values[name])
        for old, new in pairs
        if name in old.values and name in new.values
    ]


def _tested(
    names: Sequence[str], columns: Sequence[Sequence[tuple[float, float]]], seed: int
) -> list[Delta]:
    """Return the delta of each column of paired values, Holm over all of them that have any."""
    arrays = [np.array(column, dtype=np.float64).reshape(-1, 2) for column in columns]
    changes = [array[:, 1] - array[:, 0] for array in arrays]
    intervals: dict[int, tuple[float, float]] = {}
    by_n: dict[int, list[int]] = {}
    for place, change in enumerate(changes):
        by_n.setdefault(len(change), []).append(place)
    for n, places in by_n.items():  # columns of one length share their resamples
        if n >= 2:
            bounds = mean_intervals(np.column_stack([changes[p] for p in places]), seed=seed)
            intervals |= {
                place: (low, high)
                for place, (low, high) in zip(places, bounds.tolist(), strict=True)
            }
    p_values = [randomisation_test(change, seed=seed) for change in changes]
    measured = [place for place, change in enumerate(changes) if len(change)]
    corrected = dict(zip(measured, holm([p_values[p] for p in measured]), strict=True))
    registry = default_registry()
    deltas = []
    for place, (name, array, change) in enumerate(zip(names, arrays, changes, strict=True)):
        n = len(change)
        before, after, mean = (
            (math.fsum(v.tolist()) / n if n else None) for v in (array[:, 0], array[:, 1], change)
        )
        deltas.append(
            Delta(
                metric=name,
                baseline=before,
                candidate=after,
                delta=mean,
                ci95=intervals.get(place),
                p_value=p_values[place],
                p_holm=corrected.get(place, 1.0),
                detectable=detectable_difference(change) or None,
                n=n,
                direction=registry.parse(name).direction,
            )
        )
    return deltas


def _primary_kind(pair: _Pair, primary: Delta) -> str | None:
    """Return win, loss or draw by the primary metric, None where it is not scored in both."""
    values = _values([pair], primary.metric)
    if not values:
        return None
    before, after = values[0]
    if before == after:
        return "draw"
    return "win" if (after > before) == (primary.direction == "higher") else "loss"


def _slices(pairs: Sequence[_Pair], whole: Delta, seed: int) -> tuple[SliceDelta, ...]:
    """Return the primary metric in each slice, by the baseline's golden set.

    Groups of paraphrases are left out, and tags that are nearly as many as queries: their slices
    hold too little to say anything.
    """
    members: dict[str, dict[str, list[_Pair]]] = {}
    for pair in pairs:
        if _values([pair], whole.metric):
            for field, value in slice_values(pair[0].golden).items():
                members.setdefault(field, {}).setdefault(value, []).append(pair)
    fields = [field for field in FIELDS if field in members and field != "group"]
    fields += sorted(field for field in members if field not in FIELDS)
    cells = [
        (field, value, _values(members[field][value], whole.metric))
        for field in fields
        if 1 < len(members[field]) <= max(2, whole.n // 2)
        for value in sorted(members[field])
    ]
    deltas = _tested([whole.metric] * len(cells), [values for _, _, values in cells], seed)
    return tuple(
        SliceDelta(field, value, delta, (delta.delta or 0.0) * (whole.delta or 0.0) < 0)
        for (field, value, _), delta in zip(cells, deltas, strict=True)
    )


# --- queries --------------------------------------------------------------------------------


def _query_delta(pair: _Pair, primary: str, match: ChunkerMatch) -> QueryDelta:
    old, new = pair
    before, after = _first_rank(old, match), _first_rank(new, match)
    expected = bool(_relevant(old, match)[1] and _relevant(new, match)[1])
    kind, note = _outcome(pair, before, after, expected)
    values = _values([pair], primary)
    line = QueryDelta(
        query_id=old.golden.query_id,
        query=new.golden.query,
        kind=kind,
        baseline_rank=before,
        candidate_rank=after,
        delta=values[0][1] - values[0][0] if values else None,
        note=note,
        expected=expected,
        level=_relevant(old, match)[0],
        baseline_error=old.result.error,
        candidate_error=new.result.error,
    )
    return replace(line, items=_items(pair, match)) if line.changed else line


def _outcome(
    pair: _Pair, before: int | None, after: int | None, expected: bool
) -> tuple[Kind, str]:
    """Return the kind by kebab's rules, and what happened in words."""
    failed = [
        name
        for name, answer in zip(("baseline", "candidate"), pair, strict=True)
        if answer.result.error is not None
    ]
    aside = f" (failed in the {' and the '.join(failed)})" if failed else ""
    if before == after:
        if not expected:
            return _refusal(pair, aside)
        return "draw", (f"rank {before}" if before else "missed by both") + aside
    if before is None:
        return "win", f"miss→rank {after}{aside}"
    if after is None:
        return "regression" if expected else "loss", f"rank {before}→miss{aside}"
    return "win" if after < before else "loss", f"rank {before}→{after}"


def _refusal(pair: _Pair, aside: str) -> tuple[Kind, str]:
    """A query that nothing answers is right to come back empty, where the golden set says so."""
    old, new = (bool(answer.result.hits) or answer.result.error is not None for answer in pair)
    if pair[0].golden.failure_expected and pair[1].golden.failure_expected and old != new:
        kind: Kind = "win" if old else "loss"
        return kind, ("hits→empty, as it should be" if old else "empty→hits") + aside
    return "draw", "nothing expected" + aside


def _relevant(answer: _Answer, match: ChunkerMatch) -> tuple[Level, frozenset[str]]:
    """Return the level that the query is matched at, and its relevant ids there."""
    judgments = answer.golden.judgments
    level: Level = "chunk" if judgments.chunk and match == "same" else "doc"
    return level, frozenset(
        normalise_id(item)
        for item, grade in judgments.at(level).items()
        if grade >= answer.min_relevance
    )


def _first_rank(answer: _Answer, match: ChunkerMatch) -> int | None:
    """Return the place of the first relevant hit, among the hits as they came back."""
    if answer.result.error is not None:
        return None
    level, wanted = _relevant(answer, match)
    for place, hit in enumerate(answer.result.hits, 1):
        if normalise_id(hit.chunk_id if level == "chunk" else hit.doc_id) in wanted:
            return place
    return None


def _items(pair: _Pair, match: ChunkerMatch) -> tuple[ItemMove, ...]:
    """Return both rankings as one list: the candidate's order, then what left it."""
    old, new = (_places(answer.result, match) for answer in pair)
    moves = []
    for key in [*new, *(key for key in old if key not in new)]:
        _, hit = new.get(key) or old[key]
        answer = pair[1] if key in new else pair[0]
        moves.append(
            ItemMove(
                chunk_id=hit.chunk_id,
                doc_id=hit.doc_id,
                baseline_rank=old[key][0] if key in old else None,
                candidate_rank=new[key][0] if key in new else None,
                relevance=_said(answer, hit, match),
                snippet=hit.snippet,
            )
        )
    return tuple(moves)


def _places(result: QueryResult, match: ChunkerMatch) -> dict[str, tuple[int, Hit]]:
    found: dict[str, tuple[int, Hit]] = {}
    for place, hit in enumerate(result.hits if result.error is None else (), 1):
        # A system without chunks, and runs of two chunkers, are lined up by document.
        key = hit.chunk_id if match == "same" and hit.chunk_id else hit.doc_id
        found.setdefault(normalise_id(key), (place, hit))
    return found


def _said(answer: _Answer, hit: Hit, match: ChunkerMatch) -> Relevance:
    judgments = answer.golden.judgments
    if match == "fallback_doc":
        judgments = replace(judgments, chunk={})
    return relevance(judgments, hit.chunk_id, hit.doc_id, answer.min_relevance)


# --- what a reader must know ----------------------------------------------------------------


def _notes(
    comparison: Comparison, pairs: Sequence[_Pair], baseline: EvalRun, candidate: EvalRun
) -> list[str]:
    notes = [f"Allowed though it differs: {_plain(one)}." for one in comparison.differences]
    if any(one.word == "golden" for one in comparison.differences):
        changed = sum(old.golden.judgments != new.golden.judgments for old, new in pairs)
        notes.append(
            f"Two golden sets: paired over the {len(pairs)} query ids that both hold, each run by "
            f"its own judgments; {changed} of them are judged differently."
        )
    for run, other in ((baseline, candidate), (candidate, baseline)):
        unpaired = len(run.results) - len(pairs)
        if unpaired > 0:
            notes.append(
                f"{unpaired} of {len(run.results)} queries of {run.name} have no result in "
                f"{other.name} and are left out."
            )
    for run in (baseline, candidate):
        status = str(run.info.get("status", "FINISHED"))
        if status != "FINISHED":
            notes.append(f"{run.name} ended {status}: its numbers cover what was answered.")
    if comparison.chunker_version_match == "fallback_doc":
        blind = sum(
            bool(old.golden.judgments.chunk) and not old.golden.judgments.doc for old, _ in pairs
        )
        tail = f"; {blind} queries have judged chunks only and count as draws" if blind else ""
        notes.append(f"The chunkers differ, so that ranks are matched by document{tail}.")
    if baseline.run_id == candidate.run_id:
        notes.append("Both sides are the same run.")
    commits = [
        str((run.info.get("git") or {}).get("commit", ""))[:12] for run in (baseline, candidate)
    ]
    if all(commits) and commits[0] != commits[1]:
        notes.append(f"The commits differ: {commits[0]} → {commits[1]}.")
    idle = sum(not line.expected for line in comparison.per_query)
    if idle:
        notes.append(f"Nothing is expected of {idle} queries: they are never a regression.")
    return notes


def _plain(difference: Difference) -> str:
    return f"{difference.what}, {difference.baseline} against {difference.candidate}"


def _side(run: EvalRun) -> Side:
    mlflow = run.info.get("mlflow")
    mlflow = mlflow if isinstance(mlflow, Mapping) else {}
    return Side(
        run_id=run.run_id,
        name=run.name,
        created_at=str(run.info.get("created_at", "")),
        mlflow_run_id=mlflow.get("run_id"),
        mlflow_experiment_id=mlflow.get("experiment_id"),
        queries=len(run.results),
        failed=tuple(result.query_id for result in run.results if result.error is not None),
        latency_ms=run.aggregate["latency_ms"],
    )


# --- as JSON --------------------------------------------------------------------------------


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
