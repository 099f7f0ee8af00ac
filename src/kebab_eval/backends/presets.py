"""Known search APIs, each as a declared object: what is asked, and where its answer holds what.

Sources: the public API references that docs/backends.md names beside each preset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kebab_eval.backends.http_responses import Reading

Method = Literal["GET", "POST"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A search API.

    Args:
        path: behind the server's address; ``{index}`` is the config's ``backend.index``, here and
            in ``body``, ``reading.hits`` and ``learn``.
        auth: how a bearer token is sent: the header's name and what stands before the token.
        page_size: the most hits that one request may ask for.
        needs_index: whether ``backend.index`` must be given.
        needs_body: what to write as ``backend.body``, where no body is of general use.
        token_variable: where the token is taken from when the config has none.
        learn: what else may be asked when the backend is opened: a path, and the snapshot's name
            for what stands at a path of its answer.
    """

    method: Method
    path: str
    reading: Reading
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    auth: tuple[str, str] = ("Authorization", "Bearer ")
    page_size: int | None = None
    needs_index: bool = True
    needs_body: str | None = None
    token_variable: str | None = None
    learn: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


_ELASTICSEARCH = Preset(
    method="POST",
    path="/{index}/_search",
    body={
        "size": "{k}",
        "query": {"multi_match": {"query": "{query}", "fields": ["*"], "lenient": True}},
    },
    reading=Reading(
        hits="hits.hits[]",
        id="_id",
        doc_id="_source.doc_id|_id",
        score="_score",
        text="_source.text|_source.content|_source.body",
        timing_ms="took",
        # A shard that failed leaves its hits out of an answer that is a 200 all the same.
        error="error.reason|error|_shards.failures[0].reason.reason|_shards.failures[0].reason",
        score_kind="bm25",
    ),
    auth=("Authorization", "ApiKey "),
    learn={
        "/": {"server_version": "version.number"},
        "/{index}/_count": {"chunk_count": "count"},
    },
)

PRESETS: dict[str, Preset] = {
    "docserver": Preset(
        method="GET",
        path="/api/v1/search",
        params={"q": "{query}", "limit": "{size}"},
        reading=Reading(
            hits="results[]|items[]|hits[]|documents[]",
            id="doc_id|document_id|id",
            doc_id="doc_id|document_id|id",
            score="score",
            text="snippet|text|content",
            total="total",
            timing_ms="took_ms",
        ),
        needs_index=False,
        token_variable="DOCSRV_TOKEN",  # noqa: S106  # the name of a variable
    ),
    "elasticsearch": _ELASTICSEARCH,
    # Its security plugin knows names with passwords and JSON web tokens, no keys of Elastic's.
    "opensearch": replace(_ELASTICSEARCH, auth=("Authorization", "Bearer ")),
    "qdrant": Preset(
        method="POST",
        path="/collections/{index}/points/query",
        reading=Reading(
            hits="result.points[]",
            id="payload.chunk_id|id",
            doc_id="payload.doc_id|payload.path|id",
            score="score",
            text="payload.text|payload.content",
            error="status.error",
            score_kind="cosine",
        ),
        auth=("api-key", ""),
        needs_body="{query: {text: '{query}', model: YOUR_MODEL}, limit: '{k}', "
        "with_payload: true}",
        learn={
            "/": {"server_version": "version"},
            "/collections/{index}": {
                "chunk_count": "result.points_count",
                "embedding_dimensions": "result.config.params.vectors.size",
                "distance": "result.config.params.vectors.distance",
            },
        },
    ),
    "meilisearch": Preset(
        method="POST",
        path="/indexes/{index}/search",
        body={"q": "{query}", "limit": "{k}", "showRankingScore": True},
        reading=Reading(
            hits="hits[]",
            id="id|chunk_id",
            doc_id="doc_id|path|id",
            score="_rankingScore",
            text="text|content|body",
            timing_ms="processingTimeMs",
            error="message",
        ),
        learn={
            "/version": {"server_version": "pkgVersion"},
            "/indexes/{index}/stats": {"chunk_count": "numberOfDocuments"},
        },
    ),
    "typesense": Preset(
        method="GET",
        path="/collections/{index}/documents/search",
        params={"q": "{query}", "query_by": "text", "per_page": "{size}", "page": "{page}"},
        reading=Reading(
            hits="hits[]",
            id="document.id",
            doc_id="document.doc_id|document.path|document.id",
            score="text_match",
            text="document.text|document.content",
            total="found",
            timing_ms="search_time_ms",
            error="message",
            timed_out="search_cutoff",
        ),
        auth=("X-TYPESENSE-API-KEY", ""),
        page_size=250,
        learn={
            "/debug": {"server_version": "version"},
            "/collections/{index}": {"chunk_count": "num_documents"},
        },
    ),
    "vespa": Preset(
        method="POST",
        path="/search/",
        body={
            "yql": "select * from sources * where userQuery()",
            "query": "{query}",
            "type": "any",
            "hits": "{size}",
            "offset": "{offset}",
        },
        reading=Reading(
            hits="root.children[]",
            id="fields.chunk_id|fields.documentid|id",
            doc_id="fields.doc_id|fields.documentid|id",
            score="relevance",
            text="fields.text|fields.content",
            total="root.fields.totalCount",  # the list itself is left out of an empty answer
            error="root.errors[0].message|root.errors[0].summary",
            timed_out="root.coverage.degraded.timeout",
            score_kind="relevance",
        ),
        page_size=400,
        needs_index=False,
        learn={"/state/v1/version": {"server_version": "version"}},
    ),
    "weaviate": Preset(
        method="POST",
        path="/v1/graphql",
        body={
            "query": "query($q: String!, $k: Int!) { Get { {index}(hybrid: {query: $q}, limit: $k) "
            "{ text doc_id _additional { id score } } } }",
            "variables": {"q": "{query}", "k": "{k}"},
        },
        reading=Reading(
            hits="data.Get.{index}[]",
            id="_additional.id",
            doc_id="doc_id|_additional.id",
            score="_additional.score|_additional.certainty",
            text="text|content",
            error="errors[0].message",
            score_kind="hybrid",
        ),
        learn={"/v1/meta": {"server_version": "version"}},
    ),
}
