"""A sweep as text, Markdown, JSON, CSV and curves."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kebab_eval.reports.compare_words import p_text, p_value, plural, signed
from kebab_eval.reports.markdown import escape, table
from kebab_eval.reports.plots import svg
from kebab_eval.reports.summary import DASH, number
from kebab_eval.reports.texts import encodable, one_line
from kebab_eval.sweeping import MAX_TESTED, Gate, Holdout, Point, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("text", "md", "json", "csv")
_ROWS = 24
_LINES = 6  # in one plot


def render_sweep(sweep: Sweep, form: str) -> str:
    """Return a sweep.

    Args:
        form: ``text``, ``md``, ``json``, ``csv`` or ``svg``, the curve.
    """
    if form == "json":
        return encodable(json.dumps(sweep.to_json(), ensure_ascii=False, indent=2)) + "\n"
    if form == "csv":
        return _csv(sweep)
    if form == "svg":
        return curve(sweep)
    lines = _markdown(sweep) if form == "md" else _text(sweep)
    return "\n".join(lines) + "\n"


def sweep_files(sweep: Sweep) -> dict[str, str]:
    """Return file name -> content of all forms."""
    files = {f"sweep.{form}": render_sweep(sweep, form) for form in ("json", "md", "csv", "svg")}
    if sweep.gate is not None:
        files["gate.svg"] = gate_curve(sweep)
    return files


# --- words ------------------------------------------------------------------------------------


def headline(sweep: Sweep) -> list[str]:
    """Return what a reader must know first, a sentence each."""
    count = len(sweep.points)
    said = [
        f"{plural(count, 'combination')} of {', '.join(sweep.keys)} over "
        f"{plural(sweep.queries, 'query', 'queries')}, by {sweep.primary}; differences from "
        f"{_values(sweep.points[sweep.base])} ({sweep.base_said})"
    ]
    if sweep.tested:
        better = [point for point in sweep.points if point.better]
        worse = [point for point in sweep.points if point.better is False]
        if better or worse:
            said.append(
                f"beyond chance, corrected for {count - 1} values: {len(better)} higher, "
                f"{len(worse)} lower"
            )
        else:
            said.append(f"no value differs beyond chance, corrected for {count - 1} values")
    else:
        said.append(
            f"more than {MAX_TESTED} values are not tested one by one: read the curve and its "
            "intervals"
        )
    if sweep.gate is not None:
        said.append(_gate(sweep.gate))
    if sweep.holdout is not None:
        said.append(_holdout(sweep.holdout, sweep.keys))
    elif count > 2:
        said.append(
            "the highest of many values looks better on the queries that chose it than it is; "
            "--holdout 0.5 chooses on one half and reports on the other"
        )
    return [*said, *(f"mind: {note}" for note in sweep.notes)]


def _gate(gate: Gate) -> str:
    return (
        f"score_gate {gate.threshold:g} (95 %: {gate.ci95[0]:g} to {gate.ci95[1]:g}) balances "
        f"best: {gate.answered:.3f} of {gate.n_answerable} answerable queries answered rightly, "
        f"{gate.refused:.3f} of {gate.n_refusable} without an answer refused rightly"
    )


def _holdout(held: Holdout, keys: Sequence[str]) -> str:
    chosen = ", ".join(f"{key}={_shown(v)}" for key, v in zip(keys, held.values, strict=True))
    interval = (
        "" if held.ci95 is None else f", 95 % {signed(held.ci95[0])} to {signed(held.ci95[1])}"
    )
    return (
        f"holdout: chosen on {held.chosen_on} queries, {chosen} gains {signed(held.gain_there)} "
        f"there and {signed(held.gain)} on the {held.held_out} others{interval}, "
        f"{p_text(held.p_value)}"
    )


def _shown(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _values(point: Point) -> str:
    return ", ".join(map(_shown, point.values))


def _says(point: Point) -> str:
    if point.p_holm is None:
        return ""
    return {True: "higher", False: "lower", None: "unclear"}[point.better]


# --- tables -----------------------------------------------------------------------------------


def _columns(sweep: Sweep) -> tuple[list[str], list[str]]:
    """Return the titles of the table, and which of them are shown at all."""
    further = [name for name in sweep.points[0].metrics if name != sweep.primary]
    titles = [*sweep.keys, sweep.primary, "diff", "95 % interval"]
    titles += ["p", "Holm", ""] if sweep.tested else []
    titles += further
    if any(point.answered is not None for point in sweep.points) and "score_gate" in sweep.keys:
        titles += ["answered", "refused"]
    return titles, further


def _row(sweep: Sweep, point: Point, further: Sequence[str], titles: Sequence[str]) -> list[str]:
    base = point is sweep.points[sweep.base]
    interval = DASH
    if point.ci95 is not None and not base:
        interval = f"{signed(point.ci95[0])} to {signed(point.ci95[1])}"
    cells = [
        *map(_shown, point.values),
        number(point.metrics[sweep.primary]),
        "base" if base else signed(point.delta),
        interval,
    ]
    if sweep.tested:
        cells += [
            DASH if point.p_value is None else p_value(point.p_value),
            DASH if point.p_holm is None else p_value(point.p_holm),
            _says(point),
        ]
    cells += [number(point.metrics[name]) for name in further]
    if "answered" in titles:
        cells += [number(point.answered), number(point.refused)]
    return cells


def _rows(sweep: Sweep, most: int | None) -> tuple[list[str], list[list[str]], int]:
    """Return titles, rows and how many rows are left out: evenly, never the base or the ends."""
    titles, further = _columns(sweep)
    places = list(range(len(sweep.points)))
    if most is not None and len(places) > most:
        step = (len(places) - 1) / (most - 1)
        places = sorted({round(step * place) for place in range(most)} | {sweep.base})
    rows = [_row(sweep, sweep.points[place], further, titles) for place in places]
    return titles, rows, len(sweep.points) - len(places)


def _text(sweep: Sweep) -> list[str]:
    titles, rows, left = _rows(sweep, _ROWS)
    cells = [[one_line(cell) for cell in row] for row in [titles, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    lines = [one_line(sweep.name), *headline(sweep), ""]
    for row in cells:
        padded = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(padded).rstrip())
    if left:
        lines.append(f"and {left} more; -o sweep.csv has all, -o sweep.svg draws them")
    return lines


def _markdown(sweep: Sweep) -> list[str]:
    titles, rows, _ = _rows(sweep, None)
    first, *rest = headline(sweep)
    return [
        f"# {escape(sweep.name)}",
        "",
        f"{escape(first)}.",
        "",
        *(f"- {escape(line)}." for line in rest),
        "",
        *table([escape(title) for title in titles], [[escape(c) for c in row] for row in rows]),
    ]


def _csv(sweep: Sweep) -> str:
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    metrics = list(sweep.points[0].metrics)
    further = ("n", "delta", "ci95_low", "ci95_high", "p_value", "p_holm", "detectable")
    last = ("answered_rightly", "refused_rightly", "run_id")
    writer.writerow([*sweep.keys, *metrics, *further, *last])
    for point in sweep.points:
        low, high = point.ci95 or (None, None)
        facts = (point.n, point.delta, low, high, point.p_value, point.p_holm, point.detectable)
        ends = (point.answered, point.refused, point.run_id)
        writer.writerow([*point.values, *point.metrics.values(), *facts, *ends])
    return output.getvalue()


# --- curves -----------------------------------------------------------------------------------


def curve(sweep: Sweep) -> str:
    """Return the primary metric against the lever as SVG, with the interval of each difference.

    The line across is the base. Where the band of a value holds it, the difference may be noise.
    With several keys there is a line for each combination of the others, the longest key being
    drawn along.
    """
    lengths = [len({repr(point.values[place]) for point in sweep.points}) for place in _keys(sweep)]
    along = max(_keys(sweep), key=lambda place: (lengths[place], -place))
    lines: dict[str, list[Point]] = {}
    for point in sweep.points:
        others = [
            f"{sweep.keys[place]}={_shown(value)}"
            for place, value in enumerate(point.values)
            if place != along
        ]
        lines.setdefault(", ".join(others), []).append(point)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        ticks = _ticks([point.values[along] for point in sweep.points])
        for label, points in list(lines.items())[:_LINES]:
            xs = [_x(point.values[along], ticks) for point in points]
            _line(axes, sweep, dict(zip(xs, points, strict=True)), label)
        base = sweep.points[sweep.base].metrics[sweep.primary]
        if base is not None:
            axes.axhline(base, color="#475569", linewidth=1, linestyle="--", label="base")
        if ticks:
            axes.set_xticks(list(ticks.values()), list(ticks))
        axes.set_xlabel(_plain(sweep.keys[along]))
        axes.set_ylabel(_plain(sweep.primary))
        title = "band: 95 % interval of the difference from the base"
        if len(lines) > _LINES:
            title += f"; {_LINES} of {len(lines)} lines"
        axes.set_title(title, fontsize=8)
        axes.legend(frameon=False, fontsize=8)

    return svg(draw, width=7.2, height=3.6)


def _keys(sweep: Sweep) -> range:
    return range(len(sweep.keys))


def _ticks(values: Sequence[Any]) -> dict[str, int]:
    """Return label -> place for values that are no numbers; empty where all are."""
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
        return {}
    return {
        _plain(_shown(one)): place for place, one in enumerate(dict.fromkeys(map(_key, values)))
    }


def _key(value: Any) -> Any:
    return value if isinstance(value, str | int | float) or value is None else repr(value)


def _x(value: Any, ticks: dict[str, int]) -> float:
    return ticks[_plain(_shown(_key(value)))] if ticks else float(value)


def _line(axes: Axes, sweep: Sweep, points: dict[float, Point], label: str) -> None:
    base = sweep.points[sweep.base].metrics[sweep.primary] or 0.0
    rows = []
    for x, point in sorted(points.items()):
        y = point.metrics[sweep.primary]
        if y is not None:
            low, high = point.ci95 or (0.0, 0.0)
            rows.append((x, y, base + low, base + high))
    if not rows:
        return
    xs, ys, lows, highs = zip(*rows, strict=True)
    marker = "o" if len(rows) <= 40 else None
    (line,) = axes.plot(xs, ys, marker=marker, markersize=3, linewidth=1.4, label=_plain(label))
    axes.fill_between(xs, lows, highs, color=line.get_color(), alpha=0.15, linewidth=0)


def gate_curve(sweep: Sweep) -> str:
    """Return both sides of the score gate against its threshold as SVG, and the best place."""
    place = sweep.keys.index("score_gate")
    points = [
        point
        for point in sweep.points
        if isinstance(point.values[place], int | float) and point.answered is not None
    ]
    points.sort(key=lambda point: float(point.values[place]))
    gate = sweep.gate

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        xs = [float(point.values[place]) for point in points]
        axes.plot(xs, [point.answered or 0.0 for point in points], label="answered rightly")
        axes.plot(xs, [point.refused or 0.0 for point in points], label="refused rightly")
        if gate is not None:
            axes.axvline(gate.threshold, color="#475569", linewidth=1, label="best balance")
            axes.axvspan(*gate.ci95, color="#475569", alpha=0.12, linewidth=0)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("score gate")
        axes.set_ylabel("share of queries")
        axes.legend(frameon=False, fontsize=8)

    return svg(draw, width=7.2, height=3.2)


def _plain(text: str) -> str:
    """Return a text as matplotlib draws it: ``$`` would begin a formula."""
    return one_line(text).replace("$", r"\$")[:60]
