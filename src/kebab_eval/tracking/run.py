"""One evaluation as one MLflow run: started while the queries run, filled and closed at the end."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kebab_eval.errors import KebabEvalError, TrackerError
from kebab_eval.records import EvalRun
from kebab_eval.redaction import redact
from kebab_eval.tracking import keys
from kebab_eval.tracking.store import Store, migrating, prepare_database

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")

_START_DEADLINE_S, _LOG_DEADLINE_S, _END_DEADLINE_S = 30.0, 300.0, 15.0
_BATCH = 100  # MLflow's limit of params a call; metrics and tags may be more, one limit is simpler
_QUIET_LOGGERS = ("alembic", "mlflow.store.db.utils", "mlflow.tracking.fluent")


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """The run before one in its experiment, over the same golden set."""

    run_id: str
    name: str
    compare_url: str


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """Where an MLflow run is."""

    run_id: str
    experiment_id: str
    ui_url: str
    previous: PreviousRun | None = None


class Tracker:
    """Logs one evaluation to MLflow.

    Importing MLflow and opening its store takes seconds, so both happen in a thread of their own
    from :meth:`begin` on, while the caller indexes and searches. :meth:`start` creates the run, and
    :meth:`finish` fills and closes it; whatever happens in between, a run that was made is closed.
    """

    def __init__(self, store: Store, experiment: str) -> None:
        self.store = store
        self.experiment = experiment
        self._imported: Future[None] | None = None
        self._started: Future[TrackedRun] | None = None

    def begin(self) -> None:
        """Start importing MLflow in the background."""
        self._imported = _in_background(_import_mlflow)

    def start(
        self, name: str, record_id: str, tags: Mapping[str, str], *, again: bool = False
    ) -> None:
        """Create the run in the background; a failure is raised by :meth:`finish`.

        Args:
            again: take the run that was made for the record before, if there is one.
        """
        before, now_ms = self._imported, int(time.time() * 1000)

        def create() -> TrackedRun:
            if before is not None:
                before.result()
            else:
                _import_mlflow()
            marked = {**tags, keys.TAG_RECORD: record_id}
            return _create_run(self.store, self.experiment, name, now_ms, marked, again=again)

        self._started = _in_background(create)

    def settle(self, timeout_s: float = 10) -> None:
        """Wait until the background work is over, at most so long.

        Importing MLflow and opening a database hold the interpreter; searches of an engine in this
        process would be measured slower than they are.
        """
        if self._started is not None:
            wait([self._started], timeout=timeout_s)

    def wait(self) -> TrackedRun:
        """Return the run once it is created.

        Raises:
            TrackerError: MLflow could not be reached or refused.
        """
        if self._started is None:
            raise TrackerError("the MLflow run was never started")
        return self._within(self._started, _START_DEADLINE_S)

    def finish(self, run: EvalRun, folder: Path, note: str, status: str) -> None:
        """Log params, metrics, the dataset and the record's files; end the run as ``status``."""
        tracked = self.wait()
        client = open_client(self.store)
        try:
            # In a thread of its own: a server that answers byte by byte must not hold us for ever.
            logged = _in_background(lambda: _log(client, tracked.run_id, run, folder, note))
            with told(self.store):
                self._within(logged, _LOG_DEADLINE_S)
        except BaseException as failure:
            # The run must not stay RUNNING: what cut the upload short decides its end.
            killed = isinstance(failure, KeyboardInterrupt)
            self._end(client, tracked, "KILLED" if killed else "FAILED")
            raise
        with told(self.store):
            ended = _in_background(lambda: client.set_terminated(tracked.run_id, status))
            self._within(ended, _END_DEADLINE_S)

    def abandon(self, status: str) -> None:
        """End a run that has nothing to show, if it was created at all."""
        if self._started is None:
            return
        try:
            tracked = self._within(self._started, _END_DEADLINE_S)
        except TrackerError:
            return
        self._end(open_client(self.store), tracked, status)

    def _within(self, work: Future[T], deadline_s: float) -> T:
        try:
            return work.result(timeout=deadline_s)
        except TimeoutError:
            message = f"{self.store.shown}: no answer within {deadline_s:g} s; is the server well?"
            raise TrackerError(message) from None

    def _end(self, client: MlflowClient, tracked: TrackedRun, status: str) -> None:
        ended = _in_background(lambda: client.set_terminated(tracked.run_id, status))
        try:
            self._within(ended, _END_DEADLINE_S)
        except Exception as reason:  # the first failure is the one to tell
            logging.getLogger("kebab_eval").debug("could not end the MLflow run: %s", reason)


