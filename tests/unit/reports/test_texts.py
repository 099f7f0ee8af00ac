"""Control characters are shown, never obeyed."""

from __future__ import annotations

import json

import pytest

from kebab_eval.reports.texts import encodable, one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 한글 é 🙂", "plain 한글 é 🙂"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("a\0b\x7f", "a\\x00b\\x7f"),
        ("tab\tline\r\n", "tab\tline\r\n"),
        ("\ud800", "\\ud800"),
        ("", ""),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_one_line_folds_every_line_end() -> None:
    assert one_line(" a\n\nb\u2028c\x85d\te ") == "a b c d e"


def test_encodable_json_means_the_same() -> None:
    text = json.dumps(["\ud800", "가"], ensure_ascii=False)
    assert encodable(text) == '["\\ud800", "가"]'
    assert json.loads(encodable(text)) == ["\ud800", "가"]
