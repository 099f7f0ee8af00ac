"""Runs that live in MLflow alone: another machine made them, or the local record was deleted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kebab_eval.errors import Fault, UsageError
from kebab_eval.records import EvalRun
from kebab_eval.tracking.keys import TAG_BASELINE, TAG_FROZEN_AT, TAG_RECORD
from kebab_eval.tracking.spool import MIN_PREFIX, RUN_FILE, baseline_label, is_tracked
from kebab_eval.tracking.store import Store, resolve_store

if TYPE_CHECKING:
    from mlflow.entities import Run

_SEARCHED = 1000


@dataclass(frozen=True, slots=True)
class Logged:
    """An evaluation's MLflow run, and the store that it is in."""

    store: Store
    run_id: str
    experiment_id: str


def find_logged(run: EvalRun, tracking_uri: str | None = None) -> Logged | None:
    """Return the MLflow run that a record names, None where it was not tracked.

    Args:
        tracking_uri: goes before what the record says, which holds no credentials.
    """
    if not is_tracked(run.info):
        return None
    mlflow = run.info["mlflow"]
    store = resolve_store(tracking_uri, str(mlflow["tracking_uri"]))
    return Logged(store, str(mlflow["run_id"]), str(mlflow["experiment_id"]))


def download_record(store: Store, reference: str, target: Path) -> Path | None:
    """Fetch the record of the run that a reference names into ``target``.

    Returns:
        The folder, or None when the store has no such run of this tool.

    Raises:
        TrackerError: the store could not be asked.
        UsageError: the reference is ambiguous.
    """
    if store.database is not None and not store.database.exists():
        return None
    from kebab_eval.tracking.run import open_client, told

    with told(store):
        client = open_client(store)
        experiments = [found.experiment_id for found in client.search_experiments()]
        runs = client.search_runs(
            experiments,
            filter_string=f"tags.`{TAG_RECORD}` != ''",
            order_by=["start_time DESC"],
            max_results=_SEARCHED,
        )
        chosen = _choose(list(runs), reference)
        if chosen is None:
            return None
        folder = Path(client.download_artifacts(chosen.info.run_id, "", str(target)))
    return folder if (folder / RUN_FILE).exists() else None


def _choose(runs: list[Run], reference: str) -> Run | None:
    asked, label = baseline_label(reference)
    frozen = [run for run in runs if asked and _frozen_as(run, label)]
    if frozen:
        return max(frozen, key=lambda run: run.data.tags.get(TAG_FROZEN_AT, ""))
    named = [run for run in runs if run.info.run_name == reference]
    if named:
        return named[0]
    if len(reference) < MIN_PREFIX:
        return None
    matching = [
        run
        for run in runs
        if run.info.run_id.startswith(reference) or run.data.tags[TAG_RECORD].startswith(reference)
    ]
    if len(matching) > 1:
        listed = ", ".join(f"{run.info.run_id} ({run.info.run_name})" for run in matching[:5])
        raise UsageError(Fault("RUN", f"{len(matching)} runs begin with {reference!r}: {listed}"))
    return matching[0] if matching else None


def _frozen_as(run: Run, label: str | None) -> bool:
    found = run.data.tags.get(TAG_BASELINE)
    return found is not None and label in (None, found)
