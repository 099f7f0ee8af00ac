"""``kebab-eval ab``: several configs, or two addresses of one system, side by side."""

from __future__ import annotations

from functools import partial
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
    from kebab_eval.workflows.ab import Trial

_ENDINGS = {".json": "json", ".md": "md", ".html": "html", ".csv": "csv"}


@click.command(
    epilog="""\b
Examples:
  kebab-eval ab --baseline configs/rrf_k60.yaml --candidate configs/rrf_k1.yaml \\
    --candidate configs/vector.yaml
  kebab-eval ab --config configs/docserver.yaml --baseline-url http://old:8080 \\
    --candidate-url http://new:8080 --output ab.csv
"""
)
@click.option("--baseline", type=PATH, metavar="FILE", help="The config as it is.")
@click.option(
    "--candidate",
    "candidates",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="A config as it may be. Repeatable.",
)
@click.option("--baseline-url", metavar="URL", help="With --config: the system as it is.")
@click.option("--candidate-url", metavar="URL", help="With --config: the system as it may be.")
@partial(config_options, required=False)
@selection_options
@click.option(
    "--output",
    "-o",
    type=PATH,
    help="Write per-query rows of both (.csv), or the comparison (.json, .md, .html); of several "
    "candidates their table.",
)
@click.option("--no-track", is_flag=True, help="Local records only.")
@tracking_uri_option
@traces_option
@json_option
@quiet_option
@debug_option
def ab(
    *,
    baseline: Path | None,
    candidates: tuple[Path, ...],
    baseline_url: str | None,
    candidate_url: str | None,
    output: Path | None,
    no_track: bool,
    **options: Any,
) -> int:
    """Evaluate a baseline and its candidates, and compare each with it.

    Several configs, or one config against two addresses of its system (docserver, http). Each is a
    run of its own below one parent run, and the answer says which is better and if it is real,
    corrected for the number of candidates.
    """
    from kebab_eval.cli.output import check_output, print_json, warn, write_text
    from kebab_eval.cli.progress import progress_on_terminal

    _check(options["config_path"], baseline, candidates, (baseline_url, candidate_url))
    if output is not None:
        table = {ending: form for ending, form in _ENDINGS.items() if form != "html"}
        check_output(output, table if len(candidates) > 1 else _ENDINGS)
    with progress_on_terminal(quiet=options["quiet"]) as progress:
        if baseline is not None:
            trial = _configs(options, (baseline, *candidates), progress, not no_track)
        else:
            urls = (str(baseline_url), str(candidate_url))
            trial = _addresses(options, urls, progress, not no_track)
    warn(trial.warning)
    if output is not None:
        write_text(output, _rendered(trial, _ENDINGS[output.suffix]))
    if options["as_json"]:
        print_json(_document(trial))
    elif not options["quiet"]:
        _print(trial, output)
    return 3 if any(outcome.too_many_failed for outcome in trial.outcomes) else 0


def _check(
    config: Path | None,
    baseline: Path | None,
    candidates: tuple[Path, ...],
    urls: tuple[str | None, str | None],
) -> None:
    """Hold that one of both ways is asked for, wholly.

    Raises:
        UsageError: with every fault.
    """
    from kebab_eval.errors import Fault, UsageError

    by_config, by_url = baseline is not None or bool(candidates), any(urls)
    faults = []
    if by_config and (by_url or config is not None):
        faults.append(
            Fault("--baseline, --candidate", "name configs; --config goes with two addresses")
        )
    elif by_config:
        if baseline is None:
            faults.append(Fault("--baseline", "missing; name the config to compare with"))
        if not candidates:
            faults.append(Fault("--candidate", "missing; name the config to try"))
        seen = [baseline, *candidates]
        faults += [
            Fault(f"--candidate {path}", "is named already: nothing would be compared")
            for place, path in enumerate(seen)
            if path is not None and path in seen[:place]
        ]
    else:
        given = {"--config": config, "--baseline-url": urls[0], "--candidate-url": urls[1]}
        more = "; or compare configs, with --baseline and --candidate"
        faults += [Fault(name, f"missing{more}") for name, value in given.items() if not value]
    if faults:
        raise UsageError(faults)


def _configs(options: dict[str, Any], paths: tuple[Path, ...], progress: Any, track: bool) -> Trial:
    from kebab_eval.cli.track import command_line
    from kebab_eval.workflows.ab import evaluate_configs

    command = command_line("track" if track else "run", {**options, "config_path": "CONFIG"})
    return evaluate_configs(_request(options, paths[0], command), paths, progress, track=track)


def _addresses(options: dict[str, Any], urls: tuple[str, str], progress: Any, track: bool) -> Trial:
    from kebab_eval.cli.track import command_line
    from kebab_eval.config_file import USER_INFO
    from kebab_eval.workflows.ab import evaluate_addresses

    shown = [USER_INFO.sub("", url) for url in urls]
    sides = ("--baseline-url", shown[0], "--candidate-url", shown[1])
    command = command_line("ab", options, *sides)
    request = _request(options, options["config_path"], command)
    return evaluate_addresses(request, *urls, progress, track=track)


def _request(options: dict[str, Any], path: Path, command: str) -> Any:
    from kebab_eval.workflows.evaluate import Request

    return Request(
        config_path=path,
        overrides=(*options["overrides"], *traces_override(options["traces"])),
        suite=options["suite"],
        limit=options["limit"],
        query_ids=options["query_ids"],
        tracking_uri=options["tracking_uri"],
        command=command,
    )


def _rendered(trial: Trial, form: str) -> str:
    """Return what -o writes: of one candidate its comparison, of several their table."""
    from kebab_eval.errors import Fault, UsageError
    from kebab_eval.reports.ab import render_ab
    from kebab_eval.reports.compare import render_comparison
    from kebab_eval.reports.rows import render_pair_csv

    if len(trial.standings) > 1:
        if form == "html":
            message = (
                "several candidates have a table, .csv, .json or .md; their pages are in MLflow"
            )
            raise UsageError(Fault("--output", message))
        return render_ab(trial.standings, form)
    if form == "csv":
        return render_pair_csv(*trial.runs)
    return render_comparison(trial.standings[0].comparison, form, None)


def _document(trial: Trial) -> Any:
    from kebab_eval.reports.ab import to_json

    if len(trial.standings) == 1:
        return trial.standings[0].comparison.to_json()
    return {**to_json(trial.standings), "ui_url": trial.ui_url}


def _print(trial: Trial, output: Path | None) -> None:
    from kebab_eval.cli.compare import print_comparison_of
    from kebab_eval.reports.ab import render_ab

    if len(trial.standings) == 1:
        print_comparison_of(trial.standings[0].comparison)
    else:
        click.echo(render_ab(trial.standings, "text"), nl=False)
    click.echo()
    for outcome in trial.outcomes:
        click.echo(f"record   {outcome.folder}")
    if trial.ui_url is not None:
        click.echo(f"MLflow   {trial.ui_url}")
    if output is not None:
        click.echo(f"written  {output}")
