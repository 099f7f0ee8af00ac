"""A golden file, and the corpus of a config if there is one, before the linter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kebab_eval.golden.lint import LintReport, lint
from kebab_eval.workflows.golden_source import open_source


def lint_golden(
    path: Path | None,
    config_path: Path | None = None,
    overrides: Sequence[str] = (),
    golden_format: str | None = None,
) -> LintReport:
    """Lint a golden set.

    Raises:
        InputError: neither file nor config is given, or the config or its corpus is wrong.
    """
    source = open_source(path, config_path, overrides, golden_format)
    ids = source.ids
    return lint(
        source.path,
        source.options,
        source.listing,
        docs=None if ids is None else ids.docs,
        chunks=None if ids is None else ids.chunks,
    )
