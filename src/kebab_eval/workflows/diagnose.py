"""A run that a user names, with its candidates, becomes a diagnosis."""

from __future__ import annotations

from kebab_eval.diagnosis import Diagnosis, diagnose
from kebab_eval.workflows.lookup import locate_run, with_candidates


def diagnose_run(reference: str, tracking_uri: str | None = None) -> Diagnosis:
    """Say what a run lost where.

    A run that only MLflow or a frozen file holds has no candidates at hand: its stages are then
    those that its record says.

    Raises:
        UsageError: the run is not to be found, or more than one.
        RecordError: its record is damaged.
    """
    found = locate_run(reference, tracking_uri)
    return diagnose(with_candidates(found.run, found.folder))
