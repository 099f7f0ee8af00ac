"""Sending traces: many at once, only those that are not there, each of them whole."""

from __future__ import annotations

import copy
import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kebab_eval.errors import TrackerError
from kebab_eval.records import QueryResult
from kebab_eval.tracking.pulse import Pulse, side_by_side
from kebab_eval.tracking.store import Store
from kebab_eval.tracking.traces import DIGEST_KEY, Trace, TraceMaker

if TYPE_CHECKING:
    from mlflow.entities import Span
    from mlflow.tracing.client import TracingClient

_BATCH, _PAGE, _DELETED = 50, 500, 100
_IN_FLIGHT = 8
# Many traces in one transaction take private parts of MLflow's store: in these versions only.
BULK_VERSIONS = frozenset({"3.17.2"})

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Sent:
    """How many traces were sent now, and how many were there already."""

    new: int = 0
    present: int = 0
    view: bool = False
    """Whether the experiment has the view of the runs page."""

    @property
    def total(self) -> int:
        return self.new + self.present


def send_traces(
    store: Store,
    maker: TraceMaker,
    results: Sequence[QueryResult],
    pulse: Pulse,
    progress: Progress,
    *,
    fresh: bool,
) -> Sent:
    """Send the traces of a run that the store does not hold; none is there twice afterwards.

    A trace that was cut off halfway, or whose query was asked again since, is replaced.

    Args:
        fresh: the run was made just now, so there is nothing to look for.

    Raises:
        TrackerError: the server is too old to take spans, or nobody waits any more.
    """
    if not results:
        return Sent()
    from mlflow.tracing.client import TracingClient

    client = TracingClient(store.uri)
    there = {} if fresh else _there(client, maker, pulse)
    missing, stale = [], []
    for result in results:
        trace_id = maker.trace_id(result.query_id)
        if trace_id not in there:
            missing.append(result)
        elif there[trace_id] != maker.digest(result):
            missing.append(result)
            stale.append(trace_id)
    for some in _batches(stale, _DELETED):
        pulse.beat()
        client.delete_traces(maker.experiment_id, trace_ids=some)
    present = len(results) - len(missing)
    progress(present, len(results))
    for number, some in enumerate(_batches(missing, _BATCH)):
        _write(client, maker.experiment_id, [maker.make(result) for result in some], pulse)
        progress(present + min((number + 1) * _BATCH, len(missing)), len(results))
    return Sent(len(missing), present)


def _there(client: TracingClient, maker: TraceMaker, pulse: Pulse) -> dict[str, str]:
    """Return trace id -> digest of the run's traces; empty for one that has no spans yet."""
    found: dict[str, str] = {}
    token: str | None = None
    while True:
        pulse.beat()
        page = client.search_traces(
            locations=[maker.experiment_id],
            run_id=maker.run_id,
            max_results=_PAGE,
            include_spans=False,
            page_token=token,
        )
        for trace in page:
            info = trace.info
            whole = "mlflow.trace.spansLocation" in info.tags
            found[info.trace_id] = info.trace_metadata.get(DIGEST_KEY, "") if whole else ""
        token = page.token
        if not token:
            return found


def _write(client: TracingClient, experiment_id: str, traces: list[Trace], pulse: Pulse) -> None:
    pulse.beat()
    store = _bulk_store(client)
    if store is not None:
        try:
            _write_at_once(store, experiment_id, traces)
            return
        except Exception as reason:  # whatever it is, the public way is told it too, or works
            logging.getLogger("kebab_eval").debug("no bulk write of traces: %s", reason)
    _write_publicly(client, experiment_id, traces, pulse)


def _write_publicly(
    client: TracingClient, experiment_id: str, traces: list[Trace], pulse: Pulse
) -> None:
    """Start the traces, then log the spans of all: the other order is twice as slow."""

    def start(trace: Trace) -> None:
        pulse.beat()
        client.start_trace(trace.info)

    if client.tracking_uri.startswith("sqlite:"):  # one writes at a time
        for trace in traces:
            start(trace)
    else:
        side_by_side((partial(start, trace) for trace in traces), _IN_FLIGHT)
    pulse.beat()
    try:
        client.log_spans(experiment_id, _spans(traces))
    except NotImplementedError as reason:
        raise TrackerError(
            f"{reason}; with 'tracking.traces: none' the run is logged without traces"
        ) from reason


def _write_at_once(store: Any, experiment_id: str, traces: list[Trace]) -> None:
    """Write traces in one transaction: a batch costs one commit instead of one for each trace.

    A copy of MLflow's own store runs MLflow's own code; only its sessions are all the same one,
    what it adds is flushed together, and it looks for the experiment once.
    """
    from sqlalchemy import event

    experiment = store.get_experiment(experiment_id)
    with _no_collection(), store.ManagedSessionMaker(read_only=False) as session:

        @contextmanager
        def same(read_only: bool = True) -> Iterator[Any]:
            yield session

        def rolled_back(_session: Any) -> None:
            raise TrackerError("a part of the batch was taken back")

        shared = copy.copy(store)
        shared.ManagedSessionMaker = same
        shared.get_experiment = lambda _experiment_id: experiment
        event.listen(session, "after_rollback", rolled_back)
        session.flush, flush = (lambda *_: None), session.flush
        try:
            for trace in traces:
                shared._start_trace_once(trace.info)
            session.flush = flush
            flush()
            shared._log_spans_once(experiment_id, _spans(traces))
        finally:
            session.flush = flush
            event.remove(session, "after_rollback", rolled_back)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hold the garbage collector for a batch: it would look through all of MLflow each time."""
    held = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if held:
            gc.enable()


def _spans(traces: list[Trace]) -> list[Span]:
    return [span for trace in traces for span in trace.spans]


def _bulk_store(client: TracingClient) -> Any:
    import mlflow

    if mlflow.__version__ not in BULK_VERSIONS or not client.tracking_uri.startswith("sqlite:"):
        return None
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    return client.store if type(client.store) is SqlAlchemyStore else None


def _batches(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    """Yield the items in lists of at most ``size``."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
