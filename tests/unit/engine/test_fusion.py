"""Reciprocal rank fusion, with its arithmetic shown."""

from __future__ import annotations

import pytest

from kebab_eval.config import Fusion, Weights
from kebab_eval.engine.fusion import METHODS


def ranking(*items: str) -> dict[str, tuple[int, float]]:
    return {item: (rank, 1.0) for rank, item in enumerate(items, start=1)}


def fused(fusion: Fusion, **channels: dict[str, tuple[int, float]]) -> list[tuple[str, float]]:
    return [(item.item_id, item.score) for item in METHODS["rrf"](channels, fusion)]


def test_the_sum_of_reciprocal_ranks_over_the_highest_possible():
    # a: lexical 1, vector 3: (1/61 + 1/63) / (1/61 + 1/61) = 62/63
    # b: vector 1 alone:      (1/61) / (2/61) = 1/2
    result = fused(Fusion(rrf_k=60), lexical=ranking("a"), vector=ranking("b", "c", "a"))
    assert dict(result) == {
        "a": pytest.approx(62 / 63, abs=1e-15),
        "b": pytest.approx(1 / 2, abs=1e-15),
        "c": pytest.approx(61 / 124, abs=1e-15),
    }
    assert [item for item, _ in result] == ["a", "b", "c"]


def test_first_in_every_channel_scores_one():
    result = fused(Fusion(rrf_k=1), lexical=ranking("a", "b"), vector=ranking("a", "c"))
    assert result[0] == ("a", 1.0)


def test_rrf_k_decides_between_one_high_rank_and_two_middling_ones():
    channels = {"lexical": ranking("x", "y", "z", "b"), "vector": ranking("p", "q", "r", "b")}
    # k = 60: b = 2/64 against x = 1/61; k = 1: b = 2/5 against x = 1/2.
    assert fused(Fusion(rrf_k=60), **channels)[0][0] == "b"
    assert fused(Fusion(rrf_k=1), **channels)[0][0] == "p"


def test_weights_scale_the_channels():
    fusion = Fusion(rrf_k=60, weights=Weights(lexical=3.0, vector=1.0))
    # a: 3/61 / (4/61) = 3/4; b: 1/61 / (4/61) = 1/4
    result = fused(fusion, lexical=ranking("a"), vector=ranking("b"))
    assert result == [("a", pytest.approx(0.75)), ("b", pytest.approx(0.25))]


def test_a_channel_of_weight_zero_brings_in_no_items():
    fusion = Fusion(weights=Weights(lexical=1.0, vector=0.0))
    assert fused(fusion, lexical=ranking("a"), vector=ranking("b", "a")) == [("a", 1.0)]


def test_mirrored_ranks_are_equal_and_ordered_by_id():
    result = fused(Fusion(), lexical=ranking("b", "x", "a"), vector=ranking("a", "y", "b"))
    assert [item for item, _ in result][:2] == ["a", "b"]
    assert result[0][1] == result[1][1]


def test_the_order_of_the_channels_changes_nothing():
    lexical, vector = ranking(*"abcdefg"), ranking(*"gcaxyzb")
    one = fused(Fusion(), lexical=lexical, vector=vector)
    assert one == fused(Fusion(), vector=vector, lexical=lexical)


def test_nothing_found_anywhere():
    assert fused(Fusion(), lexical={}, vector={}) == []
