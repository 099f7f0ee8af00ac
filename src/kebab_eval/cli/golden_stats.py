"""``kebab-eval golden stats``: what is in a golden set."""

from __future__ import annotations

from pathlib import Path

import click

from kebab_eval.cli.options import PATH, debug_option, golden_source_options, json_option


@click.command(
    epilog="""\b
Examples:
  kebab-eval golden stats golden.yaml
  kebab-eval golden stats --config configs/base.yaml
"""
)
@click.argument("file", type=PATH, required=False)
@golden_source_options
@json_option
@debug_option
def stats(
    file: Path | None,
    config_path: Path | None,
    overrides: tuple[str, ...],
    golden_format: str | None,
    as_json: bool,
) -> None:
    """Say what is in a golden set: queries by field, judgments, grades.

    FILE is the golden set, else the config's. With --config it also says how many documents of the
    corpus no query expects.
    """
    from kebab_eval.workflows.golden_stats import describe_golden

    found = describe_golden(file, config_path, overrides, golden_format)
    if as_json:
        from kebab_eval.cli.output import print_json

        print_json(found.to_json())
        return
    from kebab_eval.reports.golden_stats import stats_lines

    for line in stats_lines(found):
        click.echo(line)
