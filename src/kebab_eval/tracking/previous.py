"""The results of the run before, from its record here or from its artifacts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kebab_eval.errors import RecordError
from kebab_eval.records import QueryResult
from kebab_eval.tracking.spool import RESULTS_FILE, find_record, read_results

if TYPE_CHECKING:
    from mlflow import MlflowClient


def previous_results(client: MlflowClient, run_id: str) -> dict[str, QueryResult] | None:
    """Return query id -> result of an MLflow run; None where nobody has them any more."""
    from mlflow.exceptions import MlflowException

    folder = find_record(run_id)
    try:
        if folder is not None:
            return _by_id(folder / RESULTS_FILE)
        with tempfile.TemporaryDirectory(prefix="kebab-eval-") as temporary:
            return _by_id(Path(client.download_artifacts(run_id, RESULTS_FILE, temporary)))
    except (RecordError, MlflowException, OSError):
        return None


def _by_id(path: Path) -> dict[str, QueryResult]:
    return {result.query_id: result for result in read_results(path)}
