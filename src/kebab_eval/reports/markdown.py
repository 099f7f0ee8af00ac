"""A run as Markdown: the note of the MLflow run, and the full report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kebab_eval.records import EvalRun
from kebab_eval.reports.summary import (
    QueryLine,
    Summary,
    empty_results,
    first_relevant,
    interval,
    milliseconds,
    number,
    summarise,
    version_text,
)
from kebab_eval.reports.texts import one_line
from kebab_eval.reports.versions import said_of

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def escape(text: str) -> str:
    """Return a text from a corpus, a backend or a golden set as plain words of Markdown."""
    return _SPECIAL.sub(r"\\\1", one_line(str(text)))


def code(text: str) -> str:
    """Return a text as a code span that its own backticks cannot end."""
    text = one_line(str(text)) or " "
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def render_note(run: EvalRun) -> str:
    """Return the short form for the run page: verdict, metrics, slices, what to look at."""
    summary = summarise(run)
    return (
        "\n".join(
            _head(run, summary)
            + _metrics(summary)
            + _versions(summary, sliced=False)
            + _slices(summary, groups=False)
        )
        + "\n"
    )


def render_markdown(run: EvalRun) -> str:
    """Return the whole report."""
    summary = summarise(run)
    parts = [
        *_head(run, summary),
        *_metrics(summary),
        *_versions(summary, sliced=True),
        *_slices(summary, groups=True),
        *_failures(summary),
        *_worst(summary),
        *_config(run),
    ]
    return "\n".join(parts) + "\n"


def _head(run: EvalRun, summary: Summary) -> list[str]:
    primary = summary.primary
    lines = [f"# {escape(summary.name)}", "", f"{escape(summary.headline)}.", ""]
    said = f"**{primary.name} {number(primary.value)}**"
    if primary.ci95:
        said += f" (95 % interval {interval(primary)})"
    lines += [f"{said} over {primary.n} scored queries.", ""]
    if summary.missed:
        lines += [f"{_sentence(summary.missed)}.", ""]
    lever = run.info.get("lever")
    if lever:
        lines += [f"Lever: {code(lever['key'])} = {code(version_text(lever['value']))}.", ""]
    if summary.status != "FINISHED":
        lines += [f"**This run ended {summary.status}**; its numbers cover what was answered.", ""]
    return lines


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _metrics(summary: Summary) -> list[str]:
    header = ["metric", "level", *(f"k={k}" for k in summary.cutoffs), "n"]
    rows = [
        [row.label, row.level, *(number(value) for value in row.values), str(row.n)]
        for row in summary.grid
    ]
    singles = [
        [label, number(chunk.value), number(doc.value)] for label, chunk, doc in summary.singles
    ]
    latency = ", ".join(
        f"{name} {milliseconds(value)}" for name, value in summary.latency_ms.items()
    )
    return [
        "## Metrics",
        "",
        *table(header, rows),
        "",
        *table(["", "chunk", "doc"], singles),
        "",
        f"Failed {summary.failed} of {summary.total}. Empty results: {empty_results(summary)}.",
        "",
        f"Latency: {latency}",
        "",
        *([f"Answers: {summary.answers}.", ""] if summary.answers else []),
        *(f"Note: {escape(note)}." for note in summary.notes),
        "",
    ]


def _versions(summary: Summary, *, sliced: bool) -> list[str]:
    lines: list[str] = []
    for version in summary.versions:
        rows = [["", version.overall.value, *map(str, version.overall.cells)]]
        for field, members in version.groups if sliced else ():
            rows += [[escape(field), escape(row.value), *map(str, row.cells)] for row in members]
        lines += [f"## Scores {version.title}", ""]
        lines += [*table(["", "", *version.labels], rows), ""]
    if summary.versions:
        lines += [f"{escape(said_of(summary.versions))}.", ""]
    return lines


def _slices(summary: Summary, *, groups: bool) -> list[str]:
    lines: list[str] = []
    for field, cells in summary.slices:
        if field == "group" and not groups:
            continue
        rows = [[escape(row.value), str(row.n), *map(number, row.scores)] for row in cells]
        lines += [f"## By {escape(field)}", ""]
        lines += [*table([escape(field), "n", *summary.slice_columns], rows), ""]
    return lines


def _failures(summary: Summary) -> list[str]:
    if not summary.failures:
        return []
    rows = [
        [escape(line.golden.query_id), escape(line.golden.query), escape(line.result.error or "")]
        for line in summary.failures
    ]
    return ["## Failed queries", "", *table(["id", "query", "cause"], rows), ""]


def _worst(summary: Summary) -> list[str]:
    if not summary.worst:
        return []
    lines = ["## Worst queries", ""]
    for line in summary.worst:
        lines += [
            f"### {escape(line.golden.query_id)}: {escape(line.golden.query)}",
            "",
            f"{summary.primary.name} {number(line.score)}, {first_relevant(line)}; "
            f"expected {_expected(line)}",
            "",
            *([f"Answer: {escape(line.answer)}", ""] if line.answer else []),
        ]
        lines += [
            f"{hit.rank}. {escape(hit.chunk_id)} ({hit.score:.4f}): {escape(hit.snippet[:120])}"
            for hit in line.result.hits[:5]
        ] or ["(nothing came back)"]
        lines.append("")
    return lines


def _expected(line: QueryLine) -> str:
    judgments = line.golden.judgments
    items = judgments.chunk or judgments.doc
    return ", ".join(escape(item) for item in items) or "nothing"


def _config(run: EvalRun) -> list[str]:
    info = run.info
    rows = [[escape(key), escape(version_text(value))] for key, value in info["system"].items()]
    lines = ["## System", "", *table(["", ""], rows), "", "## How to repeat it", ""]
    git = info.get("git") or {}
    if git:
        dirty = ", with uncommitted changes" if git["dirty"] else ""
        lines += [f"Commit {code(git['commit'][:12])}{dirty}.", ""]
    if info.get("command"):
        lines += ["    " + one_line(str(info["command"])), ""]
    lines.append("The resolved config is `config.yaml` beside this file.")
    return lines


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table; the cells are escaped by the caller."""
    return [
        "| " + " | ".join(header) + " |",
        "|" + " --- |" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
