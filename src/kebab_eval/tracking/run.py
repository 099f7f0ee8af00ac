"""One evaluation as one MLflow run: started while the queries run, filled and closed at the end."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kebab_eval.errors import KebabEvalError, TrackerError
from kebab_eval.records import EvalRun
from kebab_eval.redaction import redact
from kebab_eval.tracking import keys
from kebab_eval.tracking.pulse import Pulse, in_background
from kebab_eval.tracking.store import Store, migrating, prepare_database
from kebab_eval.tracking.trace_upload import Progress, Sent
from kebab_eval.tracking.upload import PreviousRun, TrackedRun, Upload, milliseconds

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")

_IMPORT_DEADLINE_S, _SETTLE_S, _LAST_TRY_S = 60.0, 2.0, 1.5
_QUIET_LOGGERS = ("alembic", "mlflow.tracking.fluent")


class Tracker:
    """Logs one evaluation to MLflow.

    Importing MLflow and opening its store takes seconds, so both happen in a thread of their own
    from :meth:`begin` on, while the caller indexes and searches. :meth:`start` creates the run, and
    :meth:`finish` fills and closes it; whatever happens in between, a run that was made is closed.
    """

    def __init__(self, store: Store, experiment: str, into: str | None = None) -> None:
        """Log to a store.

        Args:
            into: an MLflow run of the caller's, which is filled and left open; None makes one.
        """
        self.store = store
        self.experiment = experiment
        self._into = into
        self._imported: Future[None] | None = None
        self._started: Future[TrackedRun] | None = None
        self._pulse = Pulse(store)

    def begin(self) -> None:
        """Start importing MLflow in the background."""
        self._imported = in_background(_import_mlflow)

    def start(
        self,
        name: str,
        record_id: str,
        tags: Mapping[str, str],
        created_at: str,
        *,
        again: bool = False,
    ) -> None:
        """Create the run in the background; a failure is raised by :meth:`finish`.

        Args:
            created_at: when the evaluation began (UTC, RFC 3339).
            again: take the run that was made for the record before, if there is one.
        """
        before, start_ms = self._imported, milliseconds(created_at)

        def create() -> TrackedRun:
            if before is not None:
                before.result()
            else:
                _import_mlflow()
            marked = {**tags, keys.TAG_RECORD: record_id}
            if self._into is not None:
                return _take_run(self.store, self._pulse, self._into, marked)
            where = (self.store, self.experiment, self._pulse)
            return _create_run(*where, name, start_ms=start_ms, tags=marked, again=again)

        self._started = in_background(create)

    def settle(self) -> None:
        """Wait until MLflow is imported, and a little for the run to be created.

        Importing MLflow and opening a database hold the interpreter; searches of an engine in this
        process would be measured slower than they are. A server that does not answer holds nothing.
        """
        if self._imported is not None:
            wait([self._imported], timeout=_IMPORT_DEADLINE_S)
        if self._started is not None:
            embedded = self.store.database is not None
            wait([self._started], timeout=_IMPORT_DEADLINE_S if embedded else _SETTLE_S)

    def wait(self) -> TrackedRun:
        """Return the run once it is created.

        Raises:
            TrackerError: MLflow could not be reached or refused.
        """
        if self._started is None:
            raise TrackerError("the MLflow run was never started")
        return self._pulse.attend(self._started)

    def finish(
        self,
        run: EvalRun,
        folder: Path,
        note: str,
        status: str,
        progress: Progress = lambda _done, _total: None,
    ) -> Sent:
        """Log what MLflow does not hold yet; end the run as ``status``.

        Everything is logged in such a way that logging it twice leaves it there once.

        Args:
            progress: called with how many traces are there, and how many there will be.

        Returns:
            How many traces were sent, and how many were there.
        """
        tracked = self.wait()
        client = open_client(self.store)
        upload = Upload(client, self.store, tracked, run, folder, self._pulse)
        try:
            # In a thread of its own: a server that answers byte by byte must not hold us for ever.
            logged = in_background(lambda: upload.log(note, progress))
            with told(self.store):
                sent = self._pulse.attend(logged)
        except BaseException as failure:
            # The run must not stay RUNNING: what cut the upload short decides its end.
            killed = isinstance(failure, KeyboardInterrupt)
            self._end(client, tracked, "KILLED" if killed else "FAILED")
            raise
        if self._into is None:
            with told(self.store):
                self._pulse.beat()
                self._pulse.attend(in_background(lambda: upload.end(status)))
        return sent

    def abandon(self, status: str) -> None:
        """End a run that has nothing to show, if it was created at all."""
        if self._started is None:
            return
        try:
            tracked = self._pulse.attend(self._started)
        except TrackerError:
            return
        self._end(open_client(self.store), tracked, status)

    def _end(self, client: MlflowClient, tracked: TrackedRun, status: str) -> None:
        if self._into is not None:
            return  # whoever opened it ends it
        ended = in_background(lambda: client.set_terminated(tracked.run_id, status))
        try:
            ended.result(timeout=_LAST_TRY_S if self.store.database is None else None)
        except Exception as reason:  # the first failure is the one to tell
            logging.getLogger("kebab_eval").debug("could not end the MLflow run: %s", reason)


def _import_mlflow() -> None:
    # A dead server is told in seconds; MLflow's own defaults retry for minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    os.environ.setdefault("MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER", "false")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    # A database that refuses is told by the error that follows, without MLflow's own traceback.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
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
    pulse: Pulse,
    name: str,
    *,
    start_ms: int,
    tags: Mapping[str, str],
    again: bool,
) -> TrackedRun:
    prepare_database(store)
    with told(store), migrating(store):
        pulse.beat()
        client = open_client(store)
        experiment_id = find_experiment(client, store, experiment)
        pulse.beat()
        # Only a run over the same golden set answers the same question.
        same = f"tags.`{keys.TAG_GOLDEN}` = '{tags[keys.TAG_GOLDEN]}'"
        earlier = f"{same} and attributes.start_time <= {start_ms}"
        newest = client.search_runs(
            [experiment_id], earlier, order_by=["start_time DESC"], max_results=2
        )
        pulse.beat()
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
        pairs = keys.queries_url(store.ui_url, experiment_id, run_id, before.run_id)
        previous = PreviousRun(before.run_id, before.run_name, link, pairs)
    return TrackedRun(
        run_id,
        experiment_id,
        keys.run_url(store.ui_url, experiment_id, run_id),
        previous,
        keys.queries_url(store.ui_url, experiment_id, run_id),
        taken=made is not None,
    )


def _take_run(store: Store, pulse: Pulse, run_id: str, tags: Mapping[str, str]) -> TrackedRun:
    """Return a run that somebody else made, with the tags of ours; its name stays.

    Raises:
        TrackerError: the store has no such run.
    """
    prepare_database(store)
    with told(store), migrating(store):
        pulse.beat()
        client = open_client(store)
        experiment_id = str(client.get_run(run_id).info.experiment_id)
        for key, value in tags.items():
            if not key.startswith("mlflow.source"):
                pulse.beat()
                client.set_tag(run_id, key, value[: keys.MAX_TAG])
    return TrackedRun(
        run_id,
        experiment_id,
        keys.run_url(store.ui_url, experiment_id, run_id),
        queries_url=keys.queries_url(store.ui_url, experiment_id, run_id),
        taken=True,
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
