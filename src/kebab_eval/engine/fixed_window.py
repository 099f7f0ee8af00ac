"""The chunker ``fixed-window-v1``: windows of one size over the text, whatever its structure.

The baseline that any other chunker has to beat. A window holds whole words, up to
``target_tokens``; the next one begins ``overlap_tokens`` before its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from kebab_eval.config import Chunking
from kebab_eval.engine.corpus import Document
from kebab_eval.engine.markdown import Block
from kebab_eval.engine.md_heading import cut_spans
from kebab_eval.engine.piece import Piece
from kebab_eval.engine.tokens import count_tokens

_WORD = re.compile(r"\S+")


def fixed_window_v1(document: Document, chunking: Chunking) -> list[Piece]:
    """Return the windows of a document in reading order; empty for one without text.

    The front matter is no text. Above a window stand the headings at or before its first character.
    """
    blocks = document.markdown.blocks
    if not blocks:
        return []
    words = list(_words(document.text, blocks[0].start, blocks[-1].end, chunking.target_tokens))
    sizes = [count_tokens(document.text[start:end]) for start, end in words]
    before = [0, *accumulate(sizes)]  # tokens before each word
    paths = _Paths(blocks)
    pieces = []
    first = 0
    while True:
        stop = first + 1
        while stop < len(words) and before[stop + 1] - before[first] <= chunking.target_tokens:
            stop += 1
        start, end = words[first][0], words[stop - 1][1]
        pieces.append(Piece(start, end, paths.above(start)))
        if stop == len(words):
            return pieces
        last, first = first, stop
        while first - 1 > last and before[stop] - before[first - 1] <= chunking.overlap_tokens:
            first -= 1


def _words(text: str, start: int, end: int, target: int) -> Iterator[tuple[int, int]]:
    for match in _WORD.finditer(text, start, end):
        if count_tokens(match[0]) <= target:
            yield match.span()
        else:
            yield from cut_spans(text, *match.span(), target)


class _Paths:
    """The headings above a place; asked for places that ascend."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self._left = [block for block in reversed(blocks) if block.kind == "heading"]
        self._above: list[Block] = []

    def above(self, place: int) -> tuple[str, ...]:
        while self._left and self._left[-1].start <= place:
            heading = self._left.pop()
            self._above = [other for other in self._above if other.level < heading.level]
            self._above.append(heading)
        return tuple(heading.heading for heading in self._above if heading.heading)
