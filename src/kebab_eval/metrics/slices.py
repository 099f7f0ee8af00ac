"""Slices: the same means over the queries that share a field's value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kebab_eval.records import GoldenQuery

FIELDS = ("language", "category", "difficulty", "ocr_derived", "group")


def slice_values(query: GoldenQuery) -> dict[str, str]:
    """Return the value of each field and tag that a query can be sliced by, as text."""
    values = dict(query.tags)
    for name in FIELDS:
        value = getattr(query, name)
        if value is not None:
            values[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return values


def slice_means(
    queries: Sequence[GoldenQuery],
    per_query: Sequence[Mapping[str, float]],
    names: Sequence[str],
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return field -> value -> ``{"n": queries, metric -> mean}``.

    Args:
        queries: the queries that have a result.
        per_query: each one's defined values, aligned with ``queries``.
        names: the metrics.

    Returns:
        Fields in the order of :data:`FIELDS` and then tags by name, values sorted. A mean is over
        the queries of the slice that the metric scored, and None where it scored none.
    """
    members: dict[str, dict[str, list[int]]] = {}
    for index, query in enumerate(queries):
        for field, value in slice_values(query).items():
            members.setdefault(field, {}).setdefault(value, []).append(index)
    tags = sorted(field for field in members if field not in FIELDS)
    slices: dict[str, dict[str, dict[str, Any]]] = {}
    for field in (*FIELDS, *tags):
        slices[field] = {
            value: {"n": len(rows), **_means(per_query, rows, names)}
            for value, rows in sorted(members.get(field, {}).items())
        }
    return slices


def _means(
    per_query: Sequence[Mapping[str, float]], rows: Sequence[int], names: Sequence[str]
) -> dict[str, float | None]:
    means: dict[str, float | None] = {}
    for name in names:
        values = [per_query[row][name] for row in rows if name in per_query[row]]
        # fsum rounds once, so a mean does not depend on the order of the queries.
        means[name] = math.fsum(values) / len(values) if values else None
    return means
