"""The rank table of a run file: only the judged items are looked up, the hits pass by.

The run is read in pieces of whole queries. In each, a 64-bit key of (query, item) tells the few
rows that somebody judged; their ids are then compared as texts, so that a key that two ids share
cannot make a wrong hit. Memory stays that of one piece, however long the run is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kebab_eval.errors import FormatError
from kebab_eval.formats.columns import Columns, joined
from kebab_eval.formats.texts import Keys, codes, has_repeats, salted
from kebab_eval.metrics.ordering import ranks_by_score
from kebab_eval.metrics.ranktable import RankTable

IntArray = NDArray[np.int64]


class Regroup(Exception):
    """The pieces do not suffice: queries interleave, or keys of two rows are equal."""


@dataclass(frozen=True)
class JudgedRun:
    """A rank table with the names of its queries.

    Args:
        query_ids: the judged queries, in the order of the judgments.
        table: ranks by score descending, then id descending.
        without_results: judged queries that the run does not hold.
        without_judgments: queries of the run that nobody judged.
    """

    query_ids: tuple[str, ...]
    table: RankTable
    without_results: tuple[str, ...]
    without_judgments: tuple[str, ...]


class Judge:
    """Judgments, ready to be looked up in a run.

    Raises:
        FormatError: there is no judgment at all.
        Regroup: two judgments may be of the same item; the file has to be read strictly.
    """

    def __init__(self, judgments: Columns) -> None:
        if not len(judgments):
            raise FormatError("the judgments are empty")
        code, names = codes(judgments.query)
        self.query_ids = tuple(names)
        if (code[1:] < code[:-1]).any():
            order = np.argsort(code, kind="stable")
            judgments, code = judgments.take(order), code[order]
        self._query: IntArray = code
        self._item = judgments.item
        self._grade = judgments.value
        self._code = {name: index for index, name in enumerate(self.query_ids)}
        keys = salted(judgments.item.keys(), code)
        if has_repeats(keys):
            raise Regroup
        self._keys = keys
        self._order: IntArray | None = None
        # Most hits are unjudged, and a bit array that fits the cache says so at once.
        bits = min(24, max(12, (16 * len(keys)).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._known = np.zeros(1 << bits, dtype=np.bool_)
        slot = keys >> self._shift
        self._known[slot] = True
        self._row = np.zeros(1 << bits, dtype=np.int32)
        self._row[slot] = np.arange(len(keys), dtype=np.int32)

    def rank(self, pieces: Iterable[Columns], min_relevance: float) -> JudgedRun:
        """Return the rank table of a run.

        Raises:
            Regroup: queries interleave over the pieces, or two rows may be the same hit.
        """
        rank = np.zeros(len(self._grade), dtype=np.int64)
        n_hits = np.zeros(len(self.query_ids), dtype=np.int64)
        others: dict[str, None] = {}
        for piece, starts, names in whole_queries(pieces):
            owners = np.array([self._code.get(name, -1) for name in names], dtype=np.int64)
            others |= dict.fromkeys(n for n, c in zip(names, owners.tolist(), strict=True) if c < 0)
            n_hits[owners[owners >= 0]] = np.diff(starts)[owners >= 0]
            self._look_up(piece, starts, owners, rank)
        missing = (n_hits == 0).nonzero()[0].tolist()
        table = RankTable(
            query=self._query,
            grade=self._grade,
            rank=rank,
            hit_rank=rank,
            n_hits=n_hits,
            min_relevance=min_relevance,
        )
        return JudgedRun(
            self.query_ids, table, tuple(self.query_ids[i] for i in missing), tuple(others)
        )

    def _find(self, keys: Keys) -> tuple[IntArray, IntArray]:
        """Return the places of the keys that are a judgment's, and the rows of the judgments."""
        hits = self._known[keys >> self._shift].nonzero()[0]
        found = keys[hits]
        rows = self._row[found >> self._shift].astype(np.int64)
        other = (self._keys[rows] != found).nonzero()[0]
        if len(other):
            # Another judgment has the same slot, or none has this key: few, so search them.
            if self._order is None:
                self._order = np.argsort(self._keys)
            place = np.searchsorted(self._keys, found[other], sorter=self._order)
            rows[other] = self._order[np.minimum(place, len(self._keys) - 1)]
            known = self._keys[rows] == found
            hits, rows = hits[known], rows[known]
        return hits, rows

    def _look_up(self, piece: Columns, starts: IntArray, owners: IntArray, rank: IntArray) -> None:
        """Write the rank of each judged item that this piece holds."""
        # A query that nobody judged gets a salt of its own, for the check of repeated hits.
        salt = np.where(owners >= 0, owners, -1 - np.arange(len(owners)))
        lengths = np.diff(starts)
        keys = salted(piece.item.keys(), salt.repeat(lengths))
        if has_repeats(keys):
            raise Regroup
        hits, rows = self._find(keys)
        query = np.searchsorted(starts, hits, side="right") - 1
        same = piece.item.same(hits, self._item, rows) & (owners[query] == self._query[rows])
        if not same.all():
            raise Regroup

        def tied(index: int, score: float) -> list[str]:
            start, stop = int(starts[index]), int(starts[index + 1])
            rows = (piece.value[start:stop] == score).nonzero()[0] + start
            return piece.item.take(rows).tolist()

        if len(hits):
            rank[rows] = ranks_by_score(
                piece.value,
                starts,
                query,
                piece.value[hits],
                item=lambda row: piece.item[int(hits[row])],
                tied_ids=tied,
            )


def whole_queries(pieces: Iterable[Columns]) -> Iterator[tuple[Columns, IntArray, list[str]]]:
    """Return pieces of whole queries, with where each query starts (and the last ends) and its id.

    Raises:
        Regroup: a query comes again after another one.
    """
    seen: set[str] = set()
    held: list[Columns] = []  # the rows of the last query, which may go on in the next piece
    holding = ""
    for piece in pieces:
        if not len(piece):
            continue
        starts = piece.query.runs()
        names = piece.query.take(starts[:-1]).tolist()
        cut = int(starts[-2])
        if held and (cut or names[0] != holding):
            n_held = sum(map(len, held))
            whole = joined([*held, piece.slice(0, cut)])
            bounds = np.concatenate((np.zeros(1, dtype=np.int64), starts[:-1] + n_held))
            if names[0] == holding:
                yield _noted(whole, np.delete(bounds, 1), names[:-1], seen)
            else:
                yield _noted(whole, bounds, [holding, *names[:-1]], seen)
            held = []
        elif cut:
            yield _noted(piece.slice(0, cut), starts[:-1], names[:-1], seen)
        held.append(piece.slice(cut, len(piece)) if cut else piece)
        holding = names[-1]
    if held:
        whole = joined(held)
        yield _noted(whole, np.array([0, len(whole)]), [holding], seen)


def _noted(
    piece: Columns, starts: IntArray, names: list[str], seen: set[str]
) -> tuple[Columns, IntArray, list[str]]:
    if len(set(names)) < len(names) or not seen.isdisjoint(names):
        raise Regroup
    seen.update(names)
    return piece, starts, names


def grouped(columns: Columns) -> Columns:
    """Return the rows query by query, each in its order, queries by first appearance."""
    return columns.take(np.argsort(codes(columns.query)[0], kind="stable"))
