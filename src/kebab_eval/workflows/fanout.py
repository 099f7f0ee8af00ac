"""Asking the system every query: bounded, timed, and no query lost."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence

from kebab_eval.backends.base import Backend
from kebab_eval.config import Execution
from kebab_eval.errors import BackendError, KebabEvalError
from kebab_eval.records import GoldenQuery, Hit, QueryResult


async def fan_out(
    backend: Backend,
    queries: Sequence[GoldenQuery],
    execution: Execution,
    mode: str,
    on_result: Callable[[int, QueryResult], None],
) -> None:
    """Ask each query once and hand over every result as it comes, failures too.

    ``latency_ms`` is the time of the search call alone, not of the wait for a slot. Warm-up queries
    are asked first and forgotten.

    Args:
        on_result: called with the index of the query and its result, from the event loop.
    """
    wanted = execution.concurrency
    limit = backend.describe().max_concurrency
    workers = wanted if limit is None else min(wanted, limit)
    for query in queries[: execution.warmup]:
        await ask(backend, query, execution.timeout_s, mode)
    waiting = enumerate(queries)

    async def work() -> None:
        for index, query in waiting:  # shared: each query goes to the worker that is free first
            on_result(index, await ask(backend, query, execution.timeout_s, mode))

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


async def ask(backend: Backend, query: GoldenQuery, timeout_s: float, mode: str) -> QueryResult:
    """Ask one query; what goes wrong becomes the result's ``error``, in one line."""
    started = time.perf_counter()
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            response = await backend.search(query.query, query.query_id)
        latency_ms = (time.perf_counter() - started) * 1000
        hits = tuple(response.hits)
        _check_scores(hits)
        return QueryResult(query.query_id, query.query, mode, hits, latency_ms)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # the run is being stopped
        error = "the backend cancelled its own search"
    except Exception as failure:  # a backend's bug is that query's failure, not the run's
        error = _cause(failure)
        if deadline.expired():
            error = f"timeout: no answer within {timeout_s:g} s"
    return QueryResult(query.query_id, query.query, mode, error=error)


def _check_scores(hits: Sequence[Hit]) -> None:
    """No record, which is JSON, can hold a score that is no number."""
    for hit in hits:
        if not all(map(math.isfinite, (hit.score, *hit.channels.values()))):
            raise BackendError(f"the score of hit {hit.rank} ({hit.chunk_id}) is not finite")


def _cause(failure: Exception) -> str:
    said, name = " ".join(str(failure).split()), type(failure).__name__
    if isinstance(failure, KebabEvalError):
        return said or name
    return f"{name}: {said}" if said else name
