"""The terms of Korean, English and mixed text."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from kebab_eval.engine.tokenizers import TOKENIZERS
from kebab_eval.errors import UsageError


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("검색을", ["검색", "색을"]),
        ("검색", ["검색"]),
        ("불", ["불"]),
        ("Rotating indexes", ["rotat", "index"]),
        ("p99는 0.84", ["p99", "는", "0.84"]),
        ("3,100건, 10:30", ["3,100", "건", "10:30"]),
        ("ADR-014 rrf_k", ["adr", "014", "rrf", "k"]),
        ("ＡＢ", ["ab"]),
        ("Ärger café", ["ärger", "café"]),
        ("검색engine", ["검색", "engin"]),
        ("!? --", []),
        ("", []),
    ],
)
def test_bigram(text, terms):
    assert TOKENIZERS["bigram"]()(text) == terms


def test_decomposed_text_has_the_terms_of_composed_text():
    bigram = TOKENIZERS["bigram"]()
    assert bigram(unicodedata.normalize("NFD", "검색을 한다")) == bigram("검색을 한다")


def test_whitespace_splits_and_lowers_only():
    assert TOKENIZERS["whitespace"]()("Rotating  검색을\n0.84!") == ["rotating", "검색을", "0.84!"]


def test_kiwi_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    with pytest.raises(UsageError, match=r'pip install "kebab-eval\[ko\]"'):
        TOKENIZERS["kiwi"]()


def test_kiwi_keeps_morphemes_that_carry_meaning():
    pytest.importorskip("kiwipiepy", reason="needs the extra ko")
    assert TOKENIZERS["kiwi"]()("정책을 폐기했다, Rotating 0.84") == [
        "정책",
        "폐기",
        "rotat",
        "0.84",
    ]
