"""``kebab-eval track`` and ``kebab-eval run``: one evaluation, with and without MLflow."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from kebab_eval.workflows.evaluate import Outcome


def _evaluation_options(command: Any) -> Any:
    for option in (
        debug_option,
        quiet_option,
        json_option,
        click.option(
            "--with-rag", is_flag=True, help="Also ask for answers; extractive ones by default."
        ),
        click.option(
            "--output", "-o", type=PATH, help="Also write the report here: .json, .md, .html, .csv."
        ),
        click.option(
            "--tag", "tags", multiple=True, metavar="K=V", help="Tag the run. Repeatable."
        ),
        selection_options,
        config_options,
    ):
        command = option(command)
    return command


@click.command(
    epilog="""\b
Examples:
  kebab-eval track --config configs/rrf_k60.yaml
  kebab-eval track -c configs/base.yaml -S fusion.rrf_k=20 --name k20
"""
)
@tracking_uri_option
@traces_option
@_evaluation_options
def track(**options: Any) -> int:
    """Evaluate a system and log one MLflow run.

    Asks every golden query, judges the hits, keeps a local record in mlruns/spool, logs it to
    MLflow, and prints the metrics and the links of the UI.
    """
    overrides = (*options["overrides"], *traces_override(options["traces"]))
    return _evaluate({**options, "overrides": overrides}, track_run=True)


@click.command(
    epilog="""\b
Example:
  kebab-eval run --config configs/base.yaml --limit 10
"""
)
@_evaluation_options
def run(**options: Any) -> int:
    """Evaluate a system, local record only.

    The same as track without MLflow.
    """
    return _evaluate({**options, "tracking_uri": None}, track_run=False)


def _evaluate(options: dict[str, Any], *, track_run: bool) -> int:
    from kebab_eval.cli.output import check_output, write_report
    from kebab_eval.cli.progress import progress_on_terminal
    from kebab_eval.workflows.evaluate import Request, evaluate

    output: Path | None = options["output"]
    if output is not None:
        check_output(output)
    request = Request(
        config_path=options["config_path"],
        overrides=options["overrides"],
        suite=options["suite"],
        limit=options["limit"],
        query_ids=options["query_ids"],
        tags=_tags(options["tags"]),
        tracking_uri=options["tracking_uri"],
        with_rag=options["with_rag"],
        command=command_line("track" if track_run else "run", options),
    )
    with progress_on_terminal(quiet=options["quiet"]) as progress:
        outcome = evaluate(request, progress, track=track_run)
    code = conclude(outcome, as_json=options["as_json"], quiet=options["quiet"])
    if output is not None:
        write_report(outcome.run, output)
    return code


def conclude(outcome: Outcome, *, as_json: bool, quiet: bool) -> int:
    """Print what a finished evaluation has to say; return the exit code."""
    if as_json:
        from kebab_eval.cli.output import print_json

        print_json(document(outcome))
    elif not quiet:
        _print(outcome)
    if outcome.too_many_failed:
        _say_failed(outcome)
        return 3
    return 0


def command_line(command: str, options: dict[str, Any], *more: str) -> str:
    """Return the command that repeats the run, without the store: its address may hold a secret."""
    from kebab_eval.config_file import USER_INFO

    words = ["kebab-eval", command, "--config", str(options["config_path"]), *more]
    for override in options["overrides"]:
        words += ["-S", USER_INFO.sub("", override)]
    for query_id in options["query_ids"]:
        words += ["--query-id", query_id]
    if options.get("with_rag"):
        words.append("--with-rag")
    for name in ("suite", "limit"):
        if options[name] is not None:
            words += [f"--{name}", str(options[name])]
    return shlex.join(words)


def _tags(pairs: tuple[str, ...]) -> dict[str, str]:
    from kebab_eval.errors import Fault, UsageError

    faults = [
        Fault(f"--tag {pair}", "a tag is written key=value")
        for pair in pairs
        if not pair.partition("=")[0].strip() or "=" not in pair
    ]
    faults += [
        Fault(f"--tag {pair}", "tags that begin with mlflow. or kebab_eval. are set by the run")
        for pair in pairs
        if pair.startswith(("mlflow.", "kebab_eval."))
    ]
    if faults:
        raise UsageError(faults)
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}


def document(outcome: Outcome) -> dict[str, Any]:
    """Return what ``--json`` prints of a finished evaluation."""
    run, tracked = outcome.run, outcome.tracked
    return {
        "run_id": tracked.run_id if tracked else run.run_id,
        "run_name": run.name,
        "experiment_id": tracked.experiment_id if tracked else None,
        "status": outcome.status,
        "record_dir": str(outcome.folder),
        "ui_url": tracked.ui_url if tracked else None,
        "aggregate": dict(run.aggregate),
    }


def _print(outcome: Outcome) -> None:
    from rich.console import Console

    from kebab_eval.reports.terminal import print_run

    print_run(outcome.run, Console(highlight=False))
    print()
    print(f"record   {outcome.folder}")
    if outcome.tracked is not None:
        print_links(outcome)


def print_links(outcome: Outcome) -> None:
    """Print the pages of an MLflow run: itself, its queries, both beside the run before."""
    tracked = outcome.tracked
    if tracked is None:
        return
    print(f"MLflow   {tracked.ui_url}")
    if outcome.sent.total:
        print(f"queries  {tracked.queries_url}")
    if tracked.previous:
        before = tracked.previous
        print(f"compare  {before.compare_url}")
        if outcome.sent.total:
            print(f"pairs    {before.pairs_url}")
        print(f"         (with the run before it, {before.name})")
        print(f"         is the difference real?  kebab-eval compare {before.run_id[:8]} latest")
    if outcome.run.info["mlflow"]["tracking_uri"].startswith("sqlite:"):
        print("         'kebab-eval ui' starts the page these links open")


def _say_failed(outcome: Outcome) -> None:
    from kebab_eval.reports.texts import one_line

    results = outcome.run.results
    searches = [(one.query_id, one.error) for one in results if one.error]
    answers = [
        (one.query_id, f"answer: {one.answer.error}")
        for one in results
        if one.answer is not None and one.answer.error
    ]
    allowed = outcome.run.config["execution"]["max_failed"]
    told = [
        text
        for found, text in (
            (searches, f"{len(searches)} of {len(results)} queries failed"),
            (answers, f"{len(answers)} answers failed"),
        )
        if found
    ]
    scored = "; failed queries score 0 in the metrics above" if searches else ""
    click.echo(f"error: {' and '.join(told)}, {allowed} tolerated (--max-failed){scored}", err=True)
    failures = searches + answers
    for query_id, error in failures[:5]:
        click.echo(f"error: {one_line(f'{query_id}: {error}')}", err=True)
    if len(failures) > 5:
        click.echo(f"error: and {len(failures) - 5} more, in {outcome.folder}", err=True)
