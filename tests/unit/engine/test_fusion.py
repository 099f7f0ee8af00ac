"""Fusion by ranks and by scores, with its arithmetic shown."""

from __future__ import annotations

import pytest

from kebab_eval.config import Fusion, Weights
from kebab_eval.engine.fusion import METHODS, fuse


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


# --- scores instead of ranks --------------------------------------------------------------------


def scored(**items: float) -> dict[str, tuple[int, float]]:
    return {item: (rank, score) for rank, (item, score) in enumerate(items.items(), start=1)}


def by(fusion: Fusion, **channels: dict[str, tuple[int, float]]) -> dict[str, float]:
    return {item.item_id: item.score for item in fuse(channels, fusion)}


def test_weighted_scores_between_the_best_and_the_worst():
    # lexical 10, 6, 2 -> 1, .5, 0; vector .9, .8 -> 1, 0
    # a: (1 + 0) / 2; b: (.5 + 1) / 2; c: (0 + none) / 2
    channels = {"lexical": scored(a=10.0, b=6.0, c=2.0), "vector": scored(b=0.9, a=0.8)}
    assert by(Fusion(method="weighted"), **channels) == {"b": 0.75, "a": 0.5, "c": 0.0}
    # three parts lexical: a: 3/4; b: (3 x .5 + 1) / 4
    heavy = Fusion(method="weighted", weights=Weights(lexical=3.0, vector=1.0))
    assert by(heavy, **channels) == {"a": 0.75, "b": 0.625, "c": 0.0}


def test_weighted_by_standard_deviations():
    # lexical 3, 1: mean 2, spread 1 -> 1, -1; vector 8, 5, 2: mean 5, spread sqrt(6) -> 1.224745,
    # 0, -1.224745; c is not in lexical, which counts as its worst, -1
    channels = {"lexical": scored(a=3.0, b=1.0), "vector": scored(c=8.0, a=5.0, b=2.0)}
    assert by(Fusion(method="weighted", normalize="z"), **channels) == {
        "a": 0.5, "c": pytest.approx((1.224745 - 1) / 2, abs=1e-6),
        "b": pytest.approx((-1 - 1.224745) / 2, abs=1e-6),
    }  # fmt: skip


def test_combmnz_rewards_who_is_in_both():
    # a: in one, 1 x 1 / (2 x 2); b: (.5 + 1) x 2 / 4; c: (0 + .5) x 2 / 4
    channels = {
        "lexical": scored(a=10.0, b=6.0, c=2.0), "vector": scored(b=0.9, c=0.85, d=0.8)
    }  # fmt: skip
    assert by(Fusion(method="combmnz"), **channels) == {"b": 0.75, "a": 0.25, "c": 0.25, "d": 0.0}


@pytest.mark.parametrize("method", ["weighted", "combmnz"])
def test_the_edges(method: str):
    fusion = Fusion.model_validate({"method": method})
    assert by(fusion, lexical={}, vector={}) == {}
    # equal scores are all the best; a channel without candidates takes no part
    assert by(fusion, lexical=scored(b=1.0, a=1.0), vector={}) == {"a": 1.0, "b": 1.0}
    assert [one.item_id for one in fuse({"lexical": scored(b=1.0, a=1.0)}, fusion)] == ["a", "b"]
    alone = Fusion.model_validate({"method": method, "weights": {"lexical": 0.0}})
    assert by(alone, lexical=scored(a=1.0), vector=scored(b=1.0)) == {"b": 1.0}
    same = Fusion(method="weighted", normalize="z")
    assert by(same, lexical=scored(a=1.0, b=1.0)) == {"a": 0.0, "b": 0.0}


def test_only_the_first_of_each_channel_are_fused():
    channels = {"lexical": ranking("a", "b"), "vector": ranking("c", "b")}
    assert set(by(Fusion(depth=1), **channels)) == {"a", "c"}
    assert set(by(Fusion(depth=5), **channels)) == {"a", "b", "c"}


def test_normalize_belongs_to_one_method():
    with pytest.raises(ValueError, match="normalize is for the method weighted, not for rrf"):
        Fusion(normalize="z")
