"""Two runs become a comparison: what was moved, what it did, and whether that is to be believed.

Pure: two :class:`~kebab_eval.records.EvalRun` go in, a :class:`Comparison` comes out. Everything is
paired over the queries that both runs answered, and seeded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kebab_eval.comparability import Difference, check_comparable, config_diff
from kebab_eval.comparison.deltas import (
    judgment_changes,
    metric_deltas,
    primary_kind,
    slice_deltas,
)
from kebab_eval.comparison.model import (
    ALPHA,
    KINDS,
    ChunkerMatch,
    Comparison,
    Delta,
    ItemMove,
    JudgmentChange,
    Kind,
    QueryDelta,
    Side,
    SliceDelta,
)
from kebab_eval.comparison.pairs import (
    Pair,
    chosen_metrics,
    chunker_match,
    on_common_ground,
    pair_level,
    pair_up,
    same_golden,
)
from kebab_eval.comparison.queries import query_delta
from kebab_eval.records import EvalRun

__all__ = [
    "ALPHA",
    "KINDS",
    "ChunkerMatch",
    "Comparison",
    "Delta",
    "ItemMove",
    "JudgmentChange",
    "Kind",
    "QueryDelta",
    "Side",
    "SliceDelta",
    "compare",
    "on_common_ground",
]


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

    Where ``allow`` lets runs of two golden sets be compared, both are judged by the candidate's, so
    that a difference is one of retrieval; what the judgments themselves changed stands beside it.

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
    match = chunker_match(baseline, candidate, strict_chunker_version)
    names = chosen_metrics(metrics, baseline, candidate, match)
    pairs = pair_up(on_common_ground(baseline, candidate), candidate, names)
    primary = names[0]
    deltas = metric_deltas(pairs, names, seed)
    lines = tuple(query_delta(pair, primary, match) for pair in pairs)
    rises = Counter(primary_kind(pair, deltas[primary]) for pair in pairs)
    lever = candidate.info.get("lever")
    comparison = Comparison(
        baseline=_side(baseline),
        candidate=_side(candidate),
        differences=allowed,
        config_diff=config_diff(baseline, candidate),
        declared_lever=str(lever["key"]) if isinstance(lever, Mapping) else None,
        chunker_version_match=match,
        judgment_changes=()
        if same_golden(baseline, candidate)
        else judgment_changes(baseline, candidate, names),
        primary=primary,
        deltas=deltas,
        counts={kind: sum(line.kind == kind for line in lines) for kind in KINDS},
        primary_counts={kind: rises[kind] for kind in ("win", "loss", "draw")},
        per_query=lines,
        slices=slice_deltas(pairs, deltas[primary], seed),
        notes=(),
    )
    return replace(comparison, notes=tuple(_notes(comparison, pairs, baseline, candidate)))


def _notes(
    comparison: Comparison, pairs: Sequence[Pair], baseline: EvalRun, candidate: EvalRun
) -> list[str]:
    notes = [f"Allowed though it differs: {_plain(one)}." for one in comparison.differences]
    if not same_golden(baseline, candidate):
        own = {query.query_id: query for query in baseline.golden.queries}
        changed = sum(
            own[new.golden.query_id].meaning() != new.golden.meaning() for _, new in pairs
        )
        notes.append(
            f"Two golden sets: both runs are judged by the candidate's, over the {len(pairs)} "
            f"queries that both were asked; {changed} of them are judged differently now."
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
    notes += _chunker_notes(comparison.chunker_version_match, pairs)
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


def _chunker_notes(match: ChunkerMatch, pairs: Sequence[Pair]) -> Iterator[str]:
    if match == "same":
        return
    by_document = [pair for pair in pairs if pair_level(pair, match) == "doc"]
    blind = sum(
        bool(old.golden.judgments.chunk) and not old.golden.judgments.doc for old, _ in by_document
    )
    tail = f"; {blind} queries have judged chunks only and count as draws" if blind else ""
    if match == "fallback_doc":
        yield f"The chunkers differ, so that ranks are matched by document{tail}."
        return
    spanned = len(pairs) - len(by_document)
    judged = sum(bool(old.golden.judgments.doc) for old, _ in by_document)
    rest = f" and {judged} by document" if judged else ""
    yield (
        f"The chunkers differ: the ranks of {spanned} queries are matched by the spans that the "
        f"chunks hold{rest}{tail}."
    )


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
