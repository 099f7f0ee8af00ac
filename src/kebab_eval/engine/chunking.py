"""Chunks: what a search returns, where it stands in its document, and how its id is made.

A chunker is a function from a document to the spans that it cuts (:class:`Piece`). This module
makes chunks of them and holds the registry; a chunker is one file and one line in :data:`CHUNKERS`.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kebab_eval.config import Chunking
from kebab_eval.engine.corpus import Document
from kebab_eval.engine.fixed_window import fixed_window_v1
from kebab_eval.engine.md_heading import md_heading_v1
from kebab_eval.engine.md_heading_v2 import md_heading_v2
from kebab_eval.engine.piece import Piece

SLUG_LENGTH = 40

Chunker = Callable[[Document, Chunking], list[Piece]]

CHUNKERS: dict[str, Chunker] = {
    "md-heading-v1": md_heading_v1,
    "md-heading-v2": md_heading_v2,
    "fixed-window-v1": fixed_window_v1,
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document that can be found.

    Args:
        chunk_id: ``<doc_id>#<heading slug>:<8 hex>``, see :func:`chunk_ids`.
        start, end: characters of ``Document.text``; ``text == document.text[start:end]``.
        heading_path: the plain texts of the headings above it, outermost first; bare headings left
            out.
        title: the document's.
    """

    chunk_id: str
    doc_id: str
    start: int
    end: int
    text: str
    heading_path: tuple[str, ...]
    title: str

    @property
    def indexed_text(self) -> str:
        """Return what is indexed and embedded: the title, the heading path, and the text, by line.

        A chunk from the middle of a section does not name its subject; its headings do. A title
        that is also the first heading stands once. Snippets are of ``text`` alone.
        """
        above = [self.title, *self.heading_path]
        return "\n".join([*dict.fromkeys(above), self.text])


def chunk_documents(documents: Iterable[Document], chunking: Chunking) -> tuple[Chunk, ...]:
    """Return the chunks of every document, in the order of the documents and of their text."""
    cut = CHUNKERS[chunking.version]
    chunks: list[Chunk] = []
    for document in documents:
        pieces = cut(document, chunking)
        ids = chunk_ids(document, pieces, chunking.version)
        chunks.extend(
            Chunk(
                chunk_id,
                document.doc_id,
                piece.start,
                piece.end,
                document.text[piece.start : piece.end],
                piece.heading_path,
                document.title,
            )
            for chunk_id, piece in zip(ids, pieces, strict=True)
        )
    return tuple(chunks)


def chunk_ids(document: Document, pieces: Iterable[Piece], version: str) -> list[str]:
    """Return ``<doc_id>#<heading slug>:<8 hex>`` for each piece of a document.

    The hex digits are the first of sha256 over the chunker's version and the piece's text, so an id
    changes with the content and the chunker, and sizes matter only through the text. The same text
    twice under one heading (or two texts with the same digits) would be one id: the second in
    reading order ends in ``-2``, the third in ``-3``.
    """
    seen: Counter[str] = Counter()
    ids = []
    for piece in pieces:
        text = document.text[piece.start : piece.end]
        digest = hashlib.sha256(f"{version}\n{text}".encode()).hexdigest()[:8]
        slug = heading_slug(piece.heading_path[-1]) if piece.heading_path else "_top"
        base = f"{document.doc_id}#{slug}:{digest}"
        seen[base] += 1
        ids.append(base if seen[base] == 1 else f"{base}-{seen[base]}")
    return ids


def heading_slug(heading: str) -> str:
    """Return a heading as a readable part of an id: letters and digits of any script, ``-``
    between.

    NFKC and lower case; at most ``SLUG_LENGTH`` characters, cut after a whole word where one ends
    in the second half; ``_`` for a heading without a letter.
    """
    kept = "".join(
        character if unicodedata.category(character)[0] in "LMN" else " "
        for character in unicodedata.normalize("NFKC", heading).lower()
    )
    slug = "-".join(unicodedata.normalize("NFC", kept).split())
    if len(slug) > SLUG_LENGTH:
        cut = slug.rfind("-", SLUG_LENGTH // 2, SLUG_LENGTH + 1)
        slug = slug[: cut if cut > 0 else SLUG_LENGTH]
    return slug or "_"
