"""Plots as SVG texts: the same input gives the same bytes, and no font is embedded."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kebab_eval.records import EvalRun
from kebab_eval.reports.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INK, _ACCENT, _MISS = "#475569", "#2563eb", "#dc2626"
_RC: dict[str, Any] = {
    "svg.hashsalt": "kebab-eval",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def rank_plot(summary: Summary, depth: int) -> str:
    """Return how many queries had their first relevant hit at each rank, and how many missed.

    Args:
        depth: how many hits were asked for.
    """
    item = "chunk" if all(line.level == "chunk" for line in summary.lines) else "document"
    counts = [0] * depth
    missed = 0
    for line in summary.lines:
        if not (line.golden.judgments.chunk or line.golden.judgments.doc):
            continue
        if line.first_relevant is None or line.first_relevant > depth:
            missed += 1
        else:
            counts[line.first_relevant - 1] += 1
    shown = min(depth, 20)
    heights = [*counts[:shown], sum(counts[shown:]), missed]
    labels = [*(str(rank) for rank in range(1, shown + 1)), f">{shown}", "miss"]
    if depth <= shown:
        del heights[-2], labels[-2]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        colours = [_ACCENT] * (len(heights) - 1) + [_MISS]
        bars = axes.bar(range(len(heights)), heights, color=colours)
        axes.bar_label(bars, labels=[str(h) if h else "" for h in heights], fontsize=8)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlabel(f"rank of the first hit with an expected {item}")
        axes.set_ylabel("queries")

    return svg(draw, width=6.4, height=2.8)


def metrics_plot(summary: Summary) -> str:
    """Return the document-level (else chunk-level) metrics against the cutoff."""
    level = "doc" if any(row.level == "doc" for row in summary.grid) else "chunk"
    rows = [row for row in summary.grid if row.level == level]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places = range(len(summary.cutoffs))
        for row in rows:
            values = [float("nan") if value is None else value for value in row.values]
            axes.plot(places, values, marker="o", label=row.label)
        axes.set_xticks(places, [f"@{k}" for k in summary.cutoffs])
        axes.set_ylim(0, 1)
        axes.set_ylabel(f"{level} level")
        if rows:
            axes.legend(frameon=False, fontsize=8, ncols=2)

    return svg(draw, width=6.4, height=2.8)


def latency_plot(run: EvalRun) -> str:
    """Return how many queries took how long, with p50 and p95; empty below two timed queries."""
    import numpy as np

    times = [r.latency_ms for r in run.results if r.error is None and r.latency_ms is not None]
    if len(times) < 2 or min(times) <= 0:
        return ""
    # Latencies spread over orders of magnitude: bins of one ratio show both ends.
    edges = np.geomspace(min(times), max(times) * 1.0001, min(30, len(times)) + 1)
    counts = np.histogram(times, edges)[0]
    marks = {name: float(np.percentile(times, share)) for name, share in (("p50", 50), ("p95", 95))}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=_ACCENT)
        for name, value in marks.items():
            axes.axvline(value, color=_MISS if name == "p95" else _INK, linewidth=1)
            axes.annotate(
                name,
                (value, 1),
                xycoords=("data", "axes fraction"),
                fontsize=8,
                ha="left",
                va="top",
            )
        if edges[-1] / edges[0] > 10:
            axes.set_xscale("log")
        axes.set_xlabel("latency of a search in ms")
        axes.set_ylabel("queries")

    return svg(draw, width=6.4, height=2.8)


def svg(draw: Callable[[Figure], None], *, width: float, height: float) -> str:
    """Return what ``draw`` puts on a figure, in inches, as SVG."""
    # Figure and its canvas alone: pyplot costs start-up time and keeps global state.
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with rc_context(_RC):
        figure = Figure(figsize=(width, height), layout="tight")
        FigureCanvasSVG(figure)
        draw(figure)
        output = io.StringIO()
        figure.savefig(
            output, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = output.getvalue()
    return text[text.index("<svg") :]  # without the XML prologue, so that HTML can hold it
