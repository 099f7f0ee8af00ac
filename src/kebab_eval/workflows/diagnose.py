"""A run that a user names, with its candidates, becomes a diagnosis."""

from __future__ import annotations

from dataclasses import replace

from kebab_eval.diagnosis import Diagnosis, diagnose
from kebab_eval.tracking import spool
from kebab_eval.workflows.lookup import find_run


def diagnose_run(reference: str, tracking_uri: str | None = None) -> Diagnosis:
    """Say what a run lost where.

    A run that only MLflow or a frozen file holds has no candidates at hand: its stages are then
    those that its record says.

    Raises:
        UsageError: the run is not to be found, or more than one.
        RecordError: its record is damaged.
    """
    run = find_run(reference, tracking_uri)
    folder = spool.find_record(run.run_id)
    candidates = {} if folder is None else spool.read_candidates(folder)
    results = tuple(
        replace(result, candidates=candidates.get(result.query_id, {})) for result in run.results
    )
    return diagnose(replace(run, results=results))
