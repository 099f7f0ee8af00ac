"""Freezing a run as a baseline: two files, a tag in MLflow, a mark in the local record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kebab_eval.baseline import DEFAULT_LABEL, Frozen, check_label, freeze, version_of
from kebab_eval.errors import Fault, KebabEvalError, RecordError, UsageError
from kebab_eval.records import EvalRun
from kebab_eval.reports.baseline import render_baseline
from kebab_eval.tracking import spool
from kebab_eval.tracking.frozen import BASELINES, write_new
from kebab_eval.tracking.keys import TAG_BASELINE, TAG_FROZEN_AT
from kebab_eval.tracking.lookup import find_logged
from kebab_eval.tracking.tags import tag_run
from kebab_eval.workflows.lookup import locate_run, with_candidates


@dataclass(frozen=True, slots=True)
class FreezeOutcome:
    """The two files, and what went wrong beside them: the files alone decide."""

    run: EvalRun
    frozen: Frozen
    json_path: Path
    md_path: Path
    tagged: bool
    warnings: tuple[str, ...]


def freeze_run(
    reference: str,
    *,
    label: str | None = None,
    folder: Path = BASELINES,
    version: str | None = None,
    tracking_uri: str | None = None,
    now: datetime | None = None,
) -> FreezeOutcome:
    """Freeze a run.

    Args:
        reference: names the run.
        label: tells baselines of one day apart; part of the file name.
        folder: where the files go; made when it is absent.
        version: in place of the golden set's.
        tracking_uri: the store that holds the MLflow run; None takes what the record says.
        now: the time of freezing.

    Raises:
        UsageError: no such run, a run that was cut off, an impossible label, or files that exist.
        RecordError: the files could not be written.
    """
    for option, word in (("--label", label), ("--version", version)):
        if word is not None:
            check_label(word, option)
    found = locate_run(reference, tracking_uri)
    run = found.run
    if len(run.results) < len(run.golden.queries):
        message = (
            f"{run.name} was cut off after {len(run.results)} of {len(run.golden.queries)} "
            "queries; a baseline answers all of them: run it again"
        )
        raise UsageError(Fault("RUN", message))
    at = (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")
    frozen = Frozen(
        version or version_of(run.golden), label or DEFAULT_LABEL, at.replace("+00:00", "Z")
    )
    paths = [folder / f"{frozen.stem}{ending}" for ending in (".json", ".md")]
    report = render_baseline(with_candidates(run, found.folder), frozen)
    write_new(dict(zip(paths, (freeze(run, frozen), report), strict=True)))
    warnings = []
    if run.info["status"] != "FINISHED":
        failed = run.aggregate["failed_queries"]
        warnings.append(f"{run.name} ended {run.info['status']} with {failed} failed queries")
    if found.folder is not None:
        try:
            spool.mark_baseline(found.folder, frozen.label, frozen.frozen_at, paths[0].as_posix())
        except RecordError as reason:
            warnings.append(f"the record could not be marked: {reason}")
    tagged = False
    try:
        tagged = _tag(run, frozen, tracking_uri)
    except KebabEvalError as reason:
        warnings.append(f"the MLflow run could not be tagged: {reason}")
    return FreezeOutcome(run, frozen, paths[0], paths[1], tagged, tuple(warnings))


def _tag(run: EvalRun, frozen: Frozen, tracking_uri: str | None) -> bool:
    """Tag the MLflow run if there is one."""
    logged = find_logged(run, tracking_uri)
    if logged is None:
        return False
    tags = {TAG_BASELINE: frozen.label, TAG_FROZEN_AT: frozen.frozen_at}
    tag_run(logged.store, logged.run_id, tags)
    return True
