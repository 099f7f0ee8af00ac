"""Asking the system every query: bounded, paced, timed, asked again where that helps; none lost."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import stamina

from kebab_eval.answering import Answerer
from kebab_eval.backends.base import Backend, SearchResponse
from kebab_eval.config import Execution
from kebab_eval.errors import BackendError, KebabEvalError
from kebab_eval.records import Answer, GoldenQuery, Hit, QueryResult
from kebab_eval.redaction import redact

# Every retry would be a line on stderr otherwise; who sets up logging has them still.
logging.getLogger("stamina").addHandler(logging.NullHandler())

OnResult = Callable[[int, QueryResult], None]
_LONGEST_PAUSE_S = 60.0


async def fan_out(  # noqa: PLR0917  # what it is about first, then how
    backend: Backend,
    queries: Sequence[GoldenQuery],
    execution: Execution,
    mode: str,
    on_result: OnResult,
    answerer: Answerer | None = None,
) -> None:
    """Ask each query once and hand over every result as it comes, failures too.

    ``latency_ms`` is the time of the search call that was answered, alone: not of the wait for a
    slot or for the pace, nor of the attempts and pauses before it. Warm-up queries are asked first
    and forgotten. A system that takes batches is given batches; what a batch leaves without an
    answer is asked singly.

    Args:
        on_result: called with the index of the query and its result, from the event loop.
        answerer: writes an answer from the hits of each query that has any result; its time is no
            part of the search's latency, and its failure no failure of the search. One that fails
            ``execution.stop_after`` times before its first answer is not asked any more.

    Raises:
        BackendError: the first ``execution.stop_after`` queries all failed, so the system is down;
            their results were handed over.
    """
    info = backend.describe()
    wanted, limit = execution.concurrency, info.max_concurrency
    workers = wanted if limit is None else min(wanted, limit)
    caller = _Caller(backend, execution, mode, answerer)
    for query in queries[: execution.warmup]:
        await caller.warm_up(query)
    waiting = iter(enumerate(queries))  # shared: each goes to the worker that is free first
    circuit = _Circuit(execution.stop_after)

    async def work() -> None:
        while not circuit.open and (batch := list(islice(waiting, info.batch_size))):
            async with aclosing(caller.results(batch)) as results:
                async for index, result in results:
                    circuit.note(result.error)
                    on_result(index, result)
                    if circuit.open:  # the rest of the batch would be asked singly
                        break

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())
    if circuit.open:
        raise BackendError(
            f"stopped: the first {circuit.done} queries all failed, the last one with: "
            f"{circuit.cause} (execution.stop_after)"
        )


async def ask(backend: Backend, query: GoldenQuery, execution: Execution, mode: str) -> QueryResult:
    """Ask one query, again where that helps; what goes wrong becomes the result's ``error``."""
    return await _Caller(backend, execution, mode).ask(query)


class _Circuit:
    """Notices that none of the first ones was answered; once open, it stays open.

    An answer that was under way then comes too late: others have stopped asking already.
    """

    def __init__(self, stop_after: int) -> None:
        self.stop_after = stop_after
        self.done = 0
        self.cause = ""
        self.open = False
        self.answered = False

    def note(self, error: str | None) -> None:
        if self.open or self.answered:
            return
        if error is None:
            self.answered = True
            return
        self.done += 1
        self.cause = error
        self.open = self.done == self.stop_after


class _Pace:
    """At most so many attempts a second, evenly."""

    def __init__(self, per_second: float | None) -> None:
        self._interval = 0.0 if per_second is None else 1 / per_second
        self._next = 0.0

    async def wait(self) -> None:
        if self._interval:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._interval
            await asyncio.sleep(start - now)


