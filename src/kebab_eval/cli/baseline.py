"""``kebab-eval baseline``: freeze a run into two files, and list what is frozen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kebab_eval.cli.options import PATH, debug_option, json_option, tracking_uri_option

if TYPE_CHECKING:
    from kebab_eval.tracking.frozen import FrozenFile

_dir_option = click.option(
    "--dir",
    "folder",
    type=PATH,
    default=Path("baselines"),
    show_default=True,
    help="Where they are.",
)


@click.group(
    epilog="""\b
Examples:
  kebab-eval baseline freeze latest
  kebab-eval baseline freeze rrf_k60 --label before-reranker
  kebab-eval baseline list
"""
)
def baseline() -> None:
    """Freeze a run into files that stand in for it, and list them.

    A frozen .json is taken wherever a run is wanted, on a machine without any MLflow store.
    """


@baseline.command(
    "freeze",
    epilog="""\b
Examples:
  kebab-eval baseline freeze latest
  kebab-eval baseline freeze rrf_k60 --label before-reranker
""",
)
@click.argument("run", metavar="RUN")
@click.option("--label", help="Tells baselines apart; part of the file name.")
@_dir_option
@click.option("--version", help="The version in the file name. [default: the golden set's]")
@json_option
@tracking_uri_option
@debug_option
def freeze(
    run: str,
    label: str | None,
    folder: Path,
    version: str | None,
    as_json: bool,
    tracking_uri: str | None,
) -> None:
    """Freeze a run: one .json that stands in for it, one .md for people.

    Nothing is ever overwritten. The MLflow run is tagged, and the references baseline and
    baseline:LABEL find what was frozen last.
    """
    from kebab_eval.workflows.freeze import freeze_run

    done = freeze_run(run, label=label, folder=folder, version=version, tracking_uri=tracking_uri)
    for warning in done.warnings:
        click.echo(f"warning: {' '.join(warning.split())}", err=True)
    if as_json:
        from kebab_eval.cli.output import print_json

        print_json(
            {
                "run_id": done.run.run_id,
                "run_name": done.run.name,
                "version": done.frozen.version,
                "label": done.frozen.label,
                "frozen_at": done.frozen.frozen_at,
                "json": str(done.json_path),
                "md": str(done.md_path),
                "mlflow_tagged": done.tagged,
            }
        )
        return
    click.echo(str(done.json_path))
    click.echo(str(done.md_path))
    click.echo(f"gate against it: kebab-eval gate --baseline {done.json_path} --candidate latest")


@baseline.command(
    "list",
    epilog="""\b
Example:
  kebab-eval baseline list --dir baselines
""",
)
@_dir_option
@json_option
@debug_option
def list_command(folder: Path, as_json: bool) -> None:
    """List the frozen baselines of a folder, newest first."""
    from kebab_eval.errors import Fault, UsageError
    from kebab_eval.tracking.frozen import list_frozen

    if not folder.is_dir() and folder != Path("baselines"):
        raise UsageError(Fault(f"--dir {folder}", "the folder does not exist"))
    files, damaged = list_frozen(folder)
    for said in damaged:
        click.echo(f"warning: {' '.join(said.split())}", err=True)
    if as_json:
        from kebab_eval.cli.output import print_json

        print_json([_facts(file) for file in files])
    elif not files:
        click.echo(
            f"nothing is frozen in {folder}: 'kebab-eval baseline freeze RUN' does it", err=True
        )
    else:
        _print(files)


def _facts(file: FrozenFile) -> dict[str, Any]:
    return {
        "path": str(file.path),
        "version": file.frozen.version,
        "label": file.frozen.label,
        "frozen_at": file.frozen.frozen_at,
        "run_id": file.run_id,
        "run_name": file.run_name,
        "golden": file.golden,
        "primary": file.primary,
        "value": file.score,
        "n": file.n,
    }


def _print(files: list[FrozenFile]) -> None:
    from kebab_eval.reports.summary import number
    from kebab_eval.reports.texts import one_line

    rows = [["frozen", "label", "run", "golden set", "score", "file"]]
    for file in files:
        score = f"{file.primary} {number(file.score)} (n={file.n})"
        cells = (file.frozen.frozen_at, file.frozen.label, file.run_name, file.golden, score)
        rows.append([*map(one_line, cells), str(file.path)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells_text = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells_text, row[-1]]))
