"""Every query is asked once, none is lost, and a failure is that query's alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from kebab_eval.backends.base import ItemIds, SearchResponse, SystemInfo
from kebab_eval.config import Execution
from kebab_eval.errors import BackendError, RecordError
from kebab_eval.records import GoldenQuery, Hit, QueryResult
from kebab_eval.workflows.fanout import ask, fan_out

Search = Callable[[str], Awaitable[Any]]
HIT = Hit(1, "c", "d", 0.5, "rrf")


class Fake:
    """A backend whose search is a function of the query id."""

    def __init__(self, search: Search, limit: int | None = None) -> None:
        self._search = search
        self.limit = limit
        self.asked: list[str] = []
        self.running = self.most = 0

    def describe(self) -> SystemInfo:
        return SystemInfo("fake", "rrf", {}, self.limit)

    async def search(self, query: str, query_id: str) -> SearchResponse:
        self.asked.append(query_id)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            response: SearchResponse = await self._search(query_id)
            return response
        finally:
            self.running -= 1

    def item_ids(self) -> ItemIds | None:
        return None

    async def close(self) -> None: ...


async def answer(_: str) -> SearchResponse:
    await asyncio.sleep(0)
    return SearchResponse((HIT,))


def execution(**settings: Any) -> Execution:
    return Execution(**{"warmup": 0, "timeout_s": 5.0, **settings})


def queries(count: int) -> list[GoldenQuery]:
    return [GoldenQuery(f"q{number}", f"text {number}") for number in range(count)]


def collect(backend: Fake, count: int, **settings: Any) -> dict[int, QueryResult]:
    found: dict[int, QueryResult] = {}

    def keep(index: int, result: QueryResult) -> None:
        assert index not in found
        found[index] = result

    asyncio.run(fan_out(backend, queries(count), execution(**settings), "hybrid", keep))
    return found


def ask_one(search: Search, timeout_s: float = 5.0) -> QueryResult:
    return asyncio.run(
        ask(Fake(search), queries(1)[0], execution(timeout_s=timeout_s, retries=0), "hybrid")
    )


def test_every_query_is_asked_once_and_its_result_carries_its_index() -> None:
    backend = Fake(answer)
    found = collect(backend, 20)
    assert sorted(backend.asked) == sorted(f"q{n}" for n in range(20))
    assert {index: result.query_id for index, result in found.items()} == {
        n: f"q{n}" for n in range(20)
    }
    assert found[3].query == "text 3"
    assert found[3].hits == (HIT,)
    assert found[3].mode == "hybrid"
    assert found[3].latency_ms is not None


def test_no_query_is_no_result() -> None:
    assert collect(Fake(answer), 0, warmup=3) == {}


@pytest.mark.parametrize(
    ("wanted", "limit", "most"), [(4, None, 4), (4, 2, 2), (2, 8, 2), (1, None, 1)]
)
def test_no_more_are_in_flight_than_both_sides_allow(
    wanted: int, limit: int | None, most: int
) -> None:
    backend = Fake(answer, limit)
    collect(backend, 12, concurrency=wanted)
    assert backend.most == most


def test_warm_up_queries_are_asked_first_and_forgotten() -> None:
    backend = Fake(answer)
    found = collect(backend, 3, warmup=2)
    assert backend.asked[:2] == ["q0", "q1"]
    assert len(backend.asked) == 5
    assert len(found) == 3


def test_a_failing_warm_up_stops_nothing() -> None:
    calls: list[str] = []

    async def first_fails(query_id: str) -> SearchResponse:
        calls.append(query_id)
        if len(calls) == 1:
            raise BackendError("cold")
        return SearchResponse((HIT,))

    assert collect(Fake(first_fails), 1, warmup=1)[0].error is None


def test_latency_is_the_search_alone_and_not_the_wait_for_a_slot() -> None:
    async def slow(_: str) -> SearchResponse:
        await asyncio.sleep(0.02)
        return SearchResponse(())

    started = time.perf_counter()
    found = collect(Fake(slow), 5, concurrency=1)
    elapsed_ms = (time.perf_counter() - started) * 1000
    # One after the other, so that the searches alone fit into the whole; with the waits they would
    # add up to three times as much.
    latencies = [result.latency_ms or 0.0 for result in found.values()]
    assert min(latencies) > 15
    assert sum(latencies) <= elapsed_ms


async def _raise(error: BaseException) -> SearchResponse:
    await asyncio.sleep(0)
    raise error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BackendError("no such\n  index"), "no such index"),
        (BackendError(), "BackendError"),
        (ValueError("bad\nthing"), "ValueError: bad thing"),
        (ValueError(), "ValueError"),
        (TimeoutError("socket timed out"), "TimeoutError: socket timed out"),
        (asyncio.CancelledError(), "the backend cancelled its own search"),
    ],
)
def test_what_goes_wrong_becomes_the_error_of_that_query(error: BaseException, said: str) -> None:
    result = ask_one(lambda _: _raise(error))
    assert (result.error, result.hits, result.latency_ms) == (said, (), None)


def test_a_search_that_takes_too_long_is_a_timeout() -> None:
    async def stuck(_: str) -> SearchResponse:
        await asyncio.sleep(60)
        return SearchResponse(())

    assert ask_one(stuck, 0.01).error == "timeout: no answer within 0.01 s"


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (None, "AttributeError: 'NoneType' object has no attribute 'hits'"),
        (SearchResponse(None), "TypeError: 'NoneType' object is not iterable"),  # type: ignore[arg-type]
        (
            SearchResponse((HIT, Hit(2, "x", "d", float("nan"), "rrf"))),
            "the score of hit 2 (x) is not finite",
        ),
        (
            SearchResponse((Hit(1, "x", "d", 1.0, "rrf", "", {"lexical_score": float("inf")}),)),
            "the score of hit 1 (x) is not finite",
        ),
    ],
)
def test_an_answer_that_no_record_could_hold_is_that_query_s_failure(
    response: Any, said: str
) -> None:
    async def search(_: str) -> Any:
        return response

    assert ask_one(search).error == said


def test_no_query_is_lost_when_some_fail_in_every_way() -> None:
    async def mixed(query_id: str) -> SearchResponse:
        number = int(query_id[1:])
        if number % 4 == 1:
            raise BackendError("no")
        if number % 4 == 2:
            raise asyncio.CancelledError
        if number % 4 == 3:
            raise KeyError("x")
        return await answer(query_id)

    found = collect(Fake(mixed), 16)
    assert len(found) == 16
    assert [index for index, result in sorted(found.items()) if result.error is None] == [
        0,
        4,
        8,
        12,
    ]


def test_stopping_the_run_stops_its_searches() -> None:
    started: list[str] = []

    async def stuck(query_id: str) -> SearchResponse:
        started.append(query_id)
        await asyncio.sleep(60)
        return SearchResponse(())

    async def main() -> dict[int, QueryResult]:
        found: dict[int, QueryResult] = {}
        run = asyncio.create_task(
            fan_out(Fake(stuck), queries(4), execution(), "hybrid", found.__setitem__)
        )
        while len(started) < 4:
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return found

    assert asyncio.run(main()) == {}


def test_a_result_that_cannot_be_kept_ends_the_run() -> None:
    def full(_: int, __: QueryResult) -> None:
        raise RecordError("disk full")

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(fan_out(Fake(answer), queries(8), execution(), "hybrid", full))
    assert isinstance(raised.value.exceptions[0], RecordError)


# --- asking again ----------------------------------------------------------------------------


def fails_first(times: int, failure: BackendError) -> Search:
    calls: list[str] = []

    async def search(query_id: str) -> SearchResponse:
        calls.append(query_id)
        if len(calls) <= times:
            raise failure
        return SearchResponse((HIT,))

    return search


def test_what_may_pass_is_asked_again() -> None:
    backend = Fake(fails_first(2, BackendError("503", retry=True, retry_after_s=0.0)))
    found = collect(backend, 1, retries=3)
    assert (found[0].error, found[0].attempts) == (None, 3)
    assert len(backend.asked) == 3


def test_what_will_not_pass_is_not_asked_again() -> None:
    backend = Fake(fails_first(1, BackendError("400 bad query")))
    found = collect(backend, 1, retries=3)
    assert (found[0].error, found[0].attempts) == ("400 bad query", 1)
    assert len(backend.asked) == 1


def test_the_last_cause_is_told_when_attempts_run_out() -> None:
    backend = Fake(fails_first(9, BackendError("503 busy", retry=True, retry_after_s=0.0)))
    found = collect(backend, 1, retries=2)
    assert (found[0].error, found[0].attempts) == ("503 busy", 3)


def test_the_system_says_how_long_to_wait_and_the_wait_is_no_latency() -> None:
    backend = Fake(fails_first(1, BackendError("429", retry=True, retry_after_s=0.3)))
    started = time.perf_counter()
    found = collect(backend, 1, retries=1)
    assert time.perf_counter() - started >= 0.3
    latency = found[0].latency_ms
    assert latency is not None
    assert latency < 300


def test_a_query_has_a_time_for_all_its_attempts() -> None:
    backend = Fake(fails_first(99, BackendError("503", retry=True, retry_after_s=0.05)))
    found = collect(backend, 1, retries=20, total_timeout_s=0.2)
    assert found[0].error is not None
    assert found[0].error.startswith("timeout: no answer within 0.2 s, with ")


# --- a system that is down --------------------------------------------------------------------


async def down(_: str) -> SearchResponse:
    raise BackendError("connection refused")


def test_a_system_that_is_down_is_not_asked_to_the_end() -> None:
    backend = Fake(down)
    found: list[QueryResult] = []
    with pytest.raises(BackendError, match=r"the first 5 queries all failed.*connection refused"):
        _fan(backend, 100, found, concurrency=1, stop_after=5)
    assert len(found) == len(backend.asked) == 5  # each of them is in the record


def _fan(backend: Fake, count: int, found: list[QueryResult], **settings: Any) -> None:
    def keep(_: int, result: QueryResult) -> None:
        found.append(result)

    asyncio.run(fan_out(backend, queries(count), execution(**settings), "hybrid", keep))


@pytest.mark.parametrize("settings", [{"stop_after": 0}, {"stop_after": 30}])
def test_a_run_goes_on_where_it_may(settings: dict[str, int]) -> None:
    found = collect(Fake(down), 20, retries=0, **settings)
    assert len(found) == 20


def test_one_answer_is_enough_to_go_on() -> None:
    async def mostly(query_id: str) -> SearchResponse:
        return SearchResponse((HIT,)) if query_id == "q1" else await down(query_id)

    assert len(collect(Fake(mostly), 40, concurrency=1, retries=0, stop_after=5)) == 40


def test_an_answer_that_comes_after_the_end_does_not_undo_it() -> None:
    """Two in flight: one fails three times and ends the run, then the other's answer comes."""
    ended = asyncio.Event()

    async def one_is_slow(query_id: str) -> SearchResponse:
        if query_id == "q0":
            await ended.wait()
            return SearchResponse((HIT,))
        if query_id == "q3":
            ended.set()
        return await down(query_id)

    backend = Fake(one_is_slow)
    found: list[QueryResult] = []
    with pytest.raises(BackendError, match="the first 3 queries all failed"):
        _fan(backend, 30, found, concurrency=2, stop_after=3)
    assert sorted(backend.asked) == ["q0", "q1", "q2", "q3"]
    assert len(found) == 4  # the late answer is kept all the same