class _Caller:
    """Asks one system, under the rules of an execution."""

    def __init__(
        self,
        backend: Backend,
        execution: Execution,
        mode: str,
        answerer: Answerer | None = None,
    ) -> None:
        self.answerer = answerer
        self.answers = _Circuit(execution.stop_after)
        self.backend = backend
        self.execution = execution
        self.mode = mode
        self.pace = _Pace(execution.requests_per_second)

    async def results(
        self, batch: Sequence[tuple[int, GoldenQuery]]
    ) -> AsyncGenerator[tuple[int, QueryResult]]:
        """Yield (index, result) of each query of a batch."""
        left: Sequence[tuple[int, GoldenQuery]] = batch
        if len(batch) > 1:
            left = []
            for (index, query), result in zip(batch, await self.batch(batch), strict=True):
                if result is None:
                    left.append((index, query))
                else:
                    yield index, await self.answered(query, result)
        for index, query in left:
            yield index, await self.answered(query, await self.ask(query))

    async def warm_up(self, query: GoldenQuery) -> None:
        """Ask once and forget it: a model that is loaded by its first answer is loaded then."""
        result = await self.attempt(query)
        if self.answerer is not None and isinstance(result, QueryResult) and result.error is None:
            await self.answer(self.answerer, query, result.hits, attempts=1)

    async def answered(self, query: GoldenQuery, result: QueryResult) -> QueryResult:
        """Return a result with its answer; a failure is the answer's own."""
        if self.answerer is None or result.error is not None:
            return result
        if self.answers.open:
            cause = f"not asked: the first {self.answers.done} answers all failed"
            return replace(result, answer=Answer(error=f"{cause}, as with: {self.answers.cause}"))
        answer = await self.answer(self.answerer, query, result.hits)
        self.answers.note(answer.error)
        return replace(result, answer=answer)

    async def answer(
        self,
        answerer: Answerer,
        query: GoldenQuery,
        hits: Sequence[Hit],
        attempts: int | None = None,
    ) -> Answer:
        try:
            async for attempt in self.attempts(attempts):
                with attempt:
                    await self.pace.wait()
                    started = time.perf_counter()
                    answer = await answerer.answer(query.query, query.query_id, hits)
                    latency_ms = (time.perf_counter() - started) * 1000
                    # A model repeats what it is told, and a report shows what it says.
                    text, model = redact(answer.text), redact(answer.model)
                    return replace(answer, text=text, model=model, latency_ms=latency_ms)
        except asyncio.CancelledError as stopped:
            _raise_if_stopped(stopped)
            return Answer(error="the answerer cancelled its own work")
        except Exception as failure:  # an answerer's bug is that answer's failure, not the run's
            return Answer(error=_cause(failure))
        raise AssertionError("the last attempt returns or raises")

    def attempts(self, most: int | None = None) -> Any:
        """Return the attempts at one request, with the pauses between them."""
        return stamina.retry_context(
            on=_worth_a_retry,
            attempts=self.execution.retries + 1 if most is None else most,
            timeout=None,
            wait_initial=0.1,
            wait_max=_LONGEST_PAUSE_S,
        )

    async def batch(self, batch: Sequence[tuple[int, GoldenQuery]]) -> list[QueryResult | None]:
        """Return what one call gave to each query; None for one that is worth asking singly."""
        await self.pace.wait()
        pairs = [(query.query_id, query.query) for _, query in batch]
        started, asked_at = time.perf_counter(), _now()
        try:
            async with asyncio.timeout(self.execution.timeout_s * len(batch)):
                responses = await self.backend.search_many(pairs)
        except Exception as failure:  # each is asked again and tells its own cause
            _raise_if_stopped(failure)
            return [None] * len(batch)
        share_ms = (time.perf_counter() - started) * 1000 / len(batch)
        found: list[QueryResult | None] = []
        for (_, query), response in zip(batch, responses, strict=True):
            if isinstance(response, BackendError):
                failed = self.failed(query, _cause(response), 1, asked_at)
                found.append(None if response.retry else failed)
            else:
                found.append(self.result(query, response, share_ms, attempts=1, asked_at=asked_at))
        return found

    async def ask(self, query: GoldenQuery) -> QueryResult:
        total = self.execution.total_timeout_s
        attempts, asked_at = 1, _now()
        try:
            async with asyncio.timeout(total) as deadline:
                # Nearly all are answered at once, and the machinery of retries has its price.
                result = await self.attempt(query)
                if isinstance(result, QueryResult):
                    return result
                async for attempt in self.attempts():
                    with attempt:
                        if attempt.num > 1:
                            attempts = attempt.num
                            result = await self.attempt(query, attempts)
                        if isinstance(result, QueryResult):
                            return result
                        raise result
        except BackendError as failure:
            return self.failed(query, _cause(failure), attempts, asked_at)
        except TimeoutError:
            if not deadline.expired():
                raise
            cause = f"timeout: no answer within {total:g} s, with {attempts} attempts"
            return self.failed(query, cause, attempts, asked_at)
        raise AssertionError("the last attempt returns or raises")

    async def attempt(self, query: GoldenQuery, number: int = 1) -> QueryResult | BackendError:
        """Ask once; return the result, or the failure that may be worth another attempt."""
        await self.pace.wait()
        timeout_s = self.execution.timeout_s
        started, asked_at = time.perf_counter(), _now()
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                response = await self.backend.search(query.query, query.query_id)
            latency_ms = (time.perf_counter() - started) * 1000
            return self.result(query, response, latency_ms, attempts=number, asked_at=asked_at)
        except BackendError as failure:
            return failure
        except asyncio.CancelledError as stopped:
            _raise_if_stopped(stopped)
            return BackendError("the backend cancelled its own search")
        except Exception as failure:  # a backend's bug is that query's failure, not the run's
            if deadline.expired():
                return BackendError(f"timeout: no answer within {timeout_s:g} s", retry=True)
            return BackendError(_cause(failure))

    def result(
        self,
        query: GoldenQuery,
        response: SearchResponse,
        latency_ms: float,
        *,
        attempts: int,
        asked_at: str,
    ) -> QueryResult:
        hits = tuple(response.hits)
        try:
            _check_scores(hits)
        except BackendError as failure:
            return self.failed(query, _cause(failure), attempts, asked_at)
        return QueryResult(
            query.query_id,
            query.query,
            self.mode,
            hits,
            _latency(response, latency_ms),
            attempts=attempts,
            timings_ms=dict(response.timings_ms),
            candidates=dict(response.candidates),
            started_at=asked_at if response.timed else None,
        )

    def failed(self, query: GoldenQuery, error: str, attempts: int, asked_at: str) -> QueryResult:
        return QueryResult(
            query.query_id,
            query.query,
            self.mode,
            error=error,
            attempts=max(1, attempts),
            started_at=asked_at,
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _latency(response: SearchResponse, wall_ms: float) -> float | None:
    if not response.timed:
        return None
    return wall_ms if response.latency_ms is None else response.latency_ms


def _worth_a_retry(failure: Exception) -> bool | float:
    """Say whether to ask again, and where the system said so, in how many seconds."""
    if not isinstance(failure, BackendError) or not failure.retry:
        return False
    if failure.retry_after_s is None:
        return True
    return min(max(failure.retry_after_s, 0.0), _LONGEST_PAUSE_S)


def _raise_if_stopped(failure: BaseException) -> None:
    """Raise a cancellation that stops the run: it is not the backend's own."""
    task = asyncio.current_task()
    if isinstance(failure, asyncio.CancelledError) and task is not None and task.cancelling():
        raise failure


def _check_scores(hits: Sequence[Hit]) -> None:
    """No record, which is JSON, can hold a score that is no number."""
    for hit in hits:
        if not all(map(math.isfinite, (hit.score, *hit.channels.values()))):
            raise BackendError(f"the score of hit {hit.rank} ({hit.chunk_id}) is not finite")


def _cause(failure: Exception) -> str:
    said, name = redact(" ".join(str(failure).split())), type(failure).__name__
    if isinstance(failure, KebabEvalError):
        return said or name
    return f"{name}: {said}" if said else name
