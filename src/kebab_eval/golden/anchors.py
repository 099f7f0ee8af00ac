"""Spans become the chunk ids of one run's chunker.

A chunk is relevant when it contains the span or, for a span that a boundary cuts, at least half of
it. That is a share of the span and never of the chunk (as intersection over union would have it),
so a long chunk is as good as a short one. Where no chunk holds half, because the span is longer
than two chunks, those that hold the most of it are relevant: every span that stands in its document
has a chunk.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from kebab_eval.errors import Fault, nearest
from kebab_eval.golden.spans import Document, Folded, Place, locate, share, solid
from kebab_eval.records import (
    GoldenQuery,
    GoldenSet,
    Hit,
    Judgments,
    Listing,
    Passage,
    QueryResult,
    Span,
)

HALF = 0.5


class Corpus:
    """What a system lists, ready for spans to be found in it.

    Documents and chunks are folded once, when they are first needed. Ids are compared in NFC.
    """

    def __init__(self, listing: Listing) -> None:
        self.documents = {_nfc(name): Document(text) for name, text in listing.documents.items()}
        self.passages: dict[str, list[Passage]] = {}
        for passage in listing.passages:
            self.passages.setdefault(_nfc(passage.doc_id), []).append(passage)
        self._folded: dict[str, str] = {}

    def __contains__(self, doc: str) -> bool:
        return doc in self.documents or doc in self.passages

    @property
    def ids(self) -> list[str]:
        return sorted({*self.documents, *self.passages})

    def folded(self, passage: Passage) -> str:
        """Return a chunk's text, folded."""
        if passage.chunk_id not in self._folded:
            self._folded[passage.chunk_id] = Folded(passage.text).text
        return self._folded[passage.chunk_id]


def resolve_spans(golden: GoldenSet, listing: Listing) -> tuple[GoldenSet, list[Fault]]:
    """Return a golden set whose spans name the chunks that hold them, and the spans that fail.

    The judged chunks of a query with spans are then those, each with the highest grade of the spans
    that it holds; queries without spans, and the digest, stay as they are.

    Returns:
        The set, and a fault (code ``anchor``) for each span that stands nowhere.
    """
    corpus = Corpus(listing)
    faults: list[Fault] = []
    queries = tuple(
        _resolved(query, [_chunks(span, corpus, faults) for span in query.spans])
        if query.spans
        else query
        for query in golden.queries
    )
    return replace(golden, queries=queries), faults


def _resolved(query: GoldenQuery, chunks: Sequence[tuple[str, ...]]) -> GoldenQuery:
    spans = tuple(
        replace(span, chunk_ids=found) for span, found in zip(query.spans, chunks, strict=True)
    )
    grades: dict[str, float] = {}
    for span in spans:
        for chunk_id in span.chunk_ids or ():
            grades[chunk_id] = max(span.grade, grades.get(chunk_id, 0.0))
    judgments = Judgments(chunk=grades, doc=query.judgments.doc)
    return replace(query, spans=spans, judgments=judgments)


def _chunks(span: Span, corpus: Corpus, faults: list[Fault]) -> tuple[str, ...]:
    """Return the chunks that hold a span, in reading order; a span without one is a fault."""
    fault = _fault(span, corpus)
    shares = [] if fault else list(chunk_shares(span, corpus))
    best = max((held for _, held in shares), default=0.0)
    if best > 0:
        least = min(HALF, best)
        return tuple(dict.fromkeys(chunk_id for chunk_id, held in shares if held >= least))
    message = fault or f"no chunk of {span.doc!r} holds any of {_shown(span)}"
    faults.append(Fault(span.place, message, "anchor"))
    return ()


def chunk_shares(span: Span, corpus: Corpus) -> Iterator[tuple[str, float]]:
    """Yield (chunk id, share) for each chunk of the span's document, in reading order.

    The share is that of the span which the chunk holds, at the span's best place in it; for a
    section, how much of the chunk lies in it, or 1 where the chunk holds all of it.
    """
    doc = _nfc(span.doc)
    passages = corpus.passages.get(doc, [])
    document = corpus.documents.get(doc)
    places = locate(span, document) if document is not None else []
    quote = _folded_quote(span.quote)
    for passage in passages:
        if document is not None and passage.start is not None and passage.end is not None:
            reach = (passage.start, passage.end)
            held = max((_overlap(p, reach, document, span) for p in places), default=0.0)
        elif document is not None:
            text = corpus.folded(passage)
            held = max((share(_between(document, place), text) for place in places), default=0.0)
        else:
            held = share(quote, corpus.folded(passage))
        yield passage.chunk_id, held


