"""Finding the run that a reference names: a file, then the local records, then MLflow."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from kebab_eval.errors import Fault, RecordError, UsageError
from kebab_eval.records import EvalRun
from kebab_eval.reports.summary import summarise
from kebab_eval.tracking import spool
from kebab_eval.tracking.frozen import list_frozen, read_frozen
from kebab_eval.tracking.lookup import download_record
from kebab_eval.tracking.store import resolve_store
from kebab_eval.workflows.judging import judged


@dataclass(frozen=True, slots=True)
class Found:
    """A run, and the folder of its local record if it came from there."""

    run: EvalRun
    folder: Path | None = None


def find_run(reference: str, tracking_uri: str | None = None) -> EvalRun:
    """Return the run that a reference names; see :func:`locate_run`."""
    return locate_run(reference, tracking_uri).run


def locate_run(reference: str, tracking_uri: str | None = None) -> Found:
    """Return the run that a reference names, and where its record is.

    Args:
        reference: the ``.json`` of a frozen baseline, or what
            :func:`kebab_eval.tracking.spool.find_record` takes. ``baseline`` and ``baseline:LABEL``
            find what was frozen last, among the records and in the folder ``baselines``. A run that
            only MLflow holds is fetched from there.
        tracking_uri: the store to ask; None takes ``MLFLOW_TRACKING_URI`` or the default.

    Raises:
        UsageError: nothing of that name, or more than one.
        RecordError: the record is damaged.
    """
    found = _file(reference) or _record(reference) or _fetched(reference, tracking_uri)
    return Found(_whole(found.run, found.folder), found.folder)


def with_candidates(run: EvalRun, folder: Path | None) -> EvalRun:
    """Return a run with the channels' candidates of its record; as it is where there is none.

    Raises:
        RecordError: the record is damaged.
    """
    candidates = {} if folder is None else spool.read_candidates(folder)
    results = tuple(
        replace(result, candidates=candidates.get(result.query_id, {})) for result in run.results
    )
    return replace(run, results=results)


def _whole(run: EvalRun, folder: Path | None) -> EvalRun:
    """Return a run that every report can be made of; one that was cut off is judged now."""
    try:
        if not run.aggregate:
            run = judged(with_candidates(run, folder))
        elif run.info["status"] == "FINISHED" and len(run.results) != len(run.golden.queries):
            raise RecordError(
                f"{run.run_id}: the record is damaged: {len(run.results)} results of "
                f"{len(run.golden.queries)} queries in a run that finished"
            )
        summarise(run)
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        said = f"{type(reason).__name__}: {reason}"
        raise RecordError(f"{run.run_id}: the record is damaged ({said})") from reason
    return run


def _file(reference: str) -> Found | None:
    """Return the run of a frozen file, None when the reference is no such file."""
    path = Path(reference)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):
        return None  # too long for a path: then it is a name
    if is_file and path.name in (spool.RUN_FILE, spool.RESULTS_FILE):
        if path.with_name(spool.RUN_FILE).is_file():
            return _from_folder(path.parent)
        message = f"there is no {spool.RUN_FILE} beside it, so the run behind it is not known"
        raise UsageError(Fault(reference, message))
    if path.suffix != ".json":
        return None
    if is_file:
        return Found(read_frozen(path)[1])
    if len(path.parts) > 1:
        raise UsageError(Fault(reference, "frozen baseline does not exist; check the path"))
    return None


def _record(reference: str) -> Found | None:
    asked, label = spool.baseline_label(reference)
    if asked:
        newest = _frozen_last(reference, label)
        if newest is not None:
            return newest
    folder = spool.find_record(reference)
    return None if folder is None else _from_folder(folder)


def _frozen_last(reference: str, label: str | None) -> Found | None:
    """Return what was frozen last: the record that was, or a file that somebody else committed."""
    marked = spool.find_marked(reference, spool.list_records())
    files = [f for f in list_frozen()[0] if label is None or f.frozen.label == label]
    if marked is not None and not (files and files[0].frozen.frozen_at > marked[0]):
        return _from_folder(marked[1])
    return Found(read_frozen(files[0].path)[1]) if files else None


def _from_folder(folder: Path) -> Found:
    return Found(spool.read_record(folder), folder)


def _fetched(reference: str, tracking_uri: str | None) -> Found:
    with tempfile.TemporaryDirectory(prefix="kebab-eval-") as temporary:
        fetched = download_record(resolve_store(tracking_uri), reference, Path(temporary))
        if fetched is None:
            labels = {file.frozen.label for file in list_frozen()[0]}
            hint = spool.near_reference(reference, frozen=labels)
            raise UsageError(Fault("RUN", f"no run is called {reference!r}{hint}"))
        return Found(spool.read_record(fetched))
