"""``kebab-eval golden diff``: what changed between two states of a golden set."""

from __future__ import annotations

from pathlib import Path

import click

from kebab_eval.cli.options import PATH, debug_option, json_option


@click.command(
    epilog="""\b
Examples:
  kebab-eval golden diff golden.old.yaml golden.yaml
  git show HEAD~1:golden.yaml > old.yaml && kebab-eval golden diff old.yaml golden.yaml
"""
)
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@json_option
@debug_option
def diff(old: Path, new: Path, as_json: bool) -> None:
    """Say which queries and judgments changed.

    Layout, comments, notes and the order of the queries mean nothing; where nothing else changed,
    the two sets have one digest and their runs are comparable. The format of each file is found
    out.
    """
    from kebab_eval.workflows.golden_diff import diff_files

    found = diff_files(old, new)
    if as_json:
        from kebab_eval.cli.output import print_json

        print_json(found.to_json())
        return
    from kebab_eval.reports.golden_diff import diff_lines

    for line in diff_lines(found):
        click.echo(line)
