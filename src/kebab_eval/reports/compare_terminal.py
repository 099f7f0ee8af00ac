"""A comparison on a terminal: the verdict first, the queries that changed last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kebab_eval.comparison import Comparison
from kebab_eval.reports import compare_words as words
from kebab_eval.reports.summary import number
from kebab_eval.reports.texts import one_line

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_QUERIES = 10
_WIDE = 100
_CELL = 30
_STYLES = {"better": "bold green", "worse": "bold red"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print what a user wants to know first. Texts are printed as they are, never as markup."""
    from rich.text import Text

    def say(text: str, style: str = "") -> None:
        console.print(Text(one_line(text), style), soft_wrap=True)

    head = words.head(comparison)
    say(head.title, "bold")
    say(head.lever)
    console.print()
    say(head.verdict, _STYLES.get(comparison.verdict, "bold"))
    for text in (head.belief, head.beside):
        if text:
            say(text)
    for text in head.warnings:
        say(f"mind: {text}", "yellow")
    console.print()
    for text in (
        *head.counts,
        words.latency_text(comparison),
        words.failed_text(comparison),
        *comparison.notes,
    ):
        say(text)
    console.print()
    _print_metrics(comparison, console)
    if comparison.judgment_changes:
        console.print()
        for change in comparison.judgment_changes:
            say(words.judgment_text(change))
    if comparison.slices:
        console.print()
        _print_slices(comparison, console)
    _print_changed(comparison, console)


def _print_metrics(comparison: Comparison, console: Console) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    wide = console.width >= _WIDE
    # On a narrow terminal p and the detectable difference of the first metric stand in the verdict.
    for name in ("before", "after", "diff", "95 % interval", *(("p",) if wide else ()), "Holm"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("detect", "n") if wide else ():
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for delta in comparison.deltas.values():
        said = words.says(delta, primary=delta.metric == comparison.primary)
        table.add_row(
            delta.metric,
            number(delta.baseline),
            number(delta.candidate),
            words.signed(delta.delta),
            words.interval_text(delta),
            *((words.p_value(delta.p_value),) if wide else ()),
            words.p_value(delta.p_holm),
            *((number(delta.detectable), str(delta.n)) if wide else ()),
            said,
            style=_STYLES.get(said, "").removeprefix("bold "),
        )
    console.print(table)


def _print_slices(comparison: Comparison, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"by {comparison.primary}", no_wrap=True)
    for name in ("n", "before", "after", "diff", "95 % interval", "Holm"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for part in comparison.slices:
        delta = part.delta
        table.add_row(
            Text(one_line(f"{part.field} {part.value}")),
            str(delta.n),
            number(delta.baseline),
            number(delta.candidate),
            words.signed(delta.delta),
            words.interval_text(delta),
            words.p_value(delta.p_holm),
            words.against(part),
        )
    console.print(table)


def _print_changed(comparison: Comparison, console: Console) -> None:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    changed = comparison.changed
    if not changed:
        return
    console.print()
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    rows = [
        (
            line.kind,
            one_line(line.query_id),
            one_line(words.note_text(line, comparison)),
            words.signed(line.delta),
            one_line(line.query),
        )
        for line in changed[:SHOWN_QUERIES]
    ]
    for place, name in enumerate(("changed", "query", "first expected hit", "diff")):
        widest = max(cell_len(text) for text in (name, *(row[place] for row in rows)))
        side: Literal["left", "right"] = "right" if name == "diff" else "left"
        table.add_column(name, no_wrap=True, justify=side, width=min(widest, _CELL))
    table.add_column("", no_wrap=True, ratio=1)  # the text of the query takes what is left
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    if len(changed) > SHOWN_QUERIES:
        more = len(changed) - SHOWN_QUERIES
        console.print(Text(f"and {more} more; -o compare.html shows all with their hits"))
