"""A comparison as one HTML file that needs nothing else: no script, no request to anywhere."""

from __future__ import annotations

from dataclasses import dataclass

from kebab_eval.comparison import Comparison, Delta
from kebab_eval.reports import compare_words as words
from kebab_eval.reports.html import template

SHOWN_QUERIES = 200
_OPEN = 3  # changed queries that are unfolded from the start
_WIDTH = 96  # of the drawing of an interval, in its own units


def render_html(comparison: Comparison) -> str:
    """Return the report of a comparison; every foreign text is escaped by the template."""
    scale = _scale(comparison)
    before, after = words.labels(comparison)
    return template("compare.html").render(
        comparison=comparison,
        head=words.head(comparison),
        words=words,
        before=before,
        after=after,
        primary=comparison.deltas[comparison.primary],
        bar=lambda delta: _bar(delta, scale),
        changed=comparison.changed[:SHOWN_QUERIES],
        more=max(0, len(comparison.changed) - SHOWN_QUERIES),
        opened=_OPEN,
        width=_WIDTH,
    )


@dataclass(frozen=True, slots=True)
class _Bar:
    """Where an interval and its point are drawn."""

    low: float
    high: float
    point: float


def _scale(comparison: Comparison) -> float:
    """Return the largest distance from 0 that is drawn, the same for all metrics and slices."""
    deltas = [*comparison.deltas.values(), *(part.delta for part in comparison.slices)]
    return max((abs(bound) for d in deltas for bound in d.ci95 or ()), default=0.0) or 1.0


def _bar(delta: Delta, scale: float) -> _Bar | None:
    if delta.ci95 is None or delta.delta is None:
        return None

    def place(value: float) -> float:
        return round(_WIDTH / 2 + value / scale * (_WIDTH / 2 - 4), 1)

    return _Bar(place(delta.ci95[0]), place(delta.ci95[1]), place(delta.delta))
