"""This project's own golden format: one query a line, everything kept.

It is what a record keeps as ``golden.jsonl``, so a run's golden set can be used again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.golden.entries import Entry
from kebab_eval.records import LEVELS, GoldenQuery
from kebab_eval.yaml_source import read_text

# What reading JSON of any shape can raise: wrong types, wrong values, missing keys, too deep.
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


def is_jsonl_set(path: Path) -> bool:
    """Say whether the first line of a file is a golden query as this project writes it."""
    lines = read_text(path, GoldenError, "golden set").splitlines()
    first = next((line for line in lines if line.strip()), "")
    try:
        data = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and {"query_id", "judgments"} <= data.keys()


def read_jsonl_set(path: Path, faults: list[Fault]) -> list[Entry]:
    """Return the queries of a file; what is wrong is added to ``faults``.

    Raises:
        GoldenError: the file cannot be read at all.
    """
    entries = []
    text = read_text(path, GoldenError, "golden set")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            query = _query(json.loads(line), place)
        except _DAMAGE as wrong:
            said = f"{wrong} is missing" if isinstance(wrong, KeyError) else str(wrong)
            message = f"not a golden query ({' '.join(said.split())[:200]})"
            faults.append(Fault(place, message, "unreadable"))
            continue
        places = {(level, item): place for level in LEVELS for item in query.judgments.at(level)}
        entries.append(Entry(query, places))
    if not entries and not faults:
        message = "golden set is empty; it needs at least one query"
        faults.append(Fault(str(path), message, "empty"))
    return entries


def _query(data: Any, place: str) -> GoldenQuery:
    from dataclasses import replace

    query = GoldenQuery.from_json(data)
    if not query.query_id.strip() or not query.query.strip():
        raise ValueError("query_id and query must not be empty")
    # The chunks that a record resolved are its chunker's; this run finds its own.
    spans = tuple(replace(span, chunk_ids=None, place=place) for span in query.spans)
    return replace(query, spans=spans, place=place)
