"""Writing this project's own lines, which hold everything that a query says."""

from __future__ import annotations

import json
from dataclasses import replace

from kebab_eval.golden.losses import Losses
from kebab_eval.golden.yaml_text import number
from kebab_eval.records import GoldenQuery, GoldenSet


def write_jsonl(golden: GoldenSet, losses: Losses) -> dict[str, str]:
    """Return one line for each query."""
    if golden.min_relevance != 1:
        why = f"set golden.min_relevance: {number(golden.min_relevance)} when you use it"
        losses.change("min_relevance", len(golden.queries), "queries", why)
    if golden.version != "1":
        losses.drop("version", 1, "sets", f"it is {golden.version!r}; set golden.version")
    return {"": "".join(f"{_line(query)}\n" for query in golden.queries)}


def _line(query: GoldenQuery) -> str:
    # The chunks that a run resolved are its chunker's.
    spans = tuple(replace(span, chunk_ids=None) for span in query.spans)
    return json.dumps(replace(query, spans=spans).to_json(), ensure_ascii=False)
