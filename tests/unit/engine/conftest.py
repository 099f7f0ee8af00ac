"""Corpora in a temporary folder, and an encoder small enough to work out by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from kebab_eval.engine.corpus import Document
from kebab_eval.formats.markdown import parse_markdown


class CountingEmbedder:
    """Vectors of 8 numbers made from a hash of the text; keeps what it was asked to encode."""

    model = "counting"
    version = "1"
    dimensions = 8

    def __init__(self) -> None:
        self.passages: list[str] = []

    def load(self) -> None:
        pass

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.passages.extend(texts)
        return self._rows(texts)

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self._rows(texts)

    def _rows(self, texts: Sequence[str]) -> np.ndarray:
        bytes_ = [list(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
        return np.array(bytes_, dtype=np.float32).reshape(len(texts), 8) - 127.5


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def write_corpus(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Path]:
    def write(files: Mapping[str, str | bytes]) -> Path:
        root = tmp_path / "corpus"
        root.mkdir(exist_ok=True)
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return write


@pytest.fixture
def document() -> Callable[..., Document]:
    def make(text: str, doc_id: str = "a.md", title: str = "a") -> Document:
        return Document(doc_id, text, title, {}, Path(doc_id), parse_markdown(text))

    return make
