"""The engine as a whole: modes, channels, gate, fingerprints, and the same bytes every time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from kebab_eval.config import Chunking, Fusion, Lexical
from kebab_eval.engine.corpus import read_corpus
from kebab_eval.engine.search import Engine, EngineConfig
from kebab_eval.errors import CorpusError

FILES = {
    "wal.md": """
# WAL

## fsync

The log calls fsync on every commit.

## Rotation

Nightly.
""",
    "정책.md": """---
title: 청킹 정책
---

# 개요

조각은 제목 경계를 넘지 않는다.

# 표

표는 쪼개지 않는다.
""",
    "empty.md": "",
    "plain.md": "No heading here, only fsync and words.",
}


@pytest.fixture
def engine(write_corpus, embedder) -> Engine:
    made = Engine(read_corpus(write_corpus(FILES)), EngineConfig())
    made.embedder = embedder
    return made


def test_lexical_search_finds_by_term_and_reports_its_channel_only(engine):
    hits = engine.search("fsync", "lexical", k=10, depth=50).hits
    assert [hit.doc_id for hit in hits] == ["wal.md", "plain.md"]
    assert [hit.rank for hit in hits] == [1, 2]
    assert {hit.score_kind for hit in hits} == {"bm25"}
    assert hits[0].channels == {"lexical_rank": 1, "lexical_score": hits[0].score}
    assert hits[0].chunk_id.startswith("wal.md#fsync:")
    assert hits[0].snippet == "# WAL ## fsync The log calls fsync on every commit."


def test_vector_search_ranks_every_chunk(engine):
    hits = engine.search("fsync", "vector", k=10, depth=50).hits
    assert len(hits) == len(engine.chunks) == 5
    assert {hit.score_kind for hit in hits} == {"cosine"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_hybrid_scores_follow_from_the_channel_ranks(engine):
    hits = engine.search("fsync 표", "hybrid", k=10, depth=50).hits
    assert {hit.score_kind for hit in hits} == {"rrf"}
    for hit in hits:
        ranks = [
            hit.channels[key] for key in ("lexical_rank", "vector_rank") if key in hit.channels
        ]
        assert hit.score == pytest.approx(sum(1 / (60 + rank) for rank in ranks) / (2 / 61))


def test_k_and_depth_bound_the_hits(engine):
    assert len(engine.search("fsync", "hybrid", k=2, depth=50).hits) == 2
    assert len(engine.search("fsync", "vector", k=10, depth=3).hits) == 3
    shallow = engine.search("fsync 표는", "hybrid", k=10, depth=1).hits
    assert 1 <= len(shallow) <= 2
    assert engine.search("fsync", "vector", k=1000, depth=10_000).hits[-1].rank == 5


def test_hits_under_the_gate_are_dropped(engine):
    free = engine.search("fsync", "hybrid", k=10, depth=50).hits
    gate = free[1].score
    gated = engine.search("fsync", "hybrid", k=10, depth=50, score_gate=gate).hits
    assert gated == tuple(hit for hit in free if hit.score >= gate)
    assert engine.search("fsync", "hybrid", k=10, depth=50, score_gate=1.1).hits == ()


@pytest.mark.parametrize("query", ["", " \n\t", "\u3000"])
@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_a_blank_query_finds_nothing(engine, query, mode):
    assert engine.search(query, mode, k=10, depth=50).hits == ()


@pytest.mark.parametrize("query", ["?!", "\ud800", "\0", "가" * 30_000, "🙂", "a" * 5000])
def test_strange_queries_are_answered(engine, query):
    assert engine.search(query, "hybrid", k=10, depth=50).hits


def test_title_and_heading_path_are_searched(engine):
    hits = engine.search("청킹 개요", "lexical", k=10, depth=50).hits
    assert hits[0].chunk_id.startswith("정책.md#개요:")
    assert "청킹" not in hits[0].snippet


def test_only_the_channels_of_the_mode_are_built(engine, embedder):
    engine.search("fsync", "lexical", k=10, depth=50)
    assert embedder.passages == []
    engine.search("fsync", "hybrid", k=10, depth=50)
    engine.search("fsync", "vector", k=10, depth=50)
    assert len(embedder.passages) == 5


def test_timings_name_the_stages(engine):
    timings = engine.search("fsync", "hybrid", k=10, depth=50).timings_ms
    assert list(timings) == ["lexical", "embedding", "vector", "fusion", "total"]
    assert sum(list(timings.values())[:-1]) <= timings["total"]


def test_searches_on_many_threads_give_what_one_gives(engine):
    queries = ["fsync", "표는", "rotation nightly", "words", "조각 경계"] * 20
    alone = [engine.search(query, "hybrid", k=10, depth=50).hits for query in queries]
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda query: engine.search(query, "hybrid", 10, 50).hits, queries)
        assert list(found) == alone


def test_a_corpus_without_text_is_refused(write_corpus):
    with pytest.raises(CorpusError, match="holds any text"):
        Engine(read_corpus(write_corpus({"a.md": "---\ntitle: x\n---\n"})), EngineConfig())


def test_the_index_fingerprint_moves_with_what_decides_the_index(write_corpus):
    corpus = read_corpus(write_corpus(FILES))
    fingerprints = [
        Engine(corpus, config).index_fingerprint
        for config in (
            EngineConfig(),
            EngineConfig(chunking=Chunking(target_tokens=100)),
            EngineConfig(lexical=Lexical(k1=0.9)),
            EngineConfig(lexical=Lexical(tokenizer="whitespace")),
        )
    ]
    assert len(set(fingerprints)) == 4
    same = Engine(corpus, EngineConfig(fusion=Fusion(rrf_k=1.0)))
    assert same.index_fingerprint == fingerprints[0]
    changed = read_corpus(write_corpus({**FILES, "plain.md": "No heading here."}))
    assert Engine(changed, EngineConfig()).index_fingerprint not in fingerprints


SCRIPT = """
import json, sys
from pathlib import Path
from kebab_eval.engine.corpus import read_corpus
from kebab_eval.engine.search import Engine, EngineConfig
root, cache = Path(sys.argv[1]), Path(sys.argv[2])
engine = Engine(read_corpus(root), EngineConfig(cache=cache))
out = [engine.index_fingerprint]
for mode in ("lexical", "vector", "hybrid"):
    for query in ("fsync on commit", "표는 어떻게 나누나", "nightly 조각"):
        out.append([hit.to_json() for hit in engine.search(query, mode, 10, 50).hits])
print(json.dumps(out))
"""


def test_other_processes_give_the_same_bytes(tmp_path):
    """Hash seed, BLAS threads, order of files on disk, and a cold, half or warm cache."""
    for folder, names in (("one", list(FILES)), ("two", list(FILES)[::-1])):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(FILES[name], encoding="utf-8")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "wal.md").write_text(FILES["wal.md"], encoding="utf-8")

    def run(folder: str, cache: str, threads: int, seed: int) -> subprocess.Popen[str]:
        env = {
            **os.environ,
            "PYTHONHASHSEED": str(seed),
            "OPENBLAS_NUM_THREADS": str(threads),
            "OMP_NUM_THREADS": str(threads),
        }
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / folder), str(tmp_path / cache)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    cold, half = run("one", "a", threads=1, seed=0), run("half", "b", threads=2, seed=1)
    expected = cold.communicate()[0]
    half.communicate()
    warm, filled = run("two", "a", threads=2, seed=2), run("two", "b", threads=2, seed=3)
    assert warm.communicate()[0] == expected
    assert filled.communicate()[0] == expected
    assert len(json.loads(expected)) == 10
