"""Asking for answers in the fan-out: after the hits, timed alone, and never at their cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from kebab_eval import redaction
from kebab_eval.answering import open_answerer
from kebab_eval.backends.base import SearchResponse, SingleSearch, SystemInfo
from kebab_eval.config import Config, Execution
from kebab_eval.errors import BackendError
from kebab_eval.records import Answer, GoldenQuery, Hit, QueryResult
from kebab_eval.workflows.fanout import fan_out

HITS = (Hit(1, "c", "d", 0.5, "rrf", "text"),)


class System(SingleSearch):
    """Finds the same for every query, and knows no answer to any."""

    def describe(self) -> SystemInfo:
        return SystemInfo("system", "rrf", {}, answers=True)

    async def search(self, query: str, query_id: str) -> SearchResponse:
        if query_id == "broken":
            raise BackendError("no such index")
        await asyncio.sleep(0.02)
        return SearchResponse(HITS)

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        await asyncio.sleep(60)
        return Answer("late")


class Writer:
    """An answerer that is a function of the query id."""

    def __init__(self, write: Callable[[str], Awaitable[Answer]]) -> None:
        self.write = write
        self.asked: list[str] = []
        self.running = self.most = 0

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        self.asked.append(query_id)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self.write(query_id)
        finally:
            self.running -= 1

    async def close(self) -> None: ...


def run(writer: Writer, *ids: str, warmup: int = 0, **execution: int) -> list[QueryResult]:
    found: dict[int, QueryResult] = {}
    queries = [GoldenQuery(one, "t") for one in ids]
    settings = Execution(warmup=warmup, **execution)
    asyncio.run(fan_out(System(), queries, settings, "x", found.__setitem__, writer))
    return [found[place] for place in range(len(ids))]


def test_an_answer_is_timed_alone_and_the_search_without_it() -> None:
    async def slow(_: str) -> Answer:
        await asyncio.sleep(0.5)
        return Answer("fine")

    (result,) = run(Writer(slow), "q")
    assert result.answer is not None
    assert result.latency_ms is not None
    assert result.answer.latency_ms is not None
    assert result.latency_ms < 400
    assert result.answer.latency_ms > 450


def test_answers_are_asked_for_within_the_same_bound() -> None:
    async def some(_: str) -> Answer:
        await asyncio.sleep(0.02)
        return Answer("fine")

    writer = Writer(some)
    run(writer, *map(str, range(12)), concurrency=3)
    assert writer.most <= 3
    assert sorted(writer.asked, key=int) == [*map(str, range(12))]


def test_a_query_that_found_nothing_out_is_not_asked_about() -> None:
    async def fine(_: str) -> Answer:
        return Answer("fine")

    writer = Writer(fine)
    broken, good = run(writer, "broken", "q")
    assert (broken.answer, writer.asked) == (None, ["q"])
    assert good.answer is not None


def test_the_warm_up_loads_the_model_and_is_forgotten() -> None:
    async def loading(_: str) -> Answer:
        if len(writer.asked) == 1:
            raise BackendError("loading", retry=True, retry_after_s=60)
        return Answer("fine")

    writer = Writer(loading)
    started = time.monotonic()
    results = run(writer, "q1", "q2", warmup=1, retries=3, concurrency=1)
    assert writer.asked == ["q1", "q1", "q2"]
    assert [result.answer and result.answer.text for result in results] == ["fine", "fine"]
    assert time.monotonic() - started < 30  # nobody waits for a warm-up


def test_a_model_that_is_down_is_not_asked_to_the_end() -> None:
    async def down(_: str) -> Answer:
        raise BackendError("connection refused")

    writer = Writer(down)
    results = run(writer, *map(str, range(8)), concurrency=1, stop_after=3)
    assert writer.asked == ["0", "1", "2"]
    assert all(result.hits == HITS and result.error is None for result in results)
    errors = [result.answer and result.answer.error for result in results]
    assert errors[:3] == ["connection refused"] * 3
    assert set(errors[3:]) == {
        "not asked: the first 3 answers all failed, as with: connection refused"
    }


def test_one_answer_keeps_a_model_in_the_run() -> None:
    async def moody(query_id: str) -> Answer:
        if query_id == "1":
            return Answer("fine")
        raise BackendError("no")

    writer = Writer(moody)
    run(writer, *map(str, range(8)), concurrency=1, stop_after=3)
    assert len(writer.asked) == 8


def test_a_system_that_never_ends_its_answer_is_left() -> None:
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": {"corpus": Path("c")}}
    config = Config.model_validate({**data, "answer": {"type": "system", "timeout_s": 0.05}})
    answerer = open_answerer(config, System())
    assert answerer is not None
    with pytest.raises(BackendError, match=r"timeout: no answer within 0\.05 s") as told:
        asyncio.run(answerer.answer("t", "q", HITS))
    assert told.value.retry


def test_a_secret_in_an_answer_or_its_failure_stays_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redaction, "_forms", {})
    redaction.register("sk-planted", "${env:KEY}")

    async def gossip(query_id: str) -> Answer:
        if query_id == "bad":
            raise ValueError("who let sk-planted in?")
        return Answer("the key is sk-planted", model="m-sk-planted")

    told, failed = (result.answer for result in run(Writer(gossip), "good", "bad"))
    assert told is not None
    assert failed is not None
    assert (told.text, told.model) == ("the key is ${env:KEY}", "m-${env:KEY}")
    assert failed.error == "ValueError: who let ${env:KEY} in?"
