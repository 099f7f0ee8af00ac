"""Each preset against a local server of the API's shape, strict with what it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import SearchResponse
from kebab_eval.backends.presets import PRESETS
from kebab_eval.config import Config
from kebab_eval.errors import BackendError

Serving = Callable[..., AbstractContextManager[str]]


#: preset -> section, what must be asked (method, path, header, parameters, body), and the answer.
CASES: dict[str, dict[str, Any]] = {
    "elasticsearch": {
        "section": {"index": "notes", "auth": {"bearer": "key"}},
        "asked": ("POST", "/notes/_search", ("Authorization", "ApiKey key"), {}),
        "body": {
            "size": 3,
            "query": {"multi_match": {"query": "펌프", "fields": ["*"], "lenient": True}},
        },
        "answer": {
            "took": 5,
            "timed_out": False,
            "hits": {
                "total": {"value": 2, "relation": "eq"},
                "hits": [
                    {"_id": "c1", "_score": 2.5, "_source": {"doc_id": "d1", "text": "words"}},
                    {"_id": "c2", "_score": 1.5, "_source": {}},
                ],
            },
        },
        "hits": [("c1", "d1", 2.5, "words"), ("c2", "c2", 1.5, "")],
    },
    "qdrant": {
        "section": {
            "index": "notes",
            "auth": {"bearer": "key"},
            "body": {
                "query": {"text": "{query}", "model": "m"},
                "limit": "{k}",
                "with_payload": True,
            },
        },
        "asked": ("POST", "/collections/notes/points/query", ("api-key", "key"), {}),
        "body": {"query": {"text": "펌프", "model": "m"}, "limit": 3, "with_payload": True},
        "answer": {
            "result": {
                "points": [
                    {"id": 7, "version": 0, "score": 0.9, "payload": {"doc_id": "d", "text": "t"}}
                ]
            },
            "status": "ok",
            "time": 0.001,
        },
        "hits": [("7", "d", 0.9, "t")],
    },
    "meilisearch": {
        "section": {"index": "notes", "auth": {"bearer": "key"}},
        "asked": ("POST", "/indexes/notes/search", ("Authorization", "Bearer key"), {}),
        "body": {"q": "펌프", "limit": 3, "showRankingScore": True},
        "answer": {
            "hits": [{"id": 12, "doc_id": "d", "text": "t", "_rankingScore": 0.8}],
            "query": "펌프",
            "processingTimeMs": 1,
            "limit": 3,
            "offset": 0,
            "estimatedTotalHits": 1,
        },
        "hits": [("12", "d", 0.8, "t")],
    },
    "typesense": {
        "section": {"index": "notes", "auth": {"bearer": "key"}},
        "asked": (
            "GET",
            "/collections/notes/documents/search",
            ("X-TYPESENSE-API-KEY", "key"),
            {"q": "펌프", "query_by": "text", "per_page": "3"},
        ),
        "body": None,
        "answer": {
            "found": 1,
            "hits": [
                {"document": {"id": "1", "doc_id": "d", "text": "t"}, "text_match": 578730123}
            ],
            "search_time_ms": 2,
        },
        "hits": [("1", "d", 578730123.0, "t")],
    },
    "vespa": {
        "section": {},
        "asked": ("POST", "/search/", None, {}),
        "body": {
            "yql": "select * from sources * where userQuery()",
            "query": "펌프",
            "type": "any",
            "hits": 3,
        },
        "answer": {
            "root": {
                "id": "toplevel",
                "relevance": 1.0,
                "fields": {"totalCount": 1},
                "children": [
                    {
                        "id": "id:ns:doc::1",
                        "relevance": 0.3,
                        "fields": {"doc_id": "d", "text": "t", "documentid": "id:ns:doc::1"},
                    }
                ],
            }
        },
        "hits": [("id:ns:doc::1", "d", 0.3, "t")],
    },
    "weaviate": {
        "section": {"index": "Note", "auth": {"bearer": "key"}},
        "asked": ("POST", "/v1/graphql", ("Authorization", "Bearer key"), {}),
        "body": {
            "query": "query($q: String!, $k: Int!) { Get { Note(hybrid: {query: $q}, limit: $k) "
            "{ text doc_id _additional { id score } } } }",
            "variables": {"q": "펌프", "k": 3},
        },
        "answer": {
            "data": {
                "Get": {
                    "Note": [
                        {"text": "t", "doc_id": "d", "_additional": {"id": "u-1", "score": "0.5"}}
                    ]
                }
            }
        },
        "hits": [("u-1", "d", 0.5, "t")],
    },
    "docserver": {
        "section": {"auth": {"bearer": "key"}},
        "asked": (
            "GET",
            "/api/v1/search",
            ("Authorization", "Bearer key"),
            {"q": "펌프", "limit": "3"},
        ),
        "body": None,
        "answer": {"results": [{"id": 3856, "score": 1.5, "snippet": "s"}], "total": 1},
        "hits": [("3856", "3856", 1.5, "s")],
    },
}
CASES["opensearch"] = CASES["elasticsearch"]


def strict(case: dict[str, Any], problems: list[str]) -> Any:
    method, path, header, params = case["asked"]

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method != method or request.path != path:
            problems.append(f"{request.method} {request.path}")
        if header is not None and request.headers.get(header[0]) != header[1]:
            problems.append(f"header {header[0]}: {request.headers.get(header[0])}")
        if dict(request.query) != params:
            problems.append(f"parameters {dict(request.query)}")
        text = await request.text()
        if case["body"] is None:
            if text:
                problems.append(f"a body: {text}")
        elif json.loads(text) != case["body"]:
            problems.append(f"body {text}")
        elif request.content_type != "application/json":
            problems.append(f"content type {request.content_type}")
        return web.json_response(case["answer"])

    return handle


def ask(section: dict[str, Any], query: str = "펌프") -> SearchResponse:
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": section, "search": {"k": 3}}
    backend = open_backend(Config.model_validate(data))

    async def run() -> SearchResponse:
        try:
            return await backend.search(query, "id")
        finally:
            await backend.close()

    return asyncio.run(run())


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_asked_and_what_is_read(serving: Serving, preset: str) -> None:
    case = CASES[preset]
    problems: list[str] = []
    with serving(strict(case, problems)) as address:
        section = {"type": "http", "preset": preset, "url": address + "/", **case["section"]}
        hits = ask(section).hits
    assert problems == []
    assert [(h.chunk_id, h.doc_id, h.score, h.snippet) for h in hits] == case["hits"]


@pytest.mark.parametrize(
    ("preset", "index", "answer", "said"),
    [
        ("weaviate", "Note", {"errors": [{"message": "no such class"}]}, "no such class"),
        ("vespa", None, {"root": {"errors": [{"message": "bad yql"}]}}, "bad yql"),
    ],
)
def test_an_error_inside_an_answer(
    serving: Serving, preset: str, index: str | None, answer: Any, said: str
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response(answer)

    with serving(handle) as address:
        section = {"type": "http", "preset": preset, "url": address, "index": index}
        with pytest.raises(BackendError, match=f"the system says: {said}"):
            ask(section)


def test_an_empty_answer_is_an_answer(serving: Serving) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response({"took": 1, "hits": {"total": {"value": 0}, "hits": []}})

    with serving(handle) as address:
        section = {"type": "http", "preset": "opensearch", "url": address, "index": "n"}
        assert ask(section).hits == ()


def test_the_document_server_and_its_token(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCSRV_TOKEN", "key")
    problems: list[str] = []
    with serving(strict(CASES["docserver"], problems)) as address:
        hits = ask({"type": "docserver", "base_url": address + "/"}).hits
    assert problems == []
    assert hits[0].doc_id == "3856"
