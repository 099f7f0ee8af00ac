"""Going on with an evaluation that was cut off: only what is missing is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kebab_eval.answering import open_answerer
from kebab_eval.config_file import load_recorded
from kebab_eval.errors import Fault, NotComparableError, UsageError
from kebab_eval.records import QueryResult
from kebab_eval.tracking import spool
from kebab_eval.tracking.run import Tracker
from kebab_eval.tracking.store import resolve_store
from kebab_eval.workflows.evaluate import (
    Outcome,
    Progress,
    Session,
    complete,
    run_tags,
)
from kebab_eval.workflows.lookup import with_candidates
from kebab_eval.workflows.signals import signals_raise
from kebab_eval.workflows.systems import open_system


def resume(
    reference: str,
    progress: Progress,
    *,
    failed_too: bool = False,
    tracking_uri: str | None = None,
    traces: str | None = None,
) -> Outcome:
    """Finish an interrupted evaluation; the record is then as one that nothing interrupted.

    Config and golden set are those of the record, whatever became of their files. Secrets are read
    from the environment anew.

    Args:
        reference: what names the record.
        failed_too: ask the queries once more that failed, or whose answer did.
        traces: which queries become traces, in place of what the record says.

    Raises:
        UsageError: there is no such record, or it is finished.
        NotComparableError: the system is not the one that answered before.
        InputError, BackendError, RecordError, TrackerError, Interrupted: as an evaluation does.
    """
    folder = spool.find_record(reference)
    if folder is None:
        hint = spool.near_reference(reference)
        raise UsageError(Fault("DIR", f"no record is called {reference!r}{hint}"))
    run = spool.read_record(folder)
    kept = [result for result in run.results if not (failed_too and _failed(result))]
    places = {query.query_id: place for place, query in enumerate(run.golden.queries)}
    if len(kept) == len(places) and run.info["status"] in ("FINISHED", "FAILED"):
        failed = sum(map(_failed, kept))
        more = f"; {failed} that failed are asked again with --failed" if failed else ""
        raise UsageError(Fault(str(folder), f"all {len(kept)} queries are answered{more}"))
    with signals_raise():
        loaded = load_recorded(folder / spool.CONFIG_FILE)
        loaded = replace(loaded, snapshot=with_traces(loaded.snapshot, traces))
        tracker = _tracker(run.info, tracking_uri)
        backend = open_system(loaded)
        try:
            _same_system(run.info["system"], backend.describe().snapshot)
            answerer = open_answerer(loaded.config, backend)
            backend.prepare(lambda done, total: progress("indexing", done, total))
            whole = with_candidates(run, folder).results
            candidates = {result.query_id: result.candidates for result in whole}
            writer = spool.RecordWriter.reopen(folder, kept)
            writer.update(status="RUNNING")
            if tracker is not None:
                tags, created_at = run_tags(run.info), str(run.info["created_at"])
                tracker.start(run.name, run.run_id, tags, created_at, again=True)
            collected = {
                places[result.query_id]: replace(
                    result, metrics={}, candidates=candidates[result.query_id]
                )
                for result in kept
            }
            session = Session(loaded, run.golden, backend, writer, collected, answerer)
            return complete(session, tracker, progress)
        finally:
            asyncio.run(backend.close())


def with_traces(config: Mapping[str, Any], traces: str | None) -> Mapping[str, Any]:
    """Return a recorded config with another choice of the queries that become traces."""
    if traces is None:
        return config
    return {**config, "tracking": {**config.get("tracking", {}), "traces": traces}}


def _failed(result: QueryResult) -> bool:
    return result.error is not None or (
        result.answer is not None and result.answer.error is not None
    )


def _tracker(info: Mapping[str, Any], tracking_uri: str | None) -> Tracker | None:
    tracking = info.get("tracking")
    if not isinstance(tracking, Mapping):
        return None
    tracker = Tracker(resolve_store(tracking_uri, tracking["uri"]), tracking["experiment"])
    tracker.begin()
    return tracker


def _same_system(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Hold that the answers of one record are of one system."""
    changed = [
        f"  {key}: {before.get(key)} then, {now.get(key)} now"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    ]
    if changed:
        raise NotComparableError(
            "the system is not the one that answered the first queries; start a new run\n"
            + "\n".join(changed)
        )
