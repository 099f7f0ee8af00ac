"""The token count, by kind of character."""

from __future__ import annotations

import pytest

from kebab_eval.engine.tokens import Ruler, count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \n\t", 0),
        ("word", 1),
        ("sevenths", 2),  # 8 letters: 6 + 2
        ("2024", 2),  # 3 + 1 digits
        ("정책", 2),  # 2 * 2 / 3, rounded up
        ("안전보건규칙", 4),  # 2 * 6 / 3
        ("漢字変換", 2),
        ("---", 1),
        ("a-b", 3),
        ("|---|", 3),
        ("p99가", 3),
        ("snake_case", 3),
    ],
)
def test_counts(text, tokens):
    assert count_tokens(text) == tokens


@pytest.mark.parametrize(
    ("start", "tokens", "reach"),
    [
        (0, 1, 6),  # six of the twelve letters
        (0, 2, 13),  # the word, and the blank behind it
        (0, 3, 14),  # one syllable: three cost two tokens
        (0, 4, 17),
        (0, 9, 17),
        (6, 1, 13),  # the rest of a word costs what it would by itself
        (12, 1, 14),  # from the blank on
        (17, 1, 17),
    ],
)
def test_the_ruler_says_how_far_tokens_reach(start, tokens, reach):
    text = "abcdefghijkl 정책문 "  # 12 letters and 3 syllables: 2 + 2 tokens
    assert Ruler(text, 0, len(text)).reach(start, tokens) == reach
