"""What servers of /v1/chat/completions say besides an answer, over a real connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from aiohttp import web

from kebab_eval.answering.openai_compatible import OpenAiCompatible
from kebab_eval.config import ModelAnswers
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import Answer, Hit

Serving = Callable[..., AbstractContextManager[str]]
HITS = (Hit(1, "a#1", "a", 0.9, "rrf", "one"), Hit(2, "b#1", "b", 0.5, "rrf", "two"))


def ask(serving: Serving, response: Callable[[], web.StreamResponse], **more: Any) -> Answer:
    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        return response()

    async def asked(address: str) -> Answer:
        section = ModelAnswers(type="openai_compatible", base_url=address, model="m", **more)
        model = OpenAiCompatible(section, {})
        try:
            return await model.answer("q", "q", HITS)
        finally:
            await model.close()

    with serving(handle) as address:
        return asyncio.run(asked(address))


def said(content: Any, **choice: Any) -> Callable[[], web.StreamResponse]:
    message = {"content": content, **choice.pop("message", {})}
    return lambda: web.json_response({"choices": [{"message": message, **choice}]})


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("One [1], two [2].", ["[1]", "[2]"]),
        ("Both [2, 1].", ["[2]", "[1]"]),
        ("Both 【2】, and [1; 2].", ["[2]", "[1]"]),
        ("Again [1] and [1].", ["[1]"]),
        ("In [2024], a list a[i], nothing.", []),
    ],
)
def test_marks_are_citations(serving: Serving, text: str, marks: list[str]) -> None:
    answer = ask(serving, said(text))
    assert (answer.text, answer.refused) == (text, False)
    assert [citation.marker for citation in answer.citations] == marks


@pytest.mark.parametrize("text", ["NO_ANSWER", '"NO_ANSWER"', "**NO_ANSWER**: nothing on it [1]."])
def test_the_agreed_word_is_a_refusal_whatever_follows(serving: Serving, text: str) -> None:
    answer = ask(serving, said(text))
    assert (answer.refused, answer.refusal_reason) == (True, "llm_self_judge")
    assert (answer.text, answer.citations, answer.grounded) == ("", (), False)


def test_the_agreed_word_inside_a_sentence_is_none(serving: Serving) -> None:
    text = "The tool prints NO_ANSWER when it is lost [1]."
    assert ask(serving, said(text)).text == text


def test_a_refusal_in_the_field_of_its_own(serving: Serving) -> None:
    answer = ask(serving, said(None, message={"refusal": "I cannot help with that."}))
    assert (answer.refused, answer.refusal_reason) == (True, "llm_self_judge")


def test_parts_of_a_message_are_one_text(serving: Serving) -> None:
    parts = [{"type": "text", "text": "One "}, {"type": "image", "url": "x"},
             {"type": "text", "text": "[1]"}]  # fmt: skip
    assert ask(serving, said(parts)).text == "One [1]"


@pytest.mark.parametrize("reason", ["length", "content_filter", "stop"])
@pytest.mark.parametrize("content", ["", " \n", None])
def test_a_model_that_said_nothing_refused_nothing(
    serving: Serving, reason: str, content: str | None
) -> None:
    with pytest.raises(BackendError, match=f"said nothing .finish_reason: {reason}"):
        ask(serving, said(content, finish_reason=reason))


@pytest.mark.parametrize("content", [7, {"text": "x"}, [{"text": "x"}], ["x"], True])
def test_content_that_is_no_text_is_no_answer(serving: Serving, content: Any) -> None:
    with pytest.raises(BackendError, match=r"no choices\[0\]\.message\.content"):
        ask(serving, said(content))


@pytest.mark.parametrize(
    "body",
    ["null", "7", '"text"', "{}", '{"choices": {}}', '{"choices": [null]}', '{"choices": [[]]}',
     '{"choices": [{"message": "x"}]}', '{"choices": [{"message": {}}]}', '{"choices": [{"mess',
     "[" * 100_000, "<html>busy</html>", ""],
)  # fmt: skip
def test_a_hostile_body_is_told_in_one_line(serving: Serving, body: str) -> None:
    with pytest.raises(BackendError) as told:
        ask(serving, lambda: web.Response(text=body, content_type="application/json"))
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 20, "completion_tokens": 7}, {"prompt": 20, "completion": 7}),
        ({"prompt_tokens": 20}, {"prompt": 20}),
        ({"prompt_tokens": None, "completion_tokens": -1}, {}),
        ({"prompt_tokens": 10**400, "completion_tokens": 0}, {"completion": 0}),
        ([], {}),
    ],
)
def test_counts_of_tokens(serving: Serving, usage: Any, tokens: dict[str, int]) -> None:
    body = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage})
    answer = ask(serving, lambda: web.Response(text=body, content_type="application/json"))
    assert answer.tokens == tokens


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_when_it_says(serving: Serving, status: int) -> None:
    headers = {"Retry-After": "7"}
    with pytest.raises(BackendError) as told:
        ask(serving, lambda: web.json_response({"error": "x"}, status=status, headers=headers))
    assert (told.value.retry, told.value.retry_after_s) == (True, 7.0)


def test_a_server_that_drips_is_left_in_time(serving: Serving) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):  # each byte in time, the whole never
            await response.write(b" ")
            await asyncio.sleep(0.05)
        return response

    async def asked(address: str) -> None:
        section = ModelAnswers(type="openai_compatible", base_url=address, model="m", timeout_s=0.3)
        model = OpenAiCompatible(section, {})
        try:
            await model.answer("q", "q", HITS)
        finally:
            await model.close()

    with (
        serving(handle) as address,
        pytest.raises(BackendError, match=r"timeout: no answer within 0\.3 s") as told,
    ):
        asyncio.run(asked(address))
    assert told.value.retry


@pytest.mark.parametrize("address", ["http://h/v1?version=1", "http://h/v1#x", "ftp://h", "h:1"])
def test_an_address_that_cannot_be_completed_is_told(address: str) -> None:
    section = ModelAnswers(type="openai_compatible", base_url=address, model="m")
    with pytest.raises(UsageError, match=r"answer\.base_url"):
        OpenAiCompatible(section, {})
