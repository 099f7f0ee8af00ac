"""The rank table: where each judged item came in, and nothing about the hits nobody judged.

A query has about 20 judged items whether 10 or 1,000 hits came back. Every metric here follows from
the grades and ranks of those few and from the number of hits, so the table holds only them, as flat
arrays over all queries.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def normalise_id(text: str) -> str:
    """Return an id in Unicode NFC, the form in which ids are compared (macOS paths are NFD)."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


@dataclass(frozen=True)
class RankTable:
    """Grade and rank of every judged item of every query; one row an item, queries ascending.

    Args:
        query: int64, (n_rows,), ascending; the index of the query that a row belongs to.
        grade: float64, (n_rows,).
        rank: int64, (n_rows,), from 1 in the ranking of this level; 0 = not returned.
        hit_rank: int64, (n_rows,), from 1 among the hits as they came back; 0 = not returned.
            Differs from ``rank`` only at document level, where several hits share a document.
        n_hits: int64, (n_queries,), places in the ranking of this level.
        min_relevance: grade from which an item is relevant for the binary metrics.
        max_grade: the top of the grading scale, for ERR; None takes the highest grade in the table.

    No two rows of one query share a rank. Row order within a query is free.
    """

    query: IntArray
    grade: FloatArray
    rank: IntArray
    hit_rank: IntArray
    n_hits: IntArray
    min_relevance: float = 1.0
    max_grade: float | None = None
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_queries(self) -> int:
        return len(self.n_hits)

    @cached_property
    def scale(self) -> float:
        """The highest grade on the scale, 0 without any judgment."""
        if self.max_grade is not None:
            return self.max_grade
        return float(self.grade.max(initial=0.0))

    def per_query(self, rows: BoolArray | None = None) -> IntArray:
        """Return how many rows (all, or the masked ones) each query has; int64, (n_queries,)."""
        query = self.query if rows is None else self.query[rows]
        return np.bincount(query, minlength=self.n_queries)

    def total(self, query: IntArray, values: FloatArray) -> FloatArray:
        """Return the sum of ``values`` of each query, added in row order; float64, (n_queries,)."""
        sums = np.bincount(query, weights=values, minlength=self.n_queries)
        # bincount of no rows at all gives integers.
        return np.asarray(sums, dtype=np.float64)

    def n_relevant(self, min_grade: float) -> IntArray:
        """Return how many judged items reach ``min_grade``; int64, (n_queries,)."""
        key = ("n_relevant", min_grade)
        if key not in self._cache:
            self._cache[key] = self.per_query(self.grade >= min_grade)
        found: IntArray = self._cache[key]
        return found

    def relevant(self, min_grade: float) -> tuple[IntArray, IntArray]:
        """Return ``(rank, query)`` of the returned relevant items, by query and then by rank."""
        key = ("relevant", min_grade)
        if key not in self._cache:
            rank, query, grade = self.returned
            kept = grade >= min_grade
            self._cache[key] = rank[kept], query[kept]
        found: tuple[IntArray, IntArray] = self._cache[key]
        return found

    def relevant_in_first(self, cutoff: int, min_grade: float) -> IntArray:
        """Return how many relevant items are in the first ``cutoff``; int64, (n_queries,)."""
        key = ("in_first", cutoff, min_grade)
        if key not in self._cache:
            rank, query = self.relevant(min_grade)
            self._cache[key] = self.per_query_of(query[rank <= cutoff])
        found: IntArray = self._cache[key]
        return found

    def relevant_hits(self, min_grade: float) -> tuple[IntArray, IntArray]:
        """Return ``(hit rank, query)`` of the returned relevant items, in any order."""
        kept = (self.hit_rank > 0) & (self.grade >= min_grade)
        return self.hit_rank[kept], self.query[kept]

    @cached_property
    def n_positive(self) -> IntArray:
        """How many judged items have a grade above 0; int64, (n_queries,)."""
        return self.per_query(self.grade > 0)

    def place(self, query: IntArray) -> IntArray:
        return place_in_query(query, self.n_queries)

    def per_query_of(self, query: IntArray) -> IntArray:
        return np.bincount(query, minlength=self.n_queries)

    @cached_property
    def returned(self) -> tuple[IntArray, IntArray, FloatArray]:
        """``(rank, query, grade)`` of the returned judged items, by query and then by rank."""
        rows = self.rank.nonzero()[0]
        rank, query = self.rank[rows], self.query[rows]
        order = (query * (int(rank.max(initial=0)) + 1) + rank).argsort()
        return rank[order], query[order], self.grade[rows[order]]

    @cached_property
    def ideal(self) -> tuple[IntArray, IntArray, FloatArray]:
        """``(rank, query, grade)`` of the items of positive grade in their best possible order."""
        rows = (self.grade > 0).nonzero()[0]
        rows = rows[np.lexsort((-self.grade[rows], self.query[rows]))]
        query = self.query[rows]
        return place_in_query(query, self.n_queries) + 1, query, self.grade[rows]


