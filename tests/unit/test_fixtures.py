"""The fixture knowledge base and its golden set are what the documents promise."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from kebab_eval.config import Chunking
from kebab_eval.engine.chunking import Chunk, chunk_documents
from kebab_eval.engine.corpus import Corpus, read_corpus
from kebab_eval.golden import check_ids, load_golden
from kebab_eval.golden.load import LoadedGolden

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus(FIXTURES / "corpus")


@pytest.fixture(scope="module")
def chunks(corpus: Corpus) -> tuple[Chunk, ...]:
    return chunk_documents(corpus.documents, Chunking())


@pytest.fixture(scope="module")
def golden() -> LoadedGolden:
    return load_golden(FIXTURES / "golden_queries.yaml")


def test_the_corpus_is_large_and_bilingual(corpus: Corpus, chunks: tuple[Chunk, ...]) -> None:
    languages = Counter(document.meta["lang"] for document in corpus.documents)
    assert len(corpus.documents) >= 90
    assert len(chunks) >= 500
    assert min(languages["ko"], languages["en"]) >= 35
    assert languages["mixed"] >= 10


def test_the_corpus_holds_what_is_hard_to_read(corpus: Corpus) -> None:
    assert sum(document.meta.get("ocr_derived") is True for document in corpus.documents) >= 3
    files = list((FIXTURES / "corpus").rglob("*.md"))
    assert sum(b"\r\n" in path.read_bytes() for path in files) == 1
    names = [path.name for path in files]
    assert sum(unicodedata.normalize("NFC", name) != name for name in names) == 1


def test_the_golden_set_is_what_it_says(golden: LoadedGolden) -> None:
    queries = golden.golden.queries
    assert len(queries) >= 60
    assert {query.language for query in queries} == {"ko", "en", "mixed"}
    assert {query.difficulty for query in queries} == {"easy", "medium", "hard"}
    groups: dict[str, list[str | None]] = {}
    for query in queries:
        if query.group:
            groups.setdefault(query.group, []).append(query.language)
    assert len(groups) >= 8
    assert all(len(members) == 3 and {"ko", "en"} <= set(members) for members in groups.values())
    assert sum(query.should_refuse for query in queries) >= 8
    judged = [query for query in queries if not query.should_refuse]
    assert all(query.judgments.chunk and query.judgments.doc for query in judged)


def test_every_expected_id_is_in_the_corpus(
    golden: LoadedGolden, corpus: Corpus, chunks: tuple[Chunk, ...]
) -> None:
    check_ids(
        golden,
        {chunk.chunk_id for chunk in chunks},
        {document.doc_id for document in corpus.documents},
    )


def test_a_right_answer_can_be_read_off_the_expected_chunks(
    golden: LoadedGolden, chunks: tuple[Chunk, ...]
) -> None:
    """``must_contain`` stands in an expected chunk; the right answer is not a forbidden one."""
    texts = {chunk.chunk_id: unicodedata.normalize("NFC", chunk.text) for chunk in chunks}
    for query in golden.golden.queries:
        expected = " ".join(texts[chunk_id] for chunk_id in query.judgments.chunk)
        for text in query.must_contain:
            assert text in expected, f"{query.query_id}: {text!r}"
