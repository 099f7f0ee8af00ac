"""The one mapping from our names to MLflow's: params, metrics, tags, and the links of the UI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

TAG_RECORD = "kebab_eval.record_id"
MAX_KEY, MAX_PARAM, MAX_TAG = 250, 6000, 8000

# The config keys that have a standard name, shared by every backend: the system's own snapshot
# fills them, so that a search for `params.rrf_k` finds runs of all systems.
STANDARD_PARAMS = {
    "chunking.version": "chunker_version",
    "fusion.rrf_k": "rrf_k",
    "score_gate": "score_gate",
    "search.mode": "mode",
    "search.k": "k",
}
# Keys that name or steer a run without deciding what is measured: tags or nothing, never params,
# so that the params of two runs differ in the lever alone.
_NOT_PARAMS = ("name", "experiment", "lever", "golden", "suites", "tracking", "execution", "tags")
_SLICES_LOGGED = ("language", "category", "difficulty", "ocr_derived")
_FORBIDDEN = re.compile(r"[^\w\-. :]")
_ANSWER_METRICS = frozenset({"groundedness", "citation_coverage", "refusal_correctness"})


def run_params(config: Mapping[str, Any], snapshot: Mapping[str, Any]) -> dict[str, str]:
    """Return the params of a run: the system's snapshot, then the config flattened with dots.

    Args:
        config: the recorded config (secrets as references).
        snapshot: what the system under test says of itself, by standard name.
    """
    params = {STANDARD_PARAMS.get(key, key): _text(value) for key, value in flatten(config)}
    params.update({key: _text(value) for key, value in snapshot.items()})
    return {key: value[:MAX_PARAM] for key, value in sorted(params.items())}


def flatten(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) for each config key that says what is measured."""
    for key, value in config.items():
        if not prefix and key in _NOT_PARAMS:
            continue
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def run_metrics(aggregate: Mapping[str, Any], primary: str) -> dict[str, float]:
    """Return the metrics of a run by MLflow key. An undefined metric is not logged, its n is."""
    metrics: dict[str, float] = {}
    for name, entry in aggregate["metrics"].items():
        family = "answer" if name in _ANSWER_METRICS else "retrieval"
        if entry["value"] is None or name == primary:
            metrics[f"count/scored_{name}"] = entry["n"]
        if entry["value"] is not None:
            metrics[f"{family}/{name}"] = entry["value"]
    for name, value in aggregate["latency_ms"].items():
        if value is not None:
            metrics[f"latency/{name}_ms"] = value
    metrics["count/queries"] = aggregate["total_queries"]
    metrics["count/failed_queries"] = aggregate["failed_queries"]
    metrics["count/duplicate_hits"] = aggregate["duplicate_hits"]
    for field in _SLICES_LOGGED:
        for value, cells in aggregate["slices"].get(field, {}).items():
            if cells.get(primary) is not None:
                metrics[f"by_{field}/{key_part(value)}"] = cells[primary]
    return {key[:MAX_KEY]: float(value) for key, value in metrics.items()}


def key_part(text: str) -> str:
    """Return a text as part of an MLflow key: letters of any script, digits, ``_ - . :``, space."""
    return _FORBIDDEN.sub("_", str(text)).strip() or "_"


def public_uri(uri: str) -> str:
    """Return a URI without user and password, fit for records, logs and the terminal."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def run_url(base: str, experiment_id: str, run_id: str) -> str:
    return f"{base}/#/experiments/{experiment_id}/runs/{run_id}"


def compare_url(base: str, experiment_id: str, run_ids: list[str]) -> str:
    """Return the page that shows params (differences first) and metrics of runs side by side."""
    runs = quote(json.dumps(run_ids, separators=(",", ":")))
    experiments = quote(json.dumps([experiment_id]))
    return f"{base}/#/compare-runs?runs={runs}&experiments={experiments}"
