"""The backend ``embedded``: the search engine of this package over a folder of Markdown notes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import cast

from kebab_eval import config as config_models
from kebab_eval.backends.base import (
    ItemIds,
    Progress,
    SearchResponse,
    SingleSearch,
    SystemInfo,
)
from kebab_eval.config import Config
from kebab_eval.engine.corpus import read_corpus
from kebab_eval.engine.document_ids import read_document_ids
from kebab_eval.engine.embedding import EMBEDDERS
from kebab_eval.engine.search import INDEX_VERSION, Engine, EngineConfig, SearchResult, score_kind
from kebab_eval.errors import BackendError, KebabEvalError
from kebab_eval.records import Candidate, Listing, Passage

CACHE_FOLDER = ".kebab_eval_cache"


class EmbeddedBackend(SingleSearch):
    """One engine and the search settings of a config.

    A search is computing in Python, so a second one at the same time would only wait for the first
    and count the wait as latency: ``max_concurrency`` is 1. It runs on a thread of its own, so that
    the event loop stays free for signals and time-outs.
    """

    def __init__(
        self, engine: Engine, config: Config, ids: Mapping[str, str] | None = None
    ) -> None:
        self._ids = ids
        self._engine = engine
        self._config = config
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kebab-eval-search")
        self._info = _describe(engine, config)

    def describe(self) -> SystemInfo:
        return self._info

    def prepare(self, progress: Progress | None = None) -> None:
        """Index the corpus and encode what the vector cache lacks.

        The encoder takes a second or more to load and is not needed while every passage is cached,
        so it loads on a thread of its own while the caller goes on; the first search waits for it.

        Raises:
            UsageError: an extra that the config needs is not installed.
        """
        mode = self._config.search.mode
        self._engine.prepare(mode, progress)
        if mode != "lexical":
            Thread(target=_load, args=(self._engine,), daemon=True, name="kebab-eval-load").start()

    async def search(self, query: str, query_id: str) -> SearchResponse:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._thread, self._search, query)
        except KebabEvalError:
            raise
        except Exception as reason:
            cause = " ".join(f"{type(reason).__name__}: {reason}".split())
            raise BackendError(f"embedded engine failed on query {query_id}: {cause}") from reason
        hits = found.hits
        if self._ids is not None:
            hits = tuple(replace(hit, doc_id=self._ids[hit.doc_id]) for hit in hits)
        candidates = {
            channel: tuple(
                Candidate(chunk_id, self._id(self._engine.document_of(chunk_id)), score)
                for chunk_id, score in ranking
            )
            for channel, ranking in found.channels.items()
        }
        return SearchResponse(hits, found.timings_ms, candidates)

    def item_ids(self) -> ItemIds:
        chunks = frozenset(chunk.chunk_id for chunk in self._engine.chunks)
        documents = self._engine.corpus.documents
        return ItemIds(chunks, frozenset(self._id(doc.doc_id) for doc in documents))

    def list_chunks(self) -> Listing:
        passages = (
            Passage(chunk.chunk_id, self._id(chunk.doc_id), chunk.text, chunk.start, chunk.end)
            for chunk in self._engine.chunks
        )
        documents = {self._id(doc.doc_id): doc.text for doc in self._engine.corpus.documents}
        return Listing(tuple(passages), documents)

    def _id(self, document: str) -> str:
        return document if self._ids is None else self._ids[document]

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _search(self, query: str) -> SearchResult:
        search = self._config.search
        return self._engine.search(
            query, search.mode, search.k, search.depth, self._config.score_gate
        )


def open_embedded(config: Config) -> EmbeddedBackend:
    """Read and cut the corpus of a config.

    Raises:
        CorpusError: the corpus cannot be used; every fault at once.
    """
    backend = cast("config_models.EmbeddedBackend", config.backend)
    cache = backend.cache or _beside(backend.corpus)
    settings = EngineConfig(config.chunking, config.lexical, config.embedding, config.fusion, cache)
    corpus = read_corpus(backend.corpus)
    ids = None
    if backend.document_ids is not None:
        ids = read_document_ids(backend.document_ids, [doc.doc_id for doc in corpus.documents])
    return EmbeddedBackend(Engine(corpus, settings), config, ids)


def _load(engine: Engine) -> None:
    with suppress(Exception):  # the first search meets the same error where it can be told
        engine.embedder.load()


def _beside(corpus: Path) -> Path:
    return corpus.parent / CACHE_FOLDER


def _describe(engine: Engine, config: Config) -> SystemInfo:
    spec = EMBEDDERS[config.embedding.provider]
    return SystemInfo(
        name="embedded",
        score_kind=score_kind(config.search.mode, config.fusion),
        snapshot={
            "chunker_version": config.chunking.version,
            "embedding_model": spec.model,
            "embedding_version": spec.version,
            "embedding_dimensions": spec.dimensions,
            "rrf_k": config.fusion.rrf_k,
            "score_gate": config.score_gate,
            "index_version": INDEX_VERSION,
            "index_fingerprint": engine.index_fingerprint,
            "corpus_fingerprint": engine.corpus.fingerprint,
            "doc_count": len(engine.corpus.documents),
            "chunk_count": len(engine.chunks),
        },
        max_concurrency=1,
    )
