"""Ranks of the judged items in scored rankings, as trec_eval orders them, without sorting the hits.

Score descending (as double), then id descending. The rank of an item is 1 + the hits of its query
that score higher + those that score the same and have a higher id: only a query's scores are put in
order, never its hits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, repeat

import numpy as np

from kebab_eval.errors import Fault, MetricError
from kebab_eval.metrics.ranktable import FloatArray, IntArray, RankTable, normalise_id

BLOCK_HITS = 250_000  # scores held at once: 2 MB

_AT_ONCE = 10_000  # numbers packed at once: few enough to be still in the cache
SHALLOW = 32  # hits a query up to which comparing with each of them beats a binary search

#: ``(query, score) -> the ids with that score``
TiedIds = Callable[[int, float], Sequence[str]]


def ranks_by_score(
    scores: FloatArray,
    starts: IntArray,
    query: IntArray,
    score: FloatArray,
    *,
    item: Callable[[int], str],
    tied_ids: TiedIds,
) -> IntArray:
    """Return the rank of each looked-up item among the hits of its query.

    Args:
        scores: float64, (n_hits,), query after query, finite; any order within a query.
        starts: int64, (n_queries + 1,), where each query's scores start, and their end.
        query: int64, (n_items,), ascending.
        score: float64, (n_items,), the score under which the item stands among the hits.
        item: row -> id, asked only where scores are tied.
        tied_ids: ids by query and score, asked only where scores are tied.

    Returns:
        int64, (n_items,), from 1.
    """
    lengths = starts[1:] - starts[:-1]
    depth = int(lengths[0])
    if depth <= SHALLOW and (lengths == depth).all():
        beside = scores.reshape(-1, depth).T[:, query]
        ranks = (beside > score).sum(axis=0) + 1
        same = beside == score
        if np.count_nonzero(same) == len(score):
            return np.asarray(ranks, dtype=np.int64)
        tied = same.sum(axis=0) > 1
    else:
        ascending = _ordered(-scores, starts)
        low = _insertion_point(ascending, starts[query], starts[query + 1], -score)
        ranks = low - starts[query] + 1
        following = np.minimum(low + 1, len(scores) - 1)
        tied = (low + 1 < starts[query + 1]) & (ascending[following] == -score)
    groups: dict[tuple[int, float], list[int]] = {}
    for row in tied.nonzero()[0].tolist():
        groups.setdefault((int(query[row]), float(score[row])), []).append(row)
    for (owner, value), rows in groups.items():
        ids = sorted(tied_ids(owner, value), reverse=True)
        place = {name: index for index, name in enumerate(ids)}
        for row in rows:
            ranks[row] += place[item(row)]
    return np.asarray(ranks, dtype=np.int64)


def _ordered(values: FloatArray, starts: IntArray) -> FloatArray:
    """Return the values, each query's ascending."""
    falls = np.flatnonzero(values[1:] < values[:-1]) + 1
    if not len(falls):
        return values
    # A fall from one query to the next is none.
    owner = np.searchsorted(starts, falls, side="right") - 1
    unordered = np.unique(owner[starts[owner] != falls])
    lengths = np.diff(starts)
    if len(unordered) and lengths.min() == lengths.max():
        return np.sort(values.reshape(len(lengths), -1), axis=1).ravel()
    for index in unordered.tolist():
        values[starts[index] : starts[index + 1]].sort()
    return values


def _insertion_point(
    ascending: FloatArray, low: IntArray, high: IntArray, wanted: FloatArray
) -> IntArray:
    """Return the first place in [low, high) whose value reaches the wanted one, row by row."""
    low, high = low.copy(), high.copy()
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        # A closed range has middle == low == high, which may lie one past the end.
        below = (ascending[np.minimum(middle, len(ascending) - 1)] < wanted) & (low < high)
        low = np.where(below, middle + 1, low)
        high = np.where(below, high, middle)
    return low


def from_scores(
    judgments: Sequence[Mapping[str, float]],
    rankings: Sequence[Mapping[str, float]],
    names: Sequence[str],
    *,
    min_relevance: float = 1.0,
) -> RankTable:
    """Return the rank table of rankings given as id -> score.

    Args:
        judgments: for each query, the grade of each judged id.
        rankings: for each query, the score of each returned id; empty where nothing came back.
        names: the query ids, for messages.
        min_relevance: grade from which an item is relevant for the binary metrics.

    Raises:
        MetricError: a score is NaN, infinite or no number, or two ids are the same in NFC.
    """
    n_hits = np.array(list(map(len, rankings)), dtype=np.int64)
    if n_hits.sum() <= BLOCK_HITS:
        query, grade, rank = _block(judgments, rankings, names)
    else:
        # Whole queries in blocks, so that a big run needs no big arrays.
        block = (n_hits.cumsum() - n_hits) // BLOCK_HITS
        starts = [0, *((block[1:] != block[:-1]).nonzero()[0] + 1).tolist(), len(n_hits)]
        parts = []
        for start, stop in pairwise(starts):
            part = slice(start, stop)
            query, grade, rank = _block(judgments[part], rankings[part], names[part])
            parts.append((query + start, grade, rank))
        query, grade, rank = map(np.concatenate, zip(*parts, strict=True))
    return RankTable(query, grade, rank, rank, n_hits, min_relevance)


