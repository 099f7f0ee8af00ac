"""``kebab-eval sweep``: a lever over many values, run or replayed."""

from __future__ import annotations

from functools import partial
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

_ENDINGS = {".json": "json", ".md": "md", ".csv": "csv", ".svg": "svg"}


@click.command(
    epilog="""\b
Examples:
  kebab-eval sweep -c configs/base.yaml --grid fusion.rrf_k=1,10,60
  kebab-eval sweep --replay rrf_k60 --grid fusion.rrf_k=1:200 -o sweep.svg
  kebab-eval sweep --replay rrf_k60 --grid score_gate=0:1:0.01
  kebab-eval sweep --replay latest --grid fusion.rrf_k=1:100 --grid search.depth=10,50 --holdout 0.5
"""
)
@partial(config_options, required=False)
@selection_options
@click.option(
    "--grid",
    "grids",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="What to move: 1,10,60 or a range 1:200 or 0:1:0.01. Repeatable: all combinations.",
)
@click.option(
    "--replay", metavar="RUN", help="Compute from what a run recorded, without any search."
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="A further column. Repeatable."
)
@click.option(
    "--holdout",
    type=click.FloatRange(0.05, 0.95),
    metavar="FRACTION",
    help="Choose on the other queries, and report the choice on these.",
)
@click.option("--yes", "confirmed", is_flag=True, help="Run more than 50 combinations.")
@click.option("--output", "-o", type=PATH, help="Also write it here: .json, .md, .csv, .svg.")
@click.option("--no-track", is_flag=True, help="Leave MLflow out.")
@tracking_uri_option
@traces_option
@json_option
@quiet_option
@debug_option
def sweep(
    *,
    grids: tuple[str, ...],
    replay: str | None,
    metrics: tuple[str, ...],
    holdout: float | None,
    confirmed: bool,
    output: Path | None,
    no_track: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Move a lever over many values, and show the whole curve.

    With --config every combination is a run of its own below one parent run. With --replay they are
    computed from the candidates that a run recorded: hundreds in a second. Each value is held
    against the config's own; nothing is chosen for you.
    """
    from kebab_eval.cli.output import check_output, print_json, warn, write_text
    from kebab_eval.cli.progress import progress_on_terminal
    from kebab_eval.reports.sweep import render_sweep
    from kebab_eval.workflows.sweep import SweepRequest, run_sweep

    if output is not None:
        check_output(output, _ENDINGS)
    experiment, options["overrides"] = _experiment(options["overrides"], replay)
    asked = SweepRequest(
        grids=grids,
        request=_request(options, replay),
        replay=replay,
        metrics=metrics,
        holdout=holdout,
        track=not no_track,
        confirmed=confirmed,
        experiment=experiment,
        tracking_uri=options["tracking_uri"],
    )
    with progress_on_terminal(quiet=quiet) as progress:
        done = run_sweep(asked, progress)
    warn(done.warning)
    if output is not None:
        write_text(output, render_sweep(done.sweep, _ENDINGS[output.suffix]))
    if as_json:
        print_json({**done.sweep.to_json(), "ui_url": done.ui_url})
    elif not quiet:
        click.echo(render_sweep(done.sweep, "text"), nl=False)
        _print_links(done.ui_url, output)
    return 3 if any(outcome.too_many_failed for outcome in done.outcomes) else 0


def _experiment(
    overrides: tuple[str, ...], replay: str | None
) -> tuple[str | None, tuple[str, ...]]:
    """Return the experiment that --experiment or the environment names, and the other overrides."""
    import json

    named = [text for text in overrides if text.startswith("experiment=")]
    if replay is None or not named:
        return None, overrides
    others = tuple(text for text in overrides if text not in named)
    return str(json.loads(named[-1].partition("=")[2])), others


def _request(options: dict[str, Any], replay: str | None) -> Any:
    """Return what every run has in common, None for a replay.

    Raises:
        UsageError: options of a run beside --replay.
    """
    from kebab_eval.cli.track import command_line
    from kebab_eval.errors import Fault, UsageError
    from kebab_eval.workflows.evaluate import Request

    path = options["config_path"]
    if replay is not None:
        given = {"--config": path, "-S, --k, …": options["overrides"], "--suite": options["suite"],
                 "--limit": options["limit"], "--query-id": options["query_ids"]}  # fmt: skip
        faults = [
            Fault(name, "belongs to runs; a replay has the config and the queries of its run")
            for name, value in given.items()
            if value
        ]
        if faults:
            raise UsageError(faults)
        return None
    if path is None:
        return None
    return Request(
        config_path=path,
        overrides=(*options["overrides"], *traces_override(options["traces"])),
        suite=options["suite"],
        limit=options["limit"],
        query_ids=options["query_ids"],
        tracking_uri=options["tracking_uri"],
        command=command_line("run", options),
    )


def _print_links(ui_url: str | None, output: Path | None) -> None:
    if ui_url is not None or output is not None:
        click.echo()
    if output is not None:
        click.echo(f"written  {output}")
    if ui_url is not None:
        click.echo(f"MLflow   {ui_url}")
