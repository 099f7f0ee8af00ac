"""Doubts about a golden set that need the corpus: its texts and its chunks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from kebab_eval.errors import Fault
from kebab_eval.golden.anchors import Corpus
from kebab_eval.golden.entries import Entry
from kebab_eval.golden.registry import Parsed
from kebab_eval.golden.spans import locate

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_OCR = re.compile(r"^ocr_derived:\s*true\s*$", re.IGNORECASE | re.MULTILINE)
_SHOWN = 3
_MANY = 5  # stale queries, from which on a common cause is looked for
_SPANS_COUNT = "the spans count, 'kebab-eval golden migrate' rewrites the ids"


def corpus_warnings(entries: Sequence[Entry], parsed: Parsed, corpus: Corpus) -> Iterator[Fault]:
    """Yield every doubt, its code with it.

    Args:
        entries: the queries with their spans resolved to chunks.
    """
    texts = {p.chunk_id: _nfc(p.text) for ps in corpus.passages.values() for p in ps}
    owners = {_nfc(p.chunk_id): doc for doc, ps in corpus.passages.items() for p in ps}
    scans = {doc for doc, held in corpus.documents.items() if _is_scan(held.text)}
    least = parsed.min_relevance
    yield from _stale_chunks(entries, parsed.entries)
    for number, entry in enumerate(entries):
        yield from _quotes(entry, corpus)
        yield from _other_documents(entry, parsed.entries[number], corpus, owners)
        yield from _answers(entry, corpus, texts, least)
        if scans:
            yield from _scans(entry, scans, least)


def _place(entry: Entry, *fields: str) -> str:
    return next((entry.places[f] for f in fields if f in entry.places), entry.query.place)


def _quotes(entry: Entry, corpus: Corpus) -> Iterator[Fault]:
    for span in entry.query.spans:
        document = corpus.documents.get(_nfc(span.doc))
        if document is None or not span.quote or span.occurrence or span.start is not None:
            continue
        places = len(locate(span, document))
        if places > 1:
            message = (
                f"the quote stands {places} times in {span.doc!r} and each counts; say which with "
                "occurrence, before or after, or quote more"
            )
            yield Fault(span.place, message, "ambiguous-quote")


def _stale_chunks(entries: Sequence[Entry], written: Sequence[Entry]) -> Iterator[Fault]:
    """Say where the chunk ids that stand in the file are not those that the spans name."""
    stale: list[Fault] = []
    both = 0
    for entry, as_written in zip(entries, written, strict=True):
        listed, now = as_written.query.judgments.chunk, entry.query.judgments.chunk
        if not entry.query.spans or not listed:
            continue
        both += 1
        if set(map(_nfc, listed)) == set(map(_nfc, now)):
            continue
        parts = [
            f"{word} {', '.join(map(repr, items[:_SHOWN]))}{' …' if len(items) > _SHOWN else ''}"
            for word, items in (
                ("not", [item for item in listed if item not in now]),
                ("but", [item for item in now if item not in listed]),
            )
            if items
        ]
        message = f"by the spans it is {' '.join(parts)}; {_SPANS_COUNT}"
        stale.append(Fault(_place(as_written, "expected_chunk_ids"), message, "stale-chunk"))
    if len(stale) >= _MANY and len(stale) * 2 > both:
        # One cause, which a line for each query would only hide.
        message = (
            f"the chunk ids of {len(stale)} of {both} queries are of other chunk settings than "
            f"this config's; {_SPANS_COUNT}"
        )
        stale = [Fault(stale[0].place, message, "stale-chunk")]
    yield from stale


def _other_documents(
    entry: Entry, written: Entry, corpus: Corpus, owners: dict[str, str]
) -> Iterator[Fault]:
    """Say where a chunk or a span is of a document that the query does not judge."""
    documents = set(map(_nfc, entry.query.judgments.doc))
    if not documents:
        return
    # Where there are spans, they say which chunks are meant; stale ids are told on their own.
    named = [
        (f"the span is of {span.doc!r}", span.doc, span.place)
        for span in entry.query.spans
        if _nfc(span.doc) in corpus  # else that is what is wrong with it
    ] or [
        (f"chunk {item!r} is of {owners[item]!r}", owners[item], place)
        for (level, item), place in written.id_places.items()
        if level == "chunk" and item in owners and not entry.query.spans
    ]
    for said, doc, place in named:
        if _nfc(doc) not in documents:
            message = (
                f"{said}, which the query does not judge: to the metrics of documents it is not "
                "relevant; add the document, or mend this"
            )
            yield Fault(place, message, "other-document")


def _answers(entry: Entry, corpus: Corpus, texts: dict[str, str], least: float) -> Iterator[Fault]:
    query = entry.query
    if not (query.must_contain or query.forbidden):
        return
    chunks = [c for c, grade in query.judgments.chunk.items() if grade >= least]
    held = [texts[chunk] for chunk in chunks if chunk in texts]
    documents = [_nfc(d) for d, grade in query.judgments.doc.items() if grade >= least]
    whole = [_nfc(corpus.documents[d].text) for d in documents if d in corpus.documents]
    expected, what = (held, "chunk") if held else (whole, "document")
    if expected:
        for text in query.must_contain:
            if not any(_nfc(text) in one for one in expected):
                aside = (
                    " (an expected document holds it)"
                    if any(_nfc(text) in one for one in whole)
                    else ""
                )
                message = f"{text!r} stands in no expected {what}{aside}"
                yield Fault(_place(entry, "must_contain"), message, "must-contain")
    for text in query.forbidden:
        if any(_nfc(text) in one for one in held):
            message = f"{text!r} stands in an expected chunk, which a right answer may quote"
            yield Fault(_place(entry, "forbidden"), message, "forbidden")


def _scans(entry: Entry, scans: set[str], least: float) -> Iterator[Fault]:
    query = entry.query
    judged = {_nfc(doc): grade for doc, grade in query.judgments.doc.items() if grade >= least}
    if query.ocr_derived is None or not judged:
        return
    place = _place(entry, "ocr_derived")
    if query.ocr_derived and not scans & judged.keys():
        message = "ocr_derived is true, but no relevant document is marked as a scan"
        yield Fault(place, message, "ocr")
    best = {doc for doc, grade in judged.items() if grade == max(judged.values())}
    if not query.ocr_derived and best <= scans:
        yield Fault(place, "ocr_derived is false, but what answers best is a scan", "ocr")


def _is_scan(text: str) -> bool:
    """Say whether a document's front matter marks it; what its body says of scans does not."""
    front = _FRONT_MATTER.match(text)
    return front is not None and _OCR.search(front[1]) is not None


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