def _block(
    judgments: Sequence[Mapping[str, float]],
    rankings: Sequence[Mapping[str, float]],
    names: Sequence[str],
) -> tuple[IntArray, FloatArray, IntArray]:
    rankings, judgments = list(rankings), list(judgments)
    scores, grade, score = _looked_up(judgments, rankings, names)
    starts = np.array([0, *map(len, rankings)], dtype=np.int64).cumsum()
    n_judged = np.array(list(map(len, judgments)), dtype=np.int64)
    query = np.arange(len(judgments)).repeat(n_judged)
    rows = (~np.isnan(score)).nonzero()[0]
    rank = np.zeros(len(query), dtype=np.int64)
    if len(rows):
        owner = query[rows]
        first = n_judged.cumsum() - n_judged
        ids: dict[int, list[str]] = {}

        def item(row: int) -> str:
            index = int(owner[row])
            if index not in ids:
                ids[index] = list(judgments[index])
            return ids[index][int(rows[row] - first[index])]

        def tied(index: int, value: float) -> Sequence[str]:
            return [name for name, other in rankings[index].items() if float(other) == value]

        rank[rows] = ranks_by_score(scores, starts, owner, score[rows], item=item, tied_ids=tied)
    return query, grade, rank


def _looked_up(
    judgments: list[Mapping[str, float]], rankings: list[Mapping[str, float]], names: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return all scores, all grades, and the score of each judged item, NaN if not returned.

    Replaces mappings whose ids are not in NFC. One query after the other, so that its ids are
    still in the cache when they are looked up; ``struct`` packs numbers twice as fast as numpy.

    Raises:
        MetricError: an id or a number cannot be taken.
    """
    scores: list[float] = []
    grades: list[float] = []
    found: list[float] = []
    packed: list[bytes] = []
    absent = repeat(math.nan)
    try:
        for place, name in enumerate(names):
            ranking, judged = rankings[place], judgments[place]
            if not (_are_plain(ranking) and _are_plain(judged)):
                rankings[place] = ranking = normalised(ranking, name)
                judgments[place] = judged = normalised(judged, name)
            scores += ranking.values()
            grades += judged.values()
            found += map(ranking.get, judged, absent)
            if len(scores) > _AT_ONCE:
                packed.append(_packed(scores))
                scores = []
        packed.append(_packed(scores))
        all_scores = np.frombuffer(b"".join(packed), dtype=np.float64)
        all_grades, all_found = (
            np.frombuffer(_packed(n), dtype=np.float64) for n in (grades, found)
        )
    except (struct.error, TypeError, OverflowError):
        _raise_numbers(rankings, names, "score")
        _raise_numbers(judgments, names, "grade")
        raise
    if not np.isfinite(all_scores).all():
        _raise_numbers(rankings, names, "score")
    if not np.isfinite(all_grades).all():
        _raise_numbers(judgments, names, "grade")
    return all_scores, all_grades, all_found


def _packed(numbers: list[float]) -> bytes:
    return struct.pack(f"{len(numbers)}d", *numbers)


def _are_plain(ids: Iterable[str]) -> bool:
    """Return whether all ids are ASCII texts: joined, they are only if each of them is."""
    try:
        return "".join(ids).isascii()
    except TypeError:
        return False


def normalised(values: Mapping[str, float], query_id: str) -> Mapping[str, float]:
    """Return the mapping with its ids in NFC; itself when they are plain ASCII.

    Raises:
        MetricError: an id is no text, or two ids are the same in NFC.
    """
    if _are_plain(values):
        return values
    for name in values:
        if not isinstance(name, str):
            kind = type(name).__name__
            raise MetricError(
                f"query {query_id!r}: the id {name!r} is a {kind}; ids are texts (str)"
            )
    result = {normalise_id(name): value for name, value in values.items()}
    if len(result) < len(values):
        seen: set[str] = set()
        for name in map(normalise_id, values):
            if name in seen:
                raise MetricError(
                    f"query {query_id!r}: the id {name!r} stands there twice (in NFC)"
                )
            seen.add(name)
    return result


def _raise_numbers(
    mappings: Sequence[Mapping[str, float]], names: Sequence[str], what: str
) -> None:
    """Raise a MetricError that names each query's first value that is no finite number, if any."""
    faults = []
    for mapping, name in zip(mappings, names, strict=True):
        for item, value in mapping.items():
            if not _is_finite(value):
                faults.append(
                    Fault("", f"query {name!r}: the {what} of {item!r} is {value!r}, not a number")
                )
                break
    if faults:
        raise MetricError(faults)


def _is_finite(value: object) -> bool:
    try:
        return not isinstance(value, str) and bool(np.isfinite(float(value)))  # type: ignore[arg-type]  # tried
    except (TypeError, ValueError, OverflowError):
        return False
