"""Which forms a comparison has, and which renderer makes each."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from kebab_eval.comparison import Comparison
from kebab_eval.reports.compare_html import render_html
from kebab_eval.reports.compare_markdown import render_markdown
from kebab_eval.reports.texts import encodable

COMPARE_FORMATS = ("text", "md", "html", "json")


def render_comparison(comparison: Comparison, form: str, ui_url: str | None = None) -> str:
    """Return a comparison's report.

    Args:
        form: one of ``COMPARE_FORMATS``.
        ui_url: the page of the MLflow UI that shows both runs, for the JSON.
    """
    renderers: dict[str, Callable[[Comparison], str]] = {
        "text": _render_text,
        "md": render_markdown,
        "html": render_html,
        "json": lambda found: _render_json({**found.to_json(), "ui_url": ui_url}),
    }
    return renderers[form](comparison)


def comparison_files(comparison: Comparison, ui_url: str | None = None) -> dict[str, str]:
    """Return file name -> content for what is logged beside the candidate's run."""
    return {
        f"comparison.{form}": render_comparison(comparison, form, ui_url)
        for form in ("md", "html", "json")
    }


def _render_text(comparison: Comparison) -> str:
    from rich.console import Console

    from kebab_eval.reports.compare_terminal import print_comparison

    output = io.StringIO()
    print_comparison(comparison, Console(file=output, width=120, highlight=False, no_color=True))
    return output.getvalue()


def _render_json(document: Any) -> str:
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    return encodable(text) + "\n"
