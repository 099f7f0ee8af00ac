"""The vector channel: the cosine of a query with every chunk, exact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from kebab_eval.engine.ranking import Candidate, best


class VectorIndex:
    """The chunks' vectors as one float64 matrix, so that a search is one product without rounding.

    See :mod:`kebab_eval.engine.embedding` for why the cosines are the same on any number of
    threads.
    """

    def __init__(self, ids: Sequence[str], rows: NDArray[np.float32]) -> None:
        """Keep the rows of :func:`~kebab_eval.engine.embedding.unit_rows`, (n, dimensions)."""
        self._ids = ids
        self._matrix = rows.astype(np.float64)
        self._blas = ThreadpoolController()

    def search(self, query: NDArray[np.float32], depth: int) -> list[Candidate]:
        """Return the ``depth`` chunks with the highest cosine, best first; equal cosines by id."""
        # One thread: a product this small gains nothing from more, and on a busy machine idle BLAS
        # threads spin for longer than it takes.
        with self._blas.limit(limits=1, user_api="blas"):
            cosines = self._matrix @ query.astype(np.float64)
        return best(cosines, self._ids, depth)
