"""``kebab-eval golden lint``: everything that is wrong or doubtful about a golden set."""

from __future__ import annotations

from pathlib import Path

import click

from kebab_eval.cli.options import PATH, debug_option, golden_source_options, json_option


@click.command(
    epilog="""\b
Examples:
  kebab-eval golden lint golden.yaml
  kebab-eval golden lint --config configs/base.yaml --strict
  kebab-eval golden lint --config configs/base.yaml --format github

\b
Exit codes:
  0  no error (with --strict: nothing at all)
  2  errors
"""
)
@click.argument("file", type=PATH, required=False)
@golden_source_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="Lines, one JSON document, or annotations of GitHub.",
)
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@json_option
@debug_option
def lint(
    file: Path | None,
    config_path: Path | None,
    overrides: tuple[str, ...],
    golden_format: str | None,
    form: str,
    strict: bool,
    as_json: bool,
) -> int:
    """Tell every fault and every doubt of a golden set, each with its place.

    FILE is the golden set, else the config's. With --config it is held against the corpus too: ids
    that are not there, quotes that no document holds. docs/golden-lint.md explains each code.
    """
    from kebab_eval.reports.lint import render_lint, summary_line
    from kebab_eval.workflows.lint import lint_golden

    report = lint_golden(file, config_path, overrides, golden_format)
    click.echo(render_lint(report, "json" if as_json else form), nl=False)
    click.echo(summary_line(report), err=True)
    return 2 if report.errors or (strict and report.findings) else 0
