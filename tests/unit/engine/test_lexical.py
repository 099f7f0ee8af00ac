"""BM25 by hand, its ties, and what it must not choke on."""

from __future__ import annotations

import subprocess
import sys
from math import log

import pytest

from kebab_eval.config import Lexical
from kebab_eval.engine.lexical import LexicalIndex

IDS = ["d1", "d2", "d3"]
TEXTS = ["a b", "a a c", "d"]
WHITESPACE = Lexical(tokenizer="whitespace")


def found(index: LexicalIndex, query: str, depth: int = 10) -> list[tuple[str, float]]:
    return [(IDS[hit.index], hit.score) for hit in index.search(query, depth)]


def test_scores_are_lucenes_bm25():
    # N = 3, df(a) = 2, idf = ln(1 + (3 - 2 + 0.5) / (2 + 0.5)) = ln 1.6; average length 2.
    # d1: 1 / (1 + 1.2 * (0.25 + 0.75 * 2/2)) = 1 / 2.2
    # d2: 2 / (2 + 1.2 * (0.25 + 0.75 * 3/2)) = 2 / 3.65
    index = LexicalIndex(IDS, TEXTS, WHITESPACE)
    assert found(index, "a") == [
        ("d2", round(log(1.6) * 2 / 3.65, 6)),
        ("d1", round(log(1.6) / 2.2, 6)),
    ]


def test_a_repeated_query_term_counts_twice():
    index = LexicalIndex(IDS, TEXTS, WHITESPACE)
    once, twice = index.search("b", 5)[0].score, index.search("b b", 5)[0].score
    assert twice == pytest.approx(2 * once, abs=2e-6)  # each is rounded


def test_k1_and_b_are_the_levers_they_say():
    # k1 = 0: presence alone counts, idf * tf / tf.
    index = LexicalIndex(IDS, TEXTS, Lexical(tokenizer="whitespace", k1=0.0))
    assert found(index, "a") == [("d1", round(log(1.6), 6)), ("d2", round(log(1.6), 6))]


def test_depth_may_exceed_the_corpus_and_zero_scores_are_dropped():
    index = LexicalIndex(IDS, TEXTS, WHITESPACE)
    assert [doc for doc, _ in found(index, "d", depth=1000)] == ["d3"]


@pytest.mark.parametrize("query", ["unknown", "", "  ", "?!", "unknown words only"])
def test_queries_without_a_known_term_find_nothing(query):
    assert LexicalIndex(IDS, TEXTS, WHITESPACE).search(query, 10) == []


def test_unknown_terms_beside_known_ones_count_nothing():
    index = LexicalIndex(IDS, TEXTS, WHITESPACE)
    assert found(index, "zzz a yyy") == found(index, "a")


def test_equal_scores_are_ordered_by_id_also_at_the_edge_of_the_depth():
    ids = ["c", "a", "d", "b"]
    index = LexicalIndex(ids, ["x"] * 4, WHITESPACE)
    assert [ids[hit.index] for hit in index.search("x", 2)] == ["a", "b"]


def test_texts_without_a_single_term():
    assert LexicalIndex(["a"], ["?!"], Lexical()).search("x", 5) == []


def test_bm25s_brings_in_neither_jax_nor_numba_nor_scipy(tmp_path):
    for name in ("jax", "numba", "tqdm"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    code = (
        "import sys, logging; from kebab_eval.engine.bm25s_import import import_bm25s as get\n"
        "assert get() is get(); print(sorted(set(sys.modules) & "
        "{'jax', 'numba', 'scipy.sparse', 'tqdm'}), logging.getLogger('bm25s').level)"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == ("[] 30", "")