def _in_background(task: Callable[[], T]) -> Future[T]:
    """Run a task in a daemon thread: an early exit does not wait for MLflow to be imported."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(task())
        except BaseException as reason:
            future.set_exception(reason)

    threading.Thread(target=work, daemon=True, name="kebab-eval-tracking").start()
    return future


def _import_mlflow() -> None:
    # A dead server is told in seconds; MLflow's own defaults retry for minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    os.environ.setdefault("MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER", "false")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow  # noqa: F401  # imported for its side: the modules are then in memory


def open_client(store: Store) -> MlflowClient:
    """Return MLflow's client of a store; importing MLflow on the way if nobody has."""
    _import_mlflow()
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=store.uri)


@contextmanager
def told(store: Store) -> Iterator[None]:
    """Turn whatever MLflow, its database or its HTTP client raises into one of our errors."""
    try:
        yield
    except KebabEvalError:
        raise
    except Exception as reason:
        said = " ".join(str(reason).split()).replace(store.uri, store.shown)
        said = redact(said)
        raise TrackerError(f"{store.shown}: {said[:300] or type(reason).__name__}") from reason


def _create_run(
    store: Store,
    experiment: str,
    name: str,
    start_ms: int,
    tags: Mapping[str, str],
    *,
    again: bool,
) -> TrackedRun:
    prepare_database(store)
    with told(store), migrating(store):
        client = open_client(store)
        experiment_id = find_experiment(client, store, experiment)
        # Only a run over the same golden set answers the same question.
        same = f"tags.`{keys.TAG_GOLDEN}` = '{tags[keys.TAG_GOLDEN]}'"
        newest = client.search_runs(
            [experiment_id], same, order_by=["start_time DESC"], max_results=1
        )
        made = _made_before(client, experiment_id, tags[keys.TAG_RECORD]) if again else None
        if made is not None:
            client.update_run(made, status="RUNNING")
            newest = [found for found in newest if found.info.run_id != made]
        run_id = made or str(
            client.create_run(
                experiment_id,
                start_time=start_ms,
                run_name=name,
                tags={key: value[: keys.MAX_TAG] for key, value in tags.items()},
            ).info.run_id
        )
    previous = None
    if newest:
        before = newest[0].info
        link = keys.compare_url(store.ui_url, [experiment_id], [before.run_id, run_id])
        previous = PreviousRun(before.run_id, before.run_name, link)
    return TrackedRun(
        run_id, experiment_id, keys.run_url(store.ui_url, experiment_id, run_id), previous
    )


def _made_before(client: MlflowClient, experiment_id: str, record_id: str) -> str | None:
    same = f"tags.`{keys.TAG_RECORD}` = '{record_id}'"
    found = client.search_runs([experiment_id], same, max_results=1)
    return str(found[0].info.run_id) if found else None


def find_experiment(client: MlflowClient, store: Store, name: str) -> str:
    """Return the id of an experiment, which is made when there is none of that name.

    Raises:
        TrackerError: it is deleted.
    """
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifact_location=store.artifact_uri))
        except MlflowException:
            # Another process may have made it between the two calls.
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    if found.lifecycle_stage != "active":
        raise TrackerError(
            f"{store.shown}: experiment {name!r} is deleted; restore it in the MLflow UI "
            "or choose another with --experiment"
        )
    return str(found.experiment_id)


def _log(client: MlflowClient, run_id: str, run: EvalRun, folder: Path, note: str) -> None:
    from mlflow.entities import Metric, Param, RunTag

    now = int(time.time() * 1000)
    snapshot = {**run.info["system"], "golden_digest": run.golden.digest}
    params = [Param(*pair) for pair in keys.run_params(run.config, snapshot).items()]
    settings = run.config["metrics"]
    logged = keys.run_metrics(
        run.aggregate, settings["primary"], settings.get("eval_version", "both")
    )
    metrics = [Metric(key, value, now, 0) for key, value in logged.items()]
    tables = [{"path": "per_query_table.json", "type": "table"}]
    tags = [
        RunTag("mlflow.note.content", note[: keys.MAX_TAG]),
        RunTag("mlflow.loggedArtifacts", json.dumps(tables)),  # what the artifact view compares
    ]
    for start in range(0, max(len(params), len(metrics)), _BATCH):
        part = slice(start, start + _BATCH)
        client.log_batch(run_id, metrics[part], params[part], tags if start == 0 else ())
    client.log_inputs(run_id, datasets=[_dataset_input(run.info["golden"])])
    client.log_artifacts(run_id, str(folder))


def _dataset_input(golden: Mapping[str, Any]) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(
        name=golden["name"],
        digest=golden["digest"],
        source_type="local",
        source=json.dumps({"uri": golden["path"]}, ensure_ascii=False),
        profile=json.dumps({"num_queries": golden["queries"], "version": golden["version"]}),
    )
    return DatasetInput(dataset, tags=[InputTag("mlflow.data.context", "eval")])
