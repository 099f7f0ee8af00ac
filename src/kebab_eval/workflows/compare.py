"""Two runs that a user names become a comparison, which the candidate's MLflow run keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kebab_eval.comparability import differences
from kebab_eval.comparison import Comparison, compare
from kebab_eval.records import EvalRun
from kebab_eval.reports.compare import comparison_files
from kebab_eval.tracking import keys
from kebab_eval.tracking.attach import attach_files
from kebab_eval.tracking.store import Store, resolve_store
from kebab_eval.workflows.lookup import find_run


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for."""

    baseline: str
    candidate: str
    metrics: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    strict_chunker_version: bool = False
    tracking_uri: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """The two runs, and the store that the candidate's MLflow run is in, if it has one."""

    baseline: EvalRun
    candidate: EvalRun
    store: Store | None

    @property
    def ui_url(self) -> str | None:
        """The page that shows both runs side by side; None where one of them is elsewhere."""
        found = self._in_one_store()
        if found is None:
            return None
        base, old, new = found
        return keys.compare_url(
            base,
            [str(old["experiment_id"]), str(new["experiment_id"])],
            [str(old["run_id"]), str(new["run_id"])],
        )

    @property
    def pairs_url(self) -> str | None:
        """The page that pairs both runs' queries; None where one of them is elsewhere."""
        found = self._in_one_store()
        if found is None or found[1]["experiment_id"] != found[2]["experiment_id"]:
            return None
        base, old, new = found
        return keys.queries_url(
            base, str(new["experiment_id"]), str(new["run_id"]), str(old["run_id"])
        )

    def _in_one_store(self) -> tuple[str, Mapping[str, Any], Mapping[str, Any]] | None:
        """Return the address of the UI that shows both runs, and where each is in it."""
        old, new = (_mlflow(run) for run in (self.baseline, self.candidate))
        if self.store is None or not old or old.get("tracking_uri") != new.get("tracking_uri"):
            return None
        return self.store.ui_url, old, new


def find_pair(request: Request) -> Pair:
    """Find both runs.

    Raises:
        UsageError: a run is not to be found, or more than one.
        RecordError: a record is damaged.
    """
    baseline = find_run(request.baseline, request.tracking_uri)
    candidate = find_run(request.candidate, request.tracking_uri)
    recorded = _mlflow(candidate).get("tracking_uri")
    store = resolve_store(request.tracking_uri, str(recorded)) if recorded else None
    return Pair(baseline, candidate, store)


def compare_pair(pair: Pair, request: Request) -> Comparison:
    """Compare them.

    Raises:
        NotComparableError: they differ in what makes numbers comparable.
        MetricError: a metric that does not exist or does not follow from a ranking.
        UsageError: a word of ``allow`` that does not exist.
    """
    return compare(
        pair.baseline,
        pair.candidate,
        metrics=request.metrics,
        allow=request.allow,
        strict_chunker_version=request.strict_chunker_version,
    )


def refusal(pair: Pair) -> dict[str, Any]:
    """Return what a script reads of two runs that are not comparable."""
    return {
        "baseline": {"run_id": pair.baseline.run_id, "name": pair.baseline.name},
        "candidate": {"run_id": pair.candidate.run_id, "name": pair.candidate.name},
        "comparable": False,
        "differences": [one.to_json() for one in differences(pair.baseline, pair.candidate)],
    }


def log_comparison(pair: Pair, comparison: Comparison) -> str | None:
    """Log the report to the candidate's MLflow run.

    Returns:
        The artifact folder, None where the candidate has no MLflow run.

    Raises:
        TrackerError: the store does not answer or does not hold the run.
    """
    if pair.store is None:
        return None
    folder = f"compare/{comparison.baseline.run_id}"
    run_id = str(_mlflow(pair.candidate)["run_id"])
    attach_files(pair.store, run_id, folder, comparison_files(comparison, pair.ui_url))
    return folder


def _mlflow(run: EvalRun) -> Mapping[str, Any]:
    found = run.info.get("mlflow")
    return found if isinstance(found, Mapping) else {}
