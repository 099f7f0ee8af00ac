"""The one mapping from our names to MLflow's: params, metrics, tags, and the links of the UI."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from kebab_eval.levers import STANDARD_NAMES, levers_of
from kebab_eval.metrics import default_registry

TAG_RECORD = "kebab_eval.record_id"
TAG_GOLDEN = "kebab_eval.golden_digest"
TAG_GATE = "kebab_eval.gate"
TAG_UPLOADED = "kebab_eval.uploaded"
TAG_BASELINE, TAG_FROZEN_AT = "kebab_eval.baseline", "kebab_eval.baseline_frozen_at"
MAX_KEY, MAX_PARAM, MAX_TAG = 250, 6000, 8000

_SLICES_LOGGED = ("language", "category", "difficulty", "ocr_derived")
# User and password of an address, also where it is no valid one: a password may hold / and #, but
# digits after a host are a port.
_USER_INFO = re.compile(r"\A([^/?#]*//)(?:[^/?#@:]+:(?!\d+(?:[/?#]|\Z))\S*@|[^/?#]*@)")
_FORBIDDEN = re.compile(r"[^\w\-. :]")


def run_params(config: Mapping[str, Any], snapshot: Mapping[str, Any]) -> dict[str, str]:
    """Return the params of a run: the system's snapshot, then the config flattened with dots.

    Args:
        config: the recorded config (secrets as references).
        snapshot: what the system under test says of itself, by standard name.
    """
    params = {
        STANDARD_NAMES.get(key, key): _text(value) for key, value in levers_of(config).items()
    }
    params.update({key: _text(value) for key, value in snapshot.items()})
    return {key: value[:MAX_PARAM] for key, value in sorted(params.items())}


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 60 from one system and 60.0 from another are the same lever value
    return json.dumps(value, ensure_ascii=False)


def run_metrics(
    aggregate: Mapping[str, Any], primary: str, eval_version: str = "both"
) -> dict[str, float]:
    """Return the metrics of a run by MLflow key. An undefined metric is not logged, its n is.

    Args:
        eval_version: which scores of a Document Server set are wanted; those of v0.2 are among the
            metrics that every run has.
    """
    registry = default_registry()
    metrics: dict[str, float] = {}
    for name, entry in aggregate["metrics"].items():
        family = registry.parse(name).family.kind
        if entry["value"] is None or name == primary:
            metrics[f"count/scored_{name}"] = entry["n"]
        if entry["value"] is not None:
            metrics[f"{family}/{name}"] = entry["value"]
    for name, value in aggregate["latency_ms"].items():
        if value is not None:
            metrics[f"latency/{name}_ms"] = value
    metrics |= _answers(aggregate.get("answers"))
    metrics["count/queries"] = aggregate["total_queries"]
    metrics["count/failed_queries"] = aggregate["failed_queries"]
    metrics["count/duplicate_hits"] = aggregate["duplicate_hits"]
    for name, entry in _v01_scores(aggregate, eval_version).items():
        if entry["value"] is None:
            metrics[f"count/scored_v0.1_{name}"] = entry["n"]
        else:
            metrics[f"v0.1/{name}"] = entry["value"]
    for field in _SLICES_LOGGED:
        for value, cells in aggregate["slices"].get(field, {}).items():
            if cells.get(primary) is not None:
                metrics[_free_key(f"by_{field}/{key_part(value)}", value, metrics)] = cells[primary]
    return {key[:MAX_KEY]: float(value) for key, value in metrics.items()}


def _answers(answers: Mapping[str, Any] | None) -> dict[str, float]:
    if not answers:
        return {}
    found = {f"count/answers_{name}": answers[name] for name in ("answered", "refused", "failed")}
    found |= {
        f"latency/answer_{name}_ms": ms
        for name, ms in answers["latency_ms"].items()
        if ms is not None
    }
    return found | {f"answer/{name}_tokens": n for name, n in answers["tokens"].items()}


def _v01_scores(aggregate: Mapping[str, Any], eval_version: str) -> Mapping[str, Any]:
    versions = aggregate.get("versions")
    if not versions or eval_version == "v0.2":
        return {}
    scores: Mapping[str, Any] = versions["v0.1"]["scores"]
    return scores


def _free_key(key: str, value: str, taken: Collection[str]) -> str:
    """Return a key that two values do not share: ``c++`` and ``c##`` are both ``c__`` to MLflow."""
    key = key[:MAX_KEY]
    if key not in taken:
        return key
    return f"{key[: MAX_KEY - 9]}_{hashlib.sha256(str(value).encode()).hexdigest()[:8]}"


def key_part(text: str) -> str:
    """Return a text as part of an MLflow key: letters of any script, digits, ``_ - . :``, space."""
    part = _FORBIDDEN.sub("_", str(text)).strip()
    return "_" if part in ("", ".", "..") else part  # MLflow takes a key for a path


def public_uri(uri: str) -> str:
    """Return a URI without user and password, fit for records, logs and the terminal."""
    return _USER_INFO.sub(r"\1", uri, count=1)


def runs_url(base: str, experiment_id: str, view: str | None = None) -> str:
    """Return the page of an experiment's runs; with a view, as that shows them."""
    if view is not None:
        return f"{base}/#/experiments/{experiment_id}/runs?viewStateShareKey={quote(view)}"
    return f"{base}/#/experiments/{experiment_id}/evaluation-runs"


def run_url(base: str, experiment_id: str, run_id: str) -> str:
    return f"{base}/#/experiments/{experiment_id}/runs/{run_id}"


def queries_url(base: str, experiment_id: str, run_id: str, baseline_id: str | None = None) -> str:
    """Return the page of a run's queries; with a baseline, both runs' paired row by row."""
    against = "" if baseline_id is None else f"?compareToRunUuid={baseline_id}"
    return f"{run_url(base, experiment_id, run_id)}/evaluations{against}"


def compare_url(base: str, experiment_ids: Collection[str], run_ids: list[str]) -> str:
    """Return the page that shows params (differences first) and metrics of runs side by side."""
    runs = quote(json.dumps(run_ids, separators=(",", ":")))
    experiments = quote(json.dumps(sorted(set(experiment_ids)), separators=(",", ":")))
    return f"{base}/#/compare-runs?runs={runs}&experiments={experiments}"
