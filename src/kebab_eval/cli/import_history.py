"""``kebab-eval import``: evaluations of long ago, as records and MLflow runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kebab_eval.cli.options import (
    PATH,
    debug_option,
    json_option,
    quiet_option,
    tracking_uri_option,
)

if TYPE_CHECKING:
    from kebab_eval.workflows.importing import Imported, ImportRequest

Command = Callable[..., Any]


def _import_options(command: Command) -> Command:
    @click.option("--experiment", help="The MLflow experiment. [default: KIND history]")
    @click.option("--dry-run", is_flag=True, help="Say what would be imported, and write nothing.")
    @click.option("--no-track", is_flag=True, help="Local records only.")
    @tracking_uri_option
    @json_option
    @quiet_option
    @debug_option
    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return command(*args, **kwargs)

    return wrapped


def _kebab_options(command: Command) -> Command:
    for option in (
        click.option(
            "--document-id",
            "naming",
            type=click.Choice(["path", "id"]),
            default="path",
            show_default=True,
            help="What names a document in the golden set: its path, or kebab's own id.",
        ),
        click.option(
            "--golden", type=PATH, help="Judge the hits anew, and check the stored numbers."
        ),
    ):
        command = option(command)
    return _import_options(command)


@click.group(
    name="import",
    epilog="""\b
Examples:
  kebab-eval import kebab-db kebab.sqlite --golden golden_queries.yaml
  kebab-eval import kebab-jsonl runs/*/per_query.jsonl
  kebab-eval import trec qrels.txt bm25.txt dense.txt
""",
)
def import_history() -> None:
    """Bring evaluations of long ago into records and MLflow runs, with their old times.

    What is there already is left as it is: the same import again adds nothing.
    """


@import_history.command("kebab-db")
@click.argument("database", type=PATH)
@_kebab_options
def kebab_db(database: Path, **options: Any) -> None:
    """Import every run of kebab's SQLite history, which is only read."""
    _import("kebab-db", (database,), options)


@import_history.command("kebab-jsonl")
@click.argument("files", type=PATH, nargs=-1, required=True)
@_kebab_options
def kebab_jsonl(files: tuple[Path, ...], **options: Any) -> None:
    """Import the per_query.jsonl of kebab's runs, one run each."""
    _import("kebab-jsonl", files, options)


@import_history.command("trec")
@click.argument("qrels", type=PATH)
@click.argument("runs", type=PATH, nargs=-1, required=True)
@_import_options
def trec(qrels: Path, runs: tuple[Path, ...], **options: Any) -> None:
    """Import TREC run files, one run each, judged by the qrels."""
    _import("trec", runs, {**options, "qrels": qrels})


def _import(kind: str, sources: tuple[Path, ...], options: dict[str, Any]) -> None:
    from kebab_eval.cli.output import print_json
    from kebab_eval.cli.progress import progress_on_terminal
    from kebab_eval.workflows.importing import ImportRequest, import_runs

    asked = ImportRequest(
        kind=kind,
        sources=sources,
        golden=options.get("golden"),
        qrels=options.get("qrels"),
        naming=options.get("naming", "path"),
        experiment=options["experiment"],
        tracking_uri=options["tracking_uri"],
        track=not options["no_track"],
        dry_run=options["dry_run"],
    )
    with progress_on_terminal(quiet=options["quiet"]) as progress:
        done = import_runs(asked, progress)
    for one in done:
        _warn(one)
    if options["as_json"]:
        print_json([_document(one) for one in done])
    elif not options["quiet"]:
        _print(done, asked)


def _warn(one: Imported) -> None:
    from kebab_eval.reports.texts import one_line

    for difference in one.differences[:5]:
        click.echo(f"warning: {one_line(f'{one.name}: {difference}')}", err=True)
    if len(one.differences) > 5:
        more = f"{one.name}: and {len(one.differences) - 5} more"
        click.echo(f"warning: {one_line(more)}", err=True)


def _document(one: Imported) -> dict[str, Any]:
    return {
        "name": one.name,
        "past_id": one.past_id,
        "started": one.started,
        "queries": one.queries,
        "state": one.state,
        "record_dir": None if one.folder is None else str(one.folder),
        "mlflow_run_id": one.mlflow_run_id,
        "differences": list(one.differences),
    }


def _print(done: list[Imported], asked: ImportRequest) -> None:
    from kebab_eval.reports.texts import one_line

    for one in done:
        where = "" if one.folder is None else f"  {one.folder}"
        click.echo(
            one_line(
                f"{one.state:<13} {one.started[:19]}  {one.name}, {one.queries} queries{where}"
            )
        )
    if asked.golden is None and asked.qrels is None and done:
        click.echo("the numbers are those that were stored; --golden judges the hits anew")
