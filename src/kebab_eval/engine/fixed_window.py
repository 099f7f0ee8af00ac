"""The chunker ``fixed-window-v1``: windows of one size over the text, blind to its structure.

- A window holds as many whole words as fit into ``target_tokens``. The next starts
  ``target_tokens - overlap_tokens`` further on, at the start of a word, and always reaches further
  than the one before. A word that is above the target is cut between characters.
- The last window is the first that reaches the end of the text: none is a mere tail of another.
- Front matter is in no window. The headings of a window are those at or before its start.

It is the baseline that any other chunker has to beat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kebab_eval.config import Chunking
from kebab_eval.engine.corpus import Document
from kebab_eval.engine.cuts import between_characters, word_end, word_start
from kebab_eval.engine.md_heading import below
from kebab_eval.engine.piece import Piece
from kebab_eval.engine.tokens import Ruler
from kebab_eval.formats.markdown import Block

_SPACE = re.compile(r"\s+")


def fixed_window_v1(document: Document, chunking: Chunking) -> list[Piece]:
    """Return the pieces of a document in reading order; empty for one without text."""
    blocks = document.markdown.blocks
    if not blocks:
        return []
    text, start, end = document.text, blocks[0].start, blocks[-1].end
    windows = _Windows(text, Ruler(text, start, end), chunking)
    headings = [block for block in blocks if block.kind == "heading"]
    above: Sequence[Block] = ()
    passed = 0
    pieces = []
    while True:
        while passed < len(headings) and headings[passed].start <= start:
            above = below(above, headings[passed])
            passed += 1
        path = tuple(heading.heading for heading in above if heading.heading)
        stop = windows.stop(start)
        pieces.append(Piece(start, start + len(text[start:stop].rstrip()), path))
        if stop >= end:
            return pieces
        start = windows.following(start, stop)


@dataclass(frozen=True, slots=True)
class _Windows:
    text: str
    ruler: Ruler
    chunking: Chunking

    def stop(self, start: int) -> int:
        """Return where the window from ``start`` ends: there the next word starts."""
        return word_end(self.text, start, self.ruler.reach(start, self.chunking.target_tokens))

    def following(self, start: int, stop: int) -> int:
        """Return where the window after ``text[start:stop]`` starts."""
        text = self.text
        at = self.ruler.reach(start, self.chunking.target_tokens - self.chunking.overlap_tokens)
        begun = word_start(text, start, at)
        if begun == start:  # one word is longer than the step
            begun = _next_word(text, at, stop)
            if begun == stop and not text[stop - 1].isspace():  # and longer than the window
                begun = between_characters(text, start, at)
        while begun < stop and self.stop(begun) <= stop:  # a long word is next
            begun = _next_word(text, begun, stop)
        return begun


def _next_word(text: str, at: int, stop: int) -> int:
    space = _SPACE.search(text, at, stop)
    return space.end() if space else stop
