"""Which files and formats there are, and which renderer makes each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kebab_eval.records import EvalRun
from kebab_eval.reports.html import render_html
from kebab_eval.reports.markdown import render_markdown
from kebab_eval.reports.plots import latency_plot, metrics_plot, rank_plot
from kebab_eval.reports.rows import per_query_table, render_csv
from kebab_eval.reports.summary import summarise
from kebab_eval.reports.texts import encodable

FORMATS = ("json", "md", "html", "csv")


def run_files(run: EvalRun) -> dict[str, str]:
    """Return file name -> content for everything that people and MLflow read."""
    plots = _plots(run)
    return {
        "aggregate.json": _json(run.aggregate),
        "per_query.csv": render_csv(run),
        "per_query_table.json": encodable(json.dumps(per_query_table(run), ensure_ascii=False)),
        "report.md": render_markdown(run),
        "report.html": render_html(run, plots),
        **plots,
    }


def render(run: EvalRun, form: str) -> str:
    """Return a run's report.

    Args:
        form: one of ``FORMATS``.
    """
    renderers: dict[str, Callable[[EvalRun], str]] = {
        "json": _render_json,
        "md": render_markdown,
        "html": lambda run: render_html(run, _plots(run)),
        "csv": render_csv,
    }
    return renderers[form](run)


def _render_json(run: EvalRun) -> str:
    """One document with all that the other formats show."""
    return _json(
        {
            "run": dict(run.info),
            "config": dict(run.config),
            "aggregate": dict(run.aggregate),
            "per_query": [result.to_json() for result in run.results],
        }
    )


def _plots(run: EvalRun) -> dict[str, str]:
    summary = summarise(run)
    plots = {
        "plots/ranks.svg": rank_plot(summary, int(run.config["search"]["k"])),
        "plots/metrics.svg": metrics_plot(summary),
    }
    latency = latency_plot(run)
    return {**plots, "plots/latency.svg": latency} if latency else plots


def _json(value: Any) -> str:
    return encodable(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"
