"""A golden file, and the corpus of a config if there is one, before the linter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kebab_eval.golden.lint import LintReport, lint
from kebab_eval.golden.registry import AUTO, ReadOptions


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
    if path is not None and config_path is None:
        # Configs and backends take longer to import than a set of usual size takes to lint.
        return lint(path, ReadOptions(format=golden_format or AUTO))
    from kebab_eval.workflows.golden_source import open_source

    source = open_source(path, config_path, overrides, golden_format)
    ids = source.ids
    return lint(
        source.path,
        source.options,
        source.listing,
        docs=None if ids is None else ids.docs,
        chunks=None if ids is None else ids.chunks,
        levels=source.levels,
        min_relevance=source.min_relevance,
    )
