"""Two runs that a user names become a comparison, which the candidate's MLflow run keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kebab_eval.comparability import differences
from kebab_eval.comparison import Comparison, compare
from kebab_eval.records import EvalRun
from kebab_eval.reports.compare import comparison_files
from kebab_eval.tracking import keys
from kebab_eval.tracking.attach import attach_files
from kebab_eval.tracking.lookup import Logged, find_logged
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
    """The two runs, and their MLflow runs where they have one."""

    baseline: EvalRun
    candidate: EvalRun
    before: Logged | None
    after: Logged | None

    @property
    def ui_url(self) -> str | None:
        """The page that shows both runs side by side; None where one of them is elsewhere."""
        found = self._in_one_store()
        if found is None:
            return None
        old, new = found
        return keys.compare_url(
            new.store.ui_url, [old.experiment_id, new.experiment_id], [old.run_id, new.run_id]
        )

    @property
    def pairs_url(self) -> str | None:
        """The page that pairs both runs' queries; None where one of them is elsewhere."""
        found = self._in_one_store()
        if found is None or found[0].experiment_id != found[1].experiment_id:
            return None
        old, new = found
        return keys.queries_url(new.store.ui_url, new.experiment_id, new.run_id, old.run_id)

    def _in_one_store(self) -> tuple[Logged, Logged] | None:
        old, new = self.before, self.after
        if old is None or new is None or old.store.shown != new.store.shown:
            return None
        return old, new


def find_pair(request: Request) -> Pair:
    """Find both runs.

    Raises:
        UsageError: a run is not to be found, or more than one.
        RecordError: a record is damaged.
    """
    baseline = find_run(request.baseline, request.tracking_uri)
    candidate = find_run(request.candidate, request.tracking_uri)
    before, after = (find_logged(run, request.tracking_uri) for run in (baseline, candidate))
    return Pair(baseline, candidate, before, after)


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
    if pair.after is None:
        return None
    folder = f"compare/{comparison.baseline.run_id}"
    files = comparison_files(comparison, pair.ui_url)
    attach_files(pair.after.store, pair.after.run_id, folder, files)
    return folder
