"""What the linter found, as lines, as JSON, and as annotations of GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kebab_eval.golden.lint import LintReport
from kebab_eval.reports.github import annotation
from kebab_eval.reports.texts import encodable, one_line


def render_lint(report: LintReport, form: str) -> str:
    """Return the findings.

    Args:
        form: ``text`` (``file:line:column code severity: message``), ``json`` or ``github``.
    """
    if form == "json":
        return encodable(json.dumps(report.to_json(), ensure_ascii=False, indent=2)) + "\n"
    lines = _github(report) if form == "github" else _lines(report)
    return "".join(f"{line}\n" for line in lines)


def _lines(report: LintReport) -> Iterator[str]:
    for finding in report.findings:
        said = f"{finding.place} {finding.code} {finding.severity}: {finding.message}"
        yield one_line(said)


def _github(report: LintReport) -> Iterator[str]:
    for finding in report.findings:
        path, line, column = finding.position
        at = {"file": path, "line": line, "col": column, "title": f"golden {finding.code}"}
        yield annotation(finding.severity, at, finding.message)


def summary_line(report: LintReport) -> str:
    """Return how many were found, and what was not looked at."""
    counts = (
        f"{report.queries} queries, {_plural(report.errors, 'error')}, "
        f"{_plural(report.warnings, 'warning')}"
    )
    if report.corpus_checked or not report.queries:  # of what could not be read there is no more
        return counts
    return f"{counts}; ids, spans and texts were not held against a corpus (--config names one)"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
