"""``kebab-eval init``: a small project to start from."""

from __future__ import annotations

from pathlib import Path

import click

from kebab_eval.cli.options import PATH, debug_option


@click.command(
    epilog="""\b
Example:
  kebab-eval init demo && cd demo && kebab-eval track --config configs/hybrid.yaml
"""
)
@click.argument("folder", type=PATH, default=Path(), metavar="[DIR]")
@debug_option
def init(folder: Path) -> None:
    """Write a small starting project.

    A few notes, a golden set and two configs that differ in one lever. Never overwrites a file.
    """
    from kebab_eval.workflows.init import write_starter

    for path in write_starter(folder):
        click.echo(str(path))
    click.echo()
    where = "" if folder == Path() else f"cd {folder} && "
    click.echo(f"next: {where}kebab-eval track --config configs/hybrid.yaml")
