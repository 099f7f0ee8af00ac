"""Per-query rows as Parquet, for runs whose JSON lines take a notebook too long to read."""

from __future__ import annotations

import io
from typing import Any

from kebab_eval.records import EvalRun, QueryResult

PARQUET_FILE = "per_query.parquet"
FROM_QUERIES = 10_000
"""Runs of more queries than this have the file beside their JSON lines."""

_ROWS = 20_000  # a row group


def render_parquet(run: EvalRun) -> bytes:
    """Return one row a query: its facts, its hits as a list of structs, a column for each metric.

    An undefined metric is null. Texts are as they were recorded; the snippets are left out.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    hit = pa.struct(
        [
            ("rank", pa.int32()),
            ("chunk_id", pa.string()),
            ("doc_id", pa.string()),
            ("score", pa.float64()),
        ]
    )
    metrics = sorted({name for result in run.results for name in result.metrics})
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("query_id", "query", "mode", "error", "miss_stage")),
            ("latency_ms", pa.float64()),
            ("hits", pa.list_(hit)),
            *((name, pa.float64()) for name in metrics),
        ]
    )
    output = io.BytesIO()
    with pq.ParquetWriter(output, schema, compression="zstd") as writer:
        for start in range(0, len(run.results), _ROWS):
            rows = [_row(result, metrics) for result in run.results[start : start + _ROWS]]
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return output.getvalue()


def _row(result: QueryResult, metrics: list[str]) -> dict[str, Any]:
    facts = {
        "query_id": result.query_id,
        "query": result.query,
        "mode": result.mode,
        "error": result.error,
        "miss_stage": result.miss_stage,
    }
    return {
        **{name: None if text is None else _text(text) for name, text in facts.items()},
        "latency_ms": result.latency_ms,
        "hits": [
            {
                "rank": hit.rank,
                "chunk_id": _text(hit.chunk_id),
                "doc_id": _text(hit.doc_id),
                "score": hit.score,
            }
            for hit in result.hits
        ],
        **{name: result.metrics.get(name) for name in metrics},
    }


def _text(text: str) -> str:
    """Return a text that UTF-8 can hold, without secrets, as every other file of a record."""
    from kebab_eval.redaction import redact

    return redact(text).encode("utf-8", "backslashreplace").decode()
