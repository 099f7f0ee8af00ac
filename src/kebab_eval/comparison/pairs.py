"""Both runs, query by query: how their chunks are lined up, and by which judgments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kebab_eval.comparison.model import ChunkerMatch
from kebab_eval.errors import NotComparableError
from kebab_eval.metrics import default_registry, evaluate_run
from kebab_eval.records import (
    LEVELS,
    EvalRun,
    GoldenQuery,
    Level,
    QueryResult,
    Span,
)

# ndcg_linear is scored where a set has fractional gains, and ndcg everywhere else.
_COMPARED = (("hit", 5), ("recall", 10), ("mrr", 10), ("ndcg", 10), ("ndcg_linear", 10))


@dataclass(frozen=True, slots=True)
class Answer:
    """One run's side of a query."""

    golden: GoldenQuery
    result: QueryResult
    values: Mapping[str, float]
    min_relevance: float


Pair = tuple[Answer, Answer]


def chunker_match(baseline: EvalRun, candidate: EvalRun, strict: bool) -> ChunkerMatch:
    """Return how the chunks of two runs are lined up.

    Raises:
        NotComparableError: ``strict``, and a query could only be matched by document.
    """
    if same_chunks(baseline, candidate):
        return "same"
    spanned = [query for query in baseline.golden.queries if query.judgments.chunk and query.spans]
    blind = [
        query
        for run in (baseline, candidate)
        for query in run.golden.queries
        if query.judgments.chunk and not query.spans
    ]
    if strict and (blind or not spanned):
        raise NotComparableError(
            f"{baseline.name} and {candidate.name} are not comparable by chunk; they differ in\n"
            f"  {_chunker_difference(baseline, candidate)} "
            "(without --strict-chunker-version, queries without spans are matched by document; "
            "'kebab-eval golden anchor' writes spans)"
        )
    return "span" if spanned else "fallback_doc"


def same_chunks(baseline: EvalRun, candidate: EvalRun) -> bool:
    """Say whether both runs cut their documents alike: the same chunker, of the same sizes."""
    versions = [run.info.get("system", {}).get("chunker_version") for run in (baseline, candidate)]
    sizes = [run.config.get("chunking") for run in (baseline, candidate)]
    return versions[0] == versions[1] and (None in sizes or sizes[0] == sizes[1])


def _chunker_difference(baseline: EvalRun, candidate: EvalRun) -> str:
    sides = (baseline, candidate)
    versions = [str(run.info.get("system", {}).get("chunker_version") or "none") for run in sides]
    if versions[0] != versions[1]:
        return f"chunker version: baseline {versions[0]}, candidate {versions[1]}"
    sizes = [run.config["chunking"].get("target_tokens") for run in sides]
    return f"sizes of {versions[0]}: baseline {sizes[0]} tokens, candidate {sizes[1]}"


def pair_level(pair: Pair, match: ChunkerMatch) -> Level:
    """Return the level that a query is matched at: chunks where both sides can be lined up."""
    judged = all(answer.golden.judgments.chunk for answer in pair)
    by_span = match == "span" and all(answer.golden.spans for answer in pair)
    return "chunk" if judged and (match == "same" or by_span) else "doc"


def chosen_metrics(
    metrics: Sequence[str] | None, baseline: EvalRun, candidate: EvalRun, match: ChunkerMatch
) -> list[str]:
    """Return the names of the metrics to compare, the primary one first."""
    if metrics:
        return [metric.name for metric in default_registry().parse_all(metrics)]
    primary = str(baseline.config["metrics"]["primary"])
    if match == "fallback_doc":  # chunk ids of two chunkers have nothing to do with each other
        primary = primary.removesuffix("_chunk") + "_doc" if primary.endswith("_chunk") else primary
    names = [primary]
    for level in LEVELS if match != "fallback_doc" else ("doc",):
        scored = _scored(baseline, level) & _scored(candidate, level)
        for family, cut in _COMPARED:
            # Another chunker cuts another number of relevant chunks from the same spans: the first
            # hit is comparable, a share of chunks is not. The share of spans below is.
            if level == "chunk" and match == "span" and family not in ("hit", "mrr"):
                continue
            cuts = sorted(k for name, k in scored if name == family)
            if cuts:
                names.append(f"{family}_at_{_nearest_cut(cuts, cut)}_{level}")
        if level == "chunk":
            spans = _scored(baseline, None) & _scored(candidate, None)
            cuts = sorted(k for name, k in spans if name == "span_recall")
            if cuts and match == "span":
                names.append(f"span_recall_at_{_nearest_cut(cuts, 10)}")
    return list(dict.fromkeys(names))


