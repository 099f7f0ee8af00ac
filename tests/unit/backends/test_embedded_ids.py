"""``backend.document_ids``: the edge speaks the golden set's ids, the chunk ids keep the path."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kebab_eval.backends import open_backend
from kebab_eval.config import Config, EmbeddedBackend, GoldenSource, Search
from kebab_eval.errors import CorpusError


@pytest.fixture
def config(tmp_path: Path) -> Config:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.md").write_text("# A\n\nalpha beta")
    (corpus / "b.md").write_text("# B\n\nbeta gamma")
    ids = tmp_path / "ids.yaml"
    ids.write_text("a.md: 101\n")
    return Config(
        name="x",
        golden=GoldenSource(path=Path("golden.yaml")),
        backend=EmbeddedBackend(corpus=corpus, document_ids=ids),
        search=Search(mode="lexical"),
    )


def test_hits_carry_the_mapped_id_and_the_chunk_keeps_the_path(config):
    backend = open_backend(config)
    hits = asyncio.run(backend.search("beta", "q")).hits
    assert {(hit.doc_id, hit.chunk_id.partition("#")[0]) for hit in hits} == {
        ("101", "a.md"),
        ("b.md", "b.md"),
    }


def test_listings_carry_the_mapped_id(config):
    backend = open_backend(config)
    assert backend.item_ids().docs == {"101", "b.md"}
    listing = backend.list_chunks()
    assert set(listing.documents) == {passage.doc_id for passage in listing.passages}
    assert set(listing.documents) == {"101", "b.md"}


def test_a_faulty_file_stops_the_opening(config, tmp_path):
    (tmp_path / "ids.yaml").write_text("c.md: 1\n")
    with pytest.raises(CorpusError, match="not in the corpus"):
        open_backend(config)
