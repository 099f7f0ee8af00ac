"""The fan-out on a Ray cluster: shards of queries as tasks, each with a system of its own.

A query is asked by the code that asks it without Ray, so what comes back is the same to the last
bit. A task costs about a millisecond and a worker opens its system once, so queries travel in
shards; a worker that dies loses its shard, which is asked again elsewhere.
"""

from __future__ import annotations

import asyncio
import io
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from kebab_eval.answering import open_answerer
from kebab_eval.config_file import LoadedConfig
from kebab_eval.errors import BackendError, KebabEvalError, UsageError
from kebab_eval.records import GoldenQuery, QueryResult
from kebab_eval.redaction import redact, register, registered
from kebab_eval.workflows.fanout import OnResult, fan_out
from kebab_eval.workflows.systems import open_system

SHARD = 500
"""Queries a task: seconds of work, and little to ask again when a worker dies."""
_RETRIES = 3  # of a shard whose worker died
_IN_FLIGHT = 2  # tasks a processor: one works while the next one's arguments travel


@dataclass(frozen=True, slots=True)
class _Shard:
    """Queries, and their places in what was asked."""

    places: tuple[int, ...]
    queries: tuple[GoldenQuery, ...]


def fan_out_on_ray(
    loaded: LoadedConfig, queries: Sequence[GoldenQuery], on_result: OnResult
) -> None:
    """Ask each query once on a cluster, and hand over results as their shards come back.

    The first ``execution.stop_after`` queries go ahead as a shard of their own: when they all fail,
    the system is down. ``execution.concurrency`` and ``requests_per_second`` are those of the whole
    run, divided among the tasks that run at once.

    Args:
        on_result: called with the index of the query and its result, from this thread.

    Raises:
        UsageError: Ray is not installed, or there is no cluster at ``execution.ray_address``.
        BackendError: the system is down, cannot be opened on a worker, or the workers keep dying.
    """
    execution = loaded.config.execution
    # Ray tells of a dead worker on stdout, which is the result's; it is retried, and no news.
    with cluster(execution.ray_address) as processors, redirect_stdout(io.StringIO()):
        slots = max(1, min(processors, execution.concurrency, math.ceil(len(queries) / SHARD)))
        ahead = execution.stop_after if len(queries) > execution.stop_after else 0
        numbered = list(enumerate(queries))
        if ahead:
            _run(loaded, [_shard(numbered[:ahead])], 1, on_result)
        rest = iter(numbered[ahead:])
        shards: Iterator[_Shard] = iter(lambda: _shard(list(islice(rest, SHARD))), _NOTHING)
        later = loaded if not ahead else _never_stopped(loaded)
        _run(later, shards, slots, on_result)


_NOTHING = _Shard((), ())


def _shard(numbered: Sequence[tuple[int, GoldenQuery]]) -> _Shard:
    return _Shard(tuple(place for place, _ in numbered), tuple(query for _, query in numbered))


@contextmanager
def cluster(address: str | None) -> Iterator[int]:
    """Connect to a cluster, or start one on this machine; yield how many processors it has.

    A connection that the program has already is used, and left as it is.

    Raises:
        UsageError: Ray is not installed, or nothing answers at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report to its makers
    with _own_signals():
        try:
            import ray
        except ImportError:
            message = 'execution.engine: ray needs Ray; pip install "kebab-eval[ray]", or use local'
            raise UsageError(message) from None
        if ray.is_initialized():
            connected = True
        else:
            connected = False
            _connect(ray, address)
    try:
        resources: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        yield max(1, int(resources.get("CPU", 1)))
    finally:
        if not connected:
            ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    own: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        _reach(address)  # Ray would try for minutes
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as reason:
        said = " ".join(str(reason).split())[:200]
        where = address or "this machine"
        raise UsageError(f"execution.ray_address: no Ray cluster at {where} ({said})") from reason


def _reach(address: str | None) -> None:
    """Raise OSError or ValueError where nothing listens at ``host:port`` or ``ray://host:port``."""
    if address is None or ":" not in address:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=5):
        pass


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our handler of SIGTERM: importing Ray sets one that ends the process at once."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)


