"""Per-query rows: the CSV for a spreadsheet, and the table that MLflow's artifact view compares."""

from __future__ import annotations

import csv
import io
from typing import Any

from kebab_eval.records import EvalRun
from kebab_eval.reports.summary import QueryLine, summarise
from kebab_eval.reports.texts import visible

# Spreadsheets of East Asian locales take the full-width forms for formulas too.
_SPREADSHEET_FORMULA = (*"=+-@", *"＝＋－＠", "\t", "\n")


def render_csv(run: EvalRun) -> str:
    """Return one row a query: what it is, how it went, and each metric; undefined stays empty."""
    lines = summarise(run).lines
    metrics = sorted({name for line in lines for name in line.result.metrics})
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow([*_FACTS, *map(_cell, metrics)])
    for line in lines:
        facts = [_cell(value) for value in _facts(line).values()]
        writer.writerow([*facts, *(line.result.metrics.get(name, "") for name in metrics)])
    return output.getvalue()


def render_pair_csv(baseline: EvalRun, candidate: EvalRun) -> str:
    """Return one row a query of two runs: the primary metric, rank, hits and time of each side."""
    primary = baseline.config["metrics"]["primary"]
    sides = [
        {line.golden.query_id: line for line in summarise(run).lines}
        for run in (baseline, candidate)
    ]
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    each = (primary, *_OF_A_SIDE)
    columns = [f"{side}_{name}" for side in ("baseline", "candidate") for name in each]
    writer.writerow(["query_id", "query", *columns, "delta"])
    for query_id, line in sides[0].items():
        row = [_cell(query_id), _cell(line.golden.query)]
        for side in sides:
            found = side.get(query_id)
            facts = {} if found is None else _facts(found)
            row.append(_cell(None if found is None else found.score))
            row += [_cell(facts.get(name)) for name in _OF_A_SIDE]
        scores = [None if (one := side.get(query_id)) is None else one.score for side in sides]
        row.append("" if None in scores else scores[1] - scores[0])  # type: ignore[operator]  # neither is None
        writer.writerow(row)
    return output.getvalue()


def per_query_table(run: EvalRun) -> dict[str, Any]:
    """Return the rows as MLflow's table artifact: columns and data.

    The column after the id is the one that MLflow's comparison opens on; columns that hold nothing
    are left out.
    """
    primary = run.config["metrics"]["primary"]
    rows = []
    for line in summarise(run).lines:
        facts = _facts(line)
        hits = "\n".join(f"{hit.rank}. {hit.chunk_id}" for hit in line.result.hits[:5])
        rows.append(
            {"query_id": facts.pop("query_id"), "top_hits": hits, primary: line.score, **facts}
        )
    columns = (
        [name for name in rows[0] if any(row[name] is not None for row in rows)] if rows else []
    )
    return {"columns": columns, "data": [[row[name] for name in columns] for row in rows]}


_OF_A_SIDE = ("first_relevant_rank", "hits", "latency_ms", "error")
_FACTS = (
    "query_id",
    "query",
    "language",
    "category",
    "difficulty",
    "group",
    "first_relevant_rank",
    "hits",
    "latency_ms",
    "error",
)


def _facts(line: QueryLine) -> dict[str, Any]:
    query, result = line.golden, line.result
    latency = None if result.latency_ms is None else round(result.latency_ms, 3)
    values = (
        query.query_id,
        query.query,
        query.language,
        query.category,
        query.difficulty,
        query.group,
        line.first_relevant,
        len(result.hits),
        latency,
        result.error,
    )
    return dict(zip(_FACTS, values, strict=True))


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula is quoted the way spreadsheets expect."""
    if not isinstance(value, str):
        return "" if value is None else value
    # The writer would leave a lone carriage return unquoted, which ends a row for every reader.
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    return visible("'" + value if value.startswith(_SPREADSHEET_FORMULA) else value)
