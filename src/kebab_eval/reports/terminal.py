"""A run on a terminal: the metrics table and the lines below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kebab_eval.records import EvalRun
from kebab_eval.reports.summary import (
    Summary,
    empty_results,
    interval,
    milliseconds,
    number,
    summarise,
)
from kebab_eval.reports.texts import one_line, visible
from kebab_eval.reports.versions import VersionRow, VersionTable, said_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MAX_CELLS = 6
_MAX_ROWS = 12


def print_run(run: EvalRun, console: Console) -> None:
    """Print what a user wants to know first. Texts are printed as they are, never as markup."""
    from rich.table import Table
    from rich.text import Text

    summary = summarise(run)
    console.print(Text(one_line(summary.name), "bold"), Text(one_line(summary.headline)), sep="  ")
    if summary.status != "FINISHED":
        console.print(Text(f"ended {summary.status}: the numbers cover what was answered", "red"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    table.add_column("level")
    for k in summary.cutoffs:
        table.add_column(f"@{k}", justify="right")
    table.add_column("n", justify="right")
    for row in summary.grid:
        values = [number(value) for value in row.values]
        table.add_row(row.label, row.level, *values, str(row.n))
    console.print()
    console.print(table)
    console.print()
    for line in _lines(summary):
        console.print(Text(visible(" ".join(line.splitlines()))), soft_wrap=True)
    for version in summary.versions:
        console.print()
        console.print(_version_table(version))
    if summary.versions:
        console.print(Text(said_of(summary.versions), "dim"), soft_wrap=True)


def _version_table(version: VersionTable) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(Text(version.title, "bold"), no_wrap=True, max_width=28)
    for label in version.labels[: version.narrow]:
        table.add_column(label, justify="right", vertical="bottom")

    def add(row: VersionRow, indent: str) -> None:
        cells = (Text(str(cell)) for cell in row.cells[: version.narrow])
        table.add_row(Text(indent + one_line(row.value)), *cells)

    add(version.overall, "")
    for field, rows in version.groups:
        table.add_row(Text(f"by {field}", "dim"))
        for row in rows[:_MAX_ROWS]:
            add(row, "  ")
        if len(rows) > _MAX_ROWS:
            table.add_row(Text(f"  and {len(rows) - _MAX_ROWS} more", "dim"))
    return table


def _lines(summary: Summary) -> list[str]:
    primary = summary.primary
    said = f"{primary.name} {number(primary.value)}"
    if primary.ci95:
        said += f"  (95 %: {interval(primary)}, n={primary.n})"
    lines = [said]
    lines.append(
        "  ".join(
            f"{label} {number(chunk.value)} chunk, {number(doc.value)} doc"
            for label, chunk, doc in summary.singles[:2]
        )
    )
    for field, cells in summary.slices:
        if field == "group" or len(cells) < 2:
            continue
        shown = "  ".join(
            f"{row.value} {number(row.scores[0])} (n={row.n})" for row in cells[:_MAX_CELLS]
        )
        more = f"  and {len(cells) - _MAX_CELLS} more" if len(cells) > _MAX_CELLS else ""
        lines.append(f"by {field}: {shown}{more}")
    lines.append(
        f"latency p50 {milliseconds(summary.latency_ms['p50'])}, "
        f"p95 {milliseconds(summary.latency_ms['p95'])}; "
        f"failed {summary.failed} of {summary.total}"
    )
    lines.append(f"empty results: {empty_results(summary)}")
    if summary.missed:
        lines.append(summary.missed)
    if summary.answers:
        lines.append(f"answers: {summary.answers}")
    return [*lines, *(f"note: {note}" for note in summary.notes)]
