"""Finding the run that a reference names: in the local records first, then in MLflow."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kebab_eval.errors import Fault, RecordError, UsageError
from kebab_eval.records import EvalRun
from kebab_eval.tracking import spool
from kebab_eval.tracking.lookup import download_record
from kebab_eval.tracking.store import resolve_store


def find_run(reference: str, tracking_uri: str | None = None) -> EvalRun:
    """Return the run that a reference names.

    Args:
        reference: see :func:`kebab_eval.tracking.spool.find_record`; an MLflow run id or name that
            no local record carries is fetched from the store.
        tracking_uri: the store to ask; None takes ``MLFLOW_TRACKING_URI`` or the default.

    Raises:
        UsageError: nothing of that name, or more than one.
        RecordError: the record is damaged, or the run was interrupted before it was judged.
    """
    folder = spool.find_record(reference)
    if folder is not None:
        run = spool.read_record(folder)
    else:
        with tempfile.TemporaryDirectory(prefix="kebab-eval-") as temporary:
            fetched = download_record(resolve_store(tracking_uri), reference, Path(temporary))
            if fetched is None:
                hint = spool.near_reference(reference)
                raise UsageError(Fault("RUN", f"no run is called {reference!r}{hint}"))
            run = spool.read_record(fetched)
    if not run.aggregate:
        raise RecordError(
            f"{run.run_id}: the run was cut off before it was judged ({len(run.results)} answers); "
            "run it again"
        )
    return run
