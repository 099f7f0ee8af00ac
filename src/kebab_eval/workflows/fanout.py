"""Asking the system every query: bounded, timed, and no query lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from kebab_eval.backends.base import Backend
from kebab_eval.config import Execution
from kebab_eval.errors import KebabEvalError
from kebab_eval.records import GoldenQuery, QueryResult


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
    slots = asyncio.Semaphore(wanted if limit is None else min(wanted, limit))
    for query in queries[: execution.warmup]:
        await ask(backend, query, execution.timeout_s, mode)

    async def one(index: int, query: GoldenQuery) -> None:
        async with slots:
            on_result(index, await ask(backend, query, execution.timeout_s, mode))

    async with asyncio.TaskGroup() as group:
        for index, query in enumerate(queries):
            group.create_task(one(index, query))


async def ask(backend: Backend, query: GoldenQuery, timeout_s: float, mode: str) -> QueryResult:
    """Ask one query; what goes wrong becomes the result's ``error``, in one line."""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(timeout_s):
            response = await backend.search(query.query, query.query_id)
    except TimeoutError:
        error = f"timeout: no answer within {timeout_s:g} s"
    except KebabEvalError as failure:
        error = " ".join(str(failure).split())
    except Exception as failure:  # a backend's bug is that query's failure, not the run's
        error = f"{type(failure).__name__}: {' '.join(str(failure).split())}"
    else:
        latency_ms = (time.perf_counter() - started) * 1000
        return QueryResult(query.query_id, query.query, mode, tuple(response.hits), latency_ms)
    return QueryResult(query.query_id, query.query, mode, error=error)
