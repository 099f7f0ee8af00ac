"""``kebab-eval compare``: two runs, and which of them is better."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kebab_eval.cli.options import (
    PATH,
    allow_option,
    debug_option,
    json_option,
    tracking_uri_option,
)

if TYPE_CHECKING:
    from kebab_eval.comparison import Comparison
    from kebab_eval.workflows.compare import Pair

_FORMATS = ("text", "md", "html", "json")
_ENDINGS = {".json": "json", ".md": "md", ".html": "html"}
_PIPED_WIDTH = 120


@click.command(
    epilog="""\b
Examples:
  kebab-eval compare latest~1 latest
  kebab-eval compare rrf_k60 rrf_k1 -o compare.html
  kebab-eval compare rrf_k60 rrf_k1 --metric hit_at_1_doc --metric mrr_at_10_doc
  kebab-eval compare before after --allow corpus --json

\b
Exit codes:
  0  compared, whichever is better
  2  no such run or metric
  4  the runs are not comparable
"""
)
@click.argument("baseline", metavar="A")
@click.argument("candidate", metavar="B")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Compare by this metric, as in ndcg_at_10_doc; the first one decides. Repeatable.",
)
@allow_option
@click.option(
    "--strict-chunker-version",
    is_flag=True,
    help="Refuse runs of two chunkers instead of matching by document.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="What to print.",
)
@json_option
@click.option("--output", "-o", type=PATH, help="Write it here instead: .json, .md, .html.")
@click.option("--no-log", is_flag=True, help="Do not add the report to B's MLflow run.")
@tracking_uri_option
@debug_option
def compare(
    *,
    baseline: str,
    candidate: str,
    metrics: tuple[str, ...],
    allow: tuple[str, ...],
    strict_chunker_version: bool,
    form: str,
    as_json: bool,
    output: Path | None,
    no_log: bool,
    tracking_uri: str | None,
) -> None:
    """Say which of two runs is better, and if it is real.

    A is the baseline and B the candidate: each an id or a unique prefix of one, a run name (the
    newest of that name), latest, latest~1, baseline, or the folder of a local record.
    docs/compare.md says how to read the answer.
    """
    from kebab_eval.cli.output import check_output, log_or_warn, print_json, write_text
    from kebab_eval.errors import NotComparableError
    from kebab_eval.reports.compare import render_comparison
    from kebab_eval.workflows.compare import (
        Request,
        compare_pair,
        find_pair,
        log_comparison,
        refusal,
    )

    if output is not None:
        check_output(output, _ENDINGS)
    form = "json" if as_json else form
    request = Request(baseline, candidate, metrics, allow, strict_chunker_version, tracking_uri)
    pair = find_pair(request)
    try:
        found = compare_pair(pair, request)
    except NotComparableError:
        if form == "json":
            print_json(refusal(pair))
        raise
    if output is not None:
        write_text(output, render_comparison(found, _ENDINGS[output.suffix], pair.ui_url))
        click.echo(str(output))
    elif form == "text":
        print_comparison_of(found)
    else:
        click.echo(render_comparison(found, form, pair.ui_url), nl=False)
    logged = None if no_log else log_or_warn("the report", lambda: log_comparison(pair, found))
    if form == "text" and output is None:
        _print_links(pair, logged)


def print_comparison_of(comparison: Comparison) -> None:
    """Print a comparison, as wide as it needs in a pipe."""
    from rich.console import Console

    from kebab_eval.reports.compare_terminal import print_comparison

    # A pipe has no width; rich would take 80 and cut the tables.
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    print_comparison(comparison, Console(highlight=False, width=_PIPED_WIDTH if piped else None))


def _print_links(pair: Pair, logged: str | None) -> None:
    if pair.ui_url is None and logged is None:
        return
    click.echo()
    if pair.ui_url is not None:
        click.echo(f"compare  {pair.ui_url}")
    if pair.pairs_url is not None:
        click.echo(f"pairs    {pair.pairs_url}")
    if logged is not None:
        click.echo(f"report   {logged}/comparison.html of {pair.candidate.name}'s MLflow run")
    if pair.after is not None and pair.after.store.database is not None:
        click.echo("         'kebab-eval ui' starts the page these links open")
