"""Which stage of a search lost each missed answer, and what each lever could win back.

Read from a run's hits and the channels' candidates that its record holds; nothing is searched
again. A query is missed when no relevant item came back at the level it is judged at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from kebab_eval.metrics.ranktable import normalise_id
from kebab_eval.metrics.slices import slice_values
from kebab_eval.records import Candidate, EvalRun, GoldenQuery, Level, QueryResult
from kebab_eval.weak_slices import Cause, cause_of, document_languages

DIAGNOSIS_SCHEMA = "kebab_eval.diagnosis.v1"

Stage = Literal[
    "failed",
    "unwinnable",
    "no candidate",
    "one channel",
    "fused out",
    "beyond k",
    "score gate",
    "not returned",
]
STAGES: Mapping[Stage, str] = {
    "failed": "the search call failed",
    "unwinnable": "what is expected stands in no chunk of this corpus any more",
    "no candidate": "no channel had it among its candidates",
    "one channel": "one channel had it, the other did not; the fusion put it behind k",
    "fused out": "a channel had it among its first k, and the fusion did not",
    "beyond k": "the channels had it, behind their first k",
    "score gate": "it was among the first k, and the score gate dropped it",
    "not returned": "it did not come back; the system does not show its candidates",
}
LEVERS: Mapping[Stage, str] = {
    "failed": "execution.timeout_s, execution.retries, the system itself",
    "unwinnable": "the golden set: 'kebab-eval golden lint' names what is gone",
    "no candidate": "search.depth, chunking, lexical.tokenizer, embedding",
    "one channel": "fusion.rrf_k, fusion.weights, rerank",
    "fused out": "fusion.rrf_k, fusion.weights",
    "beyond k": "search.k, rerank",
    "score gate": "score_gate",
    "not returned": "search.k and whatever the system has",
}
_DEEPER = (20, 50, 100)

Candidates = Mapping[str, Sequence[Candidate]]


@dataclass(frozen=True, slots=True)
class Lost:
    """One missed query.

    Attributes:
        stage: where what came nearest was lost.
        item: that item, empty where nothing is known of any.
        channel_ranks: its rank in each channel that had it.
        fused_rank: its rank after the fusion, before k and gate; None where it has none, or where
            the system's fusion is not known.
        cause: why, in the words of the weak-slice report.
        document_rank: rank of the first hit of an expected document: what was missed is the chunk.
    """

    query_id: str
    query: str
    level: Level
    stage: Stage
    item: str
    channel_ranks: Mapping[str, int]
    fused_rank: int | None
    cause: Cause | None = None
    document_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Win:
    """What a lever could win back: ``queries`` of the missed ones, at most."""

    lever: str
    change: str
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A run's missed queries by stage, and the levers that could win them, the strongest first.

    ``answerable`` is how many queries have a relevant item at all; ``slices`` maps (field, value)
    to (missed, answerable).
    """

    run_id: str
    name: str
    answerable: int
    lost: tuple[Lost, ...]
    wins: tuple[Win, ...]
    slices: Mapping[tuple[str, str], tuple[int, int]]

    @property
    def by_stage(self) -> dict[Stage, list[Lost]]:
        """The missed queries of each stage that has any, the most frequent first."""
        found: dict[Stage, list[Lost]] = {}
        for lost in self.lost:
            found.setdefault(lost.stage, []).append(lost)
        order = list(STAGES)
        return dict(sorted(found.items(), key=lambda one: (-len(one[1]), order.index(one[0]))))

    @property
    def found_document(self) -> int:
        """How many missed queries found another chunk of an expected document."""
        return sum(lost.document_rank is not None for lost in self.lost)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": DIAGNOSIS_SCHEMA,
            "run_id": self.run_id,
            "name": self.name,
            "answerable": self.answerable,
            "missed": len(self.lost),
            "found_the_document": self.found_document,
            "stages": {stage: len(lost) for stage, lost in self.by_stage.items()},
            "causes": dict(Counter(lost.cause for lost in self.lost if lost.cause)),
            "levers": [
                {"lever": win.lever, "change": win.change, "could_win": list(win.queries)}
                for win in self.wins
            ],
            "slices": [
                {"field": field, "value": value, "missed": missed, "answerable": answerable}
                for (field, value), (missed, answerable) in self.slices.items()
            ],
            "queries": [
                {
                    "query_id": lost.query_id,
                    "query": lost.query,
                    "level": lost.level,
                    "stage": lost.stage,
                    "item": lost.item,
                    "channel_ranks": dict(lost.channel_ranks),
                    "fused_rank": lost.fused_rank,
                    "cause": lost.cause,
                    "document_rank": lost.document_rank,
                }
                for lost in self.lost
            ],
        }


