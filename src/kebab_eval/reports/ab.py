"""Several candidates against one baseline, as text, Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kebab_eval.comparison import Comparison
from kebab_eval.comparison.model import Delta
from kebab_eval.reports.compare_words import interval_text, p_text, p_value, plural, signed
from kebab_eval.reports.markdown import escape, table
from kebab_eval.reports.summary import DASH, number
from kebab_eval.reports.texts import encodable, one_line
from kebab_eval.stats import holm

AB_SCHEMA = "kebab_eval.ab.v1"
_TITLES = ("", "score", "diff", "95 % interval", "p", "Holm", "", "wins", "losses", "regressions")


@dataclass(frozen=True, slots=True)
class Standing:
    """How one candidate stands against the baseline; ``p_holm`` is over all candidates."""

    comparison: Comparison
    p_holm: float

    @property
    def delta(self) -> Delta:
        return self.comparison.deltas[self.comparison.primary]

    @property
    def name(self) -> str:
        return self.comparison.candidate.name

    @property
    def says(self) -> str:
        """``better`` or ``worse`` beyond chance after the correction, else ``unclear``."""
        gain = self.delta.gain
        if gain is None or self.p_holm > 0.05 or gain == 0:
            return "unclear"
        return "better" if gain > 0 else "worse"


def standings(comparisons: Sequence[Comparison]) -> tuple[Standing, ...]:
    """Return the candidates in the order given, corrected for their number."""
    deltas = [one.deltas[one.primary] for one in comparisons]
    corrected = holm([delta.p_value for delta in deltas])
    return tuple(Standing(*pair) for pair in zip(comparisons, corrected, strict=True))


def verdict(found: Sequence[Standing]) -> str:
    """Return which candidate to take, if any."""
    primary = found[0].comparison.primary
    before = found[0].comparison.baseline.name
    better = sorted(
        (one for one in found if one.says == "better"), key=lambda one: -(one.delta.gain or 0.0)
    )
    if not better:
        count = plural(len(found), "candidate")
        return f"no winner: of {count} none is better than {before} by {primary} beyond chance"
    first = better[0]
    said = f"{first.name} wins: {primary} {signed(first.delta.delta)} against {before}"
    said += f" ({p_text(first.p_holm)} after correction for {plural(len(found), 'candidate')})"
    if len(better) > 1:
        others = ", ".join(one.name for one in better[1:])
        said += f"; {others} too, and whether {first.name} is better than that was not tested"
    return said


def render_ab(found: Sequence[Standing], form: str) -> str:
    """Return the table.

    Args:
        form: ``text``, ``md``, ``json`` or ``csv``.
    """
    if form == "json":
        return encodable(json.dumps(to_json(found), ensure_ascii=False, indent=2)) + "\n"
    if form == "csv":
        return _csv(found)
    rows = [_base(found[0].comparison), *map(_row, found)]
    if form == "md":
        lines = [
            f"# {escape(_title(found))}",
            "",
            f"{escape(verdict(found))}.",
            "",
            *table(list(_TITLES), [[escape(cell) for cell in row] for row in rows]),
        ]
        return "\n".join(lines) + "\n"
    cells = [[one_line(cell) for cell in row] for row in (list(_TITLES), *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_TITLES))]
    lines = [one_line(_title(found)), one_line(verdict(found)), ""]
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines) + "\n"


def to_json(found: Sequence[Standing]) -> dict[str, Any]:
    """Return the standings and each comparison as plain data."""
    return {
        "schema_version": AB_SCHEMA,
        "primary": found[0].comparison.primary,
        "baseline": {
            "run_id": found[0].comparison.baseline.run_id,
            "name": found[0].comparison.baseline.name,
        },
        "verdict": verdict(found),
        "candidates": [
            {
                "name": one.name,
                "says": one.says,
                "p_holm": one.p_holm,
                "comparison": one.comparison.to_json(),
            }
            for one in found
        ],
    }


def _title(found: Sequence[Standing]) -> str:
    first = found[0].comparison
    names = ", ".join(one.name for one in found)
    return f"{names} against {first.baseline.name}, by {first.primary}"


def _base(first: Comparison) -> list[str]:
    before = first.deltas[first.primary].baseline
    return [first.baseline.name, number(before), "base", *[DASH] * 7]


def _row(one: Standing) -> list[str]:
    counts = one.comparison.counts
    return [
        one.name,
        number(one.delta.candidate),
        signed(one.delta.delta),
        interval_text(one.delta),
        p_value(one.delta.p_value),
        p_value(one.p_holm),
        one.says,
        *(str(counts[kind]) for kind in ("win", "loss", "regression")),
    ]


def _csv(found: Sequence[Standing]) -> str:
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    kinds = ("win", "loss", "draw", "regression")
    writer.writerow(
        ["name", "run_id", "primary", "baseline", "candidate", "delta", "ci95_low", "ci95_high",
         "p_value", "p_holm", "says", *kinds]
    )  # fmt: skip
    for one in found:
        low, high = one.delta.ci95 or (None, None)
        side = one.comparison.candidate
        facts = [one.delta.baseline, one.delta.candidate, one.delta.delta, low, high]
        writer.writerow(
            [side.name, side.run_id, one.comparison.primary, *facts, one.delta.p_value, one.p_holm,
             one.says, *(one.comparison.counts[kind] for kind in kinds)]
        )  # fmt: skip
    return output.getvalue()
