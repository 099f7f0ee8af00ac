"""``kebab-eval golden``: what one does with golden sets; each command has a file of its own."""

from __future__ import annotations

import click

from kebab_eval.cli.golden_anchor import anchor
from kebab_eval.cli.golden_convert import convert
from kebab_eval.cli.golden_diff import diff
from kebab_eval.cli.golden_lint import lint
from kebab_eval.cli.golden_migrate import migrate
from kebab_eval.cli.golden_stats import stats


@click.group(
    epilog="""\b
Examples:
  kebab-eval golden lint --config configs/base.yaml
  kebab-eval golden diff old.yaml new.yaml
"""
)
def golden() -> None:
    """Lint, compare, convert golden sets; keep their truth valid when the chunker changes."""


golden.add_command(anchor)
golden.add_command(convert)
golden.add_command(diff)
golden.add_command(lint)
golden.add_command(migrate)
golden.add_command(stats)
