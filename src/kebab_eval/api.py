"""``kebab_eval.evaluate``: judgments and rankings in, metrics out; no files, no tracking.

>>> from kebab_eval import evaluate
>>> scores = evaluate({"q1": {"a": 3, "b": 1}}, {"q1": ["b", "a"]}, metrics=["mrr_at_10"])
>>> scores["mrr_at_10"]
1.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kebab_eval.errors import Fault, MetricError
from kebab_eval.metrics.ordering import from_scores, normalised
from kebab_eval.metrics.ranktable import FloatArray, RankTable, from_rankings, normalise_id
from kebab_eval.metrics.registry import Metric, default_registry
from kebab_eval.stats import mean_intervals

DEFAULT_METRICS = (
    "hit_at_1",
    "hit_at_10",
    "precision_at_5",
    "precision_at_10",
    "recall_at_10",
    "mrr_at_10",
    "ndcg_at_10",
    "ndcg_linear_at_10",
    "map",
    "rprec",
    "bpref",
    "judged_at_10",
)

_NOTHING: dict[str, float] = {}  # the ranking of a query that nothing came back for

#: Beyond this a gain of 2^grade - 1 is no finite number any more.
MAX_GRADE = 1000

_ITEM_COLUMNS = ("item_id", "doc_id", "chunk_id")
_VALUE_COLUMNS = {"grade": ("grade", "relevance"), "score": ("score",)}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What :func:`evaluate` returns.

    Args:
        query_ids: the evaluated queries, in the order of the judgments.
        metrics: the metrics, in the order asked for.
        values: float64, (n_metrics, n_queries); NaN where a query is not scored.
        without_results: the judged queries that the rankings do not hold; they count as 0.
        without_judgments: the ranked queries that nobody judged; they count nowhere.
    """

    query_ids: tuple[str, ...]
    metrics: tuple[Metric, ...]
    values: FloatArray
    without_results: tuple[str, ...] = ()
    without_judgments: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show what a person at a prompt wants to see: the means, and of how many queries."""
        means = (f"{n}={'-' if v is None else format(v, '.4f')}" for n, v in self.means.items())
        return f"<Evaluation of {len(self.query_ids)} queries: {', '.join(means)}>"

    def __getitem__(self, name: str) -> float | None:
        """Return the mean over the scored queries, None without one.

        Raises:
            KeyError: the metric was not asked for.
        """
        return self.means[name]

    @property
    def means(self) -> dict[str, float | None]:
        """Metric -> mean over the scored queries; None where no query is scored."""
        return {
            metric.name: _mean(row) for metric, row in zip(self.metrics, self.values, strict=True)
        }

    @property
    def n(self) -> dict[str, int]:
        """Metric -> number of scored queries."""
        counts = np.count_nonzero(~np.isnan(self.values), axis=1).tolist()
        return {metric.name: n for metric, n in zip(self.metrics, counts, strict=True)}

    def per_query(self) -> dict[str, dict[str, float]]:
        """Return query id -> metric -> value; an undefined value has no key."""
        names = [metric.name for metric in self.metrics]
        return {
            query_id: {name: v for name, v in zip(names, column, strict=True) if not math.isnan(v)}
            for query_id, column in zip(self.query_ids, self.values.T.tolist(), strict=True)
        }

    def returned(self) -> Evaluation:
        """Return the same over the queries that have results only."""
        missing = set(self.without_results)
        kept = [i for i, name in enumerate(self.query_ids) if name not in missing]
        names = tuple(self.query_ids[i] for i in kept)
        return replace(self, query_ids=names, values=self.values[:, kept])

    def intervals(self, *, seed: int = 0) -> dict[str, tuple[float, float] | None]:
        """Return metric -> bootstrap 95 % interval of the mean, None below two scored queries."""
        intervals: dict[str, tuple[float, float] | None] = {}
        for metric, row in zip(self.metrics, self.values, strict=True):
            low, high = mean_intervals(row[~np.isnan(row)][:, None], seed=seed)[0].tolist()
            intervals[metric.name] = None if math.isnan(low) else (low, high)
        return intervals


def evaluate(
    judgments: Any,
    rankings: Any,
    metrics: Iterable[str] | str = DEFAULT_METRICS,
    *,
    min_relevance: float = 1,
    complete: bool = True,
) -> Evaluation:
    """Score rankings against judgments.

    Args:
        judgments: query id -> item id -> grade, or query id -> the relevant item ids (grade 1); or
            a data frame (pandas, polars, pyarrow) with the columns ``query_id``, ``item_id`` (or
            ``doc_id``, ``chunk_id``) and ``grade`` (or ``relevance``); or three arrays of query
            ids, item ids and grades.
        rankings: query id -> item ids, best first, taken in that order; or query id -> item id ->
            score, ordered as trec_eval does (score descending, then id descending); or a data frame
            with ``query_id``, ``item_id`` and ``score``; or three arrays of query ids, item ids and
            scores.
        metrics: metric names such as ``ndcg_at_10``; one text may hold several, by commas.
        min_relevance: grade from which an item is relevant for the binary metrics.
        complete: whether a judged query that ``rankings`` does not hold counts as 0 (otherwise it
            is left out).

    Returns:
        Means, their n, intervals and the values of each query. Ids are texts, compared in NFC.

    Raises:
        MetricError: an unknown metric, an id that is no text, a value that is no finite number, or
            an item that stands twice where it must not.
    """
    names = metrics.split(",") if isinstance(metrics, str) else metrics
    chosen = default_registry().parse_all(name.strip() for name in names)
    judged = _by_query(judgments, "grade")
    ranked = _by_query(rankings, "score")
    missing = _absent(judged, ranked)
    query_ids = tuple(judged if complete else [name for name in judged if name in ranked])
    graded = list(map(judged.__getitem__, query_ids))
    if set(map(type, graded)) != {dict}:
        graded = [_graded(values, name) for values, name in zip(graded, query_ids, strict=True)]
    listed = [ranked.get(name, _NOTHING) for name in query_ids]
    others = _absent(ranked, judged)
    table = _table(graded, listed, query_ids, min_relevance)
    return evaluate_table(
        table, chosen, query_ids, without_results=missing, without_judgments=others
    )


def evaluate_table(
    table: RankTable,
    metrics: Sequence[Metric],
    query_ids: tuple[str, ...],
    *,
    without_results: tuple[str, ...] = (),
    without_judgments: tuple[str, ...] = (),
) -> Evaluation:
    """Return the evaluation of a rank table, one value for each metric and query.

    Raises:
        MetricError: a grade is above 1,000, or a metric does not follow from a ranking.
    """
    if table.grade.max(initial=0.0) > MAX_GRADE:
        raise MetricError(f"a grade is {table.grade.max():g}; grades go up to {MAX_GRADE}")
    values = np.empty((len(metrics), table.n_queries))
    for row, metric in zip(values, metrics, strict=True):
        row[:] = metric.compute(table)
    return Evaluation(query_ids, tuple(metrics), values, without_results, without_judgments)


def _absent(names: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, ...]:
    if names.keys() <= other.keys():
        return ()
    return tuple(name for name in names if name not in other)


def _mean(row: FloatArray) -> float | None:
    values = row.tolist()
    # fsum rounds once, so the mean does not depend on the order of the queries.
    total = math.fsum(values)
    if math.isnan(total):
        values = [value for value in values if not math.isnan(value)]
        total = math.fsum(values)
    return total / len(values) if values else None


def _table(
    judgments: Sequence[Mapping[str, float]],
    rankings: Sequence[Any],
    query_ids: Sequence[str],
    min_relevance: float,
) -> RankTable:
    rankings = [ranking if len(ranking) else _NOTHING for ranking in rankings]
    kinds = set(map(type, rankings))
    if all(issubclass(kind, Mapping) for kind in kinds):
        return from_scores(judgments, rankings, query_ids, min_relevance=min_relevance)
    if any(isinstance(ranking, Mapping) for ranking in rankings if len(ranking)):
        raise MetricError("some rankings are scores by id and others lists of ids; give one kind")
    for ranking, name in zip(rankings, query_ids, strict=True):
        if isinstance(ranking, str) or not all(isinstance(item, str) for item in ranking):
            raise MetricError(f"query {name!r}: a ranking is a list of ids, which are texts (str)")
    lists = [ranking if isinstance(ranking, list) else list(ranking) for ranking in rankings]
    return from_rankings(judgments, lists, min_relevance=min_relevance)


def _graded(judged: Any, query_id: str) -> Mapping[str, float]:
    if isinstance(judged, Mapping):
        return judged
    if isinstance(judged, str):
        raise MetricError(f"query {query_id!r}: judgments are id -> grade, or a list of ids")
    return dict.fromkeys(judged, 1.0)


def _by_query(data: Any, value: str) -> Mapping[str, Any]:
    """Return query id -> what stands under it, ids in NFC, whatever shape the data has."""
    if isinstance(data, Mapping):
        return normalised(data, "*")
    if hasattr(data, "columns") or hasattr(data, "column_names"):
        return _grouped(*_frame_columns(data, value), value)
    if isinstance(data, tuple | list) and len(data) == 3:
        query, item, number = (_listed(column) for column in data)
        return _grouped(query, item, number, value)
    raise MetricError(
        f"cannot read a {type(data).__name__}: give a mapping by query id, a data frame, or three "
        f"arrays (query ids, item ids, {value}s)"
    )


def _frame_columns(data: Any, value: str) -> tuple[list[Any], list[Any], list[Any]]:
    present = list(data.column_names if hasattr(data, "column_names") else data.columns)
    columns = []
    for wanted in (("query_id",), _ITEM_COLUMNS, _VALUE_COLUMNS[value]):
        found = [name for name in wanted if name in present]
        if len(found) != 1:
            has = ", ".join(map(str, present))
            raise MetricError(
                f"the data frame needs one column {' or '.join(wanted)}; it has {has}"
            )
        columns.append(_listed(data[found[0]]))
    return columns[0], columns[1], columns[2]


def _listed(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _grouped(
    query: list[Any], item: list[Any], number: list[Any], value: str
) -> dict[str, dict[str, float]]:
    if not len(query) == len(item) == len(number):
        raise MetricError(
            f"{len(query)} query ids, {len(item)} item ids and {len(number)} {value}s: the columns "
            "must be equally long"
        )
    groups: dict[str, dict[str, float]] = {}
    faults: list[Fault] = []
    for row, (owner, name, found) in enumerate(zip(query, item, number, strict=True)):
        if not isinstance(owner, str) or not isinstance(name, str):
            wrong = owner if not isinstance(owner, str) else name
            raise MetricError(
                f"row {row}: the id {wrong!r} is a {type(wrong).__name__}; ids are texts, read "
                "their columns as such (dtype=str), or 02142 becomes 2142"
            )
        group = groups.setdefault(normalise_id(owner), {})
        key = normalise_id(name)
        if key in group:
            faults.append(Fault("", f"row {row}: query {owner!r} holds {name!r} twice"))
        group[key] = found
    if faults:
        raise MetricError(faults)
    return groups
