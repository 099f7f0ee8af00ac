"""Where a text may be cut when no block ends there: between words, else between characters."""

from __future__ import annotations

import unicodedata


def word_end(text: str, start: int, at: int) -> int:
    """Return the last place up to ``at`` where a word ends, white space behind it taken in.

    Where ``text[start:at]`` is part of one long word, that is the last place between characters.
    """
    begun = word_start(text, start, at)
    return begun if text[start:begun].strip() else between_characters(text, start, at)


def word_start(text: str, start: int, at: int) -> int:
    """Return where the word at ``at`` starts, or ``start`` when it starts there or before.

    ``at`` itself is returned when no word is cut there.
    """
    if at == len(text) or text[at].isspace():
        return at
    while at > start and not text[at - 1].isspace():
        at -= 1
    return at


def between_characters(text: str, start: int, at: int) -> int:
    """Return ``at``, or a place before it that parts no accent or jamo from what it belongs to."""
    place = at
    while place > start and place < len(text) and _joins(text[place]):
        place -= 1
    return place if text[start:place].strip() else at


def next_start(text: str, at: int, end: int) -> int:
    """Return where what follows a cut at ``at`` starts: its word, or its line with the indent.

    ``end`` when nothing but white space follows.
    """
    place = at
    while place < end and text[place].isspace():
        place += 1
    line = text.rfind("\n", at, place) + 1
    return line if line and place < end else place


def _joins(character: str) -> bool:
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"
