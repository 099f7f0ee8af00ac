"""Recorded candidates, fused again: what a search would return under another fusion, depth or gate.

A record holds each channel's own ranking of each query. Everything behind the channels follows from
it, so a lever that acts there needs no search: the hits are those of a real run, to the last bit.
The fusion of two rankings by reciprocal rank is done for all queries at once; any other method is
done query by query, by the engine's own code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kebab_eval.config import Fusion, Mode
from kebab_eval.engine.fusion import fuse
from kebab_eval.errors import MetricError
from kebab_eval.metrics.ranktable import RankTable, normalise_id
from kebab_eval.metrics.registry import Metric
from kebab_eval.records import Candidate, GoldenSet, Level, QueryResult

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Ranked = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Settings:
    """The levers behind the channels, as a config holds them."""

    mode: Mode
    k: int
    depth: int
    fusion: Fusion
    score_gate: float | None


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of every query, as places in its row of items.

    Args:
        order: int64, (n_queries, k), item of each place; whatever stands behind ``count`` is none.
        score: float64, (n_queries, k), descending.
        count: int64, (n_queries,), how many hits there are.
    """

    order: IntArray
    score: FloatArray
    count: IntArray

    def gated(self, gate: float | None) -> Hits:
        """Return the hits whose score reaches the gate: the first ones, as scores descend."""
        if gate is None:
            return self
        places = np.arange(self.order.shape[1]) < self.count[:, None]
        kept = ((self.score >= gate) & places).sum(axis=1)
        return Hits(self.order, self.score, kept)


