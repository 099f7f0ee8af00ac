"""Metrics of a ranking: declared in one registry, computed from one rank table, numpy only."""

from kebab_eval.metrics.aggregate import RunScores, default_metrics, evaluate_run, primary_for
from kebab_eval.metrics.ranktable import RankTable, normalise_id
from kebab_eval.metrics.registry import (
    ENTRY_POINT_GROUP,
    Family,
    Metric,
    Registry,
    default_registry,
)

__all__ = [
    "ENTRY_POINT_GROUP",
    "Family",
    "Metric",
    "RankTable",
    "Registry",
    "RunScores",
    "default_metrics",
    "default_registry",
    "evaluate_run",
    "normalise_id",
    "primary_for",
]
