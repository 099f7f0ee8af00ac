"""The part of a chunk that is shown with a hit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

SNIPPET_CHARS = 240
_MAX_TERMS = 64


def snippet(text: str, terms: Sequence[str], length: int = SNIPPET_CHARS) -> str:
    """Return the part of a text that holds most of the terms, white space folded, on one line.

    Args:
        terms: the query's terms as the tokenizer gives them (stems and bigrams are found as parts
            of words); without one of them in the text its beginning is shown.
        length: in characters, the marks ``…`` of a cut not counted.
    """
    folded = " ".join(text.split())
    if len(folded) <= length:
        return folded
    start = _densest(folded, terms, length)
    if start > 0:  # begin with a whole word where one begins near
        space = folded.find(" ", start, start + 20)
        start = space + 1 if space >= 0 else start
    end = min(start + length, len(folded))
    if end < len(folded):
        space = folded.rfind(" ", end - 20, end)
        end = space if space >= 0 else end
    return ("…" if start else "") + folded[start:end] + ("…" if end < len(folded) else "")


def _densest(text: str, terms: Sequence[str], length: int) -> int:
    """Return where the window with the most different terms begins; the first of equals."""
    wanted = [term for term in dict.fromkeys(terms) if term][:_MAX_TERMS]
    if not wanted:
        return 0
    # Longest first, behind a look-ahead: overlapping bigrams are all found.
    pattern = "|".join(
        re.escape(term) for term in sorted(wanted, key=lambda term: (-len(term), term))
    )
    found = [
        (match.start(), match.group(1).lower())
        for match in re.finditer(f"(?=({pattern}))", text, re.IGNORECASE)
    ]
    best_start, best_count = 0, 0
    inside: Counter[str] = Counter()
    held = last = 0  # how many different terms are inside; the first that is behind the window
    for start, term in found:
        while last < len(found) and found[last][0] + len(found[last][1]) <= start + length:
            held += inside[found[last][1]] == 0
            inside[found[last][1]] += 1
            last += 1
        if held > best_count:
            best_start, best_count = start, held
        inside[term] -= 1
        held -= inside[term] == 0
    lead = length // 8  # a little of what comes before the first term
    return max(0, min(best_start - lead, len(text) - length))
