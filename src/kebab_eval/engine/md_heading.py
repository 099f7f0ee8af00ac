"""The chunkers ``md-heading-v1`` and ``-v2``: sections by heading, packed from whole blocks.

- A heading opens a section; what stands before the first heading is a section of its own. A heading
  with nothing under it goes with the section that follows (at the end of a document: with the one
  before).
- The blocks of a section are packed into chunks of up to ``target_tokens``. A list or a quote above
  the target is cut between its items, a paragraph above it between its sentences. Code, tables,
  HTML and single sentences stay whole in v1, however long they are: half a table or half a function
  is worse evidence than a long chunk. v2 cuts them too, because an encoder reads no more than its
  window: between lines, a line above the target between words, a word above it between characters.
- A chunk that continues a section repeats the end of the one before: whole blocks, items or
  sentences, up to ``overlap_tokens``, and only as far as the chunk stays within the target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kebab_eval.config import Chunking
from kebab_eval.engine.corpus import Document
from kebab_eval.engine.markdown import Block
from kebab_eval.engine.piece import Piece
from kebab_eval.engine.sentences import sentence_starts
from kebab_eval.engine.tokens import count_tokens


@dataclass(slots=True)
class _Section:
    heading_path: tuple[str, ...]
    headings: list[Block]
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A span that is never cut, and where within it an overlap may begin."""

    start: int
    end: int
    tokens: int
    resumes: tuple[int, ...]


_Cut = Callable[[str, Block, int], list[_Unit]]

_LINE = re.compile(r"[^\n]*[^\s][^\n]*")
_WORD = re.compile(r"\S+")


def md_heading_v1(document: Document, chunking: Chunking) -> list[Piece]:
    """Return the pieces of a document in reading order; empty for one without text."""
    return _pieces(document, chunking, _units)


def md_heading_v2(document: Document, chunking: Chunking) -> list[Piece]:
    """Return the pieces of a document in reading order, none above the target but by its headings.

    What v1 keeps within the target is cut as v1 does it.
    """
    return _pieces(document, chunking, _short_units)


def _pieces(document: Document, chunking: Chunking, cut: _Cut) -> list[Piece]:
    pieces: list[Piece] = []
    for section in _sections(document.markdown.blocks):
        if section.blocks:
            pieces.extend(_pack(document.text, section, chunking, cut))
            continue
        start, end = section.headings[0].start, section.headings[-1].end
        if pieces:
            pieces[-1] = Piece(pieces[-1].start, end, pieces[-1].heading_path)
        else:
            pieces.append(Piece(start, end, section.heading_path))
    return pieces


def _sections(blocks: tuple[Block, ...]) -> Iterator[_Section]:
    """Yield the sections in order; only the last may have headings and no blocks."""
    above: list[Block] = []
    section = _Section((), [])
    for block in blocks:
        if block.kind != "heading":
            section.blocks.append(block)
            continue
        above = [heading for heading in above if heading.level < block.level] + [block]
        path = tuple(heading.heading for heading in above if heading.heading)
        if section.blocks:
            yield section
            section = _Section(path, [block])
        else:
            section.heading_path = path
            section.headings.append(block)
    if section.blocks or section.headings:
        yield section


def _pack(text: str, section: _Section, chunking: Chunking, cut: _Cut) -> Iterator[Piece]:
    units = [unit for block in section.blocks for unit in cut(text, block, chunking.target_tokens)]
    if section.headings:  # a heading is never a chunk of its own
        start = section.headings[0].start
        tokens = count_tokens(text[start : units[0].start]) + units[0].tokens
        units[0] = _Unit(start, units[0].end, tokens, units[0].resumes)
    start, tokens = units[0].start, units[0].tokens
    packed = [units[0]]
    for unit in units[1:]:
        if tokens + unit.tokens <= chunking.target_tokens:
            packed.append(unit)
            tokens += unit.tokens
            continue
        yield Piece(start, packed[-1].end, section.heading_path)
        room = min(chunking.overlap_tokens, chunking.target_tokens - unit.tokens)
        overlap = _overlap(text, start, packed, room)
        start = unit.start if overlap is None else overlap
        tokens = count_tokens(text[start : unit.start]) + unit.tokens
        packed = [unit]
    yield Piece(start, packed[-1].end, section.heading_path)


def _overlap(text: str, start: int, packed: list[_Unit], room: int) -> int | None:
    """Return where the end of a chunk that is repeated begins, None when nothing whole fits."""
    best = None
    end = packed[-1].end
    for unit in reversed(packed):
        for resume in reversed(unit.resumes):
            if resume <= start or count_tokens(text[resume:end]) > room:
                return best
            best = resume
    return best


def _units(text: str, block: Block, target: int) -> list[_Unit]:
    tokens = count_tokens(text[block.start : block.end])
    if block.kind == "prose":
        starts = sentence_starts(text, block.start, block.end)
        if tokens <= target:
            return [_Unit(block.start, block.end, tokens, tuple(starts))]
        ends = [*starts[1:], block.end]
        return [_unit(text, start, end) for start, end in zip(starts, ends, strict=True)]
    if tokens > target and block.children:
        return [unit for child in block.children for unit in _units(text, child, target)]
    resumes = tuple(child.start for child in block.children) or (block.start,)
    return [_Unit(block.start, block.end, tokens, resumes)]


def _short_units(text: str, block: Block, target: int) -> list[_Unit]:
    units = []
    for unit in _units(text, block, target):
        if unit.tokens <= target:
            units.append(unit)
        else:
            units += [_unit(text, *span) for span in cut_spans(text, unit.start, unit.end, target)]
    return units


def cut_spans(text: str, start: int, end: int, target: int) -> Iterator[tuple[int, int]]:
    """Yield spans of at most ``target`` tokens: lines, else words, else characters."""
    for pattern in (_LINE, _WORD):
        parts = [match.span() for match in pattern.finditer(text, start, end)]
        if len(parts) > 1:
            for part in parts:
                if count_tokens(text[slice(*part)]) <= target:
                    yield part
                else:
                    yield from cut_spans(text, *part, target)
            return
    # A token is at least one character of one word, so this many never hold more.
    for place in range(start, end, target):
        yield place, min(place + target, end)


def _unit(text: str, start: int, end: int) -> _Unit:
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    return _Unit(start, end, count_tokens(text[start:end]), (start,))
