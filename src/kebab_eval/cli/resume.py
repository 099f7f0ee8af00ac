"""``kebab-eval resume``: finish an evaluation that was cut off."""

from __future__ import annotations

import click

from kebab_eval.cli.options import (
    debug_option,
    json_option,
    quiet_option,
    traces_option,
    tracking_uri_option,
)


@click.command(
    epilog="""\b
Examples:
  kebab-eval resume latest
  kebab-eval resume mlruns/spool/20261130-221530-rrf_k60-4f2a
"""
)
@click.argument("record", metavar="DIR")
@click.option("--failed", is_flag=True, help="Also ask once more what failed.")
@tracking_uri_option
@traces_option
@quiet_option
@json_option
@debug_option
def resume(
    *,
    record: str,
    failed: bool,
    tracking_uri: str | None,
    traces: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Finish an interrupted run, asking only what is missing.

    DIR is the folder of a record, or whatever else names it. Config and golden set are taken from
    the record; the run's MLflow run goes on, or is made if there is none yet.
    """
    from kebab_eval.cli.progress import progress_on_terminal
    from kebab_eval.cli.track import conclude
    from kebab_eval.workflows import resume as workflow

    with progress_on_terminal(quiet=quiet) as progress:
        outcome = workflow.resume(
            record, progress, failed_too=failed, tracking_uri=tracking_uri, traces=traces
        )
    return conclude(outcome, as_json=as_json, quiet=quiet)
