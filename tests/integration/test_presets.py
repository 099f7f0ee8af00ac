"""Each preset against a local server of the API's shape, strict with what it is asked."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend, SearchResponse
from kebab_eval.backends.presets import PRESETS
from kebab_eval.config import Config
from kebab_eval.config_file import load_config
from kebab_eval.errors import BackendError

_SPEC = importlib.util.spec_from_file_location(
    "search_apis", Path(__file__).parent / "servers" / "search_apis.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
search_apis = importlib.util.module_from_spec(_SPEC)
sys.modules["search_apis"] = search_apis
_SPEC.loader.exec_module(search_apis)

Serving = Callable[..., AbstractContextManager[str]]
Program = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).resolve().parents[2]
KEY = "planted-key-0451"

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
            {"q": "펌프", "query_by": "text", "per_page": "3", "page": "1"},
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
            "offset": 0,
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
CASES["opensearch"] = {
    **CASES["elasticsearch"],
    "asked": ("POST", "/notes/_search", ("Authorization", "Bearer key"), {}),
}


def strict(case: dict[str, Any], problems: list[str]) -> Any:
    method, path, header, params = case["asked"]

    async def handle(request: web.Request) -> web.StreamResponse:
        if header is not None and request.headers.get(header[0]) != header[1]:
            problems.append(f"header {header[0]}: {request.headers.get(header[0])}")
        if request.method == "GET" and request.path != path:
            return web.Response(status=404)  # it does not say its version
        if request.method != method or request.path != path:
            problems.append(f"{request.method} {request.path}")
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


def opened(section: dict[str, Any], k: int = 3) -> Backend:
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": section, "search": {"k": k}}
    return open_backend(Config.model_validate(data))


def ask(section: dict[str, Any], query: str = "펌프") -> SearchResponse:
    return asked(opened(section), query)


def asked(backend: Backend, query: str) -> SearchResponse:
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


HITS = {"hits": {"hits": []}}


@pytest.mark.parametrize(
    ("preset", "index", "answer", "said"),
    [
        ("weaviate", "Note", {"errors": [{"message": "no such class"}]}, "no such class"),
        ("vespa", None, {"root": {"errors": [{"message": "bad yql"}]}}, "bad yql"),
        # Beside hits, too: what came back is a part of the answer only.
        ("weaviate", "Note", {"data": {"Get": {"Note": []}}, "errors": [{"message": "x"}]}, "x"),
        ("vespa", None, {"root": {"children": [], "errors": [{"message": "y"}]}}, "y"),
        (
            "elasticsearch",
            "n",
            {"_shards": {"failed": 1, "failures": [{"reason": {"reason": "shard down"}}]}, **HITS},
            "shard down",
        ),
        ("elasticsearch", "n", {"timed_out": True, **HITS}, "it timed out"),
        ("typesense", "n", {"search_cutoff": True, "hits": []}, "it timed out"),
        ("vespa", None, {"root": {"coverage": {"degraded": {"timeout": True}}}}, "it timed out"),
    ],
)
def test_an_error_inside_an_answer(
    serving: Serving, preset: str, index: str | None, answer: Any, said: str
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response(answer)

    with serving(handle) as address:
        section = {"type": "http", "preset": preset, "url": address, "index": index}
        with pytest.raises(BackendError, match=f"the system says(:| that) {said}"):
            ask(section)


def test_the_document_server_and_its_token(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCSRV_TOKEN", "key")
    problems: list[str] = []
    with serving(strict(CASES["docserver"], problems)) as address:
        hits = ask({"type": "docserver", "base_url": address + "/"}).hits
    assert problems == []
    assert hits[0].doc_id == "3856"


# --- servers of each API, over documents of their own ---------------------------------------------

BODIES = {
    "qdrant": {
        "query": {"text": "{query}", "model": "m"},
        "limit": "{k}",
        "with_payload": True,
    }
}


def api(preset: str, count: int = 5) -> Any:
    documents = [
        search_apis.Document(n, f"notes/{n}.md", f"pump number {n}") for n in range(1, count + 1)
    ]
    return search_apis.APIS[preset](documents, KEY)


def section(preset: str, address: str, **more: Any) -> dict[str, Any]:
    auth = {"bearer": KEY}
    index = None if preset in ("vespa", "docserver") else search_apis.APIS[preset].index
    told = {"index": index, "body": BODIES.get(preset), "auth": auth, **more}
    return {"type": "http", "preset": preset, "url": address, **told}


@pytest.mark.parametrize("preset", PRESETS)
def test_documents_are_found_and_nothing_is_refused(serving: Serving, preset: str) -> None:
    server = api(preset)
    with serving(server.handle) as address:
        found = asked(opened(section(preset, address)), "number 4").hits
        nothing = asked(opened(section(preset, address)), "ZZ").hits
    assert server.refused == []
    assert found[0].doc_id == ("4" if preset == "docserver" else "notes/4.md")
    assert [hit.rank for hit in found] == [1, 2, 3]
    assert found[0].score > found[1].score
    assert found[0].snippet == "pump number 4"
    assert nothing == ()  # an empty list is an answer, also where the API leaves it out
    assert server.searches == 2  # one request a search


@pytest.mark.parametrize("preset", PRESETS)
def test_a_wrong_key_is_told_in_the_words_of_the_system(serving: Serving, preset: str) -> None:
    wrong = "wrong-key-8810"
    with serving(api(preset).handle) as address:
        backend = opened(section(preset, address, auth={"bearer": wrong}))
        with pytest.raises(BackendError, match=r"^HTTP 401: .*(key|credential)") as told:
            asked(backend, "pump")
    assert wrong not in str(told.value)
    assert not told.value.retry


@pytest.mark.parametrize(
    ("preset", "told"),
    [
        ("docserver", {}),
        ("elasticsearch", {"server_version": "8.15.1", "chunk_count": 5}),
        ("opensearch", {"server_version": "8.15.1", "chunk_count": 5}),
        (
            "qdrant",
            {
                "server_version": "1.15.1",
                "chunk_count": 5,
                "embedding_dimensions": 384,
                "distance": "Cosine",
            },
        ),
        ("meilisearch", {}),  # a search key may not ask for it
        ("typesense", {"server_version": "28.0", "chunk_count": 5}),
        ("vespa", {"server_version": "8.43.64"}),
        ("weaviate", {"server_version": "1.30.0"}),
    ],
)
def test_what_a_system_says_of_itself(serving: Serving, preset: str, told: dict[str, Any]) -> None:
    with serving(api(preset).handle) as address:
        mine = {"chunker_version": "c2", **({"server_version": "mine"} if told else {})}
        info = opened(section(preset, address)).describe()
        named = opened(section(preset, address, versions=mine)).describe()
    assert (info.name, info.score_kind) == ("http", PRESETS[preset].reading.score_kind)
    snapshot = dict(info.snapshot)
    assert snapshot.pop("url").startswith(address)  # type: ignore[union-attr]
    assert snapshot == {"preset": preset, **told}
    assert {**named.snapshot, **mine} == named.snapshot  # what the user says counts


@pytest.mark.parametrize("preset", [name for name, preset in PRESETS.items() if preset.learn])
def test_a_system_that_is_not_there_is_told_when_it_is_opened(preset: str) -> None:
    with pytest.raises(BackendError, match=r"cannot be reached at http://127\.0\.0\.1:1/"):
        opened(section(preset, "http://user:pass-word@127.0.0.1:1"))


@pytest.mark.parametrize(
    ("preset", "k", "requests"),
    [("typesense", 300, 2), ("typesense", 250, 1), ("vespa", 900, 3), ("elasticsearch", 900, 1)],
)
def test_pages_of_an_api_that_gives_less_at_once(
    serving: Serving, preset: str, k: int, requests: int
) -> None:
    server = api(preset, 1000)
    with serving(server.handle) as address:
        hits = asked(opened(section(preset, address), k), "pump").hits
    assert server.refused == []
    assert server.searches == requests
    assert [hit.doc_id for hit in hits] == [f"notes/{n}.md" for n in range(1, k + 1)]
    assert [hit.rank for hit in hits] == list(range(1, k + 1))


def test_the_last_page_is_known_by_what_it_lacks(serving: Serving) -> None:
    server = api("typesense", 260)
    with serving(server.handle) as address:
        hits = asked(opened(section("typesense", address), 800), "pump").hits
    assert len(hits) == 260
    assert server.searches == 2  # 250 and 10; none after them


def test_a_document_server_that_pages_by_offset(serving: Serving) -> None:
    server = api("docserver", 250)
    more = {"params": {"offset": "{offset}"}, "page_size": 100, "token": KEY}
    with serving(server.handle) as address:
        told = {"type": "docserver", "base_url": address, **more}
        hits = asked(opened(told, 230), "pump").hits
    assert server.refused == []
    assert [hit.chunk_id for hit in hits] == [str(n) for n in range(1, 231)]
    assert server.searches == 3


def test_a_document_server_of_another_shape(serving: Serving) -> None:
    asked_for: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked_for.append(request.path_qs)
        return web.json_response({"data": [{"doc": {"no": 7}, "sim": 0.5}]})

    with serving(handle) as address:
        told = {
            "type": "docserver",
            "base_url": address + "/",
            "search_path": "v2/find",
            "params": {"limit": None, "top_k": "{k}"},
            "fields": {"hits": "data[]", "id": "doc.no", "doc_id": "doc.no", "score": "sim"},
            "versions": {"index_version": "i7"},
        }
        backend = opened(told)
        hits = asked(backend, "q").hits
    assert asked_for == ["/v2/find?q=q&top_k=3"]
    assert [(hit.chunk_id, hit.doc_id, hit.score) for hit in hits] == [("7", "7", 0.5)]
    assert backend.describe().name == "docserver"
    assert backend.describe().snapshot == {"url": address + "/v2/find", "index_version": "i7"}


# --- the examples ---------------------------------------------------------------------------------

EXAMPLES = sorted(ROOT.glob("configs/http_*.yaml"))


def test_every_preset_has_an_example() -> None:
    assert {path.stem.removeprefix("http_") for path in EXAMPLES} == {*PRESETS} - {"docserver"}


class _Keys(dict[str, str]):
    """An environment in which every variable is the key."""

    def get(self, name: str, default: Any = None) -> Any:
        return KEY


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_works(serving: Serving, path: Path) -> None:
    preset = path.stem.removeprefix("http_")
    server = search_apis.APIS[preset](search_apis.fixture_notes(), KEY)
    with serving(server.handle) as address:
        loaded = load_config(path, [f"backend.url={address}"], _Keys())
        backend = open_backend(loaded.config)
        hits = asked(backend, "RRF k 값").hits
    assert server.refused == []
    assert len(hits) == 10
    assert "search/rrf-notes.md" in [hit.doc_id for hit in hits]
    assert KEY not in str(loaded.snapshot)


@pytest.mark.parametrize(
    ("config", "variable"),
    [("docserver", "DOCSRV_TOKEN"), ("http_typesense", "TYPESENSE_API_KEY")],
)
def test_base_url_names_the_server_of_a_run(
    serving: Serving, program: Program, tmp_path: Path, config: str, variable: str
) -> None:
    preset = config.removeprefix("http_")
    server = search_apis.APIS[preset](search_apis.fixture_notes(), KEY)
    with serving(server.handle) as address:
        done = program(
            *("run", "-c", str(ROOT / "configs" / f"{config}.yaml"), "--base-url", address),
            *("--limit", "3"),
            env={variable: KEY},
        )
    assert done.returncode == 0, done.stderr
    assert server.refused == []
    assert server.searches == 3 + 1  # and one to warm up
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    assert KEY not in done.stdout + done.stderr


def test_base_url_is_no_key_of_a_system_without_an_address(program: Program) -> None:
    config = str(ROOT / "configs" / "base.yaml")
    done = program("run", "-c", config, "--base-url", "http://127.0.0.1:1")
    assert done.returncode == 2
    assert "unknown key 'backend.base_url'" in done.stderr
