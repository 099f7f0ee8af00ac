"""``kebab-eval diagnose``: which stage lost each missed answer."""

from __future__ import annotations

import click

from kebab_eval.cli.options import debug_option, form_option, json_option, tracking_uri_option


@click.command(
    epilog="""\b
Examples:
  kebab-eval diagnose latest
  kebab-eval diagnose rrf_k60 --format md
"""
)
@click.argument("run", metavar="RUN")
@form_option
@json_option
@tracking_uri_option
@debug_option
def diagnose(run: str, form: str, as_json: bool, tracking_uri: str | None) -> None:
    """Say which stage lost each missed answer, and which lever could win it.

    From the channels' candidates that the run recorded, without searching again. A query is missed
    when nothing relevant came back.
    """
    from kebab_eval.reports.diagnosis import render_diagnosis
    from kebab_eval.workflows.diagnose import diagnose_run

    diagnosis = diagnose_run(run, tracking_uri)
    click.echo(render_diagnosis(diagnosis, "json" if as_json else form), nl=False)
