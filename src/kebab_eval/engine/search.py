"""The engine: a corpus and its levers in, ranked hits out."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock

from kebab_eval.config import Chunking, Embedding, Fusion, Lexical, Mode
from kebab_eval.engine.chunking import Chunk, chunk_documents
from kebab_eval.engine.corpus import Corpus
from kebab_eval.engine.embedding import (
    EMBEDDERS,
    Embedder,
    Progress,
    open_embedder,
    passage_vectors,
    query_vector,
)
from kebab_eval.engine.fusion import Ranking, fuse
from kebab_eval.engine.lexical import LexicalIndex
from kebab_eval.engine.ranking import Candidate
from kebab_eval.engine.snippets import snippet
from kebab_eval.engine.tokenizers import TOKENIZERS
from kebab_eval.engine.vector_cache import VectorCache
from kebab_eval.engine.vectors import VectorIndex
from kebab_eval.errors import CorpusError, Fault
from kebab_eval.records import Hit

INDEX_VERSION = "embedded-1"
"""Changes when the same corpus and config would be indexed differently."""

_SCORE_KINDS: Mapping[Mode, str] = {"lexical": "bm25", "vector": "cosine"}


def score_kind(mode: Mode, fusion: Fusion) -> str:
    """Return what the score of a hit is: of a channel, or of the fusion by its method."""
    return _SCORE_KINDS.get(mode, fusion.method)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The config sections that decide what the engine returns, and where vectors are kept."""

    chunking: Chunking = field(default_factory=Chunking)
    lexical: Lexical = field(default_factory=Lexical)
    embedding: Embedding = field(default_factory=Embedding)
    fusion: Fusion = field(default_factory=Fusion)
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of one search, what each stage took in milliseconds, and the channels' rankings.

    ``channels`` maps a channel to its (chunk id, score), best first.
    """

    hits: tuple[Hit, ...]
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    channels: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)


class Engine:
    """Searches one corpus. Channels are built when first used, or before by :meth:`prepare`.

    Searches may run on several threads at once; the encoder takes them one by one.
    """

    def __init__(self, corpus: Corpus, config: EngineConfig) -> None:
        """Cut the corpus into chunks.

        Raises:
            CorpusError: no document holds any text.
        """
        self.corpus = corpus
        self.config = config
        self.chunks: tuple[Chunk, ...] = chunk_documents(corpus.documents, config.chunking)
        if not self.chunks:
            raise CorpusError(Fault(str(corpus.path), "no .md file in the corpus holds any text"))
        self._ids = [chunk.chunk_id for chunk in self.chunks]
        self._by_id = {chunk.chunk_id: chunk for chunk in self.chunks}
        self._tokenize_for_snippets = TOKENIZERS["bigram"]()
        self._building = RLock()
        self._lexical: LexicalIndex | None = None
        self._vectors: VectorIndex | None = None

    def prepare(self, mode: Mode, progress: Progress | None = None) -> None:
        """Build the channels of a mode: index the terms, encode what the cache lacks.

        Args:
            progress: called while passages are encoded; never when all are cached.

        Raises:
            UsageError: an extra that the config needs is not installed.
        """
        if mode != "vector":
            self._lexical_index()
        if mode != "lexical":
            self._vector_index(progress)

    @cached_property
    def embedder(self) -> Embedder:
        """The encoder of the config, not loaded by this.

        Raises:
            UsageError: its package is not installed.
        """
        return open_embedder(self.config.embedding.provider)

    def search(
        self, query: str, mode: Mode, k: int, depth: int, score_gate: float | None = None
    ) -> SearchResult:
        """Return the best ``k`` of up to ``depth`` candidates from each channel.

        A blank query finds nothing. Each hit's ``channels`` holds ``lexical_rank``,
        ``lexical_score``, ``vector_rank`` and ``vector_score`` for the channels that returned it.

        Args:
            mode: ``lexical`` scores by BM25, ``vector`` by cosine, ``hybrid`` by the fusion, 0..1.
            score_gate: hits with a lower score are dropped; ranks do not change.
        """
        query = query.encode("utf-8", "replace").decode()  # a lone surrogate cannot be encoded
        if not query.strip():
            return SearchResult(())
        self.prepare(mode)
        clock = _Clock()
        channels: dict[str, list[Candidate]] = {}
        if mode != "vector":
            channels["lexical"] = self._lexical_index().search(query, depth)
            clock.lap("lexical")
        if mode != "lexical":
            vector = query_vector(self.embedder, query)
            clock.lap("embedding")
            channels["vector"] = self._vector_index().search(vector, depth)
            clock.lap("vector")
        rankings = {
            name: {self._ids[found.index]: (found.rank, found.score) for found in candidates}
            for name, candidates in channels.items()
        }
        if mode == "hybrid":
            fused = fuse(rankings, self.config.fusion)
            ranked = [(item.item_id, item.score) for item in fused]
            clock.lap("fusion")
        else:
            ranked = [(self._ids[found.index], found.score) for found in channels[mode]]
        kept = [
            (chunk_id, score)
            for chunk_id, score in ranked[:k]
            if score_gate is None or score >= score_gate
        ]
        hits = self._hits(query, mode, kept, rankings)
        timings = clock.finish()
        listed = {
            name: [(self._ids[found.index], found.score) for found in candidates]
            for name, candidates in channels.items()
        }
        return SearchResult(hits, timings, listed)

    def document_of(self, chunk_id: str) -> str:
        """Return the document that a chunk is of."""
        return self._by_id[chunk_id].doc_id

    def _hits(
        self,
        query: str,
        mode: Mode,
        ranked: Sequence[tuple[str, float]],
        rankings: Mapping[str, Ranking],
    ) -> tuple[Hit, ...]:
        terms = self._tokenize_for_snippets(query)
        hits = []
        for rank, (chunk_id, score) in enumerate(ranked, start=1):
            chunk = self._by_id[chunk_id]
            channels: dict[str, float] = {}
            for name, ranking in rankings.items():
                if chunk_id in ranking:
                    channels[f"{name}_rank"], channels[f"{name}_score"] = ranking[chunk_id]
            shown = snippet(chunk.text, terms)
            kind = score_kind(mode, self.config.fusion)
            hits.append(Hit(rank, chunk_id, chunk.doc_id, score, kind, shown, channels))
        return tuple(hits)

    def _lexical_index(self) -> LexicalIndex:
        with self._building:
            if self._lexical is None:
                self._lexical = LexicalIndex(self._ids, self._indexed_texts, self.config.lexical)
            return self._lexical

    def _vector_index(self, progress: Progress | None = None) -> VectorIndex:
        with self._building:
            if self._vectors is None:
                encoder = self.embedder
                cache = VectorCache(
                    self.config.cache, encoder.model, encoder.version, encoder.dimensions
                )
                rows = passage_vectors(encoder, self._indexed_texts, cache, progress)
                self._vectors = VectorIndex(self._ids, rows)
            return self._vectors

    @cached_property
    def _indexed_texts(self) -> list[str]:
        return [chunk.indexed_text for chunk in self.chunks]

    @cached_property
    def index_fingerprint(self) -> str:
        """Return sha256 (hex) over everything that decides the index, whichever channels are built.

        The corpus, the chunks, the tokenizer and BM25's parameters, the encoder and its version.
        Not
        the fusion, mode, k, depth or gate: they act on what the index returns.
        """
        spec = EMBEDDERS[self.config.embedding.provider]
        said = {
            "index_version": INDEX_VERSION,
            "corpus": self.corpus.fingerprint,
            "chunking": self.config.chunking.model_dump(mode="json"),
            "chunk_ids": self._ids,
            "lexical": self.config.lexical.model_dump(mode="json"),
            "embedding": [spec.model, spec.version, spec.dimensions],
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class _Clock:
    """Laps of one search, in milliseconds."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self._laps[stage] = (now - self._last) * 1000
        self._last = now

    def finish(self) -> dict[str, float]:
        return {**self._laps, "total": (time.perf_counter() - self._start) * 1000}
