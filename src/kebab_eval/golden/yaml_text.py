"""Texts as YAML scalars that read back as themselves, here and in any YAML 1.1 or 1.2 reader."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# What YAML 1.1 or 1.2 reads as something else than text, in any case of its letters.
_TAKEN = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LONGEST_KEY = 1000  # characters; a YAML reader looks no further for the colon of a plain key


def quoted(text: str) -> str:
    """Return a text in double quotes; letters of any script stay readable."""
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def word(text: str) -> str:
    """Return a text without quotes where no reader could take it for anything else."""
    plain = _WORD.fullmatch(text) and text.lower() not in _TAKEN
    return text if plain else quoted(text)


def key(text: str, indent: str) -> str:
    """Return ``text:`` as the key of a block mapping that stands at an indent."""
    written = word(text)
    return f"{written}:" if len(written) < _LONGEST_KEY else f"? {written}\n{indent}:"


def number(value: float) -> str:
    """Return a grade: whole ones without a point."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}"
