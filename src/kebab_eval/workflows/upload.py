"""Sending a local record to MLflow: after an outage, or one that was never meant to go there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kebab_eval.errors import Fault, Interrupted, UsageError
from kebab_eval.records import EvalRun
from kebab_eval.tracking import spool
from kebab_eval.tracking.run import Tracker
from kebab_eval.tracking.store import resolve_store
from kebab_eval.workflows.evaluate import Outcome, Progress, run_tags, track_run
from kebab_eval.workflows.resume import with_traces
from kebab_eval.workflows.signals import signals_raise

_ENDED = ("FINISHED", "FAILED", "KILLED")


def upload(
    reference: str,
    progress: Progress,
    *,
    tracking_uri: str | None = None,
    traces: str | None = None,
) -> Outcome:
    """Bring a record to MLflow: the run that was made for it is completed, or one is made.

    What is there already is left as it is, so that doing it again changes nothing. The run ends
    with the status of the record.

    Args:
        reference: what names the record.
        tracking_uri: another store than the record's.
        traces: which queries become traces, in place of what the record says.

    Raises:
        UsageError: there is no such record, or it is not finished.
        RecordError: it is damaged, or cannot be written.
        TrackerError: MLflow failed; the record is as it was.
        Interrupted: Ctrl-C or SIGTERM.
    """
    folder = spool.find_record(reference)
    if folder is None:
        hint = spool.near_reference(reference)
        raise UsageError(Fault("DIR", f"no record is called {reference!r}{hint}"))
    run = spool.read_record(folder)
    _check_ended(run, str(folder))
    where = _target(run)
    tracker = Tracker(resolve_store(tracking_uri, where["uri"]), where["experiment"])
    with signals_raise():
        tracker.begin()
        tracker.start(
            run.name, run.run_id, run_tags(run.info), str(run.info["created_at"]), again=True
        )
        writer = spool.RecordWriter(folder, dict(run.info))
        run = replace(run, config=with_traces(run.config, traces))
        try:
            return track_run(run, writer, tracker, progress)
        except KeyboardInterrupt:
            message = f"interrupted; 'kebab-eval upload {folder}' goes on where it stopped"
            raise Interrupted(message) from None


def _check_ended(run: EvalRun, folder: str) -> None:
    if run.info["status"] in _ENDED and run.aggregate:
        return
    answered, asked = len(run.results), len(run.golden.queries)
    message = (
        f"the run has not ended: {answered} of {asked} queries are answered; "
        f"'kebab-eval resume {folder}' finishes it, and sends it to MLflow if it was to go there"
    )
    raise UsageError(Fault(folder, message))


def _target(run: EvalRun) -> Mapping[str, Any]:
    """Return the store and the experiment that a record was for, by itself or by its config."""
    noted = run.info.get("tracking")
    if isinstance(noted, Mapping):
        return noted
    configured = run.config.get("tracking") or {}
    return {"uri": configured.get("uri"), "experiment": run.config["experiment"]}
