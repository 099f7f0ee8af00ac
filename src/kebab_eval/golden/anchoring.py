"""From today's chunk ids to spans: a quote for each expected chunk that names no other chunk."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kebab_eval.golden.anchors import HALF, Corpus, chunk_shares
from kebab_eval.golden.spans import Folded, locate
from kebab_eval.records import GoldenQuery, Passage, Span

FEWEST, MOST = 4, 30
"""Words of a quote."""
_SENTENCE = re.compile(r"(?<=[.!?。！？])[\"'”’)\]*_`]*\s+|\n\s*\n|\n(?=\s*(?:[-*+>|#]|\d+[.)]\s))")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Anchoring:
    """What became of one query: its new spans, and the chunks that got none.

    ``shared`` holds the chunks whose quote stands in another chunk too, as overlaps make it.
    """

    query_id: str
    spans: tuple[Span, ...]
    lost: tuple[str, ...]
    shared: tuple[str, ...]


def anchor_query(query: GoldenQuery, corpus: Corpus) -> Anchoring:
    """Return a span for each expected chunk of a query.

    No program knows which sentence of a chunk answers. The quote is one that holds a
    ``must_contain`` text, or else stands in the middle of the chunk; of 4 to 30 words, found at one
    place of its document, and, where there is such a one, in no other chunk.
    """
    passages = {p.chunk_id: p for listed in corpus.passages.values() for p in listed}
    by_nfc = {unicodedata.normalize("NFC", chunk): p for chunk, p in passages.items()}
    spans: list[Span] = []
    lost, shared = [], []
    for chunk_id, grade in query.judgments.chunk.items():
        passage = by_nfc.get(unicodedata.normalize("NFC", chunk_id))
        found = None if passage is None else _best(passage, query.must_contain, corpus)
        if found is None:
            lost.append(chunk_id)
            continue
        span, alone = found
        spans.append(replace(span, grade=grade))
        if not alone:
            shared.append(chunk_id)
    return Anchoring(query.query_id, tuple(spans), tuple(lost), tuple(shared))


def as_fields(span: Span) -> Mapping[str, Any]:
    """Return a span as it is written in a file."""
    return span.meaning()


def _best(passage: Passage, wanted: Sequence[str], corpus: Corpus) -> tuple[Span, bool] | None:
    """Return the best quote of a chunk, and whether it names that chunk alone."""
    second: Span | None = None
    for quote in _candidates(passage.text, wanted):
        span = _placed(Span(passage.doc_id, quote), passage, corpus)
        if span is None:
            continue
        holders = {chunk for chunk, held in chunk_shares(span, corpus) if held >= HALF}
        if holders == {passage.chunk_id}:
            return span, True
        if second is None and passage.chunk_id in holders:
            second = span
    return None if second is None else (second, False)


def _placed(span: Span, passage: Passage, corpus: Corpus) -> Span | None:
    """Return the span with its occurrence, where its quote stands in the document several times."""
    document = corpus.documents.get(unicodedata.normalize("NFC", span.doc))
    if document is None:
        return span
    places = locate(span, document)
    if len(places) < 2 or passage.start is None or passage.end is None:
        return span if places else None
    for number, (start, end) in enumerate(places, 1):
        if passage.start <= start and end <= passage.end:
            return replace(span, occurrence=number)
    return None


def _candidates(text: str, wanted: Sequence[str]) -> Iterator[str]:
    """Yield quotes, the most telling first: with a wanted text, then nearest to the middle."""
    parts: list[tuple[int, str]] = []
    start = 0
    for match in [*_SENTENCE.finditer(text), None]:
        end = len(text) if match is None else match.start()
        quote = _trimmed(text[start:end])
        if quote:
            parts.append((start, quote))
        start = end if match is None else match.end()
    middle = len(text) / 2
    folded = [unicodedata.normalize("NFC", one) for one in wanted]

    def order(part: tuple[int, str]) -> tuple[bool, bool, float]:
        begin, quote = part
        holds = any(one in unicodedata.normalize("NFC", quote) for one in folded)
        heading = quote.lstrip().startswith("#")
        return not holds, heading, abs(begin + len(quote) / 2 - middle)

    yield from (quote for _, quote in sorted(parts, key=order))
    whole = _trimmed(text)
    if whole and all(whole != quote for _, quote in parts):
        yield whole


def _trimmed(part: str) -> str:
    """Return a part as a quote on one line; empty when it says too little to be found by."""
    words = _WORD.findall(part)
    if words and words[0] in ("-", "*", "+", ">", "|"):
        words = words[1:]
    quote = " ".join(words[:MOST])
    letters = len(Folded(quote).text.replace(" ", ""))
    return quote if (len(words) >= FEWEST and letters >= 8) or letters >= 16 else ""