def _never_stopped(loaded: LoadedConfig) -> LoadedConfig:
    """Return the config for shards that follow an answered one: the system is up."""
    execution = loaded.config.execution.model_copy(update={"stop_after": 0})
    return replace(loaded, config=loaded.config.model_copy(update={"execution": execution}))


def _run(
    loaded: LoadedConfig, shards: Iterator[_Shard] | Sequence[_Shard], slots: int, keep: OnResult
) -> None:
    """Run shards, a bounded number at a time, and hand over what they found."""
    import ray
    from ray.exceptions import RayError

    task = ray.remote(max_retries=_RETRIES)(_ask_shard)
    # An argument, and small: what ray.put keeps may be spilled to disk, and secrets are among it.
    told = (_shared_out(loaded, slots), registered(), str(Path.cwd()))
    waiting = iter(shards)
    running: dict[Any, _Shard] = {}
    while True:
        for shard in islice(waiting, slots * _IN_FLIGHT - len(running)):
            running[task.remote(told, shard.queries)] = shard
        if not running:
            return
        (done, *_), _ = ray.wait(list(running))
        shard = running.pop(done)
        try:
            results, error = ray.get(done)
        except RayError as reason:
            said = redact(" ".join(str(reason).split()))[:200]
            raise BackendError(
                f"a shard of {len(shard.queries)} queries was lost {_RETRIES + 1} times ({said})"
            ) from None
        for index, result in results:
            keep(shard.places[index], result)
        if error is not None:
            for other in running:
                ray.cancel(other, force=True)
            raise BackendError(error)


def _shared_out(loaded: LoadedConfig, slots: int) -> LoadedConfig:
    """Return the config of one of ``slots`` tasks: its share of what may be in flight."""
    execution = loaded.config.execution
    pace = execution.requests_per_second
    share = {
        "concurrency": max(1, execution.concurrency // slots),
        "requests_per_second": None if pace is None else pace / slots,
    }
    execution = execution.model_copy(update=share)
    return replace(loaded, config=loaded.config.model_copy(update={"execution": execution}))


# What a worker has opened; it lives as long as the worker's process, which Ray uses again.
_opened: dict[str, Any] = {}


def _ask_shard(
    told: tuple[LoadedConfig, dict[str, str], str], queries: Sequence[GoldenQuery]
) -> tuple[list[tuple[int, QueryResult]], str | None]:
    """Ask the queries of a shard, in a worker; return what came back, and what ends the run.

    Nothing is raised: Ray would write it to its logs, and a message may hold a secret.
    """
    loaded, secrets, folder = told
    found: list[tuple[int, QueryResult]] = []
    try:
        for value, reference in secrets.items():
            register(value, reference)
        backend, fresh = _backend(loaded, folder)
        execution = loaded.config.execution
        if not fresh:
            execution = execution.model_copy(update={"warmup": 0})
        asyncio.run(_fan(loaded, backend, queries, execution, lambda *one: found.append(one)))
    except BaseExceptionGroup as failures:
        return found, _said(failures.exceptions[0])
    except Exception as failure:
        return found, _said(failure)
    return found, None


def _said(failure: BaseException) -> str:
    text = redact(str(failure))
    return text if isinstance(failure, KebabEvalError) else f"{type(failure).__name__}: {text}"


def _backend(loaded: LoadedConfig, folder: str) -> tuple[Any, bool]:
    """Return this worker's system, and whether it was opened for this shard."""
    from kebab_eval.tracking.spool import dump_line

    key = folder + dump_line(loaded.snapshot)
    if key in _opened:
        return _opened[key], False
    if Path(folder).is_dir():
        os.chdir(folder)  # relative paths of a config start where the run did
    for other in _opened.values():
        asyncio.run(other.close())
    _opened.clear()
    backend = open_system(loaded)
    backend.prepare(_silent)
    _opened[key] = backend
    return backend, True


async def _fan(
    loaded: LoadedConfig,
    backend: Any,
    queries: Sequence[GoldenQuery],
    execution: Any,
    keep: Callable[[int, QueryResult], None],
) -> None:
    answerer = open_answerer(loaded.config, backend)
    try:
        await fan_out(backend, queries, execution, loaded.config.search.mode, keep, answerer)
    finally:
        if answerer is not None:
            await answerer.close()


def _silent(_done: int, _total: int) -> None: ...
