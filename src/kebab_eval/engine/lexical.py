"""The lexical channel: BM25 (Lucene's variant) over the indexed texts of the chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kebab_eval.config import Lexical
from kebab_eval.engine.bm25s_import import import_bm25s
from kebab_eval.engine.ranking import Candidate, best
from kebab_eval.engine.tokenizers import TOKENIZERS


class LexicalIndex:
    """BM25 scores of every (term, chunk), computed once.

    score(q, d) = sum over the terms t of q, repeats counted, of
    ln(1 + (N − df + 0.5) / (df + 0.5)) · tf / (tf + k1 · (1 − b + b · |d| / avgdl)).

    Source: Robertson & Zaragoza 2009, as Lucene computes it (Kamphuis et al. 2020); bm25s.
    """

    def __init__(self, ids: Sequence[str], texts: Sequence[str], lexical: Lexical) -> None:
        """Index the texts.

        Args:
            ids: the chunk ids, which break ties.
            texts: the indexed text of each chunk, in the same order.

        Raises:
            UsageError: the tokenizer needs an extra that is not installed.
        """
        self._ids = ids
        self._tokenize = TOKENIZERS[lexical.tokenizer]()
        vocabulary: dict[str, int] = {}
        term_ids = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in self._tokenize(text)]
            for text in texts
        ]
        self._vocabulary = vocabulary
        self._index: Any = None
        if vocabulary:  # bm25s cannot index texts without a single term
            # Term numbers are given in order of appearance: bm25s would number a set of strings, in
            # an order that PYTHONHASHSEED decides. float64, since float32 sums lose the sixth
            # decimal.
            self._index = import_bm25s().BM25(
                k1=lexical.k1, b=lexical.b, method="lucene", dtype="float64", backend="numpy"
            )
            self._index.index(
                (term_ids, dict(vocabulary)), show_progress=False, create_empty_token=False
            )

    def terms(self, query: str) -> list[str]:
        """Return the terms of a query, in order, with repeats."""
        return self._tokenize(query)

    def search(self, query: str, depth: int) -> list[Candidate]:
        """Return up to ``depth`` chunks that hold a term of the query, best first.

        Terms that no chunk holds count nothing; a query without a known term finds nothing.
        """
        known = [self._vocabulary[t] for t in self._tokenize(query) if t in self._vocabulary]
        if not known:
            return []
        scores = np.asarray(self._index.get_scores_from_ids(known), dtype=np.float64)
        return best(scores, self._ids, depth, positive=True)
