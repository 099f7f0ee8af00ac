"""Ranks from scores: score descending, then id descending, without sorting the hits."""

from __future__ import annotations

import numpy as np
import pytest

from kebab_eval.errors import MetricError
from kebab_eval.metrics import ordering
from kebab_eval.metrics.ordering import from_scores


def ranks(judged, ranking):
    table = from_scores([judged], [ranking], ["q"])
    return dict(zip(judged, table.rank.tolist(), strict=True))


def test_higher_scores_come_first():
    assert ranks({"a": 1, "b": 1, "z": 1}, {"a": 0.1, "x": 0.3, "b": 0.2}) == {
        "a": 3,
        "b": 2,
        "z": 0,
    }


def test_of_equal_scores_the_higher_id_comes_first():
    assert ranks({"a": 1, "b": 1, "c": 1}, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 2.0}) == {
        "a": 4,
        "b": 3,
        "c": 2,
    }


def test_minus_zero_equals_zero():
    assert ranks({"a": 1, "b": 1}, {"a": 0.0, "b": -0.0}) == {"a": 2, "b": 1}


def test_integer_scores():
    assert ranks({"a": 1, "b": 1}, {"a": 7, "b": 7, "c": 9}) == {"a": 3, "b": 2}


def sorted_ranks(judged, ranking):
    order = sorted(((s, i) for i, s in ranking.items()), reverse=True)
    place = {item: rank for rank, (_score, item) in enumerate(order, 1)}
    return [place.get(item, 0) for item in judged]


@pytest.mark.parametrize("depths", [(5, 5), (40, 40), (100, 3, 0, 57), (0, 0), (1,)])
@pytest.mark.parametrize("levels", [3, 1_000_000])
@pytest.mark.parametrize("block", [1, 60, 250_000])
def test_as_sorting_would_rank_them(monkeypatch, depths, levels, block):
    monkeypatch.setattr(ordering, "BLOCK_HITS", block)
    random = np.random.default_rng(7)
    judgments, rankings = [], []
    for depth in depths:
        names = [f"d{i}" for i in random.permutation(200)]
        rankings.append({n: float(random.integers(levels)) for n in names[:depth]})
        judgments.append(dict.fromkeys(random.permutation(names)[:20].tolist(), 1))
    table = from_scores(judgments, rankings, [f"q{i}" for i in range(len(depths))])
    expected = [r for j, k in zip(judgments, rankings, strict=True) for r in sorted_ranks(j, k)]
    assert table.rank.tolist() == expected
    assert table.n_hits.tolist() == list(depths)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "1,5", None, [1.0]])
def test_a_score_that_is_no_finite_number_is_named(score):
    with pytest.raises(MetricError, match="query 'q': the score of 'b' is"):
        ranks({"a": 1}, {"a": 1.0, "b": score})


def test_a_grade_that_is_no_number_is_named():
    with pytest.raises(MetricError, match="query 'q': the grade of 'a' is nan"):
        ranks({"a": float("nan")}, {"a": 1.0})


def test_an_id_that_is_no_text_is_named():
    with pytest.raises(MetricError, match="the id 7 is a int; ids are texts"):
        ranks({"a": 1}, {"a": 1.0, 7: 2.0})


def test_two_ids_that_are_the_same_in_nfc_are_named():
    with pytest.raises(MetricError, match="stands there twice"):
        ranks({"a": 1}, {"\u1100\u1161": 1.0, "\uac00": 2.0})


def test_an_ascii_judgment_finds_an_id_whose_nfc_is_ascii():
    # U+212A, the Kelvin sign, is K in NFC.
    assert ranks({"K": 1}, {"\u212a": 1.0, "x": 2.0}) == {"K": 2}
