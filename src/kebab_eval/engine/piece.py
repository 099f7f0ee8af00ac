"""What a chunker returns: a span of a document and the headings above it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters ``start`` to ``end`` of a document's text, and the plain texts of its headings."""

    start: int
    end: int
    heading_path: tuple[str, ...]
