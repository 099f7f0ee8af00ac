"""The token count, by kind of character."""

from __future__ import annotations

import pytest

from kebab_eval.engine.tokens import count_tokens


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
