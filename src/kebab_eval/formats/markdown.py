"""The blocks of a Markdown text with their exact character spans.

markdown-it gives each block the lines that it covers; spans here are whole lines without the blank
space after them. Inline marks are not parsed, except in headings, whose plain text is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

Kind = Literal["heading", "prose", "container", "whole"]
_CONTAINERS = frozenset(
    {"bullet_list_open", "ordered_list_open", "list_item_open", "blockquote_open"}
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the text.

    Args:
        kind: ``heading``; ``prose``, which may be cut between sentences; ``container`` (a list, a
            list item, a quote), which may be cut between its children; ``whole`` (code, a table,
            HTML, link definitions), which is never cut.
        start, end: the span in the text; it starts at the start of a line and ends behind the last
            character that is no white space.
        level: 1..6 for a heading, else 0.
        heading: the plain text of a heading; empty for other kinds and for a bare ``#``.
        children: the blocks within a container.
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    heading: str = ""
    children: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Markdown:
    """The top-level blocks in order, and the YAML text of the front matter, None without one.

    Together the blocks hold every character outside the front matter that is not white space.
    """

    blocks: tuple[Block, ...]
    front_matter: str | None = None


def _parser(front_matter: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    if front_matter:
        parser.use(front_matter_plugin)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


_WITH_FRONT_MATTER = _parser(front_matter=True)
_WITHOUT_FRONT_MATTER = _parser(front_matter=False)
_INLINE = MarkdownIt("commonmark")


def parse_markdown(text: str) -> Markdown:
    """Return the blocks of a text with LF line ends (CommonMark with tables and front matter)."""
    # The plugin takes `--- anything` for an opening marker; front matter opens with bare dashes.
    bare = not text.partition("\n")[0].rstrip().strip("-")
    tokens = (_WITH_FRONT_MATTER if bare else _WITHOUT_FRONT_MATTER).parse(text)
    lines = _Lines(text)
    blocks: list[Block] = []
    front_matter: str | None = None
    line = 0
    for token, inner, (first, stop) in _siblings(tokens, 0):
        blocks.extend(lines.gap(line, first))
        line = stop
        if token.type == "front_matter":
            front_matter = token.content
        else:
            blocks.extend(_block(lines, token, inner, (first, stop)))
    blocks.extend(lines.gap(line, lines.count))
    return Markdown(tuple(blocks), front_matter)


class _Lines:
    """Turns lines into character spans."""

    def __init__(self, text: str) -> None:
        self.text = text
        lengths = [len(line) + 1 for line in text.split("\n")]
        self.starts = [0, *accumulate(lengths)]
        self.starts[-1] = len(text)
        self.count = len(lengths)

    def span(self, start_line: int, end_line: int) -> tuple[int, int] | None:
        """Return the span of the lines without blank space after it; None when all are blank."""
        start, stop = self.starts[start_line], self.starts[min(end_line, self.count)]
        held = self.text[start:stop]
        if not held.strip():
            return None
        blank_before = len(held) - len(held.lstrip())
        start += held.rfind("\n", 0, blank_before) + 1
        return start, self.starts[start_line] + len(held.rstrip())

    def gap(self, start_line: int, end_line: int) -> list[Block]:
        """Return what stands in lines that no token covers: link reference definitions."""
        span = self.span(start_line, end_line) if start_line < end_line else None
        return [Block("whole", *span)] if span else []


def _siblings(
    tokens: Sequence[Token], level: int
) -> list[tuple[Token, Sequence[Token], tuple[int, int]]]:
    """Return each block at a nesting level: its token, the tokens within it, its lines."""
    found: list[tuple[Token, Sequence[Token], tuple[int, int]]] = []
    for index, token in enumerate(tokens):
        if token.level == level and token.nesting >= 0 and token.map is not None:
            stop = index + 1
            while token.nesting == 1 and tokens[stop].level != level:
                stop += 1
            found.append((token, tokens[index + 1 : stop], (token.map[0], token.map[1])))
    return found


def _block(
    lines: _Lines, token: Token, inner: Sequence[Token], reach: tuple[int, int]
) -> list[Block]:
    """Return the block of a token over the lines ``reach``; none when they are blank."""
    span = lines.span(*reach)
    if span is None:
        return []
    if token.type == "heading_open":
        return [Block("heading", *span, int(token.tag[1]), _plain(inner[0].content))]
    if token.type == "paragraph_open":
        return [Block("prose", *span)]
    if token.type in _CONTAINERS:
        children = _children(lines, _siblings(inner, token.level + 1), reach)
        return [Block("container", *span, children=children)]
    return [Block("whole", *span)]


def _children(
    lines: _Lines,
    siblings: Sequence[tuple[Token, Sequence[Token], tuple[int, int]]],
    reach: tuple[int, int],
) -> tuple[Block, ...]:
    """Return a container's children; each reaches to the next, so that nothing falls between."""
    starts = [reach[0], *(first for _, _, (first, _) in siblings[1:]), reach[1]]
    blocks: list[Block] = []
    for (token, inner, _), first, stop in zip(siblings, starts, starts[1:], strict=False):
        blocks.extend(_block(lines, token, inner, (first, stop)))
    return tuple(blocks)


def _plain(content: str) -> str:
    """Return a heading without its inline marks, on one line."""
    parts: list[str] = []
    for token in _INLINE.parseInline(content)[0].children or []:
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type != "html_inline":
            parts.append(token.content)
    return " ".join("".join(parts).split())
