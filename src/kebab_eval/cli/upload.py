"""``kebab-eval upload``: a local record becomes an MLflow run, after an outage or at last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kebab_eval.cli.options import (
    debug_option,
    json_option,
    quiet_option,
    traces_option,
    tracking_uri_option,
)

if TYPE_CHECKING:
    from kebab_eval.workflows.evaluate import Outcome


@click.command(
    epilog="""\b
Examples:
  kebab-eval upload latest
  kebab-eval upload mlruns/spool/20261130-221530-rrf_k60-4f2a --tracking-uri http://host:5000
"""
)
@click.argument("record", metavar="DIR")
@tracking_uri_option
@traces_option
@quiet_option
@json_option
@debug_option
def upload(
    *, record: str, tracking_uri: str | None, traces: str | None, quiet: bool, as_json: bool
) -> None:
    """Send a local record to MLflow.

    DIR is the folder of a record, or whatever else names it. The MLflow run that was made for it is
    completed, or one is made; what is there already is not sent again, so this may be repeated.
    """
    from kebab_eval.cli.output import print_json
    from kebab_eval.cli.progress import progress_on_terminal
    from kebab_eval.workflows import upload as workflow

    with progress_on_terminal(quiet=quiet) as progress:
        outcome = workflow.upload(record, progress, tracking_uri=tracking_uri, traces=traces)
    if as_json:
        print_json(_document(outcome))
    elif not quiet:
        _print(outcome)


def _document(outcome: Outcome) -> dict[str, Any]:
    from kebab_eval.cli.track import document

    told = {key: value for key, value in document(outcome).items() if key != "aggregate"}
    traces = {"sent": outcome.sent.new, "were_there": outcome.sent.present}
    return {**told, "run_was_there": _was_there(outcome), "traces": traces}


def _was_there(outcome: Outcome) -> bool:
    return outcome.tracked is not None and outcome.tracked.taken


def _print(outcome: Outcome) -> None:
    from kebab_eval.cli.track import print_links

    done = "completed" if _was_there(outcome) else "made"
    present = outcome.sent.present
    there = f", {present} were there already" if present else ""
    click.echo(f"{outcome.run.name}: MLflow run {done}, {outcome.status}")
    click.echo(f"traces   {outcome.sent.new} sent{there}")
    click.echo(f"record   {outcome.folder}")
    print_links(outcome)
