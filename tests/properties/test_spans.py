"""Whatever the text, a quote cut from it is found there again, and it resolves in any windows."""

from __future__ import annotations

import random
import re
import textwrap
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.golden.anchors import resolve_spans
from kebab_eval.golden.spans import Document, Folded, locate, share
from kebab_eval.records import GoldenQuery, GoldenSet, Listing, Passage, Span

CORPUS = Path(__file__).parents[2] / "fixtures" / "corpus"
PIECES = [
    "# ", "- ", "* ", "1. ", "> ", "| a | b |\n", "**", "`", "\n", "\r\n", " ", "\u200b", "가",
    "각", "가나 다라", "word ", "e\u0301", "\u1100\u1161\u11a8", "2024. ", "60", "\\",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=40).map("".join)


def _cut(text: str, one: int, other: int) -> str:
    """Return a part that begins and ends between characters as NFC composes them."""
    bounds = [0]
    for place in range(1, len(text)):
        parts = (text[:place], text[place:])
        whole = unicodedata.normalize("NFC", text)
        if "".join(unicodedata.normalize("NFC", part) for part in parts) == whole:
            bounds.append(place)
    bounds.append(len(text))
    first, last = sorted((bounds[one % len(bounds)], bounds[other % len(bounds)]))
    return text[first:last]


@settings(max_examples=400, deadline=None)
@given(texts, st.integers(0, 500), st.integers(0, 500))
def test_a_quote_is_found_where_it_was_cut(text: str, one: int, other: int) -> None:
    quote = _cut(text, one, other)
    # What a dot or a bracket at the start of a quote is depends on what stood before it.
    if not Folded(quote).text or Folded("x" + quote).text[1:].lstrip()[:1] in (".", ")", ""):
        return
    places = locate(Span("d", quote), Document(text))
    assert places
    wanted = {Folded(quote).text, Folded(quote, numbers=False).text}
    for start, end in places:
        assert 0 <= start < end <= len(text)
        part = text[start:end]
        assert {Folded(part).text, Folded(part, numbers=False).text} & wanted


@settings(max_examples=300, deadline=None)
@given(texts, texts)
def test_any_two_texts_give_a_share(one: str, other: str) -> None:
    held = share(Folded(one).text, Folded(other).text)
    assert 0 <= held <= 1


@settings(max_examples=200, deadline=None)
@given(texts)
def test_folding_is_stable_and_leads_back(text: str) -> None:
    folded = Folded(text)
    assert folded.text == folded.text.strip()
    for place in range(len(folded.text)):
        start, end = folded.origin(place, place + 1)
        assert 0 <= start < end <= len(text)
    if folded.text:
        start, end = folded.origin(0, len(folded.text))
        assert Folded(text[start:end]).text == folded.text


# --- the corpus, in windows -----------------------------------------------------------------


def _documents() -> dict[str, str]:
    notes = sorted(CORPUS.rglob("*.md"))
    return {note.relative_to(CORPUS).as_posix(): note.read_text("utf-8") for note in notes}


def _quotes(documents: dict[str, str]) -> list[Span]:
    """Five quotes of 3 to 40 words from each note."""
    chance = random.Random(7)
    spans = []
    for doc, text in documents.items():
        words = list(re.finditer(r"\S+", text))
        for _ in range(5):
            first = chance.randrange(len(words) - 40)
            last = first + chance.randrange(2, 40)
            spans.append(Span(doc, text[words[first].start() : words[last].end()]))
    return [span for span in spans if len(Folded(span.quote).text) > 10]


def _windows(documents: dict[str, str], step: int, *, placed: bool) -> Listing:
    """Sliding windows of 40 words: as parts of their document, or as words joined by blanks."""
    passages = []
    for doc, text in documents.items():
        words = list(re.finditer(r"\S+", text))
        for first in range(0, max(1, len(words) - 40 + step), step):
            held = words[first : first + 40]
            if not held:
                continue
            name = f"{doc}#{first}"
            if placed:
                start, end = held[0].start(), held[-1].end()
                passages.append(Passage(name, doc, text[start:end], start, end))
            else:
                passages.append(Passage(name, doc, " ".join(word[0] for word in held)))
    return Listing(tuple(passages), documents if placed else {})


def _rewrapped(text: str) -> str:
    wrapper = textwrap.TextWrapper(50, break_long_words=False, break_on_hyphens=False)
    parts = text.split("\n\n")
    return "\n\n".join(wrapper.fill(part) if part[:1].isalpha() else part for part in parts)


def _other_marks(text: str) -> str:
    text = re.sub(r"^(\s*)- ", r"\1* ", text, flags=re.MULTILINE)
    return re.sub(r"^(\s*)(\d+)\. ", r"\1\2) ", text, flags=re.MULTILINE)


CHANGES = {
    "same": lambda text: text,
    "rewrapped": _rewrapped,
    "nfd": lambda text: unicodedata.normalize("NFD", text),
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "marks": _other_marks,
}


@pytest.mark.parametrize("placed", [True, False], ids=["places", "texts alone"])
@pytest.mark.parametrize("step", [32, 30])
@pytest.mark.parametrize("change", CHANGES)
def test_every_anchor_resolves_in_windows(change: str, step: int, placed: bool) -> None:
    documents = _documents()
    spans = _quotes(documents)
    assert len(spans) > 480
    changed = {doc: CHANGES[change](text) for doc, text in documents.items()}
    query = GoldenQuery("q", "t", spans=tuple(spans))
    listing = _windows(changed, step, placed=placed)
    resolved, faults = resolve_spans(GoldenSet("g", "1", "x", (query,)), listing)
    assert faults == []
    texts = {passage.chunk_id: Folded(passage.text).text for passage in listing.passages}
    for span in resolved.queries[0].spans:
        assert span.chunk_ids
        # 40 words against windows of 40 that overlap: one window always holds half.
        assert max(share(Folded(span.quote).text, texts[chunk]) for chunk in span.chunk_ids) >= 0.5
