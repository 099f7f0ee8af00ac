"""A run as one HTML file that needs nothing else: no script, no font, no request to anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from kebab_eval.metrics.judging import Relevance, relevance
from kebab_eval.records import EvalRun, Hit
from kebab_eval.reports.summary import (
    QueryLine,
    empty_results,
    first_relevant,
    interval,
    milliseconds,
    number,
    summarise,
    version_text,
)
from kebab_eval.reports.texts import visible
from kebab_eval.reports.versions import said_of

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_SHOWN_HITS = 5


def render_html(run: EvalRun, plots: Mapping[str, str]) -> str:
    """Return the report of a run.

    Every text that comes from a corpus, a golden set or a backend is escaped by the template:
    MLflow shows HTML artifacts with their scripts running.

    Args:
        plots: SVG texts made by :mod:`kebab_eval.reports.plots`, by file name.
    """
    import yaml

    summary = summarise(run)
    return template("run.html").render(
        run=run,
        info=run.info,
        summary=summary,
        worst=summary.worst,
        failures=summary.failures,
        rank_plot=plots["plots/ranks.svg"],
        metrics_plot=plots["plots/metrics.svg"],
        latency_plot=plots.get("plots/latency.svg", ""),
        shown_hits=_SHOWN_HITS,
        versions_said=said_of(summary.versions),
        config_text=yaml.safe_dump(dict(run.config), sort_keys=False, allow_unicode=True),
    )


@cache
def template(name: str) -> Template:
    """Return a template: a text that it is given is escaped, and its control characters shown."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("kebab_eval.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        interval=interval,
        ms=milliseconds,
        short=version_text,
        shade=_shade,
        relevance=_relevance,
        first_relevant=first_relevant,
        empty_results=empty_results,
    )
    return environment


def _shade(value: float | None) -> str:
    """Return the opacity of a cell's background: darker is better."""
    return "0" if value is None else f"{0.08 + 0.42 * max(0.0, min(1.0, value)):.2f}"


def _relevance(hit: Hit, line: QueryLine, threshold: float) -> Relevance:
    return relevance(line.golden.judgments, hit.chunk_id, hit.doc_id, threshold)