# --- the pace ---------------------------------------------------------------------------------


def test_attempts_keep_a_pace() -> None:
    started: list[float] = []

    async def noted(_: str) -> SearchResponse:
        started.append(time.monotonic())
        return SearchResponse(())

    collect(Fake(noted), 6, concurrency=6, requests_per_second=50)
    gaps = [later - earlier for earlier, later in pairwise(started)]
    assert min(gaps) > 0.01  # 20 ms apart, but for the clock's grain


# --- batches ----------------------------------------------------------------------------------


class Batches(Fake):
    """A system of batches; ``many`` gives the answers of one call."""

    def __init__(
        self, many: Callable[[list[str]], Any], size: int = 4, singly: Search = answer
    ) -> None:
        super().__init__(singly)
        self.many = many
        self.size = size
        self.calls: list[list[str]] = []

    def describe(self) -> SystemInfo:
        return SystemInfo("fake", "rrf", {}, batch_size=self.size)

    async def search_many(self, queries: Any) -> Any:
        ids = [query_id for query_id, _ in queries]
        self.calls.append(ids)
        return self.many(ids)


def test_batches_hold_no_more_than_they_may() -> None:
    backend = Batches(lambda ids: [SearchResponse((HIT,), latency_ms=7.0) for _ in ids])
    found = collect(backend, 10, concurrency=1)
    assert [len(call) for call in backend.calls] == [4, 4, 2]
    assert backend.asked == []
    assert sorted(found) == list(range(10))
    assert found[0].latency_ms == 7.0  # the system's own, where one call is many searches


