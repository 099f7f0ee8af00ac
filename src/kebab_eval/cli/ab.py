"""``kebab-eval ab``: two addresses of one kind of system, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kebab_eval.cli.options import (
    PATH,
    config_options,
    debug_option,
    json_option,
    quiet_option,
    selection_options,
    traces_option,
    traces_override,
    tracking_uri_option,
)

_ENDINGS = {".json": "json", ".md": "md", ".html": "html", ".csv": "csv"}


@click.command(
    epilog="""\b
Example:
  kebab-eval ab --config configs/docserver.yaml --baseline-url http://old:8080 \\
    --candidate-url http://new:8080 --output ab.csv
"""
)
@click.option("--baseline-url", required=True, metavar="URL", help="The system as it is.")
@click.option("--candidate-url", required=True, metavar="URL", help="The system as it may be.")
@config_options
@selection_options
@click.option(
    "--output",
    "-o",
    type=PATH,
    help="Write per-query rows of both (.csv), or the comparison (.json, .md, .html).",
)
@click.option("--no-track", is_flag=True, help="Local records only.")
@tracking_uri_option
@traces_option
@json_option
@quiet_option
@debug_option
def ab(
    baseline_url: str,
    candidate_url: str,
    output: Path | None,
    no_track: bool,
    **options: Any,
) -> int:
    """Evaluate two addresses by one config and compare them.

    For systems behind HTTP (docserver, http): the golden set is run against both, each as a run of
    its own, and the comparison says which is better and if it is real.
    """
    from kebab_eval.cli.compare import print_comparison_of
    from kebab_eval.cli.output import check_output, print_json, write_text
    from kebab_eval.cli.progress import progress_on_terminal
    from kebab_eval.cli.track import command_line
    from kebab_eval.config_file import USER_INFO
    from kebab_eval.reports.compare import render_comparison
    from kebab_eval.reports.rows import render_pair_csv
    from kebab_eval.workflows.ab import evaluate_both
    from kebab_eval.workflows.evaluate import Request

    if output is not None:
        check_output(output, _ENDINGS)
    addresses = [USER_INFO.sub("", url) for url in (baseline_url, candidate_url)]
    sides = ("--baseline-url", addresses[0], "--candidate-url", addresses[1])
    request = Request(
        config_path=options["config_path"],
        overrides=(*options["overrides"], *traces_override(options["traces"])),
        suite=options["suite"],
        limit=options["limit"],
        query_ids=options["query_ids"],
        tracking_uri=options["tracking_uri"],
        command=command_line("ab", options, *sides),
    )
    with progress_on_terminal(quiet=options["quiet"]) as progress:
        pair = evaluate_both(request, baseline_url, candidate_url, progress, track=not no_track)
    if output is not None:
        form = _ENDINGS[output.suffix]
        text = (
            render_pair_csv(*pair.runs)
            if form == "csv"
            else render_comparison(pair.comparison, form, None)
        )
        write_text(output, text)
    if options["as_json"]:
        print_json(pair.comparison.to_json())
    elif not options["quiet"]:
        print_comparison_of(pair.comparison)
        click.echo()
        for outcome in (pair.baseline, pair.candidate):
            click.echo(f"record   {outcome.folder}")
        if output is not None:
            click.echo(f"written  {output}")
    return 3 if pair.baseline.too_many_failed or pair.candidate.too_many_failed else 0
