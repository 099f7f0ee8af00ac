"""The best of an array of scores."""

from __future__ import annotations

import numpy as np
import pytest

from kebab_eval.engine.ranking import best


def test_scores_are_rounded_before_they_are_compared():
    found = best(np.array([0.5, 0.5 + 2e-8, 0.25]), ["b", "c", "a"], 3)
    assert [(hit.index, hit.rank, hit.score) for hit in found] == [
        (0, 1, 0.5),
        (1, 2, 0.5),
        (2, 3, 0.25),
    ]


@pytest.mark.parametrize("depth", [1, 2, 3, 7, 50])
def test_a_partial_ranking_is_the_start_of_the_whole_one(depth):
    rng = np.random.default_rng(0)
    scores = np.round(rng.random(40), 1)  # many ties
    ids = [f"{number:02}" for number in rng.permutation(40)]
    whole = sorted(range(40), key=lambda index: (-scores[index], ids[index]))
    assert [hit.index for hit in best(scores, ids, depth)] == whole[:depth]


def test_positive_drops_zero_and_what_rounds_to_it():
    found = best(np.array([0.0, 1e-9, -1.0, 0.2]), list("abcd"), 10, positive=True)
    assert [hit.index for hit in found] == [3]


def test_an_empty_index():
    assert best(np.array([]), [], 5) == []
