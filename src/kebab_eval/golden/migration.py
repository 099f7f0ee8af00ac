"""From the chunk ids of one chunker to those of another."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kebab_eval.golden.anchors import HALF, Corpus, chunk_shares
from kebab_eval.golden.spans import Folded, share
from kebab_eval.records import GoldenQuery, Passage, Span

Outcome = Literal["kept", "moved", "split", "merged", "lost"]
OUTCOMES: tuple[Outcome, ...] = ("kept", "moved", "split", "merged", "lost")


@dataclass(frozen=True, slots=True)
class Migration:
    """What became of the expected chunks of one query.

    Attributes:
        outcome: ``kept`` the same ids; ``moved`` as many others; ``split`` more; ``merged`` fewer;
            ``lost`` some have no successor.
        lost: those, each with why.
    """

    query_id: str
    outcome: Outcome
    before: tuple[str, ...]
    after: tuple[str, ...]
    lost: tuple[tuple[str, str], ...] = ()
    by_span: bool = False


def migrate_query(query: GoldenQuery, old: Corpus, new: Corpus) -> Migration:
    """Return the chunks of another chunker that stand for the expected ones.

    A query with spans expects the chunks that hold them. Otherwise an old chunk marks a region of
    its document, and a new one stands for it when it holds at least half of that region, or lies at
    least half within it.
    """
    before = tuple(query.judgments.chunk)
    lost: list[tuple[str, str]] = []
    found: dict[str, None] = {}
    if query.spans:
        for span in query.spans:
            held = _of_span(span, new)
            found.update(dict.fromkeys(held))
            if not held:
                lost.append((f"span {span.quote or span.section!r}"[:80], "is not in its document"))
    else:
        passages = {_nfc(p.chunk_id): p for listed in old.passages.values() for p in listed}
        for chunk_id in before:
            passage = passages.get(_nfc(chunk_id))
            if passage is None:
                lost.append((chunk_id, "is no chunk of the old config"))
                continue
            held = _of_region(passage, new)
            found.update(dict.fromkeys(held))
            if not held:
                lost.append((chunk_id, "no new chunk holds half of it, or lies half within it"))
    after = tuple(found)
    return Migration(
        query.query_id, _outcome(before, after, lost), before, after, tuple(lost), bool(query.spans)
    )


def _outcome(
    before: Sequence[str], after: Sequence[str], lost: Sequence[tuple[str, str]]
) -> Outcome:
    if lost:
        return "lost"
    if set(map(_nfc, before)) == set(map(_nfc, after)):
        return "kept"
    if len(after) == len(before):
        return "moved"
    return "split" if len(after) > len(before) else "merged"


def _of_span(span: Span, corpus: Corpus) -> list[str]:
    shares = list(chunk_shares(span, corpus))
    best = max((held for _, held in shares), default=0.0)
    return [chunk for chunk, held in shares if held > 0 and held >= min(HALF, best)]


def _of_region(passage: Passage, corpus: Corpus) -> list[str]:
    listed = corpus.passages.get(_nfc(passage.doc_id), [])
    if passage.start is None or passage.end is None:
        region = Folded(passage.text).text
        return [
            other.chunk_id
            for other in listed
            if max(share(region, corpus.folded(other)), share(corpus.folded(other), region)) >= HALF
        ]
    found = []
    for other in listed:
        if other.start is None or other.end is None:
            continue
        common = min(other.end, passage.end) - max(other.start, passage.start)
        smaller = min(other.end - other.start, passage.end - passage.start)
        if smaller and common >= HALF * smaller:
            found.append(other.chunk_id)
    return found


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
