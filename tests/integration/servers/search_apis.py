"""Search APIs as their public documentation describes them, over documents of a test's own.

Each is strict: what its API would not take (a wrong key, an unknown parameter, a page that is too
large) is refused in the API's own words and noted in ``refused``. Also a program, to look by hand:

    python tests/integration/servers/search_apis.py elasticsearch 9200 KEY
"""

from __future__ import annotations

import asyncio
import json
import sys
import unicodedata
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Document:
    number: int
    path: str
    text: str


class Refused(Exception):
    """The request is not of the API's form."""

    def __init__(self, status: int, message: str, *, noted: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.noted = noted


class SearchApi:
    """One API; ``index`` is the only index, collection or class that there is."""

    index = "notes"

    def __init__(self, documents: list[Document], key: str) -> None:
        self.documents = documents
        self.texts = [(one, one.text.lower()) for one in documents]
        self.key = key
        self.refused: list[str] = []
        self.searches = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        try:
            self.admit(request)
            body = None
            if text:
                need(request.content_type == "application/json", "Content-Type is not JSON")
                body = json.loads(text)
            return web.json_response(self.answer(request, body))
        except Refused as refused:
            if refused.noted:
                self.refused.append(f"{request.method} {request.raw_path}: {refused}")
            return web.json_response(self.error(refused), status=refused.status)

    def admit(self, request: web.Request) -> None:
        sent = request.headers.get("Authorization")
        need(sent == f"Bearer {self.key}", "wrong or missing key", 401)

    def answer(self, request: web.Request, body: Any) -> Any:
        raise NotImplementedError

    def error(self, refused: Refused) -> Any:
        return {"message": str(refused)}

    def found(self, query: Any, limit: Any, offset: Any = 0) -> list[tuple[Document, float]]:
        """Return what shares most pairs of characters with the query, best first."""
        need(isinstance(query, str), "the query is no text")
        need(type(limit) is int and type(offset) is int, "a limit or offset is no whole number")
        self.searches += 1
        pairs = {query[at : at + 2].lower() for at in range(len(query) - 1)}
        scored = [(one, sum(pair in text for pair in pairs)) for one, text in self.texts]
        scored = [(one, count / max(1, len(pairs))) for one, count in scored if count]
        scored.sort(key=lambda pair: (-pair[1], pair[0].number))
        return scored[offset : offset + limit]


def need(right: bool, message: str, status: int = 400) -> None:
    if not right:
        raise Refused(status, message)


def only(given: Mapping[str, Any], allowed: set[str]) -> None:
    need(set(given) <= allowed, f"unknown: {sorted(set(given) - allowed)}")


def whole(text: str | None, usual: int) -> int:
    need(text is None or text.isdecimal(), f"no whole number: {text}")
    return usual if text is None else int(text)


class Elasticsearch(SearchApi):
    """POST /{index}/_search, GET /, GET /{index}/_count."""

    scheme = "ApiKey"

    def admit(self, request: web.Request) -> None:
        sent = request.headers.get("Authorization")
        need(sent == f"{self.scheme} {self.key}", "missing authentication credentials", 401)

    def error(self, refused: Refused) -> Any:
        reason = {"type": "exception", "reason": str(refused)}
        return {"error": {"root_cause": [reason], **reason}, "status": refused.status}

    def answer(self, request: web.Request, body: Any) -> Any:
        if (request.method, request.path) == ("GET", "/"):
            return {"cluster_name": "c", "version": {"number": "8.15.1"}, "tagline": "for search"}
        if (request.method, request.path) == ("GET", f"/{self.index}/_count"):
            return {"count": len(self.documents), "_shards": {"total": 1, "failed": 0}}
        known = request.path == f"/{self.index}/_search" and request.method == "POST"
        need(known, f"no such index or path [{request.path}]", 404)
        need(isinstance(body, dict), "request body is required")
        only(body, {"size", "from", "query", "_source", "search_after", "sort"})
        need(body.get("size", 10) <= 10_000, "Result window is too large")
        only(body["query"], {"multi_match", "match"})
        match = body["query"].get("multi_match")
        if match is None:
            ((_, match),) = body["query"]["match"].items()
            only(match, {"query", "operator"})
        else:
            only(match, {"query", "fields", "type", "lenient", "operator"})
        found = self.found(match["query"], body.get("size", 10), body.get("from", 0))
        hits = [
            {
                "_index": self.index,
                "_id": f"n{one.number}",
                "_score": score,
                "_source": {"doc_id": one.path, "text": one.text},
            }
            for one, score in found
        ]
        return {
            "took": 3,
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {
                "total": {"value": len(hits), "relation": "eq"},
                "max_score": hits[0]["_score"] if hits else None,
                "hits": hits,
            },
        }


class OpenSearch(Elasticsearch):
    """The same, behind a JSON web token."""

    scheme = "Bearer"


class Qdrant(SearchApi):
    """POST /collections/{index}/points/query with an inference document, GET of the collection."""

    def admit(self, request: web.Request) -> None:
        need(request.headers.get("api-key") == self.key, "Must provide an API key", 401)

    def error(self, refused: Refused) -> Any:
        return {"status": {"error": str(refused)}, "time": 0.0}

    def answer(self, request: web.Request, body: Any) -> Any:
        if (request.method, request.path) == ("GET", "/"):
            return {"title": "qdrant - vector search engine", "version": "1.15.1"}
        if (request.method, request.path) == ("GET", f"/collections/{self.index}"):
            vectors = {"size": 384, "distance": "Cosine"}
            held = {"status": "green", "points_count": len(self.documents)}
            return {"result": {**held, "config": {"params": {"vectors": vectors}}}, "status": "ok"}
        known = request.path == f"/collections/{self.index}/points/query"
        need(known and request.method == "POST", f"Not found: {request.path}", 404)
        only(body, {"query", "limit", "offset", "with_payload", "using", "filter", "params"})
        only(body["query"], {"text", "model", "options"})
        need(isinstance(body["query"]["model"], str), "model is missing")
        points = [
            {
                "id": one.number,
                "version": 0,
                "score": score,
                "payload": {"doc_id": one.path, "text": one.text}
                if body.get("with_payload")
                else None,
            }
            for one, score in self.found(body["query"]["text"], body.get("limit", 10))
        ]
        return {"result": {"points": points}, "status": "ok", "time": 0.002}


class Meilisearch(SearchApi):
    """POST /indexes/{index}/search, GET /version; the key may search and nothing else."""

    def error(self, refused: Refused) -> Any:
        return {"message": str(refused), "code": "bad_request", "type": "invalid_request"}

    def answer(self, request: web.Request, body: Any) -> Any:
        if request.path in ("/version", f"/indexes/{self.index}/stats"):
            # A search key is refused here; that is no fault of who asks.
            raise Refused(403, "The provided API key is invalid.", noted=False)
        known = request.path == f"/indexes/{self.index}/search" and request.method == "POST"
        need(known, f"Index `{request.path}` not found.", 404)
        only(body, {"q", "limit", "offset", "showRankingScore", "hybrid", "filter"})
        need(type(body.get("showRankingScore", False)) is bool, "showRankingScore is no boolean")
        hits = [
            {"id": one.number, "path": one.path, "text": one.text}
            | ({"_rankingScore": score} if body.get("showRankingScore") else {})
            for one, score in self.found(body["q"], body.get("limit", 20), body.get("offset", 0))
        ]
        return {
            "hits": hits,
            "query": body["q"],
            "processingTimeMs": 1,
            "limit": body.get("limit", 20),
            "offset": 0,
            "estimatedTotalHits": len(hits),
        }


class Typesense(SearchApi):
    """GET /collections/{index}/documents/search, at most 250 a page; GET of the collection."""

    def admit(self, request: web.Request) -> None:
        sent = request.headers.get("X-TYPESENSE-API-KEY")
        need(
            sent == self.key, "Forbidden - a valid `x-typesense-api-key` header must be sent.", 401
        )

    def answer(self, request: web.Request, body: Any) -> Any:
        need(request.method == "GET" and body is None, "Not Found", 404)
        if request.path == "/debug":
            return {"state": 1, "version": "28.0"}
        if request.path == f"/collections/{self.index}":
            return {"name": self.index, "num_documents": len(self.documents), "fields": []}
        need(request.path == f"/collections/{self.index}/documents/search", "Not Found", 404)
        asked = request.query
        only(asked, {"q", "query_by", "per_page", "page", "filter_by"})
        need(asked["query_by"] == "text", "Could not find a field named that in the schema.")
        size, page = whole(asked.get("per_page"), 10), whole(asked.get("page"), 1)
        need(size <= 250, "Only upto 250 hits can be fetched per page.", 422)
        found = self.found(asked["q"], size, (page - 1) * size)
        total = len(self.found(asked["q"], len(self.documents)))
        self.searches -= 1
        hits = [
            {
                "document": {"id": str(one.number), "path": one.path, "text": one.text},
                "highlights": [],
                "text_match": int(score * 10**9),
            }
            for one, score in found
        ]
        held = {"found": total, "out_of": len(self.documents), "page": page}
        return {**held, "hits": hits, "search_cutoff": False, "search_time_ms": 1}


class Vespa(SearchApi):
    """POST /search/, at most 400 hits from offset 1000; an empty result has no children."""

    def error(self, refused: Refused) -> Any:
        told = {"code": 3, "summary": "Illegal query", "message": str(refused)}
        return {"root": {"id": "toplevel", "relevance": 1.0, "errors": [told]}}

    def answer(self, request: web.Request, body: Any) -> Any:
        if (request.method, request.path) == ("GET", "/state/v1/version"):
            return {"version": "8.43.64"}
        need(request.path == "/search/" and request.method == "POST", "Not Found", 404)
        only(body, {"yql", "query", "type", "hits", "offset", "ranking", "timeout"})
        need("userQuery()" in body["yql"], "Could not instantiate query from YQL")
        need(body["hits"] <= 400, "hits requested, configured limit: 400")
        need(body.get("offset", 0) <= 1000, "offset requested, configured limit: 1000")
        total = len(self.found(body["query"], len(self.documents)))
        self.searches -= 1
        children = [
            {
                "id": f"index:content/0/{one.number:024x}",
                "relevance": score,
                "source": "content",
                "fields": {
                    "sddocname": "note",
                    "documentid": f"id:notes:note::{one.number}",
                    "doc_id": one.path,
                    "text": one.text,
                },
            }
            for one, score in self.found(body["query"], body["hits"], body.get("offset", 0))
        ]
        root = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": total}}
        root["coverage"] = {"coverage": 100, "documents": len(self.documents), "full": True}
        return {"root": {**root, "children": children} if children else root}


class Weaviate(SearchApi):
    """POST /v1/graphql, errors inside a 200; GET /v1/meta."""

    index = "Note"

    def error(self, refused: Refused) -> Any:
        return {"error": [{"message": str(refused)}]}

    def answer(self, request: web.Request, body: Any) -> Any:
        if (request.method, request.path) == ("GET", "/v1/meta"):
            return {"hostname": "http://[::]:8080", "modules": {}, "version": "1.30.0"}
        need(request.path == "/v1/graphql" and request.method == "POST", "not found", 404)
        only(body, {"query", "variables", "operationName"})
        asked = " ".join(body["query"].split())
        right = (
            "query($q: String!, $k: Int!) { Get { Note(hybrid: {query: $q}, limit: $k) "
            "{ text doc_id _additional { id score } } } }"
        )
        if asked != right:
            told = {"message": "Cannot query field on type", "locations": [{"line": 1}]}
            return {"data": {"Get": None}, "errors": [told]}
        only(body["variables"], {"q", "k"})
        found = self.found(body["variables"]["q"], body["variables"]["k"])
        notes = [
            {
                "text": one.text,
                "doc_id": one.path,
                "_additional": {
                    "id": str(uuid.uuid5(uuid.NAMESPACE_URL, one.path)),
                    "score": str(score),
                },
            }
            for one, score in found
        ]
        return {"data": {"Get": {"Note": notes}}}


class Docserver(SearchApi):
    """GET /api/v1/search over documents with integer ids, at most 100 a page."""

    def error(self, refused: Refused) -> Any:
        return {"detail": str(refused)}

    def answer(self, request: web.Request, body: Any) -> Any:
        need(request.method == "GET" and request.path == "/api/v1/search", "Not Found", 404)
        need(body is None, "a GET has no body")
        only(request.query, {"q", "limit", "offset"})
        size, offset = whole(request.query.get("limit"), 10), whole(request.query.get("offset"), 0)
        need(size <= 100, "limit must be at most 100", 422)
        found = self.found(request.query["q"], size, offset)
        results = [
            {"id": one.number, "score": score, "snippet": one.text[:200]} for one, score in found
        ]
        return {"results": results, "took_ms": 1.5}


APIS: dict[str, type[SearchApi]] = {
    "docserver": Docserver,
    "elasticsearch": Elasticsearch,
    "opensearch": OpenSearch,
    "qdrant": Qdrant,
    "meilisearch": Meilisearch,
    "typesense": Typesense,
    "vespa": Vespa,
    "weaviate": Weaviate,
}


def fixture_notes() -> list[Document]:
    """Return the notes of fixtures/corpus under the numbers of the Document Server's set."""
    import yaml

    numbers = yaml.safe_load((ROOT / "fixtures/search_eval/documents.yaml").read_text("utf-8"))
    corpus = ROOT / "fixtures/corpus"
    found = {
        unicodedata.normalize("NFC", one.relative_to(corpus).as_posix()): one.read_text("utf-8")
        for one in corpus.rglob("*.md")
    }
    return [Document(number, path, found[path]) for path, number in numbers.items()]


async def serve(name: str, port: int, key: str) -> None:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", APIS[name](fixture_notes(), key).handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    sys.stdout.write(f"{name} on http://127.0.0.1:{port}, its key is {key}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