class RecordedCandidates:
    """The candidates of a run's queries, as arrays.

    Args:
        golden: what the hits are judged by; only its queries with a result count, in its order.
        results: with their candidates; a failed one has no hits under any setting.
        k: the most hits that will be asked for, where every fusion will be by reciprocal rank: an
            item of one channel alone is then among them only if it is among the first k of that
            channel, and the others are left out. None keeps all.
    """

    def __init__(
        self, golden: GoldenSet, results: Mapping[str, QueryResult], k: int | None = None
    ) -> None:
        self.golden = golden
        self.queries = [query for query in golden.queries if query.query_id in results]
        self._results = [results[query.query_id] for query in self.queries]
        names = sorted({name for result in self._results for name in result.candidates})
        self.channels: tuple[str, ...] = tuple(names)
        rows = [_items(result, k) for result in self._results]
        width = max(map(len, rows), default=0) + 1  # the last column stands for no item
        shape = (len(rows), width)
        self._rank = {name: np.zeros(shape, dtype=np.int64) for name in names}
        self._score = {name: np.zeros(shape) for name in names}
        self._document = np.full(shape, -1, dtype=np.int64)
        self._places: dict[Level, list[dict[str, int]]] = {"chunk": [], "doc": []}
        self.ids = [[one.chunk_id for one in row] for row in rows]
        for number, (result, row) in enumerate(zip(self._results, rows, strict=True)):
            self._fill(number, result, row)
        self._documents = max((len(found) for found in self._places["doc"]), default=0) + 1
        self._rows = {level: self._judged(level) for level in self._places}

    def _fill(self, number: int, result: QueryResult, row: Sequence[Candidate]) -> None:
        place = {one.chunk_id: index for index, one in enumerate(row)}
        for name, ranking in result.candidates.items():
            for rank, one in enumerate(ranking, 1):
                index = place.get(one.chunk_id)
                if index is not None and not self._rank[name][number, index]:
                    self._rank[name][number, index] = rank
                    self._score[name][number, index] = one.score
        documents: dict[str, int] = {}
        chunks: dict[str, int] = {}
        for index, one in enumerate(row):
            chunks.setdefault(normalise_id(one.chunk_id), index)
            found = documents.setdefault(normalise_id(one.doc_id), len(documents))
            self._document[number, index] = found
        self._places["chunk"].append(chunks)
        self._places["doc"].append(documents)

    def _judged(self, level: Level) -> tuple[IntArray, FloatArray, IntArray]:
        """Return (query, grade, place) of each judged item; place -1 is among no candidates."""
        rows = [
            (number, grade, self._places[level][number].get(normalise_id(item), -1))
            for number, query in enumerate(self.queries)
            for item, grade in query.judgments.at(level).items()
        ]
        query, grade, place = zip(*rows, strict=True) if rows else ((), (), ())
        return (
            np.array(query, dtype=np.int64),
            np.array(grade, dtype=np.float64),
            np.array(place, dtype=np.int64),
        )

    @property
    def answered(self) -> BoolArray:
        """Which queries did not fail."""
        return np.array([result.error is None for result in self._results], dtype=bool)

    def hits(self, settings: Settings) -> Hits:
        """Return the hits of every query, before the gate."""
        if settings.mode == "hybrid" and not self._at_once(settings.fusion):
            return self._one_by_one(settings)
        if settings.mode == "hybrid":
            score, there = self._fused(settings)
            order = np.argsort(-score, axis=1, kind="stable")
        else:
            rank = self._rank.get(settings.mode, np.zeros_like(self._document))
            there = (rank > 0) & (rank <= settings.depth)
            score = self._score.get(settings.mode, np.zeros(rank.shape))
            order = np.argsort(np.where(there, rank, np.iinfo(np.int64).max), axis=1, kind="stable")
        order = order[:, : settings.k]
        count = np.minimum(there.sum(axis=1), settings.k)
        return Hits(order, np.take_along_axis(score, order, axis=1), count)

    def _at_once(self, fusion: Fusion) -> bool:
        # Two terms have one sum; three would be added in another order than math.fsum's.
        return fusion.method == "rrf" and len(self.channels) <= 2

    def _fused(self, settings: Settings) -> tuple[FloatArray, BoolArray]:
        """Return each item's score by reciprocal rank, and whether it is in the fusion at all."""
        fusion = settings.fusion
        depth = min(settings.depth, fusion.depth or settings.depth)
        score, highest = np.zeros(self._document.shape), 0.0
        there = np.zeros(score.shape, dtype=bool)
        for name, rank in self._rank.items():
            weight = float(getattr(fusion.weights, name, 1.0))
            highest += weight / (fusion.rrf_k + 1)
            if weight > 0:
                held = (rank > 0) & (rank <= depth)
                score += np.where(held, weight / (fusion.rrf_k + rank), 0.0)
                there |= held
        # Items stand in the order of their ids, so that a stable sort settles ties by id.
        return np.where(there, score / (highest or 1.0), -np.inf), there

    def _one_by_one(self, settings: Settings) -> Hits:
        shape = (len(self.queries), settings.k)
        order = np.full(shape, self._document.shape[1] - 1, dtype=np.int64)
        score, count = np.full(shape, -np.inf), np.zeros(shape[0], dtype=np.int64)
        for number, result in enumerate(self._results):
            place = {item: index for index, item in enumerate(self.ids[number])}
            found = fused(result, settings)[: settings.k]
            count[number] = len(found)
            for rank, (item, value) in enumerate(found):
                order[number, rank], score[number, rank] = place[item], value
        return Hits(order, score, count)

    def rank_table(self, hits: Hits, level: Level) -> RankTable:
        """Return the rank table of hits: what every ranking metric is computed from."""
        query, grade, place = self._rows[level]
        depth = hits.order.shape[1]
        kept = np.arange(depth) < hits.count[:, None]
        if level == "chunk":
            rank = self._scattered(hits.order, kept, self._document.shape[1])
            n_hits, hit_rank = hits.count, rank
        else:
            documents = np.take_along_axis(self._document, hits.order, axis=1)
            documents = np.where(kept, documents, -1)
            first = kept.copy()
            for column in range(1, depth):
                repeated = (documents[:, :column] == documents[:, column : column + 1]).any(axis=1)
                first[:, column] &= ~repeated
            hit_rank = self._scattered(documents, first, self._documents)
            rank = self._scattered(documents, first, self._documents, first.cumsum(axis=1))
            n_hits = first.sum(axis=1)
        scale = max(
            (g for one in self.golden.queries for g in one.judgments.at(level).values()), default=0
        )
        found = rank[query, place]
        return RankTable(
            query=query,
            grade=grade,
            rank=found,
            hit_rank=found if hit_rank is rank else hit_rank[query, place],
            n_hits=np.asarray(n_hits, dtype=np.int64),
            min_relevance=self.golden.min_relevance,
            max_grade=scale,
        )

    def values(self, hits: Hits, metric: Metric) -> FloatArray:
        """Return a metric of every query; float64, (n_queries,), NaN where it is not scored.

        Raises:
            MetricError: it does not follow from the hits alone.
        """
        if metric.family.name == "span_recall":
            return self._span_recall(hits, metric.cutoff)
        if metric.level is None:
            raise MetricError(f"{metric.name!r}: say {metric.name}_chunk or {metric.name}_doc")
        return metric.compute(self.rank_table(hits, metric.level))

    def _span_recall(self, hits: Hits, cutoff: int | None) -> FloatArray:
        """Return the share of each query's spans of which a chunk is among the first hits."""
        owner, span, place = self._spans
        kept = np.arange(hits.order.shape[1]) < hits.count[:, None]
        rank = self._scattered(hits.order, kept, self._document.shape[1])
        ranks = rank[owner, place]
        found = (ranks > 0) & (ranks <= (cutoff or hits.order.shape[1]))
        n_spans = np.zeros(len(self.queries), dtype=np.int64)
        hit = np.zeros(len(self.queries))
        n_all = int(span.max(initial=-1)) + 1
        of_span = np.zeros(n_all, dtype=np.int64)
        of_span[span] = owner
        held = np.bincount(span, weights=found, minlength=n_all) > 0
        np.add.at(n_spans, of_span, 1)
        np.add.at(hit, of_span, held.astype(np.float64))
        return np.where(n_spans > 0, hit / np.maximum(n_spans, 1), np.nan)

    @cached_property
    def _spans(self) -> tuple[IntArray, IntArray, IntArray]:
        """(query, span, place) of each chunk that holds a resolved span; -1 for a span of none."""
        rows: list[tuple[int, int, int]] = []
        number = 0
        for owner, query in enumerate(self.queries):
            for span in query.spans:
                if span.chunk_ids is None or span.grade < self.golden.min_relevance:
                    continue
                places = [
                    self._places["chunk"][owner].get(normalise_id(one), -1)
                    for one in span.chunk_ids or ("",)
                ]
                rows += [(owner, number, place) for place in places]
                number += 1
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        owner_of, span_of, place_of = (np.array(one, dtype=np.int64) for one in columns)
        return owner_of, span_of, place_of

    def _scattered(
        self, items: IntArray, kept: BoolArray, width: int, ranks: IntArray | None = None
    ) -> IntArray:
        """Return item -> its rank, 0 for one that is no hit; the last column is always 0."""
        found = np.zeros((len(items), width), dtype=np.int64)
        if ranks is None:
            ranks = np.broadcast_to(np.arange(1, items.shape[1] + 1), items.shape)
        np.put_along_axis(found, np.where(kept, items, width - 1), np.where(kept, ranks, 0), axis=1)
        found[:, width - 1] = 0
        return found


def fused(result: QueryResult, settings: Settings) -> Ranked:
    """Return the (chunk id, score) of one query's recorded candidates, best first, before k."""
    rankings = {
        name: {one.chunk_id: (rank, one.score) for rank, one in enumerate(ranking, 1)}
        for name, listed in sorted(result.candidates.items())
        for ranking in [listed[: settings.depth]]
    }
    if settings.mode == "hybrid":
        return [(item.item_id, item.score) for item in fuse(rankings, settings.fusion)]
    return [(item, score) for item, (_, score) in rankings.get(settings.mode, {}).items()]


def _items(result: QueryResult, k: int | None) -> list[Candidate]:
    """Return the items that may be among the first k of some fusion, in the order of their ids."""
    if result.error is not None:
        return []
    seen: dict[str, Candidate] = {}
    several: set[str] = set()
    for ranking in result.candidates.values():
        for one in ranking:
            if one.chunk_id in seen:
                several.add(one.chunk_id)
            seen.setdefault(one.chunk_id, one)
    first = {one.chunk_id for ranking in result.candidates.values() for one in ranking[:k]}
    kept = first | several if len(result.candidates) > 1 else first
    return [seen[name] for name in sorted(kept)]