def diagnose(run: EvalRun) -> Diagnosis:
    """Return what was lost where.

    Args:
        run: its results with their candidates, where the record has them.
    """
    results = {result.query_id: result for result in run.results}
    languages = document_languages(run)
    least = run.golden.min_relevance
    lost: list[Lost] = []
    slices: dict[tuple[str, str], list[int]] = {}
    answerable = 0
    for query in run.golden.queries:
        result = results.get(query.query_id)
        if result is None or not relevant_items(query, least)[1]:
            continue
        answerable += 1
        found = lost_at(query, result, run.config, least)
        if found is not None:
            cause = cause_of(query, result, found.level, least, languages)
            document = _document_rank(query, result, least) if found.level == "chunk" else None
            stage = _recorded(result) or found.stage
            lost.append(replace(found, stage=stage, cause=cause, document_rank=document))
        for field, value in slice_values(query).items():
            if field != "group":
                counts = slices.setdefault((field, value), [0, 0])
                counts[0] += found is not None
                counts[1] += 1
    return Diagnosis(
        run_id=run.run_id,
        name=run.name,
        answerable=answerable,
        lost=tuple(lost),
        wins=tuple(_wins(lost, run.config)),
        slices={key: (missed, of) for key, (missed, of) in sorted(slices.items())},
    )


def _recorded(result: QueryResult) -> Stage | None:
    """Return the stage that was told when the candidates were at hand: a frozen file has none."""
    if result.candidates:
        return None
    return next((stage for stage in STAGES if stage == result.miss_stage), None)


def _document_rank(query: GoldenQuery, result: QueryResult, least: float) -> int | None:
    grades = query.judgments.at("doc").items()
    wanted = {normalise_id(item) for item, grade in grades if grade >= least}
    return next((hit.rank for hit in result.hits if normalise_id(hit.doc_id) in wanted), None)


def relevant_items(query: GoldenQuery, least: float) -> tuple[Level, frozenset[str]]:
    """Return the level that a query is missed at, and its relevant items there."""
    level: Level = "chunk" if query.judgments.chunk or query.spans else "doc"
    grades = query.judgments.at(level)
    return level, frozenset(normalise_id(item) for item, grade in grades.items() if grade >= least)


def miss_stage(
    query: GoldenQuery, result: QueryResult, config: Mapping[str, Any], least: float
) -> Stage | None:
    """Return the stage that lost a query's answer, None where it came back or nothing answers."""
    found = lost_at(query, result, config, least)
    return None if found is None else found.stage