def place_in_query(query: IntArray, n_queries: int) -> IntArray:
    """Return each row's place within its query, from 0; ``query`` ascending; int64, (n_rows,)."""
    counts = np.bincount(query, minlength=n_queries)
    starts = counts.cumsum() - counts
    return np.arange(len(query), dtype=np.int64) - starts[query]


def from_rankings(
    judgments: Sequence[Mapping[str, float]],
    rankings: Sequence[Sequence[str]],
    *,
    min_relevance: float = 1.0,
    max_grade: float | None = None,
) -> RankTable:
    """Return the rank table of rankings given as ids in rank order.

    Args:
        judgments: for each query, the grade of each judged id.
        rankings: for each query, the returned ids, best first. An id that comes back again keeps
            its first rank; the place it occupies stays occupied.
        min_relevance: grade from which an item is relevant for the binary metrics.
        max_grade: the top of the grading scale, for ERR; None takes the highest grade judged.

    Returns:
        A table of ``len(judgments)`` queries. Ids are compared in NFC on both sides.
    """
    places = [_places_of_any(ranking) for ranking in rankings]
    return from_places(
        judgments,
        places,
        places,
        [len(ranking) for ranking in rankings],
        min_relevance=min_relevance,
        max_grade=max_grade,
    )


def _places_of_any(ranking: Sequence[str]) -> dict[str, int]:
    """Return :func:`first_places` in no particular order, at C speed for plain ASCII ids."""
    if "" not in ranking and "".join(ranking).isascii():
        # Zipped from the end, so that the first place of a repeated id is the one that stays.
        return dict(zip(reversed(ranking), range(len(ranking), 0, -1), strict=True))
    return first_places(ranking)


def first_places(ranking: Sequence[str]) -> dict[str, int]:
    """Return each id's first place, from 1; ids in NFC. The empty id stands for no item."""
    places: dict[str, int] = {}
    for place, item in enumerate(ranking, 1):
        places.setdefault(normalise_id(item), place)
    places.pop("", None)
    return places


def from_places(
    judgments: Sequence[Mapping[str, float]],
    ranks: Sequence[Mapping[str, int]],
    hit_ranks: Sequence[Mapping[str, int]],
    n_hits: Sequence[int],
    *,
    min_relevance: float = 1.0,
    max_grade: float | None = None,
) -> RankTable:
    """Return the rank table of rankings given as id -> rank, for each query (see RankTable)."""
    query: list[int] = []
    grade: list[float] = []
    rank: list[int] = []
    hit_rank: list[int] = []
    same = ranks is hit_ranks
    for index, (judged, places) in enumerate(zip(judgments, ranks, strict=True)):
        names = judged if "".join(judged).isascii() else list(map(normalise_id, judged))
        query += [index] * len(names)
        grade += judged.values()
        rank += [places.get(name, 0) for name in names]
        if not same:
            hit_places = hit_ranks[index]
            hit_rank += [hit_places.get(name, 0) for name in names]
    rank_array = np.array(rank, dtype=np.int64)
    return RankTable(
        query=np.array(query, dtype=np.int64),
        grade=np.array(grade, dtype=np.float64),
        rank=rank_array,
        hit_rank=rank_array if same else np.array(hit_rank, dtype=np.int64),
        n_hits=np.array(n_hits, dtype=np.int64),
        min_relevance=min_relevance,
        max_grade=max_grade,
    )
