"""One evaluation: check everything, ask every query, judge, record, and log to MLflow.

Nothing is written before the whole input is known to be right. From then on the local record comes
first: each answer is on disk when it arrives, and MLflow is told at the end.
"""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kebab_eval.answering import Answerer, open_answerer
from kebab_eval.backends.base import Backend
from kebab_eval.config_file import USER_INFO, LoadedConfig, load_config, portable_path
from kebab_eval.errors import (
    BackendError,
    Interrupted,
    RecordError,
    TrackerError,
    UsageError,
)
from kebab_eval.golden import select
from kebab_eval.levers import levers_of
from kebab_eval.metrics import primary_for
from kebab_eval.records import EvalRun, GoldenSet, QueryResult
from kebab_eval.reports import run_files
from kebab_eval.reports.markdown import render_note
from kebab_eval.reports.parquet import FROM_QUERIES, PARQUET_FILE, render_parquet
from kebab_eval.tracking import spool
from kebab_eval.tracking.keys import TAG_GOLDEN
from kebab_eval.tracking.run import Tracker
from kebab_eval.tracking.store import resolve_store
from kebab_eval.tracking.trace_upload import Sent
from kebab_eval.tracking.upload import TrackedRun
from kebab_eval.workflows.answers import check_answers, with_answers
from kebab_eval.workflows.fanout import fan_out
from kebab_eval.workflows.golden_source import held_against, read_golden
from kebab_eval.workflows.judging import judge, settled
from kebab_eval.workflows.provenance import git_state, versions
from kebab_eval.workflows.signals import ignore_signals, restore_signals, signals_raise
from kebab_eval.workflows.systems import open_system
from kebab_eval.workflows.versions import check_version

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def _silent(_stage: str, _done: int, _total: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for."""

    config_path: Path
    overrides: tuple[str, ...] = ()
    suite: str | None = None
    limit: int | None = None
    query_ids: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    tracking_uri: str | None = None
    with_rag: bool = False
    """Ask for answers, extractive ones where the config names none."""
    into: str | None = None
    """An MLflow run of the caller's, which is filled and left open."""
    command: str = ""
    """How to repeat it, for the report; no secret may stand in it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished evaluation: the run, where its record is, and its MLflow run if it has one."""

    run: EvalRun
    folder: Path
    tracked: TrackedRun | None = None
    sent: Sent = field(default_factory=Sent)

    @property
    def status(self) -> str:
        return str(self.run.info["status"])

    @property
    def too_many_failed(self) -> bool:
        allowed = self.run.config["execution"]["max_failed"]
        return _failures(self.run.aggregate) > int(allowed)


@dataclass(slots=True)
class _Prepared:
    loaded: LoadedConfig
    golden: GoldenSet
    backend: Backend
    queries_in_set: int


@dataclass(slots=True)
class Session:
    """An evaluation that is under way: what is asked, of whom, and what has been answered.

    ``collected`` maps the place of a query in the golden set to its result.
    """

    loaded: LoadedConfig
    golden: GoldenSet
    backend: Backend
    writer: spool.RecordWriter
    collected: dict[int, QueryResult]
    answerer: Answerer | None = None

    @property
    def kept(self) -> str:
        return f"{len(self.collected)} of {len(self.golden.queries)} answers are kept in " + str(
            self.writer.folder
        )


def evaluate(request: Request, progress: Progress = _silent, *, track: bool) -> Outcome:
    """Run one evaluation.

    Args:
        track: log it as an MLflow run; False keeps the local record only.

    Raises:
        InputError: config, golden set or corpus is wrong; nothing was written.
        RecordError: the local record could not be written.
        TrackerError: MLflow failed; the record is complete, and the message says where.
        Interrupted: Ctrl-C or SIGTERM; the answers so far are kept.
    """
    with signals_raise():
        if request.with_rag:
            overrides = with_answers(request.config_path, request.overrides)
            request = replace(request, overrides=overrides)
        loaded = _read_config(request)
        check_answers(loaded)
        source = loaded.config.golden
        checked = read_golden(source)
        select(checked.golden, request.limit, request.query_ids)  # an unknown id is told at once
        check_version(checked.golden, loaded.config.metrics.eval_version)
        loaded = _with_primary(loaded, checked.golden)
        tracker = None
        if track:
            store = resolve_store(request.tracking_uri, loaded.config.tracking.uri)
            tracker = Tracker(store, loaded.snapshot["experiment"], request.into)
            tracker.begin()
        backend = open_system(loaded)
        try:
            checked = held_against(checked, backend)
            golden = select(checked.golden, request.limit, request.query_ids)
            answerer = open_answerer(loaded.config, backend)
            backend.prepare(lambda done, total: progress("indexing", done, total))
            prepared = _Prepared(loaded, golden, backend, len(checked.golden.queries))
            name = _run_name(prepared, request)
            writer = spool.RecordWriter.create(
                spool.SPOOL,
                name,
                _run_info(prepared, request, tracker),
                _input_files(prepared),
            )
            if tracker is not None:
                tracker.start(
                    name, writer.info["id"], run_tags(writer.info), writer.info["created_at"]
                )
            session = Session(loaded, golden, backend, writer, {}, answerer)
            return complete(session, tracker, progress)
        finally:
            asyncio.run(backend.close())


def _with_primary(loaded: LoadedConfig, golden: GoldenSet) -> LoadedConfig:
    """Return the config with the primary metric that the golden set's gains call for."""
    settings = loaded.snapshot["metrics"]
    primary = primary_for(golden, settings["primary"])
    snapshot = {**loaded.snapshot, "metrics": {**settings, "primary": primary}}
    return replace(loaded, snapshot=snapshot)


def _read_config(request: Request) -> LoadedConfig:
    loaded = load_config(request.config_path, request.overrides)
    return loaded if request.suite is None else _with_suite(loaded, request.suite)


def _with_suite(loaded: LoadedConfig, suite: str) -> LoadedConfig:
    known = loaded.config.suites
    path = known.get(suite, Path("fixtures") / f"{suite}_queries.yaml")
    if suite not in known and not path.is_file():
        named = f"; the config names {', '.join(sorted(known))}" if known else ""
        raise UsageError(
            f"--suite {suite}: neither a key of 'suites' in {loaded.path} nor a file {path}{named}"
        )
    golden = loaded.config.golden.model_copy(update={"path": path})
    snapshot = {**loaded.snapshot}
    recorded = snapshot["suites"].get(suite, portable_path(path))
    snapshot["golden"] = {**snapshot["golden"], "path": recorded}
    return replace(
        loaded, config=loaded.config.model_copy(update={"golden": golden}), snapshot=snapshot
    )


def complete(session: Session, tracker: Tracker | None, progress: Progress) -> Outcome:
    """Ask what is missing, judge everything, and bring record and MLflow run to their end.

    Raises:
        BackendError: the system is down; what was answered is recorded.
        RecordError, TrackerError, Interrupted: as :func:`evaluate` does.
    """
    # What leaves memory comes from the snapshot: the config holds resolved secrets.
    loaded, writer, collected = session.loaded, session.writer, session.collected
    status, down = "FINISHED", None
    try:
        if tracker is not None:
            tracker.settle()
        started = time.perf_counter()
        try:
            _ask_missing(session, progress)
        except KeyboardInterrupt:
            status = "KILLED"
        except BackendError as failure:
            status, down = "FAILED", failure
        # Judging takes a second or two; a signal in it would leave answers that nobody judged.
        previous = ignore_signals()
        answered = list(collected.values())
        golden = settled(session.golden, answered)
        results, aggregate = judge(golden, answered, loaded.snapshot)
        max_failed = loaded.config.execution.max_failed
        if status == "FINISHED" and _failures(aggregate) > max_failed:
            status = "FAILED"
        spent = writer.info.get("duration_s", 0) + time.perf_counter() - started
        writer.info["duration_s"] = round(spent, 3)
        run = EvalRun(
            {**writer.info, "status": status}, loaded.snapshot, golden, results, aggregate
        )
        write_judged(run, writer)
        if status != "KILLED":
            restore_signals(previous)
        outcome = track_run(run, writer, tracker, progress)
    except (RecordError, KeyboardInterrupt) as failure:
        ignore_signals()
        writer.close()
        state = "KILLED" if isinstance(failure, KeyboardInterrupt) else "FAILED"
        _mark(writer, state)
        if tracker is not None:
            tracker.abandon(state)
        if isinstance(failure, KeyboardInterrupt):
            raise Interrupted(_interrupted(session)) from None
        raise RecordError(f"{failure}; {session.kept}") from failure
    if status == "KILLED":
        raise Interrupted(_interrupted(session))
    if down is not None:
        left = len(session.golden.queries) - len(collected)
        raise BackendError(f"{down}\n{left} queries were not asked; {_resume(session)}")
    return outcome


def _failures(aggregate: Mapping[str, Any]) -> int:
    """Return how many queries failed, or had a search but failed to be answered."""
    answers = aggregate.get("answers") or {}
    return int(aggregate["failed_queries"]) + int(answers.get("failed", 0))


def _interrupted(session: Session) -> str:
    return f"interrupted; {session.kept}\n{_resume(session)}"


def _resume(session: Session) -> str:
    return f"'kebab-eval resume {session.writer.folder}' goes on"


def _run_name(prepared: _Prepared, request: Request) -> str:
    """Return the config's name, with what the command line made different about this run.

    A run that is named after a config must have been run as the config says.
    """
    snapshot, asked = prepared.loaded.snapshot, len(prepared.golden.queries)
    name = str(snapshot["name"])
    pairs = [override.partition("=") for override in request.overrides]
    if any(key.strip() == "name" for key, _, _ in pairs):
        return name
    levers = levers_of(snapshot)
    parts = [f"{key.strip()}={value.strip()}" for key, _, value in pairs if key.strip() in levers]
    if asked < prepared.queries_in_set:
        parts.append(f"{asked} of {prepared.queries_in_set} queries")
    return USER_INFO.sub("", f"{name} ({', '.join(parts)})")[:200] if parts else name


def _ask_missing(session: Session, progress: Progress) -> None:
    total, collected = len(session.golden.queries), session.collected
    missing = [place for place in range(total) if place not in collected]

    def keep(index: int, result: QueryResult) -> None:
        session.writer.append(result)
        collected[missing[index]] = result
        progress("queries", len(collected), total)

    config = session.loaded.config
    queries = [session.golden.queries[place] for place in missing]
    progress("queries", len(collected), total)
    if config.execution.engine == "ray":
        from kebab_eval.workflows.ray_engine import fan_out_on_ray

        fan_out_on_ray(session.loaded, queries, keep)
        return
    mode, execution, answerer = config.search.mode, config.execution, session.answerer

    async def ask() -> None:
        try:
            await fan_out(session.backend, queries, execution, mode, keep, answerer)
        finally:
            if answerer is not None:
                await answerer.close()

    try:
        asyncio.run(ask())
    except BaseExceptionGroup as failures:
        # A task group wraps what its tasks raise; here that is the first disk error, repeated.
        raise failures.exceptions[0] from None


def write_judged(run: EvalRun, writer: spool.RecordWriter) -> None:
    """Write the judged record; it is whole before MLflow sees any of it."""
    writer.write_results(run.results)
    writer.write(spool.GOLDEN_FILE, golden_lines(run.golden))  # spans may be resolved only now
    for name, content in run_files(run).items():
        writer.write(name, content)
    if len(run.results) > FROM_QUERIES:
        writer.write(PARQUET_FILE, render_parquet(run))
    writer.update(status=run.info["status"])


def track_run(
    run: EvalRun, writer: spool.RecordWriter, tracker: Tracker | None, progress: Progress
) -> Outcome:
    """Bring a judged record to MLflow, and note in it where it went.

    Raises:
        TrackerError: MLflow failed; the record is complete, and the message says how to go on.
    """
    if tracker is None:
        return Outcome(run, writer.folder)
    try:
        tracked = tracker.wait()
        mlflow = {
            "run_id": tracked.run_id,
            "experiment_id": tracked.experiment_id,
            "tracking_uri": tracker.store.shown,
        }
        writer.update(mlflow=mlflow)
        run = replace(run, info=dict(writer.info))
        sent = tracker.finish(
            run,
            writer.folder,
            render_note(run),
            str(run.info["status"]),
            lambda done, total: progress("traces", done, total),
        )
    except TrackerError as failure:
        raise TrackerError(
            f"{failure}\nthe results are complete in {writer.folder}; "
            f"'kebab-eval report {writer.folder}' shows them\n"
            f"'kebab-eval upload {writer.folder}' sends them to MLflow once it answers"
        ) from failure
    if sent.view:
        writer.update(mlflow={**mlflow, "view": True})
        run = replace(run, info=dict(writer.info))
    return Outcome(run, writer.folder, tracked, sent)


def _mark(writer: spool.RecordWriter, status: str) -> None:
    try:
        writer.update(status=status)
    except RecordError:
        return  # the disk is full: the record says RUNNING, which no finished record does


def _input_files(prepared: _Prepared) -> dict[str, str]:
    import yaml

    snapshot = prepared.loaded.snapshot
    text = yaml.safe_dump(snapshot, sort_keys=False, allow_unicode=True, width=100)
    where = "# Relative paths here start at the working directory of the run.\n"
    return {
        "config.yaml": where + text,
        spool.CONFIG_FILE: spool.dump_json(snapshot),
        spool.GOLDEN_FILE: golden_lines(prepared.golden),
    }


def golden_lines(golden: GoldenSet) -> str:
    """Return a golden set as its record holds it, a query a line."""
    return "".join(spool.dump_line(query.to_json()) + "\n" for query in golden.queries)


def _run_info(prepared: _Prepared, request: Request, tracker: Tracker | None) -> dict[str, Any]:
    golden = prepared.golden
    system = prepared.backend.describe()
    return {
        "golden": {
            "name": golden.name,
            "version": golden.version,
            "digest": golden.digest,
            "path": prepared.loaded.snapshot["golden"]["path"],
            "queries": len(golden.queries),
            "queries_in_set": prepared.queries_in_set,
            "format": golden.format,
            "min_relevance": golden.min_relevance,
        },
        "lever": _lever(prepared.loaded),
        "system": dict(system.snapshot),
        "git": git_state(prepared.loaded.path.parent),
        "versions": versions(),
        "machine": platform.machine(),
        "command": request.command,
        "tags": {**prepared.loaded.snapshot["tags"], **request.tags},
        "config_path": portable_path(prepared.loaded.path),
        "tracking": None
        if tracker is None
        else {"uri": tracker.store.shown, "experiment": tracker.experiment},
    }


def _lever(loaded: LoadedConfig) -> dict[str, Any] | None:
    key = loaded.config.lever
    if key is None:
        return None
    value: Any = loaded.snapshot
    for step in key.split("."):
        value = value[step]
    return {"key": key, "value": value}


def run_tags(info: Mapping[str, Any]) -> dict[str, str]:
    tags = {
        "mlflow.runType": "genai_evaluate",
        "mlflow.source.name": "kebab-eval",
        "mlflow.source.type": "LOCAL",
        "kebab_eval.version": info["versions"]["kebab_eval"],
        TAG_GOLDEN: info["golden"]["digest"],
    }
    git = info["git"]
    if git:
        tags["mlflow.source.git.commit"] = git["commit"]
        tags["mlflow.source.git.dirty"] = str(git["dirty"]).lower()
        if git["branch"]:
            tags["mlflow.source.git.branch"] = git["branch"]
    if info["lever"]:
        tags["kebab_eval.lever"] = info["lever"]["key"]
    return {**tags, **info["tags"]}
