"""The embedded backend as workflows see it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kebab_eval.backends import Backend, open_backend
from kebab_eval.config import Config, EmbeddedBackend, GoldenSource, Search
from kebab_eval.errors import BackendError, CorpusError


def config_for(corpus: Path, mode: str = "lexical") -> Config:
    return Config(
        name="x",
        golden=GoldenSource(path=Path("golden.yaml")),
        backend=EmbeddedBackend(corpus=corpus),
        search=Search(mode=mode),
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    root.mkdir()
    (root / "a.md").write_text("# A\n\nalpha beta")
    (root / "b.md").write_text("# B\n\nbeta gamma")
    (root / "empty.md").write_text("")
    return root


def test_describe_names_versions_counts_and_fingerprints(corpus):
    info = open_backend(config_for(corpus)).describe()
    assert (info.name, info.score_kind, info.max_concurrency) == ("embedded", "bm25", 1)
    assert set(info.snapshot) == {
        "chunker_version",
        "embedding_model",
        "embedding_version",
        "embedding_dimensions",
        "rrf_k",
        "score_gate",
        "index_version",
        "index_fingerprint",
        "corpus_fingerprint",
        "doc_count",
        "chunk_count",
    }
    assert info.snapshot["doc_count"] == 3
    assert info.snapshot["chunk_count"] == 2


def test_search_returns_hits_and_timings_off_the_event_loops_thread(corpus, monkeypatch):
    backend = open_backend(config_for(corpus))
    threads = []
    inner = backend._engine.search

    def search(*args: object) -> object:
        threads.append(threading.current_thread())
        return inner(*args)

    monkeypatch.setattr(backend._engine, "search", search)

    async def use() -> None:
        response = await backend.search("gamma", "q1")
        assert [hit.doc_id for hit in response.hits] == ["b.md"]
        assert response.timings_ms["total"] > 0
        assert (await backend.search(" ", "q2")).hits == ()
        await backend.close()
        await backend.close()

    asyncio.run(use())
    assert threading.main_thread() not in threads


def test_item_ids_hold_documents_without_chunks_too(corpus):
    ids = open_backend(config_for(corpus)).item_ids()
    assert ids.docs == {"a.md", "b.md", "empty.md"}
    assert {chunk.partition("#")[0] for chunk in ids.chunks} == {"a.md", "b.md"}


def test_a_failure_within_the_engine_names_the_query(corpus, monkeypatch):
    backend = open_backend(config_for(corpus))

    def search(*_: object) -> None:
        raise MemoryError("no\nroom")

    monkeypatch.setattr(backend._engine, "search", search)
    with pytest.raises(BackendError, match="on query q7: MemoryError: no room"):
        asyncio.run(backend.search("x", "q7"))


def test_a_bad_corpus_is_told_when_it_is_opened(tmp_path):
    with pytest.raises(CorpusError, match="does not exist"):
        open_backend(config_for(tmp_path / "missing"))


def test_vectors_are_kept_beside_the_corpus_unless_told_otherwise(corpus, tmp_path):
    calls: list[tuple[int, int]] = []
    backend: Backend = open_backend(config_for(corpus, "hybrid"))
    backend.prepare(lambda *at: calls.append(at))
    assert calls == [(0, 2), (2, 2)]
    assert list((tmp_path / ".kebab_eval_cache").glob("*.vectors"))
    assert len(asyncio.run(backend.search("alpha", "q")).hits) == 2


def test_the_protocol_is_light_to_import():
    code = (
        "import sys, kebab_eval.backends.base; "
        "print(sorted(set(sys.modules) & {'numpy', 'pydantic', 'bm25s', 'markdown_it'}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