def test_what_a_broken_batch_left_is_asked_singly() -> None:
    def half(ids: list[str]) -> list[Any]:
        bad = BackendError("no such field")
        gone = BackendError("the process ended", retry=True)
        return [SearchResponse((HIT,)), bad, gone, gone][: len(ids)]

    backend = Batches(half)
    found = collect(backend, 4, concurrency=1)
    assert backend.asked == ["q2", "q3"]
    assert [found[n].error for n in range(4)] == [None, "no such field", None, None]


def test_a_batch_that_fails_as_a_whole_is_asked_singly() -> None:
    def crash(_: list[str]) -> Any:
        raise BackendError("crashed")

    backend = Batches(crash)
    found = collect(backend, 5, concurrency=1)
    assert sorted(backend.asked) == [f"q{n}" for n in range(5)]
    assert all(result.error is None for result in found.values())


def test_a_system_that_dies_within_a_batch_is_not_asked_for_the_rest_of_it() -> None:
    def crash(_: list[str]) -> Any:
        raise BackendError("crashed")

    backend = Batches(crash, size=10, singly=down)
    found: list[QueryResult] = []
    with pytest.raises(BackendError, match="the first 3 queries all failed"):
        _fan(backend, 30, found, concurrency=1, stop_after=3)
    # One call for ten, then three of them singly; seven more and twenty others are not asked.
    assert (len(backend.calls), backend.asked) == (1, ["q0", "q1", "q2"])
    assert len(found) == 3


def test_a_result_says_when_its_search_began_and_a_kept_answer_does_not() -> None:
    before = datetime.now(UTC)

    async def search(query_id: str) -> SearchResponse:
        if query_id == "q1":
            raise BackendError("down")
        return SearchResponse((HIT,), timed=query_id != "q2")

    found = collect(Fake(search), 3)
    after = datetime.now(UTC)
    assert found[2].started_at is None
    for result in (found[0], found[1]):
        assert result.started_at is not None
        assert before <= datetime.fromisoformat(result.started_at) <= after
        assert result.started_at.endswith("Z")