def _nearest_cut(cuts: Sequence[int], wanted: int) -> int:
    return max((cut for cut in cuts if cut <= wanted), default=cuts[0])


def _scored(run: EvalRun, level: Level | None) -> set[tuple[str, int]]:
    """Return (family, cutoff) of each plain metric that scored a query at a level."""
    registry = default_registry()
    found = set()
    for name, entry in run.aggregate["metrics"].items():
        metric = registry.parse(name)
        if metric.level == level and metric.cutoff and metric.min_grade is None and entry["n"]:
            found.add((metric.family.name, metric.cutoff))
    return found


def pair_up(baseline: EvalRun, candidate: EvalRun, names: Sequence[str]) -> list[Pair]:
    """Return both sides of each query that both runs answered, with the values of the metrics."""
    old, new = _answers(baseline, names), _answers(candidate, names)
    return [(answer, new[query_id]) for query_id, answer in old.items() if query_id in new]


def _answers(run: EvalRun, names: Sequence[str]) -> dict[str, Answer]:
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
        query.query_id: Answer(query, results[query.query_id], values[query.query_id], threshold)
        for query in run.golden.queries
        if query.query_id in results
    }


def paired_values(pairs: Iterable[Pair], name: str) -> list[tuple[float, float]]:
    """Return (baseline, candidate) of a metric for each pair that both runs scored."""
    return [
        (old.values[name], new.values[name])
        for old, new in pairs
        if name in old.values and name in new.values
    ]


def judged_by(run: EvalRun, other: EvalRun) -> EvalRun:
    """Return a run judged by the golden set of another one, from its recorded hits.

    Only the queries of that set that the run was asked, in the same words, are left. The chunks of
    another chunker are known by the spans that both sets hold; a query for which that does not
    suffice is judged by its documents alone.
    """
    asked = {result.query_id: result for result in run.results}
    own = {query.query_id: query for query in run.golden.queries}
    same = same_chunks(run, other)
    queries = tuple(
        query if same else _in_chunks_of(query, own.get(query.query_id))
        for query in other.golden.queries
        if query.query_id in asked and asked[query.query_id].query == query.query
    )
    golden = replace(other.golden, queries=queries)
    results = [asked[query.query_id] for query in queries]
    settings = run.config["metrics"]
    scores = evaluate_run(
        golden,
        results,
        cutoffs=settings["cutoffs"],
        seed=settings["seed"],
        metrics=[settings["primary"]],
    )
    judged = tuple(
        replace(result, metrics=row) for result, row in zip(results, scores.per_query, strict=True)
    )
    return replace(run, golden=golden, results=judged, aggregate=scores.aggregate)


def _in_chunks_of(query: GoldenQuery, own: GoldenQuery | None) -> GoldenQuery:
    if not query.judgments.chunk:
        return query
    known = {_key(span): span.chunk_ids for span in (own.spans if own else ())}
    spans = tuple(replace(span, chunk_ids=known.get(_key(span))) for span in query.spans)
    chunks: dict[str, float] = {}
    if all(span.chunk_ids is not None for span in spans):
        for span in spans:
            for chunk_id in span.chunk_ids or ():
                chunks[chunk_id] = max(span.grade, chunks.get(chunk_id, 0.0))
    return replace(query, spans=spans, judgments=replace(query.judgments, chunk=chunks))


def _key(span: Span) -> str:
    meaning: dict[str, Any] = {**span.meaning(), "grade": None}
    return json.dumps(meaning, sort_keys=True)


def same_golden(baseline: EvalRun, candidate: EvalRun) -> bool:
    return baseline.golden.digest == candidate.golden.digest


def on_common_ground(baseline: EvalRun, candidate: EvalRun) -> EvalRun:
    """Return the baseline as the candidate's golden set judges it; itself where that is its own."""
    return baseline if same_golden(baseline, candidate) else judged_by(baseline, candidate)
