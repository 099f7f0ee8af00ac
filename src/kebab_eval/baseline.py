"""A frozen baseline: one file that stands in for a run wherever a run is wanted.

It holds the scores as people read them (overall, by category, by language, by ``ocr_derived``) and
the whole record behind them. Pure: text and plain data in, text and plain data out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kebab_eval.errors import Fault, UsageError
from kebab_eval.metrics.slices import slice_values
from kebab_eval.records import EvalRun, GoldenQuery, GoldenSet, QueryResult

BASELINE_SCHEMA = "kebab_eval.baseline.v1"
DEFAULT_LABEL = "default"
SLICED = ("category", "language", "ocr_derived")

_NAME = re.compile(r"[\w][\w.-]{0,79}\Z")
_SCHEMA = re.compile(r"kebab_eval\.baseline\.v(\d+)\Z")
_LINES = ("queries", "per_query")  # lists that stand one item a line, so that a diff can be read


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a frozen baseline says of itself; ``frozen_at`` is UTC, RFC 3339."""

    version: str
    label: str
    frozen_at: str

    @property
    def stem(self) -> str:
        """The name of its two files without their endings."""
        name = f"v{self.version}_baseline_{self.frozen_at[:10]}"
        return name if self.label == DEFAULT_LABEL else f"{name}_{self.label}"


def check_label(label: str, option: str) -> str:
    """Return a label or a version that can be part of a file name.

    Raises:
        UsageError: it cannot.
    """
    if not _NAME.match(label):
        message = (
            f"{label[:90]!r} cannot be part of a file name; take letters, digits, '_', '.' and "
            "'-', 80 at most, beginning with a letter or a digit"
        )
        raise UsageError(Fault(option, message))
    return label


def version_of(golden: GoldenSet) -> str:
    """Return a golden set's version as part of a file name: ``v0.2`` and ``0.2`` are one."""
    version = re.sub(r"[^\w.-]+", "-", golden.version).strip("-.")[:40] or "0"
    return version[1:] if re.match(r"[vV]\d", version) else version


def freeze(run: EvalRun, frozen: Frozen) -> str:
    """Return the text of the frozen file."""
    info = {key: value for key, value in run.info.items() if key != "baselines"}
    document = {
        "schema_version": BASELINE_SCHEMA,
        "version": frozen.version,
        "label": frozen.label,
        "frozen_at": frozen.frozen_at,
        "run_name": run.name,
        "primary": run.config["metrics"]["primary"],
        "overall": scores(run, run.golden.queries),
        **{f"by_{field}": by_slice(run, field) for field in SLICED},
        "run": info,
        "config": dict(run.config),
        "golden": {
            "name": run.golden.name,
            "version": run.golden.version,
            "digest": run.golden.digest,
            "min_relevance": run.golden.min_relevance,
            "path": run.golden.path,
            "format": run.golden.format,
            "queries": [query.to_json() for query in run.golden.queries],
        },
        "aggregate": dict(run.aggregate),
        "per_query": [result.to_json() for result in run.results],
    }
    return _dump(document, 0) + "\n"


def thaw(data: Mapping[str, Any]) -> tuple[Frozen, EvalRun]:
    """Return the run that a frozen file stands for.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the data is not a frozen baseline.
    """
    check_schema(data)
    golden = data["golden"]
    info = dict(data["run"])
    missing = [key for key in ("id", "name", "status", "golden", "system") if key not in info]
    if missing:
        raise ValueError(f"'run' is without {', '.join(map(repr, missing))}")
    aggregate = dict(data["aggregate"])
    if "metrics" not in aggregate:
        raise KeyError("aggregate.metrics")
    run = EvalRun(
        info,
        dict(data["config"]),
        GoldenSet(
            name=str(golden["name"]),
            version=str(golden["version"]),
            digest=str(golden["digest"]),
            queries=tuple(GoldenQuery.from_json(query) for query in golden["queries"]),
            min_relevance=float(golden["min_relevance"]),
            path=str(golden["path"]),
            format=str(golden.get("format", "kebab")),
        ),
        tuple(QueryResult.from_json(result) for result in data["per_query"]),
        aggregate,
    )
    return frozen_of(data), run


def check_schema(data: Mapping[str, Any]) -> None:
    """Hold that data is a frozen baseline of a version that is read here.

    Raises:
        ValueError: it is not.
    """
    schema = data.get("schema_version")
    match = _SCHEMA.match(schema) if isinstance(schema, str) else None
    if match is None:
        raise ValueError(
            f"schema_version is {schema!r}, expected {BASELINE_SCHEMA!r}: "
            "'kebab-eval baseline freeze' writes such files"
        )
    if schema != BASELINE_SCHEMA:
        raise ValueError(
            f"schema_version {schema!r} is of another version than {BASELINE_SCHEMA!r}"
        )


def frozen_of(data: Mapping[str, Any]) -> Frozen:
    return Frozen(str(data["version"]), str(data["label"]), str(data["frozen_at"]))


def by_slice(run: EvalRun, field: str) -> dict[str, dict[str, Any]]:
    """Return value -> scores for each value that a field has."""
    members: dict[str, list[GoldenQuery]] = {}
    for query in run.golden.queries:
        value = slice_values(query).get(field)
        if value is not None:
            members.setdefault(value, []).append(query)
    return {value: scores(run, members[value]) for value in sorted(members)}


def scores(run: EvalRun, queries: Iterable[GoldenQuery]) -> dict[str, Any]:
    """Return the scores of some of a run's queries, each metric with its own n."""
    results = {result.query_id: result for result in run.results}
    rows = [results[query.query_id] for query in queries if query.query_id in results]
    times = [r.latency_ms for r in rows if r.error is None and r.latency_ms is not None]
    judged = [r.metrics["failure_correct"] for r in rows if "failure_correct" in r.metrics]
    percentiles = np.percentile(times, (50, 95)).tolist() if times else (None, None)
    return {
        "n": len(rows),
        "failed": sum(row.error is not None for row in rows),
        "metrics": {name: _mean(rows, name) for name in run.aggregate["metrics"]},
        "latency_ms": dict(zip(("p50", "p95"), percentiles, strict=True)),
        "failure_precision": {"correct": int(sum(judged)), "total": len(judged)},
    }


def _mean(rows: Sequence[QueryResult], name: str) -> dict[str, Any]:
    values = [row.metrics[name] for row in rows if name in row.metrics]
    return {"value": math.fsum(values) / len(values) if values else None, "n": len(values)}


def _dump(value: Any, depth: int) -> str:
    """Return JSON with sections indented and what belongs together on one line."""
    if not isinstance(value, Mapping) or not value or depth > 2:
        return _line(value)
    inner, outer = "  " * (depth + 1), "  " * depth
    parts = []
    for key, child in value.items():
        if key in _LINES and isinstance(child, list) and child:
            items = f",\n{inner}  ".join(map(_line, child))
            text = f"[\n{inner}  {items}\n{inner}]"
        else:
            text = _dump(child, depth + 1)
        parts.append(f"{inner}{json.dumps(str(key), ensure_ascii=False)}: {text}")
    return "{\n" + ",\n".join(parts) + f"\n{outer}}}"


_line: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
