"""Where sentences start in a paragraph: Korean, English and mixed."""

from __future__ import annotations

import re

# The end mark, closing quotes or brackets, white space; then anything but a small Latin letter, so
# that "e.g. this" and "vs. that" do not end a sentence. Full-width marks need no space after them.
_BOUNDARY = re.compile(r"[.!?…]+[\"'”’)\]*_`]*\s+(?![a-z])|[。！？]+[”’」』）]*\s*")


def sentence_starts(text: str, start: int, end: int) -> list[int]:
    """Return where the sentences of ``text[start:end]`` begin; the first is ``start``."""
    found = [start]
    found.extend(match.end() for match in _BOUNDARY.finditer(text, start, end) if match.end() < end)
    return found
