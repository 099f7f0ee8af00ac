"""Answers: extractive, of a model behind a real server, and what a run makes of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kebab_eval.answering import open_answerer
from kebab_eval.answering.extractive import Extractive
from kebab_eval.answering.openai_compatible import OpenAiCompatible
from kebab_eval.backends.base import SearchResponse, SingleSearch, SystemInfo
from kebab_eval.config import Config, ExtractiveAnswers, ModelAnswers
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.metrics import evaluate_run
from kebab_eval.metrics.answers import answer_scores
from kebab_eval.records import (
    Answer,
    Citation,
    GoldenQuery,
    GoldenSet,
    Hit,
    Judgments,
    QueryResult,
)
from kebab_eval.workflows.fanout import fan_out

KEY = "sk-planted-key"
HITS = (
    Hit(1, "a#1", "a", 0.9, "rrf", "# Pumps\n\nThe pump runs at sixty bar. It is blue."),
    Hit(2, "b#1", "b", 0.5, "rrf", "Valves\n======\n\n- The valve is closed on Sundays."),
)

Serving = Callable[..., AbstractContextManager[str]]
Program = Callable[..., subprocess.CompletedProcess[str]]


def extract(query: str, texts: dict[str, str] | None = None, **settings: Any) -> Answer:
    section = ExtractiveAnswers(type="extractive", **settings)
    return asyncio.run(Extractive(section, texts or {}).answer(query, "q", HITS))


def test_the_sentence_that_holds_the_words_is_the_answer() -> None:
    answer = extract("how many bar does the pump run at", sentences=1)
    assert answer.text == "The pump runs at sixty bar. [1]"
    assert answer.citations == (Citation("a#1", "a", "[1]"),)
    assert (answer.grounded, answer.refused) == (True, False)


def test_sentences_stand_in_their_order_with_their_sources() -> None:
    answer = extract("pump valve Sundays bar", sentences=2, min_score=0.1)
    assert answer.text == "The pump runs at sixty bar. [1] The valve is closed on Sundays. [2]"


def test_it_refuses_under_the_score_and_without_hits() -> None:
    answer = extract("the weather in Pangyo tomorrow", min_score=0.9)
    assert (answer.refused, answer.refusal_reason, answer.text) == (True, "score_gate", "")
    section = ExtractiveAnswers(type="extractive")
    empty = asyncio.run(Extractive(section, {}).answer("q", "q", ()))
    assert (empty.refused, empty.refusal_reason) == (True, "no_chunks")


def test_the_whole_chunk_is_read_where_it_is_listed() -> None:
    texts = {"a#1": "Far behind the snippet: the pump weighs ninety kilograms."}
    assert "ninety" in extract("how much does the pump weigh", texts, min_score=0.2).text


# --- a model ----------------------------------------------------------------------------------


def model(address: str, **more: Any) -> OpenAiCompatible:
    section = ModelAnswers(
        type="openai_compatible", base_url=address, model="m", api_key=KEY, **more
    )
    return OpenAiCompatible(section, {"a#1": "whole text of a"})


def answered(address: str, **more: Any) -> Answer:
    async def run() -> Answer:
        asked = model(address, **more)
        try:
            return await asked.answer("질문?", "q", HITS)
        finally:
            await asked.close()

    return asyncio.run(run())


def completion(text: str) -> dict[str, Any]:
    return {
        "model": "m-1",
        "choices": [{"message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 7},
    }


def test_what_is_asked_and_what_is_read(serving: Serving) -> None:
    seen: list[tuple[str, str | None, Any]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.text())
        seen.append((request.path, request.headers.get("Authorization"), body))
        return web.json_response(completion("Sixty bar [1][9]."))

    with serving(handle) as address:
        answer = answered(address + "/")
        answered(address + "/v1", seed=5)
    (path, key, body), (again, _, seeded) = seen
    assert path == again == "/v1/chat/completions"
    assert key == f"Bearer {KEY}"
    assert (body["temperature"], body["seed"], body["model"]) == (0, 0, "m")
    assert seeded["seed"] == 5
    user = body["messages"][1]["content"]
    assert "[1] whole text of a" in user
    assert "[2] Valves" in user
    assert user.endswith("Question: 질문?")
    assert answer.text == "Sixty bar [1][9]."
    # The ninth passage does not exist: a citation of nothing.
    assert answer.citations == (Citation("a#1", "a", "[1]"), Citation("", "", "[9]"))
    assert (answer.model, answer.prompt_version) == ("m-1", "v1")
    assert answer.tokens == {"prompt": 20, "completion": 7}


@pytest.mark.parametrize("text", ["NO_ANSWER", " NO_ANSWER.\n"])
def test_a_refusal(serving: Serving, text: Any) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response(completion(text))

    with serving(handle) as address:
        answer = answered(address)
    assert (answer.refused, answer.refusal_reason, answer.text) == (True, "llm_self_judge", "")


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (web.Response(status=401, text=f"bad key {KEY}"), "HTTP 401: bad key"),
        (web.Response(text="<html>"), "the response is no JSON"),
        (web.json_response([]), "no JSON object"),
        (web.json_response({"choices": []}), "no choices"),
    ],
)
def test_what_is_no_answer_is_told_without_the_key(
    serving: Serving, response: Any, said: str
) -> None:
    from kebab_eval.redaction import register

    register(KEY, "${env:KEY}")

    async def handle(request: web.Request) -> web.StreamResponse:
        return response  # type: ignore[no-any-return]

    with serving(handle) as address, pytest.raises(BackendError) as told:
        answered(address)
    assert said in str(told.value)
    assert KEY not in str(told.value)


def test_an_address_that_is_none() -> None:
    with pytest.raises(UsageError, match=r"answer\.base_url"):
        model("localhost:11434")


# --- in a run -----------------------------------------------------------------------------------


class Fixed(SingleSearch):
    """A system that always returns the same hits."""

    def describe(self) -> SystemInfo:
        return SystemInfo("fixed", "rrf", {})

    async def search(self, query: str, query_id: str) -> SearchResponse:
        return SearchResponse(HITS)


class Moody:
    """An answerer that fails twice for one query, always for another, and answers the rest."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def answer(self, query: str, query_id: str, hits: Any) -> Answer:
        self.asked.append(query_id)
        if query_id == "q0" and self.asked.count("q0") < 3:
            raise BackendError("busy", retry=True, retry_after_s=0.0)
        if query_id == "q1":
            raise ValueError("a bug")
        return Answer("fine", model=str(len(hits)))

    async def close(self) -> None: ...


