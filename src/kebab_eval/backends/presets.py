"""Known search APIs, each as a declared object: what is asked, and where its answer holds what.

Sources: the public API references named beside each preset and in docs/backends.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Method = Literal["GET", "POST"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A search API.

    Args:
        path: behind the server's address; ``{index}`` is the config's ``backend.index``.
        auth: how a bearer token is sent: the header's name and what stands before the token.
        hits: path to the list of hits; the other paths start at a hit.
        error: path to what the system says in a response that is no answer in spite of its 200.
        needs_index: whether ``backend.index`` must be given.
        needs_body: whether there is no body of general use, so that the config must give one.
        token_variable: where the token is taken from when the config has none.
    """

    method: Method
    path: str
    hits: str
    id: str
    doc_id: str | None = None
    score: str | None = None
    text: str | None = None
    timing_ms: str | None = None
    error: str | None = None
    score_kind: str = "score"
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: tuple[str, str] = ("Authorization", "Bearer ")
    needs_index: bool = True
    needs_body: bool = False
    token_variable: str | None = None


_ELASTIC = Preset(
    method="POST",
    path="/{index}/_search",
    body={
        "size": "{k}",
        "query": {"multi_match": {"query": "{query}", "fields": ["*"], "lenient": True}},
    },
    hits="hits.hits[]",
    id="_id",
    doc_id="_source.doc_id|_id",
    score="_score",
    text="_source.text|_source.content|_source.body",
    timing_ms="took",
    error="error.reason|error",
    score_kind="bm25",
    auth=("Authorization", "ApiKey "),
)

PRESETS: dict[str, Preset] = {
    "docserver": Preset(
        method="GET",
        path="/api/v1/search",
        params={"q": "{query}", "limit": "{k}"},
        hits="results[]|items[]|hits[]|documents[]",
        id="doc_id|document_id|id",
        doc_id="doc_id|document_id|id",
        score="score",
        text="snippet|text|content",
        timing_ms="took_ms",
        needs_index=False,
        token_variable="DOCSRV_TOKEN",  # noqa: S106  # the name of a variable
    ),
    # elastic.co: Search API; opensearch.org: Search API
    "elasticsearch": _ELASTIC,
    "opensearch": _ELASTIC,
    # api.qdrant.tech: Query points
    "qdrant": Preset(
        method="POST",
        path="/collections/{index}/points/query",
        hits="result.points[]",
        id="payload.chunk_id|id",
        doc_id="payload.doc_id|payload.path|id",
        score="score",
        text="payload.text|payload.content",
        error="status.error",
        score_kind="cosine",
        auth=("api-key", ""),
        needs_body=True,
    ),
    # meilisearch.com: Search with POST
    "meilisearch": Preset(
        method="POST",
        path="/indexes/{index}/search",
        body={"q": "{query}", "limit": "{k}", "showRankingScore": True},
        hits="hits[]",
        id="id|chunk_id",
        doc_id="doc_id|path|id",
        score="_rankingScore",
        text="text|content|body",
        timing_ms="processingTimeMs",
        error="message",
    ),
    # typesense.org: Search
    "typesense": Preset(
        method="GET",
        path="/collections/{index}/documents/search",
        params={"q": "{query}", "query_by": "text", "per_page": "{k}"},
        hits="hits[]",
        id="document.id",
        doc_id="document.doc_id|document.path|document.id",
        score="text_match",
        text="document.text|document.content",
        timing_ms="search_time_ms",
        error="message",
        auth=("X-TYPESENSE-API-KEY", ""),
    ),
    # docs.vespa.ai: Query API
    "vespa": Preset(
        method="POST",
        path="/search/",
        body={
            "yql": "select * from sources * where userQuery()",
            "query": "{query}",
            "type": "any",
            "hits": "{k}",
        },
        hits="root.children[]",
        id="fields.chunk_id|fields.documentid|id",
        doc_id="fields.doc_id|fields.documentid|id",
        score="relevance",
        text="fields.text|fields.content",
        error="root.errors[0].message|root.errors[0].summary",
        score_kind="relevance",
        needs_index=False,
    ),
    # docs.weaviate.io: GraphQL Search operators, hybrid
    "weaviate": Preset(
        method="POST",
        path="/v1/graphql",
        body={
            "query": "query($q: String!, $k: Int!) { Get { {index}(hybrid: {query: $q}, limit: $k) "
            "{ text doc_id _additional { id score } } } }",
            "variables": {"q": "{query}", "k": "{k}"},
        },
        hits="data.Get.{index}[]",
        id="_additional.id",
        doc_id="doc_id|_additional.id",
        score="_additional.score|_additional.certainty",
        text="text|content",
        error="errors[0].message",
        score_kind="hybrid",
    ),
}
