"""TREC files line by line: slower than :mod:`trec_plain`, but it names every fault."""

from __future__ import annotations

import math
import re
from pathlib import Path

from kebab_eval.formats.columns import Columns, Rows, What
from kebab_eval.formats.lines import numbered_lines
from kebab_eval.metrics.ranktable import normalise_id

#: What a line holds. A run's tag may be followed by more words, which trec_eval passes over.
LAYOUT: dict[What, tuple[str, ...]] = {
    "judgments": ("query", "iteration", "item", "grade"),
    "run": ("query", "Q0", "item", "rank", "score", "tag"),
}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_strictly(path: Path, what: What) -> Columns:
    """Return the columns of qrels or of a run.

    Fields are separated by tabs where a line has exactly as many as its columns need (ids may then
    hold spaces), and otherwise by white space.

    Raises:
        FormatError: with every malformed line.
    """
    layout = LAYOUT[what]
    rows = Rows(str(path))
    for number, line in numbered_lines(path):
        fields = split_line(line, len(layout))
        if len(fields) < len(layout) or (what == "judgments" and len(fields) > len(layout)):
            rows.fault(
                number,
                f"{len(fields)} fields where a line has {len(layout)}: {' '.join(layout)}",
            )
            continue
        try:
            query, item = fields[0].decode(), fields[2].decode()
            text = fields[len(layout) - (1 if what == "judgments" else 2)].decode()
        except UnicodeDecodeError as error:
            rows.fault(number, f"not UTF-8 ({error.reason}); convert the file")
            continue
        fault = number_fault(text, what)
        if not query or not item:
            fault = "an id is empty"
        if fault:
            rows.fault(number, fault)
            continue
        rows.add(number, normalise_id(query), normalise_id(item), float(text))
    return rows.columns()


def split_line(line: bytes, n_columns: int) -> list[bytes]:
    """Return the fields of a line; white space is ASCII's, as any other may stand in an id."""
    if line.count(b"\t") == n_columns - 1:
        return [field.strip() for field in line.split(b"\t")]
    return line.split()


def number_fault(text: str, what: What) -> str:
    """Return why a text is no grade or no score, or an empty string."""
    if what == "judgments":
        if _INTEGER.fullmatch(text) and len(text) < 16:
            return ""
        return f"the grade is {text!r}; a grade is a whole number"
    if _DECIMAL.fullmatch(text):
        return (
            "" if math.isfinite(float(text)) else f"the score {text!r} is beyond double precision"
        )
    hint = "; write the decimal point as '.'" if "," in text else ""
    return f"the score is {text!r}; a score is a finite decimal number{hint}"