def test_a_failed_answer_loses_no_hits() -> None:
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": {"corpus": Path("c")}}
    config = Config.model_validate({**data, "execution": {"warmup": 0, "retries": 3}})
    found: dict[int, QueryResult] = {}
    queries = [GoldenQuery(f"q{n}", "t") for n in range(3)]
    moody = Moody()
    asyncio.run(fan_out(Fixed(), queries, config.execution, "x", found.__setitem__, moody))
    assert [found[n].hits for n in range(3)] == [HITS] * 3
    assert [found[n].error for n in range(3)] == [None] * 3
    answers = [found[n].answer for n in range(3)]
    assert answers[0] is not None
    assert (answers[0].text, answers[0].error) == ("fine", None)
    assert answers[0].latency_ms is not None
    assert answers[1] is not None
    assert answers[1].error == "ValueError: a bug"
    assert moody.asked.count("q0") == 3


def test_a_system_without_answers_of_its_own_is_told() -> None:
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": {"corpus": Path("c")}}
    config = Config.model_validate({**data, "answer": {"type": "system"}})
    with pytest.raises(UsageError, match="the system fixed gives no answers of its own"):
        open_answerer(config, Fixed())


ANSWERABLE = GoldenQuery(
    "q", "t", Judgments(doc={"a": 1.0}), must_contain=("sixty",), forbidden=("seventy",)
)
NOTHING = GoldenQuery("n", "t")