def lost_at(
    query: GoldenQuery, result: QueryResult, config: Mapping[str, Any], least: float
) -> Lost | None:
    """Return where the answer of a query was lost, None where it was not."""
    level, wanted = relevant_items(query, least)

    def lost(stage: Stage, item: str = "", fused: int | None = None, **ranks: int) -> Lost:
        return Lost(query.query_id, query.query, level, stage, item, ranks, fused)

    if not wanted:
        # Spans of which none stands in a chunk: something is expected that cannot come back.
        return lost("unwinnable") if any(s.chunk_ids == () for s in query.spans) else None
    if result.error is not None:
        return lost("failed")
    ids = [normalise_id(h.chunk_id if level == "chunk" else h.doc_id) for h in result.hits]
    if not wanted.isdisjoint(ids):
        return None
    if not result.candidates:
        return lost("not returned")
    ranks = {name: _ranks(ranking, level) for name, ranking in result.candidates.items() if ranking}
    k = int(config["search"]["k"])
    fused = _fused_ranks(result.candidates, level, config)
    seen = {item for found in ranks.values() for item in found} & wanted
    if not seen:
        return lost("no candidate")

    def near(item: str) -> tuple[float, int, str]:
        best = min(found[item] for found in ranks.values() if item in found)
        return fused.get(item, math.inf), best, item

    item = min(seen, key=near)
    held = {name: found[item] for name, found in ranks.items() if item in found}
    rank = fused.get(item)
    if rank is not None and rank <= k and config.get("score_gate") is not None:
        return lost("score gate", item, rank, **held)
    if len(held) < len(result.candidates) and len(result.candidates) > 1:
        return lost("one channel", item, rank, **held)
    if min(held.values()) <= k and len(result.candidates) > 1:
        return lost("fused out", item, rank, **held)
    return lost("beyond k", item, rank, **held)


def _ranks(ranking: Sequence[Candidate], level: Level) -> dict[str, int]:
    """Return item -> its rank in a channel; a document's is that of its first chunk."""
    found: dict[str, int] = {}
    for rank, one in enumerate(ranking, 1):
        found.setdefault(normalise_id(one.chunk_id if level == "chunk" else one.doc_id), rank)
    return found


def _fused_ranks(candidates: Candidates, level: Level, config: Mapping[str, Any]) -> dict[str, int]:
    """Return item -> its rank before k and gate, by the config's reciprocal rank fusion."""
    fusion = config.get("fusion") or {}
    if len(candidates) > 1 and fusion.get("method") != "rrf":
        return {}
    weights, constant = fusion.get("weights", {}), float(fusion.get("rrf_k", 60))
    scores: dict[tuple[str, str], list[float]] = {}
    depth = fusion.get("depth") if len(candidates) > 1 else None
    for name, ranking in candidates.items():
        weight = float(weights.get(name, 1.0)) if len(candidates) > 1 else 1.0
        for rank, one in enumerate(ranking[:depth], 1):
            if weight > 0:
                key = (one.chunk_id, one.doc_id)
                scores.setdefault(key, []).append(weight / (constant + rank))
    ordered = sorted(scores, key=lambda key: (-math.fsum(scores[key]), key[0]))
    ranks: dict[str, int] = {}
    for rank, (chunk_id, doc_id) in enumerate(ordered, 1):
        ranks.setdefault(normalise_id(chunk_id if level == "chunk" else doc_id), rank)
    return ranks


def _wins(lost: Sequence[Lost], config: Mapping[str, Any]) -> list[Win]:
    """Return what each lever could win at most, by what the candidates show; without nothing."""
    k = int(config["search"]["k"])
    depth = int(config["search"].get("depth", 0) or 0)
    wins = [
        Win("score_gate", "off", _ids(one for one in lost if one.stage == "score gate")),
        Win(
            "fusion",
            f"another rrf_k or other weights (a channel has it within its first {k})",
            _ids(
                one
                for one in lost
                if one.stage in ("one channel", "fused out")
                and min(one.channel_ranks.values(), default=k + 1) <= k
            ),
        ),
        Win(
            "candidates",
            f"a search.depth above {depth}, another chunker, tokenizer or encoder",
            _ids(one for one in lost if one.stage == "no candidate"),
        ),
        Win("system", "no failures", _ids(one for one in lost if one.stage == "failed")),
    ]
    before: tuple[str, ...] = ()
    for deeper in (d for d in _DEEPER if d > k):
        ids = _ids(
            one for one in lost if one.fused_rank is not None and k < one.fused_rank <= deeper
        )
        if ids != before:
            wins.append(Win("search.k", f"{deeper}, or a reranker over the first {deeper}", ids))
        before = ids
    return sorted((win for win in wins if win.queries), key=lambda win: -len(win.queries))


def _ids(lost: Iterable[Lost]) -> tuple[str, ...]:
    return tuple(one.query_id for one in lost)
