"""The chunker ``md-heading-v1``: sections by heading, packed from whole blocks.

- A heading opens a section; what stands before the first heading is a section of its own. A heading
  with nothing under it goes with the section that follows (at the end of a document: with the one
  before).
- The blocks of a section are packed into chunks of up to ``target_tokens``. A list or a quote above
  the target is cut between its items, a paragraph above it between its sentences. Code, tables,
  HTML and single sentences stay whole however long they are: half a table or half a function is
  worse evidence than a long chunk. (:mod:`kebab_eval.engine.md_heading_v2` cuts them too.)
- A chunk that continues a section repeats the end of the one before: whole blocks, items or
  sentences, up to ``overlap_tokens``, and only as far as the chunk stays within the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kebab_eval.config import Chunking
from kebab_eval.engine.corpus import Document
from kebab_eval.engine.piece import Piece
from kebab_eval.engine.sentences import sentence_starts
from kebab_eval.engine.tokens import count_tokens
from kebab_eval.formats.markdown import Block


@dataclass(slots=True)
class _Section:
    """Blocks under one heading; ``opening`` is the span of the headings that it starts with."""

    heading_path: tuple[str, ...]
    opening: tuple[int, int] | None = None
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A span that is never cut, and where within it an overlap may begin."""

    start: int
    end: int
    tokens: int
    resumes: tuple[int, ...]


def md_heading_v1(document: Document, chunking: Chunking) -> list[Piece]:
    """Return the pieces of a document in reading order; empty for one without text."""
    pieces: list[Piece] = []
    for section in _sections(document.markdown.blocks):
        if section.blocks:
            pieces.extend(_pack(document.text, section, chunking))
        elif section.opening and pieces:
            last = pieces[-1]
            pieces[-1] = Piece(last.start, section.opening[1], last.heading_path)
        elif section.opening:
            pieces.append(Piece(*section.opening, section.heading_path))
    return pieces


def below(above: Sequence[Block], heading: Block) -> list[Block]:
    """Return the headings above what follows a heading, given those above it; itself last."""
    return [*(outer for outer in above if outer.level < heading.level), heading]


def _sections(blocks: tuple[Block, ...]) -> Iterator[_Section]:
    """Yield the sections in order; only the last may have headings and no blocks."""
    above: list[Block] = []
    section = _Section(())
    for block in blocks:
        if block.kind != "heading":
            section.blocks.append(block)
            continue
        above = below(above, block)
        path = tuple(heading.heading for heading in above if heading.heading)
        start = block.start
        if section.blocks:
            yield section
        elif section.opening:
            start = section.opening[0]
        section = _Section(path, (start, block.end))
    if section.blocks or section.opening:
        yield section


def _pack(text: str, section: _Section, chunking: Chunking) -> Iterator[Piece]:
    units = [
        unit for block in section.blocks for unit in _units(text, block, chunking.target_tokens)
    ]
    if section.opening:  # a heading is never a chunk of its own
        start = section.opening[0]
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
    counted, tokens = packed[-1].end, 0
    for unit in reversed(packed):
        for resume in reversed(unit.resumes):
            if resume <= start:
                return best
            tokens += count_tokens(text[resume:counted])  # no token crosses a resume
            if tokens > room:
                return best
            best = counted = resume
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


def _unit(text: str, start: int, end: int) -> _Unit:
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    return _Unit(start, end, count_tokens(text[start:end]), (start,))
