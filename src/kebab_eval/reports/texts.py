"""Texts from a corpus, a golden set or a backend, made fit to be shown and to be encoded."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def visible(text: str) -> str:
    """Return a text with its control characters shown instead of obeyed: ESC becomes ``\\x1b``.

    Tabs and line ends stay. A lone surrogate, which no UTF-8 file can hold, becomes ``\\ud800``.
    """
    return _UNSEEN.sub(_shown, text)


def one_line(text: str) -> str:
    """Return a text in one line, its white space folded and its control characters shown."""
    return visible(" ".join(text.split()))


def encodable(json_text: str) -> str:
    """Return JSON that UTF-8 can hold: a lone surrogate as the escape that reads back as itself."""
    return json_text.encode("utf-8", "backslashreplace").decode("utf-8")


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
