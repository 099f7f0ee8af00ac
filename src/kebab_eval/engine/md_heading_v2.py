"""The chunker ``md-heading-v2``: the chunks of v1, those above the target cut further.

v1 keeps code, tables, HTML and single sentences whole however long they are; an encoder reads only
so much of a chunk, and what holds everything is found for anything. Here a chunk above
``target_tokens`` is cut at its line ends. A line that does not fit by itself, or not under the
headings that it follows, is cut between sentences, else between words; a word above the target
between characters. What v1 cuts within the target stays as it is. The parts do not overlap, and a
heading stays with the start of what stands under it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import zip_longest

from kebab_eval.config import Chunking
from kebab_eval.engine.corpus import Document
from kebab_eval.engine.cuts import next_start, word_end
from kebab_eval.engine.md_heading import md_heading_v1
from kebab_eval.engine.piece import Piece
from kebab_eval.engine.sentences import sentence_starts
from kebab_eval.engine.tokens import Ruler, count_tokens


def md_heading_v2(document: Document, chunking: Chunking) -> list[Piece]:
    """Return the pieces of a document in reading order; empty for one without text."""
    text, target = document.text, chunking.target_tokens
    cut = md_heading_v1(document, chunking)
    pieces: list[Piece] = []
    for piece, after in zip_longest(cut, cut[1:]):
        if count_tokens(text[piece.start : piece.end]) <= target:
            pieces.append(piece)
            continue
        body = _body(document, piece)
        for start, end in _parts(text, piece.start, body, piece.end, target):
            if after is None or start < after.start:  # else the next chunk repeats all of it
                pieces.append(Piece(start, end, piece.heading_path))
    return pieces


def _parts(text: str, start: int, body: int, end: int, target: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a stretch, each of at most ``target`` tokens.

    Args:
        body: where the text under the leading headings starts; the first cut is behind it.
    """
    ruler = Ruler(text, start, end)
    while True:
        reach = ruler.reach(start, target)
        if reach >= end:
            yield start, end
            return
        held = body if start < body < reach else start  # headings alone may be above the target
        stop = _cut(text, held, reach)
        yield start, start + len(text[start:stop].rstrip())
        start = next_start(text, stop, end)


def _cut(text: str, start: int, reach: int) -> int:
    """Return the best place for a cut behind ``start`` and at most at ``reach``."""
    line = text.rfind("\n", start, reach + 1)
    if line >= 0 and text[start:line].strip():
        return line
    sentences = sentence_starts(text, start, reach)
    return sentences[-1] if len(sentences) > 1 else word_end(text, start, reach)


def _body(document: Document, piece: Piece) -> int:
    """Return where the first block of a piece starts that is no heading; its end without one."""
    blocks = document.markdown.blocks
    index = bisect_left(blocks, piece.start, key=lambda block: block.start)
    if index == len(blocks) or blocks[index].start > piece.start:
        return piece.start  # it starts within a block
    while index < len(blocks) and blocks[index].kind == "heading":
        index += 1
    return min(blocks[index].start, piece.end) if index < len(blocks) else piece.end
