"""``kebab-eval report``: one run, rendered again."""

from __future__ import annotations

from pathlib import Path

import click

from kebab_eval.cli.options import PATH, debug_option, eval_version_option, tracking_uri_option

_FORMATS = ("text", "json", "md", "html", "csv")


@click.command(
    epilog="""\b
Examples:
  kebab-eval report latest
  kebab-eval report rrf_k60 --format md
  kebab-eval report latest~1 -o before.html
"""
)
@click.argument("run", metavar="RUN")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="What to print.",
)
@click.option("--output", "-o", type=PATH, help="Write it here instead: .json, .md, .html, .csv.")
@eval_version_option
@tracking_uri_option
@debug_option
def report(
    run: str, form: str, output: Path | None, eval_version: str | None, tracking_uri: str | None
) -> None:
    """Print one run as json, md, html or csv.

    RUN is an id or a unique prefix of one, a run name (the newest of that name), latest, latest~1,
    or the folder of a local record.
    """
    from kebab_eval.cli.output import check_output, write_report
    from kebab_eval.workflows.lookup import find_run
    from kebab_eval.workflows.versions import by_version

    if output is not None:
        check_output(output)
    found = find_run(run, tracking_uri)
    if eval_version is not None:
        found = by_version(found, eval_version)
    if output is not None:
        write_report(found, output)
        click.echo(str(output))
    elif form == "text":
        from rich.console import Console

        from kebab_eval.reports.terminal import print_run

        print_run(found, Console(highlight=False))
    else:
        from kebab_eval.reports import render

        click.echo(render(found, form), nl=False)
