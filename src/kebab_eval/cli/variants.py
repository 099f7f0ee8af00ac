"""``kebab-eval variants``: consistency over the paraphrases of one intent."""

from __future__ import annotations

import click

from kebab_eval.cli.options import debug_option, form_option, json_option, tracking_uri_option


@click.command(
    epilog="""\b
Examples:
  kebab-eval run --config configs/base.yaml --k 50 --name wide
  kebab-eval variants wide
"""
)
@click.argument("run", metavar="RUN")
@form_option
@json_option
@tracking_uri_option
@debug_option
def variants(run: str, form: str, as_json: bool, tracking_uri: str | None) -> None:
    """Say whether a system finds the same documents whatever the words.

    Over the groups of the golden set: recall of what is expected among the first 10 and the first
    50 documents of each wording. The run must have been asked for 50 hits or more (--k 50).
    """
    from kebab_eval.reports.variants import render_variants
    from kebab_eval.variants import variant_report
    from kebab_eval.workflows.lookup import find_run

    report = variant_report(find_run(run, tracking_uri))
    click.echo(render_variants(report, "json" if as_json else form), nl=False)
