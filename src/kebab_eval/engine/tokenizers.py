"""The words that BM25 counts.

A tokenizer is a function from a text to its terms, in order and with repeats; documents and queries
go through the same one. One that needs a model is made by a factory, so that importing this module
loads nothing; a tokenizer is one function and one line in :data:`TOKENIZERS`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import Any

from kebab_eval.errors import UsageError

Tokenizer = Callable[[str], list[str]]

_CJK = (
    r"\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
)
_TERM = re.compile(
    rf"(?P<cjk>[{_CJK}]+)"  # Hangul, Han, Kana: written without dependable spaces
    r"|(?P<number>\d+(?:[.,:]\d+)+)"  # 0.84, 3,100, 10:30 are one term
    rf"|(?P<word>(?:(?![{_CJK}_])\w)+)"
)
# What kiwi's tags say carries meaning: nouns, verbs, adjectives, roots, foreign words, Han,
# numbers.
_KIWI_KEPT = ("NN", "NR", "VV", "VA", "XR", "SL", "SH", "SN")


def bigram() -> Tokenizer:
    """Return the default tokenizer: character bigrams for Hangul, Han and Kana, stemmed words for
    Latin.

    NFKC and lower case first, so that NFD text and full-width letters are the same terms. A run of
    one such character is kept as it is. Words of ASCII letters are stemmed (Snowball English);
    words with a digit (``p99``, ``0.84``) stay whole. ``검색을 rotating`` gives the terms
    ``검색``, ``색을`` and ``rotat``.
    """
    stem = _stemmer()

    def tokenize(text: str) -> list[str]:
        terms: list[str] = []
        for match in _TERM.finditer(_folded(text)):
            term = match.group()
            if match.lastgroup == "cjk" and len(term) > 2:
                terms.extend(term[i : i + 2] for i in range(len(term) - 1))
            else:
                terms.append(term)
        return stem(terms)

    return tokenize


def whitespace() -> Tokenizer:
    """Return the baseline: NFKC, lower case, split at white space, nothing else."""
    return lambda text: _folded(text).split()


def kiwi() -> Tokenizer:
    """Return Korean morphemes (kiwipiepy) that carry meaning; Latin words as in :func:`bigram`.

    Raises:
        UsageError: the extra ``ko`` is not installed.
    """
    try:
        analyser: Any = import_module("kiwipiepy").Kiwi()
    except ImportError as reason:
        message = (
            "lexical.tokenizer: kiwi needs kiwipiepy, which is not installed; "
            'pip install "kebab-eval[ko]", or use bigram'
        )
        raise UsageError(message) from reason
    stem = _stemmer()
    lock = Lock()  # the analyser keeps state between calls

    def tokenize(text: str) -> list[str]:
        with lock:
            morphemes = analyser.tokenize(_folded(text))
        return stem([token.form for token in morphemes if token.tag.startswith(_KIWI_KEPT)])

    return tokenize


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "bigram": bigram,
    "whitespace": whitespace,
    "kiwi": kiwi,
}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def _stemmer() -> Callable[[list[str]], list[str]]:
    """Return a function that stems the ASCII words of a list and leaves the other terms alone."""
    snowball: Any = import_module("Stemmer").Stemmer("english")
    lock = Lock()  # PyStemmer is not re-entrant

    def stem(terms: list[str]) -> list[str]:
        with lock:
            return [
                snowball.stemWord(term) if term.isascii() and term.isalpha() else term
                for term in terms
            ]

    return stem