def _overlap(place: Place, reach: Place, document: Document, span: Span) -> float:
    """Return the share of a place that lies within a chunk's reach, by characters but blanks."""
    start, end = max(place[0], reach[0]), min(place[1], reach[1])
    if start >= end:
        return 0.0
    common = _solid(document, (start, end))
    if span.section and common < (whole := _solid(document, reach)):
        # A section is a region, not an answer: what counts is how much of the chunk is of it.
        return 1.0 if (start, end) == place else common / whole
    whole = _solid(document, reach if span.section else place)
    return common / whole if whole else 0.0


def _solid(document: Document, place: Place) -> int:
    return solid(document.folded.text[slice(*document.folded.folded(*place))])


def _between(document: Document, place: Place) -> str:
    return document.folded.text[slice(*document.folded.folded(*place))].strip(" ")


def resolve_from_hits(
    golden: GoldenSet,
    results: Sequence[QueryResult],
    text_of: Callable[[Hit], str] = lambda hit: hit.snippet,
) -> GoldenSet:
    """Return a golden set whose open spans are resolved by the hits of a run, and by them alone.

    For systems that list no chunks. A span that stands in no hit still is something relevant that
    did not come back: an id that no chunk has (``<doc>#span-<n>``) stands for it, so that recall
    has its denominator.

    Args:
        text_of: the whole text of a hit.
    """
    hits = {result.query_id: result.hits for result in results}
    queries = []
    for query in golden.queries:
        if query.spans and any(span.chunk_ids is None for span in query.spans):
            texts = [
                (_nfc(hit.doc_id), hit.chunk_id, Folded(text_of(hit)).text)
                for hit in hits.get(query.query_id, ())
            ]
            chunks = [_among(span, number, texts) for number, span in enumerate(query.spans, 1)]
            queries.append(_resolved(query, chunks))
        else:
            queries.append(query)
    return replace(golden, queries=tuple(queries))


def _among(span: Span, number: int, texts: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    if span.chunk_ids is not None:
        return span.chunk_ids
    doc, quote = _nfc(span.doc), _folded_quote(span.quote)
    found = [
        chunk_id
        for owner, chunk_id, text in texts
        if owner == doc and quote and share(quote, text) >= HALF
    ]
    return tuple(dict.fromkeys(found)) or (f"{span.doc}#span-{number}",)


def _fault(span: Span, corpus: Corpus) -> str:
    """Return why a span cannot stand in its document, or an empty text."""
    doc = _nfc(span.doc)
    if doc not in corpus:
        return f"document {span.doc!r} is not in the corpus{nearest(span.doc, corpus.ids)}"
    document = corpus.documents.get(doc)
    if document is None:
        if not span.quote:
            return "the system lists no document texts; a span needs a quote there"
        texts = [corpus.folded(passage) for passage in corpus.passages[doc]]
        quote = _folded_quote(span.quote)
        held = any(share(quote, text) >= HALF or (text and text in quote) for text in texts)
        return "" if held else f"{_shown(span)} stands in no chunk of {span.doc!r}"
    if locate(span, document):
        return ""
    if span.section:
        titles = [title for title, *_ in document.sections]
        return f"{span.doc!r} has no section {span.section!r}{nearest(span.section, titles)}"
    if not span.quote:
        return f"{_shown(span)} is beyond the end of {span.doc!r} ({len(document.text)} characters)"
    anywhere = locate(replace(span, occurrence=None, before="", after=""), document)
    if not anywhere:
        return f"{_shown(span)} is not in {span.doc!r}{_begins(span.quote, document)}"
    around = locate(replace(span, occurrence=None), document)
    if not around:
        return f"{_shown(span)} is in {span.doc!r}, but not between the words before and after it"
    times = f"{len(around)} times" if len(around) > 1 else "once"
    return f"{_shown(span)} is in {span.doc!r} {times}: there is no occurrence {span.occurrence}"


def _begins(quote: str, document: Document) -> str:
    """Say how far a quote can be followed in a document: most were changed in one place."""
    words = _folded_quote(quote).split(" ")
    low, high = 0, len(words)
    while low < high:  # a longer beginning stands there only if each shorter one does
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _stands(words[:middle], document) else (low, middle - 1)
    if low < 2:
        return "; quote words that stand in it"
    return f"; its first words are, as far as {' '.join(words[:low])[-40:]!r}: compare what follows"


def _stands(words: Sequence[str], document: Document) -> bool:
    return " ".join(words) in document.folded.text


def _shown(span: Span) -> str:
    if span.section:
        return f"section {span.section!r}"
    if not span.quote:
        return f"[{span.start}, {span.end})"
    text = " ".join(span.quote.split())
    return f"quote {text if len(text) <= 60 else text[:57] + '...'!r}"


@lru_cache(maxsize=4096)
def _folded_quote(quote: str) -> str:
    return Folded(quote).text


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
