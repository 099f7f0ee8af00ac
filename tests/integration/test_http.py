"""The backend ``http`` against a real server: what is asked, what is read, and every misfortune."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend, SearchResponse
from kebab_eval.config import Config
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import GoldenQuery, QueryResult
from kebab_eval.workflows.fanout import fan_out

Serving = Callable[..., AbstractContextManager[str]]


TOKEN = "hunter2-secret-token"  # noqa: S105  # planted, to be looked for
FIELDS = {"hits": "results[]", "id": "id", "doc_id": "doc", "score": "score", "text": "text"}


def opened(address: str, **section: Any) -> Backend:
    more = {name: section.pop(name) for name in ("search", "execution") if name in section}
    backend = {"type": "http", "url": address, "fields": FIELDS, **section}
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": backend, **more}
    return open_backend(Config.model_validate(data))


def ask(backend: Backend, query: str = "q") -> SearchResponse:
    async def run() -> SearchResponse:
        try:
            return await backend.search(query, "id")
        finally:
            await backend.close()

    return asyncio.run(run())


def failure(backend: Backend) -> BackendError:
    with pytest.raises(BackendError) as told:
        ask(backend)
    assert TOKEN not in str(told.value)
    return told.value


def answering(
    *answers: Any, seen: list[web.Request] | None = None, bodies: list[str] | None = None
) -> Any:
    """A handler that gives the answers in turn, the last one for ever."""
    left = list(answers)

    async def handle(request: web.Request) -> web.StreamResponse:
        if bodies is not None:
            bodies.append(await request.text())
        if seen is not None:
            seen.append(request)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, web.StreamResponse):
            return answer
        return web.json_response(answer)

    return handle


# --- what is asked ----------------------------------------------------------------------------


def test_templates_fill_url_params_headers_and_body(serving: Serving) -> None:
    seen: list[web.Request] = []
    bodies: list[str] = []
    with serving(answering({"results": []}, seen=seen, bodies=bodies)) as address:
        backend = opened(
            address + "/search/{mode}",
            method="POST",
            params={"n": "{k}", "rrf": "{fusion.rrf_k}"},
            headers={"X-Query": "of {k}"},
            body={"text": "{query}", "size": "{k}", "deep": [{"also": "<{query}>"}], "raw": "{x"},
            auth={"bearer": TOKEN},
            search={"k": 7, "mode": "vector"},
        )
        assert ask(backend, 'say "가나" {k}\n').hits == ()
    (request,) = seen
    assert request.path == "/search/vector"
    assert dict(request.query) == {"n": "7", "rrf": "60.0"}
    assert request.headers["X-Query"] == "of 7"
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert json.loads(bodies[0]) == {
        "text": 'say "가나" {k}\n',  # the query is a value: nothing in it is a template
        "size": 7,
        "deep": [{"also": '<say "가나" {k}\n>'}],
        "raw": "{x",
    }


def test_a_query_in_the_path_cannot_leave_it(serving: Serving) -> None:
    seen: list[web.Request] = []
    with serving(answering({"results": []}, seen=seen)) as address:
        ask(opened(address + "/find/{query}?k={k}"), "../../admin?x=1#y")
    assert seen[0].raw_path == "/find/..%2F..%2Fadmin%3Fx=1%23y?k=10"


def test_name_and_password(serving: Serving) -> None:
    seen: list[web.Request] = []
    with serving(answering({"results": []}, seen=seen)) as address:
        ask(opened(address, auth={"username": "u", "password": "p"}))
    assert seen[0].headers["Authorization"] == "Basic dTpw"


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"params": {"a": "{kk}"}}, "nothing is called {kk}"),
        ({"url": "ftp://host/x"}, "an address begins with http://"),
        ({"fields": {}}, "say where the hits are"),
        ({"preset": "elasticsearch"}, "the preset elasticsearch needs the name of one"),
        ({"preset": "qdrant", "index": "c"}, "give the request's body"),
    ],
)
def test_what_is_missing_is_told_when_it_is_opened(section: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as told:
        opened(section.pop("url", "http://127.0.0.1:1"), **section)
    assert said in str(told.value)


# --- what is read -----------------------------------------------------------------------------


def test_ids_are_the_text_that_stands_there(serving: Serving) -> None:
    raw = '{"results": [{"id": 02142e0}, {"id": 1e5}, {"id": 12345678901234567890}]}'
    raw = raw.replace("02142e0", '"02142"')
    body = web.Response(text=raw, content_type="application/json")
    with serving(answering(body)) as address:
        hits = ask(opened(address)).hits
    assert [hit.chunk_id for hit in hits] == ["02142", "1e5", "12345678901234567890"]
    assert [hit.score for hit in hits] == [1.0, 1 / 2, 1 / 3]  # none was told


def test_duplicates_pass_and_k_cuts(serving: Serving) -> None:
    items = [{"id": "a", "doc": "d", "score": 2, "text": "t"}, {"id": "a"}, {"id": "b"}]
    with serving(answering({"results": items})) as address:
        hits = ask(opened(address, search={"k": 2})).hits
    assert [(hit.chunk_id, hit.doc_id, hit.snippet) for hit in hits] == [
        ("a", "d", "t"), ("a", "a", "")
    ]  # fmt: skip


def test_pages_are_one_search(serving: Serving) -> None:
    seen: list[web.Request] = []
    pages = [
        {"results": [{"id": "a"}, {"id": "b"}], "next": "p2"},
        {"results": [{"id": "c"}, {"id": "d"}], "next": "p3"},
        {"results": [{"id": "e"}], "next": None},
    ]
    fields = {**FIELDS, "next": "next"}
    with serving(answering(*pages, seen=seen)) as address:
        backend = opened(address, params={"cursor": "{cursor}"}, fields=fields, search={"k": 3})
        hits = ask(backend).hits
    assert [(hit.rank, hit.chunk_id) for hit in hits] == [(1, "a"), (2, "b"), (3, "c")]
    assert [request.query.get("cursor") for request in seen] == [None, "p2"]


# --- misfortune -------------------------------------------------------------------------------


def said(status: int, text: str = "", **headers: str) -> web.Response:
    return web.Response(status=status, text=text, headers=headers)


@pytest.mark.parametrize(
    ("answer", "cause", "retry"),
    [
        (said(503, "busy"), "HTTP 503: busy", True),
        (said(429, '{"error": {"message": "slow down"}}'), "HTTP 429: slow down", True),
        (said(401, f"bad token {TOKEN}"), "HTTP 401: bad token", False),
        (said(404, "<html>\x1b[31mgone"), "HTTP 404: <html> [31mgone", False),
        (said(200, "<html>login</html>"), "the response is no JSON (text/plain): <html>", False),
        (said(200, ""), "is no JSON (text/plain) and is empty", False),
        (said(200, '{"results": [{"id": "a"'), "is no JSON", False),
        (said(200, "[" * 100_000), "is no JSON", False),
        ({"items": []}, "holds no list of hits at 'results[]'; it has items", False),
        ([1, 2], "holds no list of hits", False),
        ({"results": [{"id": None}]}, "hit 1 has no id at 'id'; it has id", False),
        ({"results": [{"id": {"x": 1}}]}, "hit 1 has no id", False),
        ({"results": ["text"]}, "hit 1 has no id", False),
        ({"results": [{"id": "a", "score": "high"}]}, "score of hit 1 is no number: 'high'", False),
        ({"results": [], "timed_out": True}, "the system says that it timed out", True),
    ],
)
def test_each_cause_is_named_in_one_line(
    serving: Serving, answer: Any, cause: str, retry: bool
) -> None:
    from kebab_eval.redaction import register

    register(TOKEN, "${env:TOKEN}")
    with serving(answering(answer)) as address:
        told = failure(opened(address, auth={"bearer": TOKEN}))
    assert cause in str(told)
    assert len(str(told).splitlines()) == 1
    assert told.retry is retry


def test_retry_after_in_seconds_and_as_a_date(serving: Serving) -> None:
    from datetime import UTC, datetime, timedelta
    from email.utils import format_datetime

    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    for value, least, most in (("7", 7, 7), (later, 20, 31), ("soon", None, None)):
        with serving(answering(said(503, "", **{"Retry-After": value}))) as address:
            told = failure(opened(address))
        if least is None:
            assert told.retry_after_s is None
        else:
            assert told.retry_after_s is not None
            assert least <= told.retry_after_s <= most


def test_credentials_do_not_follow_a_redirect(serving: Serving) -> None:
    elsewhere: list[web.Request] = []
    with serving(answering({"results": []}, seen=elsewhere)) as other:
        target = other.replace("http://", "http://user:pw@") + "/x?key=1"
        with serving(answering(said(302, "", Location=target))) as address:
            told = failure(opened(address, auth={"bearer": TOKEN}))
    assert elsewhere == []
    assert "redirected to http://127.0.0.1" in str(told)
    assert "user:pw" not in str(told)
    assert "key=1" not in str(told)


def test_nobody_listens_and_a_connection_that_breaks(serving: Serving) -> None:
    assert failure(opened("http://127.0.0.1:1/x")).retry

    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"results": [')
        transport = request.transport
        assert transport is not None
        transport.close()
        return response

    with serving(broken) as address:
        assert failure(opened(address)).retry


def test_a_body_without_end_is_not_read_to_the_end(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kebab_eval.backends.http_client.MAX_BYTES", 1_000_000)
    with serving(answering(said(200, "x" * 3_000_000))) as address:
        assert "larger than" in str(failure(opened(address)))


# --- a bad day ----------------------------------------------------------------------------------


def test_no_query_is_lost_on_a_bad_day(serving: Serving) -> None:
    """300 queries to a server that answers as it likes: each has hits or a cause."""
    chance = random.Random(5)
    good = {"results": [{"id": "a"}, {"id": "a"}, {"id": "b"}]}

    async def whim(request: web.Request) -> web.StreamResponse:
        kind = chance.randrange(12)
        if kind == 0:
            return said(503, "busy", **{"Retry-After": "0"})
        if kind == 1:
            await asyncio.sleep(3)
        if kind == 2:
            transport = request.transport
            assert transport is not None
            transport.close()
        if kind == 3:
            response = web.StreamResponse(headers={"Content-Length": "99"})
            await response.prepare(request)
            await response.write(b'{"results"')
            assert request.transport is not None
            request.transport.close()
            return response
        if kind == 4:
            return said(200, "{'wrong': json}")
        if kind == 5:
            return web.Response(text="<html></html>", content_type="text/html")
        if kind == 6:
            return web.json_response({"results": []})
        if kind == 7:
            return web.json_response({"results": [{"id": None}]})
        if kind == 8:
            return web.json_response({"results": [{"id": "a", "text": "x" * 10_000_000}]})
        if kind == 9:
            return said(307, "", Location="http://example.invalid/")
        return web.json_response(good)

    queries = [GoldenQuery(f"q{n}", f"text {n}") for n in range(300)]
    found: dict[int, QueryResult] = {}

    def keep(index: int, result: QueryResult) -> None:
        assert index not in found
        found[index] = result

    settings = {"concurrency": 16, "timeout_s": 1.0, "retries": 1, "warmup": 0, "stop_after": 0}
    with serving(whim) as address:
        backend = opened(address, execution=settings, auth={"bearer": TOKEN})
        config = Config.model_validate(
            {
                "name": "x",
                "golden": {"path": Path("g")},
                "backend": {"corpus": Path("c")},
                "execution": settings,
            }
        )

        async def run() -> None:
            await fan_out(backend, queries, config.execution, "hybrid", keep)
            await backend.close()

        asyncio.run(run())
    assert sorted(found) == list(range(300))
    failures = [result for result in found.values() if result.error is not None]
    assert 30 < len(failures) < 270
    for result in failures:
        assert result.hits == ()
        assert result.latency_ms is None
        assert result.error
        assert TOKEN not in result.error
    causes = " ".join(_kinds(failures))
    for expected in ("timeout: no answer within 1 s", "no JSON", "has no id", "redirected"):
        assert expected in causes


def _kinds(failures: Iterable[QueryResult]) -> set[str]:
    return {str(result.error) for result in failures}