@pytest.mark.parametrize(
    ("query", "answer", "scores"),
    [
        (
            ANSWERABLE,
            Answer("sixty bar", (Citation("a#1", "a"), Citation("z#1", "z")), grounded=True),
            {"groundedness": 1.0, "citation_coverage": 1 / 2},
        ),
        (ANSWERABLE, Answer("sixty, not seventy", grounded=True),
         {"groundedness": 0.0, "citation_coverage": 0.0}),  # forbidden; grounded without citations
        (ANSWERABLE, Answer(refused=True, grounded=False), {}),
        (ANSWERABLE, Answer(error="timeout"), {}),
        # kebab names documents only: the path counts
        (ANSWERABLE, Answer("sixty", (Citation("", "b"),), grounded=True),
         {"groundedness": 1.0, "citation_coverage": 1.0}),
        (NOTHING, Answer(refused=True, grounded=False), {"refusal_correctness": 1.0}),
        (NOTHING, Answer("made up", grounded=True),
         {"refusal_correctness": 0.0, "citation_coverage": 0.0}),
    ],
)  # fmt: skip
def test_scores_by_hand(query: GoldenQuery, answer: Answer, scores: dict[str, float]) -> None:
    result = QueryResult(query.query_id, "t", "x", HITS, 1.0, answer=answer)
    assert answer_scores(query, result) == scores


def test_the_aggregate_of_a_run_with_answers() -> None:
    results = [
        QueryResult("q", "t", "x", HITS, 1.0, answer=Answer(
            "sixty", (Citation("a#1", "a"),), grounded=True, latency_ms=10.0,
            tokens={"prompt": 5, "completion": 2})),
        QueryResult("n", "t", "x", HITS, 1.0, answer=Answer(
            refused=True, grounded=False, latency_ms=30.0, tokens={"prompt": 5})),
    ]  # fmt: skip
    golden = GoldenSet("g", "1", "x", (ANSWERABLE, NOTHING))
    aggregate = evaluate_run(golden, results).aggregate
    assert aggregate["groundedness"] == aggregate["citation_coverage"] == 1.0
    assert aggregate["refusal_correctness"] == 1.0
    assert aggregate["metrics"]["groundedness"]["n"] == 1
    assert aggregate["answers"] == {
        "answered": 1,
        "refused": 1,
        "failed": 0,
        "latency_ms": {"p50": 20.0, "p95": 29.0},  # between 10 and 30, linearly
        "tokens": {"completion": 2, "prompt": 10},
    }
    without = evaluate_run(golden, [QueryResult("q", "t", "x", HITS, 1.0)]).aggregate
    assert "answers" not in without
    assert without["groundedness"] is None
    assert "groundedness" not in without["metrics"]


SYSTEM = """
def search(query, k):
    with open("searched.txt", "a") as log:
        log.write(query + "\\n")
    return [{"id": "d1", "text": "The pump is blue."}]
"""


def test_answers_that_failed_are_asked_for_again(
    serving: Serving, program: Program, tmp_path: Path
) -> None:
    well = False

    async def handle(request: web.Request) -> web.StreamResponse:
        question = (await request.json())["messages"][-1]["content"]
        if not well and "text 2" not in question:
            return web.Response(status=400, text="no such model")
        return web.json_response({"choices": [{"message": {"content": "Blue [1]."}}]})

    (tmp_path / "system.py").write_text(SYSTEM)
    (tmp_path / "golden.yaml").write_text(
        "".join(f"- {{id: q{n}, query: text {n}, expected_doc_ids: [d1]}}\n" for n in range(3))
    )
    (tmp_path / "c.yaml").write_text(
        'golden: golden.yaml\nbackend: {type: python, target: "system:search", path: .}\n'
    )
    with serving(handle) as address:
        model = ("-S", "answer.type=openai_compatible", "-S", f"answer.base_url={address}",
                 "-S", "answer.model=m", "-S", "execution.stop_after=0",
                 "-S", "execution.warmup=0")  # fmt: skip
        done = program("run", "-c", "c.yaml", *model)
        assert done.returncode == 3
        told = done.stderr.splitlines()
        assert told[0] == "error: 2 answers failed, 0 tolerated (--max-failed)"
        assert told[1].startswith("error: q0: answer: ")
        assert program("run", "-c", "c.yaml", *model, "--max-failed", "2").returncode == 0
        done = program("resume", "latest")
        assert done.returncode == 2
        assert "all 3 queries are answered; 2 that failed are asked again" in done.stderr
        well = True
        (tmp_path / "searched.txt").unlink()
        done = program("resume", "latest", "--failed", "--json")
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)["aggregate"]["answers"]
    assert (answers["answered"], answers["failed"]) == (3, 0)
    searched = (tmp_path / "searched.txt").read_text().splitlines()
    assert sorted(searched) == ["text 0", "text 1"]
